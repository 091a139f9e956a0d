//! Which rules apply to what was found. For deny and ask either form of a path counts and so does everything inside a
//! line; for allow both forms must be covered, and a protected file only by a rule that names it.

use qoder_types::PermissionMode;
use qoder_types::workspace::is_protected;

use super::disguise::Hiding;
use super::line::Terms;
use crate::accesses::find::{Known, Line, Place, ResolvedAccess};
use crate::decide::judge::{Confinement, Judge};
use crate::hosts::Target;
use crate::places::leads_anywhere;
use crate::rules::compiled::{Compiled, Content, Programs, RuleList};
use crate::rules::pattern::PathPattern;
use crate::rules::words::base_name;
use crate::shell::{SimpleCommand, Word};

impl<'a> Judge<'a> {
    /// The programs that the lines of the call start.
    pub(crate) fn programs(&self) -> Programs<'_> {
        let mut names = Vec::new();
        for command in self.lines().flat_map(|line| &line.reading.commands) {
            match (command.words.is_empty(), command.name()) {
                (true, _) => {}
                (false, None) => return Programs::Unknown,
                (false, Some(name)) => names.extend([name, base_name(name)]),
            }
        }
        names.sort_unstable();
        names.dedup();
        Programs::Named(names)
    }

    /// For deny and ask: true when the rule applies to anything that was found.
    pub(crate) fn speaks(&self, rule: &Compiled) -> bool {
        match &rule.content {
            Content::Whole => {
                let names = |found: &ResolvedAccess| match found {
                    ResolvedAccess::As(name) => rule.rule.covers_whole(name),
                    ResolvedAccess::Resource { server: Some(server), .. } => {
                        rule.rule.covers_whole(&whole_server(server))
                    }
                    ResolvedAccess::Resource { server: None, .. }
                    | ResolvedAccess::Agent(_)
                    | ResolvedAccess::Skill { .. }
                    | ResolvedAccess::Read(_)
                    | ResolvedAccess::Edit(_)
                    | ResolvedAccess::Line(_)
                    | ResolvedAccess::Fetch(_)
                    | ResolvedAccess::Person
                    | ResolvedAccess::Internal
                    | ResolvedAccess::Other => false,
                };
                rule.rule.covers_whole(self.tool()) || self.found.iter().any(names)
            }
            Content::Command(pattern) => {
                let mut commands = self.lines().flat_map(|line| &line.reading.commands);
                commands.any(|command| pattern.speaks_of(&command.words))
            }
            Content::Path(pattern) => self.touches(rule, pattern.as_ref()),
            Content::Domain(domain) => self
                .found
                .iter()
                .any(|found| matches!(found, ResolvedAccess::Fetch(Target::Host { host, .. }) if domain.covers(host))),
            Content::Names(names) => {
                let named = |found: &ResolvedAccess| match found {
                    ResolvedAccess::Agent(name) => rule.rule.tool == "Agent" && names.contains(name),
                    ResolvedAccess::Skill { name, .. } => rule.rule.tool == "Skill" && names.contains(name),
                    ResolvedAccess::Resource { server: Some(server), .. } => {
                        rule.rule.tool == self.tool() && names.contains(server)
                    }
                    ResolvedAccess::Resource { server: None, .. }
                    | ResolvedAccess::Read(_)
                    | ResolvedAccess::Edit(_)
                    | ResolvedAccess::Line(_)
                    | ResolvedAccess::Fetch(_)
                    | ResolvedAccess::As(_)
                    | ResolvedAccess::Person
                    | ResolvedAccess::Internal
                    | ResolvedAccess::Other => false,
                };
                self.found.iter().any(named)
            }
        }
    }

    /// True when a place that is touched is one the rule applies to. A pattern that cannot be read covers every place.
    fn touches(&self, rule: &Compiled, pattern: Option<&PathPattern>) -> bool {
        // A file that may not be read may not be changed either.
        let edits = rule.is_for_edits || rule.is_for_reads;
        self.touched.iter().any(|touched| {
            let place = touched.place;
            let (speaks, into) = match touched.how {
                Touch::Read => (rule.is_for_reads || rule.rule.tool == self.tool(), false),
                Touch::ReadInLine => (rule.is_for_reads, false),
                Touch::Edit => (edits, place.recursive),
                Touch::Mention => (true, false),
            };
            let Some(pattern) = pattern else { return speaks };
            speaks
                && (pattern.covers(&place.lexical)
                    || (touched.is_moved && pattern.covers(&place.real))
                    || (into && pattern.covers_all_in(&place.real)))
        })
    }

    pub(crate) fn read_rule(&self, place: &Place, terms: Terms) -> Option<&'a Compiled> {
        let tool = self.tool();
        self.path_rule(place, terms, |rule| {
            rule.is_for_reads || matches!(&*rule.rule.tool, "Edit") || rule.rule.tool == tool
        })
    }

    /// The rule that lets a place be changed; a pattern covers a protected file only by naming it.
    pub(crate) fn edit_rule(&self, place: &Place, terms: Terms) -> Option<&'a Compiled> {
        let rule = self.path_rule(place, terms, |rule| rule.is_for_edits)?;
        match &rule.content {
            Content::Path(Some(pattern)) if pattern.is_literal() || self.is_only_itself(place) => Some(rule),
            Content::Path(_)
            | Content::Whole
            | Content::Command(_)
            | Content::Domain(_)
            | Content::Names(_) => None,
        }
    }

    fn path_rule(
        &self,
        place: &Place,
        terms: Terms,
        speaks: impl Fn(&Compiled) -> bool,
    ) -> Option<&'a Compiled> {
        self.allow_rules(terms)?.paths().find(|rule| match &rule.content {
            Content::Path(Some(pattern)) if speaks(rule) => {
                pattern.covers(&place.lexical) && pattern.covers(&place.real)
            }
            Content::Path(_)
            | Content::Whole
            | Content::Command(_)
            | Content::Domain(_)
            | Content::Names(_) => false,
        })
    }

    /// The allow rule that names what a tool is about, such as an agent.
    pub(crate) fn rule_for_name(&self, tool: &str, name: &String, terms: Terms) -> Option<&'a Compiled> {
        let mut rules = self.allow_rules(terms)?.general();
        rules.find(|rule| match &rule.content {
            Content::Names(names) => rule.rule.tool == tool && names.contains(name),
            Content::Whole | Content::Command(_) | Content::Path(_) | Content::Domain(_) => false,
        })
    }

    /// The allow rule for resources of a server: one that names it, or one about everything of it.
    pub(crate) fn resource_rule(&self, server: Option<&String>, terms: Terms) -> Option<&'a Compiled> {
        let server = server?;
        let named = self.rule_for_name(self.tool(), server, terms);
        named.or_else(|| self.whole_rule(&whole_server(server), terms))
    }

    /// A fetch that no mode makes possible.
    pub(crate) fn refused_target(&self) -> Option<String> {
        self.found.iter().find_map(|found| match found {
            ResolvedAccess::Fetch(Target::Refused(why)) => Some((*why).to_owned()),
            ResolvedAccess::Fetch(Target::Host { host, public: false })
                if !self.question.policy.names_host(host) =>
            {
                Some(format!("{host} is not a public host, and no rule WebFetch(domain:{host}) allows it"))
            }
            ResolvedAccess::Fetch(Target::Host { .. })
            | ResolvedAccess::Read(_)
            | ResolvedAccess::Edit(_)
            | ResolvedAccess::Line(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::As(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => None,
        })
    }

    pub(crate) fn is_inside(&self, place: &Place) -> bool {
        let workspace = &self.policy().workspace;
        workspace.contains(&place.lexical) && (!place.is_moved() || workspace.contains(&place.real))
    }

    pub(crate) fn is_readable(&self, place: &Place) -> bool {
        self.is_inside(place)
    }

    pub(crate) fn is_protected(&self, place: &Place) -> bool {
        let workspace = &self.policy().workspace;
        (place.is_linked_to && workspace.isolation.is_none())
            || is_protected(&place.lexical, workspace)
            || (place.is_moved() && is_protected(&place.real, workspace))
    }

    /// True when an access that was not granted would change a protected file. That is a person's to allow: neither a
    /// hook nor the judge of auto mode answers for it. A sandbox that is enforced keeps such files as they are.
    pub(crate) fn changes_protected(&self) -> bool {
        let confined = self.question.confinement == Confinement::Enforced;
        let protected = |found: &ResolvedAccess| match found {
            ResolvedAccess::Edit(place) => self.is_protected(place),
            ResolvedAccess::Line(line) if !confined => {
                let mut edits = line.known.iter().flat_map(|known| known.edits.iter().chain(&known.outputs));
                edits.any(|place| self.is_protected(place))
            }
            ResolvedAccess::Line(_)
            | ResolvedAccess::Read(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::As(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => false,
        };
        self.mode != PermissionMode::BypassPermissions
            && self
                .found
                .iter()
                .any(|found| protected(found) && self.found_granted(found, self.terms()).is_err())
    }

    /// The rule that allows every command. One that also covers writes outside the workspace comes first: rules have no
    /// rank, so a narrower one must not hide it.
    pub(crate) fn bare_rule(&self, terms: Terms) -> Option<&'a Compiled> {
        let whole = || self.allow_rules(terms).into_iter().flat_map(RuleList::whole);
        let covers = |rule: &&Compiled| rule.rule.covers_whole(self.tool());
        whole().filter(covers).find(|rule| rule.covers_writes_anywhere()).or_else(|| whole().find(covers))
    }

    /// True when a rule for every command covers writing to this place. Outside the workspace that needs a rule of the
    /// user, the command line or the host, and a place that is known not to hold a protected file.
    pub(crate) fn covers_write(&self, bare: Option<&Compiled>, place: &Place) -> bool {
        bare.is_some_and(|rule| {
            self.is_ordinary(place) || (rule.covers_writes_anywhere() && self.is_ordinary_outside(place))
        })
    }

    fn is_ordinary_outside(&self, place: &Place) -> bool {
        let workspace = &self.policy().workspace;
        let mut kept = workspace.protected.iter().chain([&workspace.config_dir]);
        self.is_only_itself(place)
            && !leads_anywhere(&place.lexical)
            && !leads_anywhere(&place.real)
            && !kept.any(|path| path.starts_with(&place.real) || path.starts_with(&place.lexical))
    }

    /// A file of the workspace that is neither protected nor possibly another name of a protected one.
    pub(crate) fn is_ordinary(&self, place: &Place) -> bool {
        self.is_inside(place) && self.is_only_itself(place)
    }

    fn is_only_itself(&self, place: &Place) -> bool {
        !self.is_protected(place) && (!place.has_other_names || self.isolation().is_some())
    }
}

/// The name under which rules about a whole server cover what belongs to it and is no tool: the part of a tool is empty,
/// so that no rule about a single tool means it.
fn whole_server(server: &str) -> String {
    format!("mcp__{server}__")
}

/// How a place is touched.
#[derive(Debug, Clone, Copy)]
enum Touch {
    Read,
    ReadInLine,
    Edit,
    Mention,
}

/// A place that the call touches.
pub(crate) struct Touched<'a> {
    place: &'a Place,
    how: Touch,
    is_moved: bool,
}

/// All places that were found, in one row: every rule about files looks at them.
pub(crate) fn touched(found: &[ResolvedAccess]) -> Vec<Touched<'_>> {
    let mut all = Vec::new();
    let mut add = |place, how| all.push(Touched { place, how, is_moved: Place::is_moved(place) });
    for found in found {
        match found {
            ResolvedAccess::Read(place) => add(place, Touch::Read),
            ResolvedAccess::Edit(place) => add(place, Touch::Edit),
            ResolvedAccess::Line(line) => {
                for known in &line.known {
                    known.reads.iter().for_each(|place| add(place, Touch::ReadInLine));
                    known.edits.iter().chain(&known.outputs).for_each(|place| add(place, Touch::Edit));
                    known.mentions.iter().for_each(|place| add(place, Touch::Mention));
                }
            }
            ResolvedAccess::Fetch(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::As(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => {}
        }
    }
    all
}

/// What is not known about a line, found out once and not once per rule.
pub(crate) struct Unknowns<'a> {
    line: &'a Line,
    /// Commands with a word that is not known.
    dynamic: Vec<&'a SimpleCommand>,
    /// What commands may hold inside their words.
    hiding: Vec<Hiding<'a>>,
    /// A place that is touched is not known.
    place: bool,
    /// A place that is read is not known.
    read: bool,
}

impl<'a> Unknowns<'a> {
    /// `None` for a line of which all is known: no rule can mean anything else by it.
    pub(crate) fn of(line: &'a Line) -> Option<Self> {
        let pairs = line.reading.commands.iter().zip(&line.known);
        let has_unknown_word = |command: &&SimpleCommand| command.words.iter().any(Word::is_dynamic);
        let unknowns = Self {
            line,
            dynamic: line.reading.commands.iter().filter(has_unknown_word).collect(),
            hiding: pairs.filter_map(|(command, known)| Hiding::of(command, known)).collect(),
            place: line.known.iter().any(|known| {
                known.unknown_edit
                    || known.unknown_output
                    || known.unknown_mention
                    || known.follows_new_link
                    || known.leads_anywhere()
            }),
            read: line.known.iter().any(|known| known.unknown_read),
        };
        let mut touched = line.known.iter().flat_map(|known| known.reads.iter().chain(&known.edits));
        let all_known = unknowns.dynamic.is_empty()
            && unknowns.hiding.is_empty()
            && !unknowns.place
            && !unknowns.read
            && !touched.any(|place| place.recursive);
        (!all_known).then_some(unknowns)
    }

    /// True when it may be what a deny or ask rule names.
    pub(crate) fn may_be_meant_by(&self, rule: &Compiled) -> bool {
        match &rule.content {
            Content::Command(pattern) => {
                self.dynamic.iter().any(|command| pattern.may_speak_of(&command.words))
                    || self.hiding.iter().any(|hiding| hiding.may_be(pattern))
            }
            Content::Path(pattern) => {
                let reads = rule.is_for_reads;
                let below = |place: &Place| {
                    place.recursive
                        && pattern.as_ref().is_none_or(|pattern| pattern.reaches_below(&place.real))
                };
                self.place
                    || (reads && self.read)
                    || self.line.known.iter().any(|known| {
                        (reads && known.reads.iter().any(below)) || known.edits.iter().any(below)
                    })
            }
            Content::Whole | Content::Domain(_) | Content::Names(_) => false,
        }
    }
}

impl Known {
    /// True when a path of the command goes through a link of a process.
    fn leads_anywhere(&self) -> bool {
        let places = self.reads.iter().chain(&self.edits).chain(&self.outputs).chain(&self.mentions);
        places.into_iter().any(|place| leads_anywhere(&place.lexical) || leads_anywhere(&place.real))
    }
}
