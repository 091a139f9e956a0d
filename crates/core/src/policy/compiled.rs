//! Rules made ready to be compared: patterns compiled once for a workspace, not once per decision. One [`Policy`] serves
//! every call of a session until its rules or directories change.

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

/// The rules in force, ready to be compared, and the places they speak of.
#[derive(Debug)]
pub struct Policy {
    pub(super) workspace: Workspace,
    pub(super) deny: Vec<Compiled>,
    pub(super) ask: Vec<Compiled>,
    pub(super) allow: Vec<Compiled>,
    /// True when a deny rule names commands or files: what cannot be read may then be what it denies.
    pub(super) denies_by_content: bool,
    /// True when a deny or ask rule names files.
    pub(super) guards_files: bool,
}

impl Policy {
    /// Makes rules ready.
    #[must_use]
    pub fn new(rules: &RuleSet, workspace: Workspace) -> Self {
        let compile = |rules: &[Rule]| -> Vec<Compiled> {
            rules.iter().map(|rule| Compiled::new(rule, &workspace)).collect()
        };
        let (deny, ask, allow) = (compile(&rules.deny), compile(&rules.ask), compile(&rules.allow));
        let names_files = |rule: &Compiled| matches!(rule.content, Content::Path(_));
        let denies_by_content =
            deny.iter().any(|rule| names_files(rule) || matches!(rule.content, Content::Command(_)));
        let guards_files = deny.iter().chain(&ask).any(names_files);
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
        self.deny.iter().chain(&self.ask).filter(|rule| rule.rule.tool == "Read")
    }
}
