//! Rules made ready to be compared: patterns compiled once for a workspace, not once per decision. One [`Policy`] serves
//! every call of a session until its rules or directories change.

use std::collections::HashMap;
use std::path::Path;

use qoder_types::Behavior;

use super::domain::DomainPattern;
use super::pattern::PathPattern;
use super::places::Workspace;
use super::rule::{Rule, RuleSet};
use super::words::CommandPattern;

/// What a rule's content is compared with.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing: the rule covers the whole tool.
    Whole,
    /// Commands.
    Command(CommandPattern),
    /// Paths; `None` when the pattern is not a valid glob: it then covers every path for deny and none for allow.
    Path(Option<PathPattern>),
    /// Hosts.
    Domain(DomainPattern),
    /// Names, as of agents: `Agent(a, b)`.
    Names(Vec<String>),
}

/// A rule ready to be compared.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    pub(super) content: Content,
}

impl Compiled {
    fn new(rule: &Rule, workspace: &Workspace) -> Self {
        let content = match &rule.content {
            None => Content::Whole,
            Some(text) => match rule.tool.as_str() {
                // Reading the rule has refused any other content.
                "Bash" => {
                    CommandPattern::parse(text).map_or_else(|| Content::Names(Vec::new()), Content::Command)
                }
                "WebFetch" => {
                    DomainPattern::parse(text).map_or_else(|| Content::Names(Vec::new()), Content::Domain)
                }
                "Read" | "Edit" | "Write" | "NotebookEdit" | "Glob" | "Grep" => {
                    Content::Path(PathPattern::compile(text, workspace))
                }
                _ => Content::Names(text.split(',').map(|name| name.trim().to_owned()).collect()),
            },
        };
        Self { rule: rule.clone(), content }
    }
}

/// The programs that a call starts.
pub(super) enum Programs<'a> {
    /// These, by the names in the command and by their last parts.
    Named(Vec<&'a str>),
    /// At least one of them is not known.
    Unknown,
}

/// Rules of one kind, with those about commands found by the program they name: a call looks at the few that can speak of
/// it and not at all of them.
#[derive(Debug, Default)]
pub(super) struct RuleList {
    rules: Vec<Compiled>,
    by_program: HashMap<String, Vec<usize>>,
    /// Everything that is not about one known program.
    general: Vec<usize>,
}

impl RuleList {
    fn new(rules: &[Rule], workspace: &Workspace) -> Self {
        let mut list = Self::default();
        for rule in rules {
            let rule = Compiled::new(rule, workspace);
            let at = list.rules.len();
            match &rule.content {
                Content::Command(pattern) => match pattern.program() {
                    Some(program) => list.by_program.entry(program.to_owned()).or_default().push(at),
                    None => list.general.push(at),
                },
                Content::Whole | Content::Path(_) | Content::Domain(_) | Content::Names(_) => {
                    list.general.push(at);
                }
            }
            list.rules.push(rule);
        }
        list
    }

    /// All of them.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Compiled> {
        self.rules.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Those that can speak of a call that starts these programs.
    pub(super) fn about<'a>(
        &'a self,
        programs: &Programs<'_>,
    ) -> impl Iterator<Item = &'a Compiled> + use<'a> {
        let places: Vec<usize> = match programs {
            Programs::Unknown => (0..self.rules.len()).collect(),
            Programs::Named(names) => {
                let named = names.iter().filter_map(|name| self.by_program.get(*name)).flatten();
                self.general.iter().chain(named).copied().collect()
            }
        };
        places.into_iter().map(|at| &self.rules[at])
    }
}

/// The rules in force, ready to be compared, and the places they speak of.
#[derive(Debug)]
pub struct Policy {
    pub(super) workspace: Workspace,
    pub(super) deny: RuleList,
    pub(super) ask: RuleList,
    pub(super) allow: RuleList,
    /// True when a deny rule names commands or files: what cannot be read may then be what it denies.
    pub(super) denies_by_content: bool,
    /// True when a deny or ask rule names files.
    pub(super) guards_files: bool,
}

impl Policy {
    /// Makes rules ready.
    #[must_use]
    pub fn new(rules: &RuleSet, workspace: Workspace) -> Self {
        let compile = |rules: &[Rule]| RuleList::new(rules, &workspace);
        let (deny, ask, allow) = (compile(&rules.deny), compile(&rules.ask), compile(&rules.allow));
        let names_files = |rule: &Compiled| matches!(rule.content, Content::Path(_));
        let denies_by_content =
            deny.iter().any(|rule| names_files(rule) || matches!(rule.content, Content::Command(_)));
        let guards_files = deny.iter().chain(ask.iter()).any(names_files);
        Self { workspace, deny, ask, allow, denies_by_content, guards_files }
    }

    /// The places.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The rules of one kind, as written.
    pub fn rules(&self, behavior: Behavior) -> impl Iterator<Item = &Rule> {
        let list = match behavior {
            Behavior::Allow => &self.allow,
            Behavior::Ask => &self.ask,
            Behavior::Deny => &self.deny,
        };
        list.iter().map(|compiled| &compiled.rule)
    }

    /// True when an allow rule names this very host: only then a host that is not public may be reached.
    #[must_use]
    pub fn names_host(&self, host: &str) -> bool {
        self.allow.iter().any(|rule| match &rule.content {
            Content::Domain(domain) => domain.names(host),
            Content::Whole | Content::Command(_) | Content::Path(_) | Content::Names(_) => false,
        })
    }

    /// True when searches have to ask [`Policy::is_hidden`].
    #[must_use]
    pub fn hides_something(&self) -> bool {
        self.reading_rules().next().is_some()
    }

    /// True for places that searches must pass over: a rule denies their reading or wants to be asked about it.
    #[must_use]
    pub fn is_hidden(&self, path: &Path) -> bool {
        self.reading_rules().any(|rule| match &rule.content {
            // A pattern that cannot be read must not silently lose a denial.
            Content::Path(pattern) => pattern.as_ref().is_none_or(|pattern| pattern.covers(path)),
            Content::Whole | Content::Command(_) | Content::Domain(_) | Content::Names(_) => true,
        })
    }

    fn reading_rules(&self) -> impl Iterator<Item = &Compiled> {
        self.deny.iter().chain(self.ask.iter()).filter(|rule| rule.rule.tool == "Read")
    }
}
