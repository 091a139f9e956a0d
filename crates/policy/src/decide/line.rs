//! Whether a command line may run by itself: every simple command of it by a rule, as the content of a transparent
//! wrapper, or because it is known to only read. The first command that may not stops the line, with the reason.

use crate::accesses::find::{Known, Line, Place};
use crate::decide::judge::{AllowedBy, Judge};
use crate::rules::compiled::Compiled;
use crate::shell::knowledge::{asks_for_version, git_needs_safe_configuration, may_be_shown};
use crate::shell::{
    Directory, Doubt, DoubtKind, Piece, RedirectionKind, SimpleCommand, is_skippable_variable,
};

/// What is granted beside rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Edits of ordinary files in the workspace are accepted.
    pub(crate) accepts_edits: bool,
    /// Allow rules count; without them only what is known to read is granted.
    pub(crate) rules: bool,
}

/// True for doubts that no rule and no mode outweighs.
pub(crate) fn is_grave(doubt: &Doubt) -> bool {
    matches!(
        doubt.kind,
        DoubtKind::ControlCharacter
            | DoubtKind::InvisibleCharacter
            | DoubtKind::TooLong
            | DoubtKind::TooDeep
            | DoubtKind::TooMany
    )
}

impl<'a> Judge<'a> {
    /// Grants a line or returns what prevents it.
    pub(crate) fn line_granted(&self, line: &Line, terms: Terms) -> Result<AllowedBy<'a>, String> {
        let bare = self.bare_rule(terms);
        if let Some(doubt) = line.reading.doubts.first() {
            let unreadable = line
                .reading
                .doubts
                .iter()
                .any(|doubt| matches!(doubt.kind, DoubtKind::SyntaxError | DoubtKind::ReadersDisagree));
            if bare.is_none() || unreadable {
                return Err(doubt.kind.describe().to_owned());
            }
        }
        if line.reading.commands.is_empty() && bare.is_none() {
            return Err("the command is empty".to_owned());
        }
        let mut allowed = AllowedBy::default();
        for (at, command) in line.reading.commands.iter().enumerate() {
            if command.wrapped.is_none() {
                allowed.add(self.command_granted(line, at, bare, terms)?);
            }
        }
        Ok(allowed)
    }

    fn command_granted(
        &self,
        line: &Line,
        at: usize,
        bare: Option<&'a Compiled>,
        terms: Terms,
    ) -> Result<AllowedBy<'a>, String> {
        let (command, known) = (&line.reading.commands[at], &line.known[at]);
        if known.follows_new_link {
            return Err("it goes through a link that the line itself may make".to_owned());
        }
        let mut allowed = self.outputs_granted(known, bare, terms)?;
        self.assignments_granted(command, bare)?;
        if command.words.is_empty() {
            // The input of a compound command; whatever is inside may print it.
            if bare.is_none() {
                input_shows_nothing(command)?;
            }
            allowed.rule = allowed.rule.or(bare);
            return Ok(allowed);
        }
        let rules = self.allow_rules(terms).into_iter().flat_map(|rules| rules.commands(command.name()));
        let mut named: Option<&'a Compiled> = None;
        for (rule, pattern) in rules.filter(|(_, pattern)| pattern.allows(&command.words)) {
            if pattern.is_exact() {
                allowed.rule = Some(rule);
                return Ok(allowed);
            }
            named = named.or(Some(rule));
        }
        if let Some(rule) = named {
            if bare.is_none() && is_search(command) && !known.only_reads {
                return Err("a rule for a search does not cover what it runs, removes or writes".to_owned());
            }
            self.edits_granted(line, at, bare, terms)?;
            allowed.rule = Some(rule);
            return Ok(allowed);
        }
        if let Some(inner) = self.through_transparent(line, at, bare, terms) {
            let inner = inner?;
            if inner.rule.is_none() && bare.is_none() {
                input_shows_nothing(command)?;
            }
            allowed.add(inner);
            return Ok(allowed);
        }
        if let Some(rule) = bare {
            self.edits_granted(line, at, bare, terms)?;
            allowed.rule = Some(rule);
            return Ok(allowed);
        }
        self.only_reads(command, known)?;
        Ok(allowed)
    }

    /// What a transparent wrapper runs, judged in its place; `None` when it is no such wrapper.
    fn through_transparent(
        &self,
        line: &Line,
        at: usize,
        bare: Option<&'a Compiled>,
        terms: Terms,
    ) -> Option<Result<AllowedBy<'a>, String>> {
        let inner: Vec<usize> = line
            .reading
            .commands
            .iter()
            .enumerate()
            .filter(|(_, command)| {
                command.wrapped.as_ref().is_some_and(|wrapped| wrapped.outer == at && wrapped.transparent)
            })
            .map(|(index, _)| index)
            .collect();
        if inner.is_empty() {
            return None;
        }
        let mut allowed = AllowedBy::default();
        for index in inner {
            match self.command_granted(line, index, bare, terms) {
                Ok(one) => allowed.add(one),
                Err(reason) => return Some(Err(reason)),
            }
        }
        Some(Ok(allowed))
    }

    fn outputs_granted(
        &self,
        known: &Known,
        bare: Option<&'a Compiled>,
        terms: Terms,
    ) -> Result<AllowedBy<'a>, String> {
        if known.unknown_output {
            return Err("it writes to a place that is not known, or to the network".to_owned());
        }
        let mut allowed = AllowedBy::default();
        for place in &known.inputs {
            match self.read_rule(place, terms) {
                Some(rule) => allowed.rule = Some(rule),
                None if bare.is_some() || self.is_readable(place) => {}
                None => return Err(format!("{} is outside the workspace", place.real.display())),
            }
        }
        for place in &known.outputs {
            if let Some(rule) = self.edit_rule(place, terms) {
                allowed.rule = Some(rule);
            } else if self.covers_write(bare, place) {
                allowed.rule = bare;
            } else if self.is_ordinary(place) && terms.accepts_edits {
                allowed.by_mode = true;
            } else {
                return Err(self.why_not_edit(place));
            }
        }
        Ok(allowed)
    }

    fn assignments_granted(&self, command: &SimpleCommand, bare: Option<&Compiled>) -> Result<(), String> {
        let odd = command.assignments.iter().find(|assignment| !is_skippable_variable(&assignment.name));
        match odd {
            Some(assignment) if bare.is_none() => {
                Err(format!("the variable {} may change what the command does", assignment.name))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a command that a broad rule covers may change, with everything that it runs: ordinary files of the workspace,
    /// what rules name, and files outside when all of Bash is allowed.
    fn edits_granted(
        &self,
        line: &Line,
        at: usize,
        bare: Option<&Compiled>,
        terms: Terms,
    ) -> Result<(), String> {
        for (index, known) in line.known.iter().enumerate().filter(|(index, _)| line.is_part_of(*index, at)) {
            if known.unknown_edit || (index != at && known.unknown_output) {
                return Err("it changes a place that is not known".to_owned());
            }
            // The redirections of the command itself were judged before.
            let outputs = if index == at { [].iter() } else { known.outputs.iter() };
            let mut changed = known.edits.iter().chain(outputs);
            let stopped = changed.find(|place| {
                !self.is_ordinary(place)
                    && !self.covers_write(bare, place)
                    && self.edit_rule(place, terms).is_none()
            });
            if let Some(place) = stopped {
                return Err(self.why_not_edit(place));
            }
        }
        Ok(())
    }

    fn only_reads(&self, command: &SimpleCommand, known: &Known) -> Result<(), String> {
        if !known.only_reads {
            let why = known.effects.why_not.clone();
            return Err(why.unwrap_or_else(|| format!("`{}` is not known to only read", shown(command))));
        }
        if known.unknown_read {
            return Err(format!("`{}` reads a place that is not known", shown(command)));
        }
        if let Some(place) = known.reads.iter().find(|place| !self.is_readable(place)) {
            return Err(format!("{} is outside the workspace", place.real.display()));
        }
        input_shows_nothing(command)?;
        if !self.is_trusted() && asks_for_version(&command.words) {
            return Err(format!(
                "the folder may choose the program that `{}` starts, and it is not trusted",
                shown(command)
            ));
        }
        if git_needs_safe_configuration(&command.words) {
            return self.git_may_ask(command);
        }
        Ok(())
    }

    /// A repository's configuration can make a query run programs. It is switched off where the query runs, which works
    /// for the repository the session is in. In a line that changes the repository, too, a rule has allowed git to run
    /// what the configuration names, and the query adds nothing to that.
    fn git_may_ask(&self, command: &SimpleCommand) -> Result<(), String> {
        if !self.is_trusted() {
            return Err(
                "git may run programs that the repository names, and the folder is not trusted".to_owned()
            );
        }
        if command.directories != [Directory::start()] {
            return Err(
                "git in another directory may run programs that the repository there names".to_owned()
            );
        }
        Ok(())
    }

    pub(crate) fn why_not_edit(&self, place: &Place) -> String {
        let shown = place.real.display();
        if self.is_protected(place) {
            format!("{shown} is a protected file")
        } else if !self.is_inside(place) {
            format!("{shown} is outside the workspace")
        } else if place.has_other_names {
            format!("{shown} is a hard link: the same file has other names")
        } else {
            format!("it changes {shown}")
        }
    }
}

/// Programs whose actions a prefix rule for them does not cover.
fn is_search(command: &SimpleCommand) -> bool {
    matches!(command.base_name(), Some("find" | "fd" | "fdfind"))
}

/// The text on the input of a command holds no variable that may be a secret.
fn input_shows_nothing(command: &SimpleCommand) -> Result<(), String> {
    match shown_variable(command) {
        Some(name) => Err(format!("the variable {name} may hold a secret, and it reads it")),
        None => Ok(()),
    }
}

/// A variable that the text on the input of a command holds, unless it is known to be no secret.
fn shown_variable(command: &SimpleCommand) -> Option<&str> {
    let texts = command.redirections.iter().filter_map(|redirection| match redirection.kind {
        RedirectionKind::HereDocument | RedirectionKind::HereString => redirection.target.as_ref(),
        RedirectionKind::Input
        | RedirectionKind::Output
        | RedirectionKind::Append
        | RedirectionKind::ReadWrite
        | RedirectionKind::Duplicate => None,
    });
    texts.flat_map(|word| &word.pieces).find_map(|piece| match piece {
        Piece::Variable(name) if !may_be_shown(name) => Some(name.as_str()),
        Piece::Unknown(text) if text.starts_with("${") => Some(text.as_str()),
        Piece::Variable(_) | Piece::Literal(_) | Piece::Home | Piece::Glob(_) | Piece::Unknown(_) => None,
    })
}

fn shown(command: &SimpleCommand) -> String {
    qoder_types::display::escaped_for_display(&command.text)
}
