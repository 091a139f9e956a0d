//! The decision about one call. Every access of the call is judged and the strictest answer counts.

use std::path::{Path, PathBuf};

use qoder_types::{Behavior, Decision, DecisionLayer, PermissionMode};

use super::command::{CommandPattern, CommandReading, read_command, views};
use super::danger::{self, Danger};
use super::pattern::PathPattern;
use super::rule::{Rule, RuleSet};

/// The places that rules and modes speak of. All paths are real paths.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The directory the session was started in; relative patterns of rules start here.
    pub cwd: PathBuf,
    /// Root of the project.
    pub project_root: PathBuf,
    /// The person's home.
    pub home: PathBuf,
    /// Directories the session may work in.
    pub roots: Vec<PathBuf>,
    /// The program's own configuration directory.
    pub config_dir: PathBuf,
}

impl Workspace {
    fn contains(&self, path: &Path) -> bool {
        let special = ["/proc", "/sys", "/dev"].iter().any(|dir| path.starts_with(dir));
        !special && self.roots.iter().any(|root| path.starts_with(root))
    }
}

/// What a call would touch, with paths resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedAccess {
    /// Reads this place.
    Read {
        /// The path as written, made absolute and normalised.
        lexical: PathBuf,
        /// The path with links resolved.
        real: PathBuf,
    },
    /// Changes this place.
    Edit {
        /// The path as written, made absolute and normalised.
        lexical: PathBuf,
        /// The path with links resolved.
        real: PathBuf,
    },
    /// Runs this command.
    Command(String),
    /// Sends a request to this URL.
    Fetch(String),
    /// Needs a person's answer each time.
    Person,
    /// Touches nothing outside the session.
    Internal,
    /// Not in the gate's words.
    Other,
}

/// One call to decide about.
#[derive(Debug)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Everything the call would touch.
    pub accesses: &'a [ResolvedAccess],
    /// The mode the session is in.
    pub mode: PermissionMode,
    /// False in a folder that nobody vouched for: modes that loosen do not.
    pub trusted: bool,
    /// The rules in force.
    pub rules: &'a RuleSet,
    /// The places.
    pub workspace: &'a Workspace,
    /// Where relative paths of a command start.
    pub cwd: &'a Path,
}

/// Decides. Pure; total over any input.
#[must_use]
pub fn decide(question: &Question<'_>) -> Decision {
    let mode = effective_mode(question.mode, question.trusted);
    let judge = Judge { question, mode };
    let accesses = question.accesses;
    if let Some(rule) = judge.first_match(&question.rules.deny, Matching::Widest) {
        return judge.by_rule(Behavior::Deny, rule);
    }
    if let Some(reason) = accesses.iter().find_map(|access| judge.never_automatic(access)) {
        return judge.closed(reason);
    }
    if let Some(rule) = judge.first_match(&question.rules.ask, Matching::Widest) {
        return judge.by_rule(Behavior::Ask, rule);
    }
    if mode == PermissionMode::Plan && accesses.iter().any(|access| !judge.is_read(access)) {
        return judge.say(Behavior::Deny, DecisionLayer::Mode, "plan mode makes no changes".to_owned());
    }
    if let Some(reason) = accesses.iter().find_map(|access| judge.not_unless_named(access)) {
        return judge.closed(reason);
    }
    if let Some(rule) = judge.allowing_rule() {
        return judge.by_rule(Behavior::Allow, rule);
    }
    judge.by_knowledge_and_mode()
}

fn effective_mode(mode: PermissionMode, trusted: bool) -> PermissionMode {
    match mode {
        PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::BypassPermissions
            if !trusted =>
        {
            PermissionMode::Default
        }
        other => other,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Matching {
    /// For deny and ask: either path, also past the command's directory.
    Widest,
    /// For allow: both paths, the command as written.
    Narrowest,
}

struct Judge<'a> {
    question: &'a Question<'a>,
    mode: PermissionMode,
}

impl<'a> Judge<'a> {
    fn say(&self, behavior: Behavior, layer: DecisionLayer, reason: String) -> Decision {
        Decision { behavior, layer, rule: None, origin: None, mode: self.mode, reason }
    }

    fn by_rule(&self, behavior: Behavior, rule: &Rule) -> Decision {
        let verb = match behavior {
            Behavior::Allow => "allowed",
            Behavior::Ask => "to be asked about",
            Behavior::Deny => "denied",
        };
        Decision {
            behavior,
            layer: DecisionLayer::Rule,
            rule: Some(rule.text.clone()),
            origin: Some(rule.origin.clone()),
            mode: self.mode,
            reason: format!("{} is {verb} by the rule `{}`", self.question.tool, rule.text),
        }
    }

    fn first_match(&self, rules: &'a [Rule], matching: Matching) -> Option<&'a Rule> {
        rules.iter().find(|rule| {
            rule.covers_whole(self.question.tool)
                || self.question.accesses.iter().any(|access| self.speaks_of(rule, access, matching))
        })
    }

    /// A call is allowed by rules when each of its accesses is.
    fn allowing_rule(&self) -> Option<&'a Rule> {
        let rules = &self.question.rules.allow;
        let whole = rules.iter().find(|rule| rule.covers_whole(self.question.tool));
        let mut deciding = whole.filter(|_| self.question.accesses.is_empty());
        for access in self.question.accesses {
            let named = rules.iter().find(|rule| self.speaks_of(rule, access, Matching::Narrowest));
            // A rule for the whole tool covers edits of ordinary files in the workspace, and no others.
            let edit = matches!(access, ResolvedAccess::Edit { .. });
            let rule = named.or(whole.filter(|_| !edit || self.is_workspace_edit(access)));
            match rule {
                Some(rule) => deciding = Some(rule),
                None if self.is_workspace_read(access) => {}
                None => return None,
            }
        }
        deciding
    }

    fn speaks_of(&self, rule: &Rule, access: &ResolvedAccess, matching: Matching) -> bool {
        let Some(content) = &rule.content else { return false };
        match access {
            ResolvedAccess::Command(text) => {
                let CommandReading::Words(words) = read_command(text) else { return false };
                match (rule.tool.as_str(), matching) {
                    ("Bash", Matching::Narrowest) => {
                        CommandPattern::parse(content).is_some_and(|pattern| pattern.covers(&words))
                    }
                    ("Bash", Matching::Widest) => CommandPattern::parse(content)
                        .is_none_or(|pattern| views(&words).0.iter().any(|view| pattern.covers(view))),
                    ("Read" | "Edit" | "Write" | "NotebookEdit", Matching::Widest) => {
                        self.names_path(content, &words)
                    }
                    _ => false,
                }
            }
            ResolvedAccess::Read { lexical, real } => {
                // The right to edit a place includes reading it; a ban on editing does not forbid reading.
                let reads = rule.tool == "Read" || (rule.tool == "Edit" && matching == Matching::Narrowest);
                reads && self.path_match(content, lexical, real, matching, false)
            }
            ResolvedAccess::Edit { lexical, real } => {
                // A file that may not be read may not be edited either.
                let edits = matches!(rule.tool.as_str(), "Edit" | "Write" | "NotebookEdit")
                    || (rule.tool == "Read" && matching == Matching::Widest);
                edits && self.path_match(content, lexical, real, matching, true)
            }
            ResolvedAccess::Fetch(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => false,
        }
    }

    /// True when a word of a command names a place that the pattern covers.
    fn names_path(&self, content: &str, words: &[String]) -> bool {
        let workspace = self.question.workspace;
        let Some(pattern) = PathPattern::compile(content, workspace) else { return true };
        let parts = words.iter().skip(1).flat_map(|word| word.split('='));
        parts.filter(|part| !part.is_empty() && !part.starts_with('-')).any(|part| {
            let path = match part.strip_prefix("~/") {
                Some(rest) => workspace.home.join(rest),
                None => self.question.cwd.join(part),
            };
            pattern.covers(&danger::normalise(&path))
        })
    }

    fn path_match(&self, content: &str, lexical: &Path, real: &Path, matching: Matching, edit: bool) -> bool {
        let Some(pattern) = PathPattern::compile(content, self.question.workspace) else {
            // A pattern that cannot be read must not silently lose a denial.
            return matching == Matching::Widest;
        };
        match matching {
            Matching::Widest => pattern.covers(lexical) || pattern.covers(real),
            Matching::Narrowest => {
                let protected = edit && (self.is_protected(lexical) || self.is_protected(real));
                pattern.covers(lexical) && pattern.covers(real) && (pattern.is_literal() || !protected)
            }
        }
    }

    fn is_protected(&self, path: &Path) -> bool {
        is_protected(path, self.question.workspace)
    }

    fn touches_protected(&self, access: &ResolvedAccess) -> bool {
        match access {
            ResolvedAccess::Edit { lexical, real } => self.is_protected(lexical) || self.is_protected(real),
            ResolvedAccess::Read { .. }
            | ResolvedAccess::Command(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => false,
        }
    }

    fn is_read(&self, access: &ResolvedAccess) -> bool {
        matches!(access, ResolvedAccess::Read { .. } | ResolvedAccess::Internal)
    }

    fn is_workspace_read(&self, access: &ResolvedAccess) -> bool {
        match access {
            ResolvedAccess::Internal => true,
            ResolvedAccess::Read { lexical, real } => {
                self.question.workspace.contains(lexical) && self.question.workspace.contains(real)
            }
            ResolvedAccess::Edit { .. }
            | ResolvedAccess::Command(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Other => false,
        }
    }

    fn is_workspace_edit(&self, access: &ResolvedAccess) -> bool {
        match access {
            ResolvedAccess::Edit { lexical, real } => {
                let inside =
                    self.question.workspace.contains(lexical) && self.question.workspace.contains(real);
                inside && !self.touches_protected(access)
            }
            ResolvedAccess::Read { .. } | ResolvedAccess::Internal => self.is_workspace_read(access),
            ResolvedAccess::Command(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Other => false,
        }
    }

    /// What no rule and no mode makes automatic.
    fn never_automatic(&self, access: &ResolvedAccess) -> Option<String> {
        let ResolvedAccess::Command(text) = access else { return None };
        if danger::look(text, self.question.cwd, self.question.workspace) == Some(Danger::System) {
            let what = "removing the root, the home directory or a system directory is never automatic";
            return Some(what.to_owned());
        }
        let understood = match read_command(text) {
            CommandReading::Words(words) => !views(&words).1,
            CommandReading::NotUnderstood => false,
        };
        let judges_commands = |rule: &Rule| {
            matches!(rule.tool.as_str(), "Bash" | "Read" | "Edit" | "Write") && rule.content.is_some()
        };
        (!understood && self.question.rules.deny.iter().any(judges_commands)).then(|| {
            "the command is not one plain command, so it cannot be shown that no deny rule speaks of it"
                .to_owned()
        })
    }

    /// What outside bypass no broad rule and no mode covers.
    fn not_unless_named(&self, access: &ResolvedAccess) -> Option<String> {
        let ResolvedAccess::Command(text) = access else { return None };
        if self.mode == PermissionMode::BypassPermissions {
            return None;
        }
        match danger::look(text, self.question.cwd, self.question.workspace)? {
            Danger::System | Danger::Workspace => {
                Some("removing the workspace or a folder above it is never automatic".to_owned())
            }
            Danger::Privilege => {
                let named = self
                    .question
                    .rules
                    .allow
                    .iter()
                    .any(|rule| self.speaks_of(rule, access, Matching::Narrowest));
                (!named).then(|| "taking privileges needs a rule that names exactly this command".to_owned())
            }
        }
    }

    /// Asks, or denies in the modes that never ask.
    fn closed(&self, reason: String) -> Decision {
        let behavior = match self.mode {
            PermissionMode::Auto | PermissionMode::DontAsk | PermissionMode::Plan => Behavior::Deny,
            PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::BypassPermissions => {
                Behavior::Ask
            }
        };
        self.say(behavior, DecisionLayer::SafetyCheck, reason)
    }

    fn by_knowledge_and_mode(&self) -> Decision {
        let accesses = self.question.accesses;
        let tool = self.question.tool;
        if !accesses.is_empty() && accesses.iter().all(|access| self.is_workspace_read(access)) {
            let reason = format!("{tool} only reads inside the workspace");
            return self.say(Behavior::Allow, DecisionLayer::BuiltIn, reason);
        }
        let edits = !accesses.is_empty() && accesses.iter().all(|access| self.is_workspace_edit(access));
        let because = self.why_not();
        let (behavior, reason) = match self.mode {
            PermissionMode::BypassPermissions => {
                (Behavior::Allow, "bypassPermissions runs everything that is not denied".to_owned())
            }
            PermissionMode::AcceptEdits | PermissionMode::Auto if edits => {
                (Behavior::Allow, format!("{} accepts edits inside the workspace", self.mode.as_str()))
            }
            PermissionMode::Auto => (Behavior::Deny, format!("{because}, and auto mode never asks")),
            PermissionMode::DontAsk => (Behavior::Deny, format!("{because}, and dontAsk mode never asks")),
            PermissionMode::Plan => (Behavior::Deny, format!("{because}, and plan mode only reads")),
            PermissionMode::Default | PermissionMode::AcceptEdits => (Behavior::Ask, because),
        };
        self.say(behavior, DecisionLayer::Mode, reason)
    }

    fn why_not(&self) -> String {
        let tool = self.question.tool;
        for access in self.question.accesses {
            match access {
                ResolvedAccess::Command(_) => return format!("{tool} runs a command that no rule allows"),
                ResolvedAccess::Edit { real, .. } if self.touches_protected(access) => {
                    return format!("{} is a protected file", real.display());
                }
                ResolvedAccess::Edit { real, .. } if !self.is_workspace_edit(access) => {
                    return format!("{} is outside the workspace", real.display());
                }
                ResolvedAccess::Edit { real, .. } => return format!("{tool} changes {}", real.display()),
                ResolvedAccess::Read { real, .. } if !self.is_workspace_read(access) => {
                    return format!("{} is outside the workspace", real.display());
                }
                ResolvedAccess::Read { .. } | ResolvedAccess::Internal => {}
                ResolvedAccess::Fetch(_) | ResolvedAccess::Person | ResolvedAccess::Other => {
                    return format!("{tool} needs permission");
                }
            }
        }
        format!("{tool} needs permission")
    }
}

/// What searches must pass over: places whose reading a rule denies or wants to be asked about. `None` is nothing.
pub fn hidden_from_search(
    rules: &RuleSet,
    workspace: &Workspace,
) -> Option<impl Fn(&Path) -> bool + Send + Sync + use<>> {
    let mut patterns = Vec::new();
    let mut everything = false;
    for rule in rules.deny.iter().chain(&rules.ask).filter(|rule| rule.tool == "Read") {
        let Some(content) = &rule.content else {
            everything = true;
            continue;
        };
        match PathPattern::compile(content, workspace) {
            Some(pattern) => patterns.push(pattern),
            // A pattern that cannot be read must not silently lose a denial.
            None => everything = true,
        }
    }
    (everything || !patterns.is_empty())
        .then_some(move |path: &Path| everything || patterns.iter().any(|pattern| pattern.covers(path)))
}

/// Files that make another program run code later. `acceptEdits`, `auto` and broad rules do not cover them.
#[must_use]
pub fn is_protected(path: &Path, workspace: &Workspace) -> bool {
    const FOLDERS: [&str; 17] = [
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".bzr",
        ".qoder",
        ".claude",
        ".vscode",
        ".idea",
        ".husky",
        ".zed",
        ".cursor",
        ".devcontainer",
        ".cargo",
        ".githooks",
        ".direnv",
        ".ssh",
    ];
    const FILES: [&str; 46] = [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".envrc",
        ".env.fish",
        "config.fish",
        ".gitconfig",
        ".gitmodules",
        ".gitattributes",
        ".mcp.json",
        "mcp.json",
        ".ripgreprc",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        ".inputrc",
        ".direnvrc",
        ".mise.toml",
        "mise.toml",
        ".tool-versions",
        ".pre-commit-config.yaml",
        ".lefthook.yml",
        "lefthook.yml",
        ".vimrc",
        ".exrc",
        ".nvimrc",
        ".gdbinit",
        ".lldbinit",
        ".pythonrc",
        ".condarc",
        ".netrc",
        ".pypirc",
        ".hgrc",
    ];
    if path.starts_with(&workspace.config_dir) || path.starts_with(workspace.home.join(".ssh")) {
        return true;
    }
    let folded = |name: &std::ffi::OsStr| name.to_string_lossy().to_lowercase();
    // Folders above the workspace say nothing about what is in it.
    let inside = workspace.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    inside.components().any(|part| FOLDERS.contains(&folded(part.as_os_str()).as_str()))
        || path.file_name().is_some_and(|name| FILES.contains(&folded(name).as_str()))
}
