//! Which rules speak of what was found. For deny and ask either form of a path counts and so does everything inside a
//! line; for allow both forms must be covered, and a protected file only by a rule that names it.

use super::compiled::{Compiled, Content};
use super::decide::Judge;
use super::disguise::{may_hide, may_hide_something};
use super::domain::Target;
use super::found::{Found, Known, Line, Place};
use super::line::Terms;
use super::places::{is_protected, leads_anywhere};
use crate::shell::{SimpleCommand, Word};

impl<'a> Judge<'a> {
    /// For deny and ask: true when the rule speaks of anything that was found.
    pub(super) fn speaks(&self, rule: &Compiled) -> bool {
        if rule.rule.covers_whole(self.tool()) {
            return true;
        }
        let reads = rule.rule.tool == "Read" || rule.rule.tool == self.tool();
        // A file that may not be read may not be changed either.
        let edits = matches!(rule.rule.tool.as_str(), "Edit" | "Write" | "NotebookEdit" | "Read");
        self.found.iter().any(|found| match (&rule.content, found) {
            (Content::Whole, Found::As(name)) => rule.rule.covers_whole(name),
            (Content::Command(pattern), Found::Line(line)) => {
                line.reading.commands.iter().any(|command| pattern.speaks_of(&command.words))
            }
            (Content::Path(pattern), found) => {
                let covers = |place: &Place| {
                    pattern
                        .as_ref()
                        .is_none_or(|pattern| pattern.covers(&place.lexical) || pattern.covers(&place.real))
                };
                let covers_all_in = |place: &Place| {
                    place.recursive
                        && pattern.as_ref().is_none_or(|pattern| pattern.covers_all_in(&place.real))
                };
                match found {
                    Found::Read(place) => reads && covers(place),
                    Found::Edit(place) => edits && covers(place),
                    Found::Line(line) => line.known.iter().any(|known| {
                        (rule.rule.tool == "Read" && known.reads.iter().any(covers))
                            || (edits && known.edits.iter().chain(&known.outputs).any(covers))
                            || (edits && known.edits.iter().any(covers_all_in))
                            || known.mentions.iter().any(covers)
                    }),
                    Found::Fetch(_)
                    | Found::Agent(_)
                    | Found::As(_)
                    | Found::Person
                    | Found::Internal
                    | Found::Other => false,
                }
            }
            (Content::Domain(domain), Found::Fetch(Target::Host { host, .. })) => domain.covers(host),
            (Content::Names(names), Found::Agent(name)) => rule.rule.tool == "Agent" && names.contains(name),
            (
                Content::Whole | Content::Command(_) | Content::Domain(_) | Content::Names(_),
                Found::Read(_)
                | Found::Edit(_)
                | Found::Line(_)
                | Found::Fetch(_)
                | Found::Agent(_)
                | Found::As(_)
                | Found::Person
                | Found::Internal
                | Found::Other,
            ) => false,
        })
    }

    /// True for an allow rule that names the call or a command of it; for explanations only.
    pub(super) fn would_allow(&self, rule: &Compiled) -> bool {
        match &rule.content {
            Content::Whole => rule.rule.covers_whole(self.tool()),
            Content::Command(pattern) => self.found.iter().any(|found| match found {
                Found::Line(line) => {
                    line.reading.commands.iter().any(|command| pattern.allows(&command.words))
                }
                _ => false,
            }),
            Content::Path(_) | Content::Domain(_) | Content::Names(_) => self.speaks(rule),
        }
    }

    pub(super) fn read_rule(&self, place: &Place, terms: Terms) -> Option<&'a Compiled> {
        self.path_rule(place, terms, |tool| tool == "Read" || tool == "Edit" || tool == self.tool())
    }

    /// The rule that lets a place be changed; a pattern covers a protected file only by naming it.
    pub(super) fn edit_rule(&self, place: &Place, terms: Terms) -> Option<&'a Compiled> {
        let protected = self.is_protected(place) || place.has_other_names;
        let rule = self.path_rule(place, terms, |tool| matches!(tool, "Edit" | "Write" | "NotebookEdit"))?;
        match &rule.content {
            Content::Path(Some(pattern)) if !protected || pattern.is_literal() => Some(rule),
            Content::Path(_)
            | Content::Whole
            | Content::Command(_)
            | Content::Domain(_)
            | Content::Names(_) => None,
        }
    }

    fn path_rule(&self, place: &Place, terms: Terms, speaks: impl Fn(&str) -> bool) -> Option<&'a Compiled> {
        self.allow_rules(terms).find(|rule| match &rule.content {
            Content::Path(Some(pattern)) if speaks(&rule.rule.tool) => {
                pattern.covers(&place.lexical) && pattern.covers(&place.real)
            }
            Content::Path(_)
            | Content::Whole
            | Content::Command(_)
            | Content::Domain(_)
            | Content::Names(_) => false,
        })
    }

    pub(super) fn is_inside(&self, place: &Place) -> bool {
        let workspace = &self.policy().workspace;
        workspace.contains(&place.lexical) && workspace.contains(&place.real)
    }

    pub(super) fn is_readable(&self, place: &Place) -> bool {
        self.is_inside(place)
    }

    pub(super) fn is_protected(&self, place: &Place) -> bool {
        let workspace = &self.policy().workspace;
        is_protected(&place.lexical, workspace) || is_protected(&place.real, workspace)
    }

    /// A file of the workspace that is neither protected nor possibly another name of a protected one.
    pub(super) fn is_ordinary(&self, place: &Place) -> bool {
        self.is_inside(place) && !self.is_protected(place) && !place.has_other_names
    }
}

/// What is not known about a line, found out once and not once per rule.
pub(super) struct Unknowns<'a> {
    line: &'a Line,
    /// Commands with a word that is not known.
    dynamic: Vec<&'a SimpleCommand>,
    /// Commands that may hold others inside their words.
    hiding: Vec<(&'a SimpleCommand, &'a Known)>,
    /// A place that is touched is not known.
    place: bool,
    /// A place that is read is not known.
    read: bool,
}

impl<'a> Unknowns<'a> {
    pub(super) fn of(line: &'a Line) -> Self {
        let pairs = || line.reading.commands.iter().zip(&line.known);
        let has_unknown_word = |command: &&SimpleCommand| command.words.iter().any(Word::is_dynamic);
        Self {
            line,
            dynamic: line.reading.commands.iter().filter(has_unknown_word).collect(),
            hiding: pairs().filter(|(command, known)| may_hide_something(command, known)).collect(),
            place: line.known.iter().any(|known| {
                known.unknown_edit || known.unknown_output || known.follows_new_link || known.leads_anywhere()
            }),
            read: line.known.iter().any(|known| known.unknown_read),
        }
    }

    /// True when it may be what a deny or ask rule names.
    pub(super) fn may_be_meant_by(&self, rule: &Compiled) -> bool {
        match &rule.content {
            Content::Command(pattern) => {
                self.dynamic.iter().any(|command| pattern.may_speak_of(&command.words))
                    || self.hiding.iter().any(|(command, known)| may_hide(pattern, command, known))
            }
            Content::Path(pattern) => {
                let reads = rule.rule.tool == "Read";
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
