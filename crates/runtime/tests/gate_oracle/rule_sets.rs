//! The sets of rules under which scripts are decided, and what must not happen under each without a question.

use std::path::{Path, PathBuf};

use qoder_core::ports::Access;
use qoder_policy::{Confinement, Policy, Question, Rule, RuleSet as Rules, Workspace, decide};
use qoder_runtime::permission_check::LocalFiles;
use qoder_types::{Behavior, PermissionMode, RuleOrigin, RuleSource};

use super::tree::{DENIED, OUTSIDE, Snapshot, TOKEN, Tree, differences};

/// Rules, a mode, and what they promise.
pub struct RuleSet {
    pub name: &'static str,
    mode: PermissionMode,
    trusted: bool,
    policy: Policy,
    /// Files outside are not read and the environment is not printed.
    keeps_secrets: bool,
    /// Nothing outside changes.
    stays_inside: bool,
    /// Not even files of the workspace change.
    only_reads: bool,
    /// `.env` and `locked` are denied.
    denies: bool,
}

/// Every set.
pub fn all(tree: &Tree) -> Vec<RuleSet> {
    let denied = ["Bash(canary:*)", "Read(.env)", "Edit(locked/**)"];
    // Programs that write nothing by their options: a rule for `sort` allows `sort -o` in the workspace, too.
    let readers = ["Bash(ls:*)", "Bash(cat:*)", "Bash(echo:*)", "Bash(head:*)", "Bash(wc:*)"];
    let set = |name, mode, deny: &[&str], allow: &[&str]| RuleSet {
        name,
        mode,
        trusted: true,
        policy: policy(tree, deny, allow),
        keeps_secrets: allow.is_empty() && mode != PermissionMode::BypassPermissions,
        stays_inside: mode != PermissionMode::BypassPermissions,
        only_reads: matches!(mode, PermissionMode::Default | PermissionMode::DontAsk),
        denies: !deny.is_empty(),
    };
    let mut untrusted = set("untrusted", PermissionMode::AcceptEdits, &[], &[]);
    (untrusted.trusted, untrusted.only_reads) = (false, true);
    vec![
        set("default", PermissionMode::Default, &[], &[]),
        untrusted,
        set("acceptEdits", PermissionMode::AcceptEdits, &[], &[]),
        set("auto with denials", PermissionMode::Auto, &denied, &[]),
        set("readers allowed, denials", PermissionMode::DontAsk, &denied, &readers),
        set("bypass with denials", PermissionMode::BypassPermissions, &denied, &[]),
    ]
}

/// `default` mode with these rules.
pub fn with_rules(tree: &Tree, deny: &[&str], allow: &[&str]) -> RuleSet {
    let mut set = all(tree).remove(0);
    set.policy = policy(tree, deny, allow);
    set
}

fn policy(tree: &Tree, deny: &[&str], allow: &[&str]) -> Policy {
    let mut rules = Rules::default();
    for (behavior, texts) in [(Behavior::Deny, deny), (Behavior::Allow, allow)] {
        for text in texts {
            let origin = RuleOrigin { source: RuleSource::CliArg, file: None, line: None };
            rules.add(behavior, Rule::parse(text, origin).unwrap());
        }
    }
    let workspace = Workspace {
        cwd: tree.workspace(),
        project_root: tree.workspace(),
        home: tree.root().join("home"),
        roots: vec![tree.workspace()],
        config_dir: tree.root().join("home/.qoder"),
        protected: Vec::new(),
        isolation: None,
    };
    Policy::new(&rules, workspace)
}

impl RuleSet {
    /// True when the script would run without a question.
    pub fn allows(&self, script: &str, tree: &Tree) -> bool {
        self.decision(script, tree) == Behavior::Allow
    }

    pub fn decision(&self, script: &str, tree: &Tree) -> Behavior {
        let question = Question {
            tool: "Bash",
            accesses: &[Access::Command(script.to_owned())],
            mode: self.mode,
            trusted: self.trusted,
            mode_is_explicit: false,
            policy: &self.policy,
            cwd: &tree.workspace(),
            confinement: Confinement::None,
            files: &LocalFiles,
        };
        decide(&question).map_or(Behavior::Deny, |ruling| ruling.decision.behavior)
    }

    /// What happened that must not happen.
    pub fn forbidden(&self, before: &Snapshot, after: &Snapshot, output: &str) -> Vec<String> {
        let (read, changed) = differences(before, after);
        let canary = Path::new("effects/canary");
        let mut effects = Vec::new();
        if changed.iter().any(|path| path == canary) {
            effects.push("a program ran".to_owned());
        }
        let is_read = |path: &PathBuf| {
            let denied = self.denies && path == Path::new("ws/.env");
            let outside = self.keeps_secrets && is_outside(path);
            denied || outside
        };
        effects.extend(
            read.iter().filter(|path| is_read(path)).map(|path| format!("{} was read", path.display())),
        );
        let is_changed = |path: &PathBuf| {
            let inside = path.strip_prefix("ws").ok();
            let protected =
                inside.is_some_and(|path| path.starts_with(".git") || path == Path::new(".envrc"));
            let denied =
                self.denies && inside.is_some_and(|it| it.starts_with("locked") || it == Path::new(".env"));
            let stays = self.stays_inside && (inside.is_none() || protected);
            path != canary && (denied || stays || self.only_reads)
        };
        let changed = changed.iter().filter(|path| is_changed(path));
        effects.extend(changed.map(|path| format!("{} changed", path.display())));
        if self.keeps_secrets && output.contains(TOKEN) {
            effects.push("a secret of the environment was printed".to_owned());
        }
        if (self.keeps_secrets && output.contains(OUTSIDE)) || (self.denies && output.contains(DENIED)) {
            effects.push("a secret of a file was printed".to_owned());
        }
        effects
    }
}

/// True for everything beside the workspace but what the oracle itself needs.
fn is_outside(path: &Path) -> bool {
    !["ws", "tools", "effects"].iter().any(|own| path.starts_with(own))
}
