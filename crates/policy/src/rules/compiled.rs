//! Rules made ready to be compared: patterns compiled once for a workspace, not once per decision. One [`Policy`] serves
//! every call of a session until its rules or directories change.

use std::collections::HashMap;
use std::iter;
use std::path::Path;

use qoder_types::workspace::Workspace;
use qoder_types::{Behavior, RuleSource};

use super::pattern::PathPattern;
use super::rule::{Rule, RuleSet};
use super::words::CommandPattern;
use crate::hosts::DomainPattern;

/// What a rule's content is compared with.
#[derive(Debug)]
pub(crate) enum Content {
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
pub(crate) struct Compiled {
    pub(crate) rule: Rule,
    pub(crate) content: Content,
    /// Its place among the rules of its kind.
    pub(crate) position: usize,
    /// It is about reading.
    pub(crate) is_for_reads: bool,
    /// It is about changing files.
    pub(crate) is_for_edits: bool,
}

impl Compiled {
    fn new(rule: &Rule, position: usize, workspace: &Workspace) -> Self {
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
                "Read" | "Edit" | "Write" | "NotebookEdit" | "ImageGen" | "Glob" | "Grep" => {
                    Content::Path(PathPattern::compile(text, workspace))
                }
                _ => Content::Names(text.split(',').map(|name| name.trim().to_owned()).collect()),
            },
        };
        let is_for_reads = rule.tool == "Read";
        let is_for_edits = matches!(rule.tool.as_str(), "Edit" | "Write" | "NotebookEdit" | "ImageGen");
        Self { rule: rule.clone(), content, position, is_for_reads, is_for_edits }
    }

    /// True for a rule whose author may let commands write outside the workspace. The folder's own files and the
    /// commands and skills that a folder or a plugin brings may not.
    pub(crate) fn covers_writes_anywhere(&self) -> bool {
        match self.rule.origin.source {
            RuleSource::UserSettings
            | RuleSource::FlagSettings
            | RuleSource::CliArg
            | RuleSource::Session => true,
            RuleSource::ProjectSettings | RuleSource::LocalSettings | RuleSource::Command => false,
        }
    }
}

/// The programs that a call starts.
pub(crate) enum Programs<'a> {
    /// These, by the names in the command and by their last parts.
    Named(Vec<&'a str>),
    /// At least one of them is not known.
    Unknown,
}

/// Rules of one kind, found by what they apply to: a call looks at the few that can apply to it and not at all of them.
/// All places are in the order of the rules.
#[derive(Debug, Default)]
pub(crate) struct RuleList {
    rules: Vec<Compiled>,
    /// Those about commands, by the program they name.
    by_program: HashMap<String, Vec<usize>>,
    /// Those about commands that do not name one known program.
    any_program: Vec<usize>,
    /// Those about a whole tool.
    whole: Vec<usize>,
    /// Those about paths.
    paths: Vec<usize>,
    /// Those about hosts.
    domains: Vec<usize>,
    /// Everything that is not about one known program.
    general: Vec<usize>,
}

impl RuleList {
    fn new(rules: &[Rule], workspace: &Workspace) -> Self {
        let mut list = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            let rule = Compiled::new(rule, at, workspace);
            let program = match &rule.content {
                Content::Command(pattern) => pattern.program().map(str::to_owned),
                Content::Whole | Content::Path(_) | Content::Domain(_) | Content::Names(_) => None,
            };
            match program {
                Some(program) => list.by_program.entry(program).or_default().push(at),
                None => list.general.push(at),
            }
            match &rule.content {
                Content::Command(pattern) if pattern.program().is_none() => list.any_program.push(at),
                Content::Whole => list.whole.push(at),
                Content::Path(_) => list.paths.push(at),
                Content::Domain(_) => list.domains.push(at),
                Content::Command(_) | Content::Names(_) => {}
            }
            list.rules.push(rule);
        }
        list
    }

    fn at(&self, places: &[usize]) -> impl Iterator<Item = &Compiled> {
        places.iter().map(|at| &self.rules[*at])
    }

    /// Those that apply to a whole tool.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &Compiled> {
        self.at(&self.whole)
    }

    /// Those that apply to paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Compiled> {
        self.at(&self.paths)
    }

    /// Those that apply to hosts.
    pub(crate) fn domains(&self) -> impl Iterator<Item = &Compiled> {
        self.at(&self.domains)
    }

    /// Those that are not about one known program.
    pub(crate) fn general(&self) -> impl Iterator<Item = &Compiled> {
        self.at(&self.general)
    }

    /// Those about commands that can allow one with this name, in their order.
    pub(crate) fn commands<'a>(
        &'a self,
        name: Option<&str>,
    ) -> impl Iterator<Item = (&'a Compiled, &'a CommandPattern)> + use<'a> {
        let named = name.and_then(|name| self.by_program.get(name)).map_or(&[][..], Vec::as_slice);
        in_order(named, &self.any_program).filter_map(|at| match &self.rules[at].content {
            Content::Command(pattern) => Some((&self.rules[at], pattern)),
            Content::Whole | Content::Path(_) | Content::Domain(_) | Content::Names(_) => None,
        })
    }

    /// All of them.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Compiled> {
        self.rules.iter()
    }

    /// Those that can apply to a call that starts these programs.
    pub(crate) fn about<'a>(&'a self, programs: &'a Programs<'_>) -> impl Iterator<Item = &'a Compiled> {
        let (all, general, names) = match programs {
            Programs::Unknown => (self.rules.as_slice(), [].as_slice(), [].as_slice()),
            Programs::Named(names) => ([].as_slice(), self.general.as_slice(), names.as_slice()),
        };
        let named = names.iter().filter_map(|name| self.by_program.get(*name)).flatten();
        all.iter().chain(general.iter().chain(named).map(|at| &self.rules[*at]))
    }
}

/// Two ascending rows as one.
fn in_order<'a>(left: &'a [usize], right: &'a [usize]) -> impl Iterator<Item = usize> + use<'a> {
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(one), Some(other)) if other < one => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
}

/// The rules in force, ready to be compared, and the places they apply to.
#[derive(Debug)]
pub struct Policy {
    pub(crate) workspace: Workspace,
    pub(crate) deny: RuleList,
    pub(crate) ask: RuleList,
    pub(crate) allow: RuleList,
    /// True when a deny rule names commands or files: what cannot be read may then be what it denies.
    pub(crate) denies_by_content: bool,
    /// True when a deny or ask rule names files.
    pub(crate) guards_files: bool,
    /// How many rules there are, for explanations.
    pub(crate) counts: String,
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
        let counts = format!(
            "{} deny, {} ask and {} allow rules were in force",
            deny.rules.len(),
            ask.rules.len(),
            allow.rules.len()
        );
        Self { workspace, deny, ask, allow, denies_by_content, guards_files, counts }
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
        self.allow.domains().any(|rule| match &rule.content {
            Content::Domain(domain) => domain.names(host),
            Content::Whole | Content::Command(_) | Content::Path(_) | Content::Names(_) => false,
        })
    }

    /// True when a rule denies fetching from this host, or wants to be asked about it.
    #[must_use]
    pub fn guards_host(&self, host: &str) -> bool {
        self.deny.iter().chain(self.ask.iter()).any(|rule| match &rule.content {
            Content::Whole => rule.rule.names("WebFetch"),
            Content::Domain(domain) => domain.covers(host),
            Content::Command(_) | Content::Path(_) | Content::Names(_) => false,
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
        self.deny.iter().chain(self.ask.iter()).filter(|rule| rule.is_for_reads)
    }
}

#[cfg(test)]
mod tests {
    use qoder_types::RuleOrigin;

    use super::*;

    #[test]
    fn rules_about_a_program_come_in_their_order() {
        let origin = RuleOrigin { source: RuleSource::ProjectSettings, file: None, line: None };
        let texts =
            ["Bash(make a)", "Bash(* b)", "Read(x)", "Bash(npm c)", "Bash(make d)", "Bash", "Bash(*e)"];
        let rules: Vec<Rule> = texts.iter().map(|text| Rule::parse(text, origin.clone()).unwrap()).collect();
        let list = RuleList::new(&rules, &Workspace::default());
        let positions = |name| list.commands(name).map(|(rule, _)| rule.position).collect::<Vec<_>>();
        assert_eq!(positions(Some("make")), [0, 1, 4, 6]);
        assert_eq!(positions(Some("npm")), [1, 3, 6]);
        assert_eq!(positions(Some("other")), [1, 6]);
        assert_eq!(positions(None), [1, 6]);
        assert_eq!(list.about(&Programs::Unknown).count(), texts.len());
        let about: Vec<_> = list.about(&Programs::Named(vec!["npm"])).map(|rule| rule.position).collect();
        assert_eq!(about, [1, 2, 5, 6, 3]);
    }
}
