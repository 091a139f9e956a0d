//! Finding the command behind the options of a wrapper. As soon as one word is not understood, every later word that
//! could be the command is taken as one, and nothing is transparent after it.

use super::super::reading::Assignment;
use super::super::{Piece, Word};
use super::table::Spec;
use super::{Inner, InnerCommands, Script};
use crate::shell::grammar::condition::is_plain_name;

/// How many words are tried as the start of a command that could not be found exactly.
const MOST_GUESSES: usize = 16;

/// What a step over one option word came to.
enum Step {
    /// This many words belong to the option.
    Option(usize),
    /// Nothing is run at all.
    Query,
    /// The options are over; this many words belong to their end.
    End(usize),
    /// The word is not understood.
    Lost,
}

/// What the wrapper runs. `by_name` says that it was called without a path.
pub(super) fn inner_of(spec: &Spec, arguments: &[Word], by_name: bool) -> InnerCommands {
    let mut rest = arguments;
    loop {
        let Some(first) = rest.first() else { return InnerCommands::default() };
        match step(spec, first, rest.len()) {
            Step::Option(count) => rest = rest.get(count..).unwrap_or_default(),
            Step::Query => return InnerCommands::default(),
            Step::End(count) => {
                rest = rest.get(count..).unwrap_or_default();
                break;
            }
            Step::Lost if spec.name == "env" => return split_string(rest),
            Step::Lost => return guesses(rest, first.is_dynamic()),
        }
    }
    let operands = rest.get(..spec.operands).unwrap_or_default();
    let mut transparent = spec.transparent && by_name && operands.iter().all(|word| !word.is_dynamic());
    rest = rest.get(spec.operands..).unwrap_or_default();
    let mut assignments = Vec::new();
    while spec.variables
        && let Some(assignment) = rest.first().and_then(assignment_of)
    {
        assignments.push(assignment);
        rest = rest.get(1..).unwrap_or_default();
    }
    if rest.is_empty() {
        return InnerCommands::default();
    }
    let mut words = rest.to_vec();
    if spec.extended {
        let options = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
        match placeholder(options) {
            Some(sign) => words = words.iter().map(|word| filled_in(word, &sign)).collect(),
            None => words.push(Word::unknown("…")),
        }
        transparent = false;
    }
    InnerCommands {
        commands: vec![Inner { assignments, words, transparent, guessed: false }],
        ..InnerCommands::default()
    }
}

/// The text that is replaced in the command by what is read, if the options name one.
fn placeholder(options: &[Word]) -> Option<String> {
    options.iter().enumerate().find_map(|(at, word)| {
        let sign = word.as_literal()?.strip_prefix("-I")?;
        let next = || options.get(at + 1).and_then(Word::as_literal).unwrap_or_default();
        Some(if sign.is_empty() { next().to_owned() } else { sign.to_owned() })
    })
}

/// The word with the placeholder as unknown.
fn filled_in(word: &Word, sign: &str) -> Word {
    match word.as_literal() {
        Some(text) if !sign.is_empty() && text.contains(sign) => Word::unknown(text),
        Some(_) | None => word.clone(),
    }
}

/// Looks at one word in front of the command.
fn step(spec: &Spec, word: &Word, left: usize) -> Step {
    let Some(text) = word.as_literal() else {
        // Behind the options a word that is not known is an operand or the command itself.
        let option = word.known_start().is_empty() || word.known_start().starts_with('-');
        return if option { Step::Lost } else { Step::End(0) };
    };
    if text == "--" {
        return Step::End(1);
    }
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        if spec.long_flags.contains(&name) {
            return Step::Option(1);
        }
        if spec.long_values.contains(&name) {
            return Step::Option(if value.is_some() { 1 } else { 2.min(left) });
        }
        return Step::Lost;
    }
    let Some(letters) = text.strip_prefix('-') else { return Step::End(0) };
    if letters.is_empty() {
        return if spec.name == "env" { Step::Option(1) } else { Step::End(0) };
    }
    for (at, letter) in letters.char_indices() {
        let last = at + letter.len_utf8() == letters.len();
        if spec.queries.contains(letter) {
            return Step::Query;
        }
        if spec.values.contains(letter) {
            return Step::Option(if last { 2.min(left) } else { 1 });
        }
        if spec.attached.contains(letter) {
            return Step::Option(1);
        }
        if !spec.flags.contains(letter) {
            return Step::Lost;
        }
    }
    Step::Option(1)
}

/// The assignment a word is, as `env` and `sudo` read it.
pub(super) fn assignment_of(word: &Word) -> Option<Assignment> {
    let (name, value) = word.known_start().split_once('=')?;
    if !is_plain_name(name) {
        return None;
    }
    let mut pieces = Vec::new();
    if !value.is_empty() {
        pieces.push(Piece::Literal(value.to_owned()));
    }
    pieces.extend(word.pieces.iter().skip(1).cloned());
    Some(Assignment { name: name.to_owned(), value: Word { pieces }, subscript: false })
}

/// `env -S text`: the text, split at blanks, and the words behind it are one command. The text may stand in the same word
/// or the next, and has quotes, escapes and variables of its own.
fn split_string(words: &[Word]) -> InnerCommands {
    let mut found = guesses(words, words.first().is_some_and(Word::is_dynamic));
    let Some(first) = words.first().and_then(Word::as_literal) else { return found };
    let text = match first.strip_prefix("--") {
        Some(long) => long.split_once('=').map(|(_, text)| text),
        None => first.split_once('S').map(|(_, text)| text).filter(|text| !text.is_empty()),
    };
    let (text, rest) = match (text, words.get(1)) {
        (Some(text), _) => (Some(text), 1),
        (None, Some(next)) => (next.as_literal(), 2),
        (None, None) => return found,
    };
    let Some(text) = text else {
        found.dynamic = true;
        return found;
    };
    found.dynamic |= text.contains(['$', '\\', '"', '\'', '#']);
    let mut command: Vec<Word> = text.split_whitespace().map(Word::literal).collect();
    command.extend_from_slice(words.get(rest..).unwrap_or_default());
    // Options in the text are options of `env`, another text among them.
    if command.first().is_some_and(|word| word.known_start().starts_with('-')) {
        command.insert(0, Word::literal("env"));
    }
    let assigned = command.iter().take_while(|word| assignment_of(word).is_some()).count();
    let assignments = command.drain(..assigned).filter_map(|word| assignment_of(&word)).collect();
    if !command.is_empty() {
        found.commands.push(Inner { assignments, words: command, transparent: false, guessed: false });
    }
    found
}

/// Every word that could start a command, each as one. Options may hide a whole script, so they are read as text too.
pub(super) fn guesses(words: &[Word], dynamic: bool) -> InnerCommands {
    let mut found = InnerCommands { dynamic, ..InnerCommands::default() };
    for at in 0..words.len().min(MOST_GUESSES) {
        let Some(first) = words.get(at) else { break };
        // A word that is not known may be the command, or an option that names one.
        found.dynamic |= first.is_dynamic();
        let starts = first.as_literal().is_some_and(|text| !text.starts_with('-') && !text.is_empty());
        if starts && assignment_of(first).is_none() {
            let words = words.get(at..).unwrap_or_default().to_vec();
            found.commands.push(Inner { assignments: Vec::new(), words, transparent: false, guessed: true });
        }
        if let Some(text) = first.as_literal()
            && text.contains([' ', '\t', '\n'])
        {
            let text =
                text.strip_prefix("-S").or_else(|| text.strip_prefix("--split-string=")).unwrap_or(text);
            found.scripts.push(Script::Guessed(text.to_owned()));
        }
    }
    found
}
