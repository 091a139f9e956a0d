//! Commands inside commands: what a collected command runs in turn is collected behind it, by its words or by reading the
//! script it is given. All of it is bounded together: how deep, how many, how much text.

use qoder_types::display::{Suspicion, suspicion};

use super::builtin;
use super::collector::{Collector, DEEPEST_WRAPPER, LONGEST};
use super::places::Places;
use super::reader::Reader;
use crate::shell::reading::{DoubtKind, SimpleCommand, Wrapped};
use crate::shell::wrapper::{self, InnerCommands, Script};
use crate::shell::{Word, witness};

/// How much text of nested scripts is read altogether.
const MOST_NESTED: usize = 4 * LONGEST;

/// How many words commands inside commands have altogether.
const MOST_NESTED_WORDS: usize = 32 * 1024;

/// Reads a text into the collector.
pub(crate) fn text(out: &mut Collector, text: &str, here: Places) {
    characters(out, text);
    let mut reader = Reader::new(text, here, out);
    reader.list(&[]);
    if !reader.pending.is_empty() {
        reader.doubt(DoubtKind::SyntaxError, 0);
    }
    witness::compare(&mut reader);
}

/// Doubts about characters that cannot be seen.
fn characters(out: &mut Collector, text: &str) {
    let plain = |byte: u8| (0x20..0x7F).contains(&byte) || byte == b'\n' || byte == b'\t';
    if text.bytes().all(plain) {
        return;
    }
    for character in text.chars() {
        let kind = match suspicion(character) {
            None => continue,
            Some(Suspicion::Control) => DoubtKind::ControlCharacter,
            Some(Suspicion::Invisible) => DoubtKind::InvisibleCharacter,
        };
        out.doubt(kind, &character.escape_unicode().to_string());
    }
}

/// Reads a script that a command runs.
pub(crate) fn script(out: &mut Collector, source: &str, outer: Option<usize>, here: Places) {
    if !descend(out, source) {
        return;
    }
    out.nested_bytes += source.len();
    if out.nested_bytes > MOST_NESTED {
        out.doubt(DoubtKind::TooLong, source);
    } else {
        let outer = outer.or(out.outer);
        let saved = std::mem::replace(&mut out.outer, outer);
        text(out, source, here);
        out.outer = saved;
    }
    out.wrapper_depth -= 1;
}

/// One level deeper, or a doubt.
fn descend(out: &mut Collector, about: &str) -> bool {
    if out.wrapper_depth >= DEEPEST_WRAPPER {
        out.doubt(DoubtKind::TooDeep, about);
        return false;
    }
    out.wrapper_depth += 1;
    true
}

/// Records what a collected command does to the shell, and collects what it runs.
pub(crate) fn follow(out: &mut Collector, owner: usize) {
    let Some(command) = out.reading.commands.get(owner) else { return };
    let doubts = builtin::doubts(command);
    let mut found = wrapper::find(command);
    if out.guessing {
        // A guess has taken every later word already.
        found.commands.retain(|inner| !inner.guessed);
        found.scripts.retain(|script| !matches!(script, Script::Guessed(_)));
    }
    if doubts.is_empty() && found.is_empty() {
        return;
    }
    let shown = command.text.clone();
    for kind in doubts {
        out.doubt(kind, &shown);
    }
    collect(out, owner, found, &shown);
}

/// Collects what was found inside a command.
fn collect(out: &mut Collector, owner: usize, found: InnerCommands, shown: &str) {
    if found.dynamic {
        out.doubt(DoubtKind::DynamicCommand, shown);
    }
    for inner in found.commands {
        out.nested_words += inner.words.len();
        if out.nested_words > MOST_NESTED_WORDS {
            out.doubt(DoubtKind::TooMany, shown);
            return;
        }
        if !descend(out, shown) {
            return;
        }
        let Some(outer) = out.reading.commands.get(owner) else { return };
        let command = SimpleCommand {
            assignments: inner.assignments,
            text: inner.words.iter().map(Word::to_display).collect::<Vec<_>>().join(" "),
            words: inner.words,
            redirections: Vec::new(),
            wrapped: Some(Wrapped { outer: owner, transparent: inner.transparent }),
            directories: outer.directories.clone(),
            piped_input: outer.piped_input,
        };
        let known = out.reading.doubts.len();
        let guessing = out.guessing;
        out.guessing |= inner.guessed;
        if let Some(at) = out.push(command) {
            follow(out, at);
        }
        out.guessing = guessing;
        if inner.guessed {
            forget_doubts(out, known);
        }
        out.wrapper_depth -= 1;
    }
    for script_found in found.scripts {
        let here = Places(out.directories_of(owner));
        match script_found {
            Script::Known(source) => script(out, &source, Some(owner), here),
            Script::Unknown => out.doubt(DoubtKind::EvaluatesText, shown),
            Script::Guessed(source) => {
                let known = out.reading.doubts.len();
                script(out, &source, Some(owner), here);
                forget_doubts(out, known);
            }
        }
    }
}

/// Drops doubts about text that may be no command at all. A bound that was reached still counts, and so does what the
/// text would run if it is a command and what that is cannot be known.
fn forget_doubts(out: &mut Collector, known: usize) {
    let mut at = 0;
    out.reading.doubts.retain(|doubt| {
        at += 1;
        at <= known
            || match doubt.kind {
                DoubtKind::TooDeep
                | DoubtKind::TooMany
                | DoubtKind::TooLong
                | DoubtKind::DynamicCommand
                | DoubtKind::EvaluatesText => true,
                DoubtKind::SyntaxError
                | DoubtKind::ReadersDisagree
                | DoubtKind::ControlCharacter
                | DoubtKind::InvisibleCharacter
                | DoubtKind::DefinesName
                | DoubtKind::LoadsCode
                | DoubtKind::ChangesShell
                | DoubtKind::UnknownConstruct => false,
            }
    });
}

/// Marks the commands from `first` on as reading what others write. A shell among them runs it.
pub(crate) fn feed(out: &mut Collector, first: usize) {
    let mut fed = Vec::new();
    for command in out.reading.commands.iter_mut().skip(first) {
        command.piped_input = true;
        if wrapper::reads_script_from_input(command) {
            fed.push(command.text.clone());
        }
    }
    for text in fed {
        out.doubt(DoubtKind::EvaluatesText, &text);
    }
}

/// A here-document or here-string is a script when the command that gets it is a shell without one.
pub(crate) fn input_of_shells(out: &mut Collector, owner: usize, input: &Word) {
    let reads = out.reading.commands.iter().enumerate().skip(owner).any(|(at, command)| {
        let related = at == owner || command.wrapped.is_some_and(|wrapped| wrapped.outer == owner);
        related && wrapper::reads_script_from_input(command)
    });
    if !reads {
        return;
    }
    let here = Places(out.directories_of(owner));
    match input.as_literal() {
        Some(source) => script(out, source, Some(owner), here),
        None => {
            let shown = input.to_display();
            out.doubt(DoubtKind::EvaluatesText, &shown);
            let known = out.reading.doubts.len();
            script(out, &shown, Some(owner), here);
            forget_doubts(out, known);
        }
    }
}
