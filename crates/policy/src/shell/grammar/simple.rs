//! Simple commands: assignments, words and redirections up to the next operator. A finished command is collected, its
//! builtin effects become doubts, and whatever it would run in turn is looked for.

use super::nested;
use super::places::{self, Flow};
use super::reader::{Reader, is_meta, is_name, is_name_start};
use crate::shell::reading::{Assignment, DoubtKind, Redirection, RedirectionKind, SimpleCommand};
use crate::shell::{Piece, Word};

/// Words that only the shell's grammar may use at the start of a command.
const RESERVED: [&str; 20] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "until", "while", "{",
];
/// Builtins whose arguments may be assignments.
const DECLARING: [&str; 5] = ["declare", "typeset", "export", "readonly", "local"];

impl Reader<'_, '_> {
    /// A command with nothing in it yet, standing here.
    pub fn blank_command(&self) -> SimpleCommand {
        SimpleCommand {
            assignments: Vec::new(),
            words: Vec::new(),
            redirections: Vec::new(),
            wrapped: None,
            directories: self.here.0.clone(),
            piped_input: false,
            text: String::new(),
        }
    }

    /// Reads a simple command, or a function definition that starts like one.
    pub fn simple_command(&mut self) -> Flow {
        let start = self.at;
        let first_pending = self.pending.len();
        let mut command = self.blank_command();
        let mut declaring = false;
        let mut end = start;
        loop {
            self.skip_to_token();
            let Some(byte) = self.peek(0) else { break };
            if self.redirection(&mut command.redirections) {
                end = self.at;
                continue;
            }
            if byte == b'(' {
                if command.words.len() == 1
                    && command.assignments.is_empty()
                    && command.redirections.is_empty()
                {
                    // The name is no command.
                    self.starts.pop();
                    return self.function(start);
                }
                self.doubt(DoubtKind::SyntaxError, start);
                break;
            }
            if is_meta(byte) && !(matches!(byte, b'<' | b'>') && self.peek(1) == Some(b'(')) {
                break;
            }
            if (command.words.is_empty() || declaring) && self.assignment(&mut command, declaring) {
                end = self.at;
                continue;
            }
            let word_start = self.at;
            let Some(word) = self.word() else { break };
            end = self.at;
            let spelling = self.slice(word_start, end);
            if spelling.starts_with('{')
                && spelling.ends_with('}')
                && matches!(self.peek(0), Some(b'<' | b'>'))
            {
                // Bash may take it for the variable of a descriptor, and evaluates a subscript in it.
                self.doubt(DoubtKind::UnknownConstruct, word_start);
            }
            if command.words.is_empty() {
                self.starts.push(word_start);
                declaring = word.as_literal().is_some_and(|name| DECLARING.contains(&name));
                if word.as_literal().is_some_and(|name| RESERVED.contains(&name)) {
                    self.doubt(DoubtKind::UnknownConstruct, word_start);
                }
            }
            command.words.push(word);
        }
        if end == start {
            return Flow::staying(&self.here);
        }
        command.text = self.slice(start, end).to_owned();
        self.finish(command, first_pending)
    }

    /// Collects a finished command and what it runs; says where the shell is afterwards.
    pub fn finish(&mut self, command: SimpleCommand, first_pending: usize) -> Flow {
        if command.assignments.iter().any(|it| it.name == "CDPATH") {
            self.search_path = true;
        }
        let flow = places::after(&command, &self.here, self.search_path);
        let text_input = command.redirections.iter().find(|it| it.kind == RedirectionKind::HereString);
        let text_input = text_input.and_then(|it| it.target.clone());
        let owner = self.out.push(command);
        for pending in self.pending.iter_mut().skip(first_pending) {
            pending.owner = owner;
        }
        if let Some(owner) = owner {
            nested::follow(self.out, owner);
            if let Some(input) = text_input {
                nested::input_of_shells(self.out, owner, &input);
            }
        }
        flow
    }

    /// Reads an assignment if one starts here.
    fn assignment(&mut self, command: &mut SimpleCommand, keep_word: bool) -> bool {
        let start = self.at;
        if !self.peek(0).is_some_and(is_name_start) {
            return false;
        }
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        let mut after = rest.get(length..).unwrap_or_default();
        let mut subscript = false;
        if after.starts_with('[') {
            let close = after.find(']').unwrap_or(0);
            let index = after.get(1..close).unwrap_or_default();
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                // The shell reads up to the matching bracket, blanks included, and evaluates what is there.
                self.out.doubt(DoubtKind::EvaluatesText, name);
                return false;
            }
            subscript = true;
            after = after.get(close + 1..).unwrap_or_default();
        }
        let operator = if after.starts_with('=') {
            1
        } else if after.starts_with("+=") {
            2
        } else {
            0
        };
        if operator == 0 {
            return false;
        }
        self.at += rest.len() - after.len() + operator;
        let prefix = self.slice(start, self.at);
        let value = if self.peek(0) == Some(b'(') { self.array() } else { self.word().unwrap_or_default() };
        if keep_word {
            let mut pieces = vec![Piece::Literal(prefix.to_owned())];
            pieces.extend(value.pieces.iter().cloned());
            if let [Piece::Literal(first), Piece::Literal(second)] = pieces.as_slice() {
                pieces = vec![Piece::Literal(format!("{first}{second}"))];
            }
            command.words.push(Word { pieces });
        }
        command.assignments.push(Assignment { name: name.to_owned(), value, subscript });
        true
    }

    /// An array literal.
    fn array(&mut self) -> Word {
        let start = self.at;
        self.at += 1;
        if self.enter() {
            loop {
                self.skip_lines();
                if self.peek(0) == Some(b'[') {
                    // `[index]=value`: the index is evaluated.
                    self.out.doubt(DoubtKind::EvaluatesText, self.raw_word());
                }
                match self.peek(0) {
                    None => break,
                    Some(b')') => break,
                    Some(_) => {
                        if self.word().is_none() {
                            self.doubt(DoubtKind::SyntaxError, start);
                            self.skip_character();
                        }
                    }
                }
            }
            self.expect(b')', start);
            self.leave();
        }
        Word::unknown(self.slice(start, self.at))
    }

    /// Reads a redirection if one starts here.
    pub fn redirection(&mut self, into: &mut Vec<Redirection>) -> bool {
        let start = self.at;
        let skipped = self.descriptor_length();
        let rest = self.slice(start + skipped, self.end);
        let combined = skipped == 0 && rest.starts_with("&>");
        if !combined && !rest.starts_with(['<', '>']) {
            return false;
        }
        if rest.starts_with("<(") || rest.starts_with(">(") {
            return false;
        }
        let (length, kind) = operator_of(rest);
        if skipped > 0 && self.peek(0) == Some(b'{') {
            // A named descriptor sets a variable and stays open.
            self.out.doubt(DoubtKind::UnknownConstruct, self.raw_word());
        }
        self.at += skipped;
        self.operator(length);
        if kind == RedirectionKind::HereDocument {
            self.here_document(rest.starts_with("<<-"), start);
            into.push(Redirection { kind, target: None });
            return true;
        }
        self.skip_blanks();
        let Some(word) = self.word() else {
            self.doubt(DoubtKind::SyntaxError, start);
            return true;
        };
        let redirection = if kind == RedirectionKind::Duplicate {
            if expands_again(&word) {
                self.doubt(DoubtKind::EvaluatesText, start);
            }
            duplicate(rest.starts_with('<'), word)
        } else {
            Redirection { kind, target: Some(word) }
        };
        into.push(redirection);
        true
    }

    /// The length of a descriptor in front of a redirection operator: a number or `{name}`.
    fn descriptor_length(&self) -> usize {
        let rest = self.rest();
        let length = match rest.as_bytes().first() {
            Some(b'0'..=b'9') => rest.bytes().take(8).position(|byte| !byte.is_ascii_digit()),
            Some(b'{') => rest
                .bytes()
                .skip(1)
                .position(|byte| !is_name(byte))
                .filter(|&length| length > 0 && rest.as_bytes().get(length + 1) == Some(&b'}'))
                .map(|length| length + 2),
            _ => None,
        };
        let length = length.unwrap_or(0);
        let redirects = matches!(rest.as_bytes().get(length), Some(b'<' | b'>'));
        if redirects && rest.as_bytes().get(length + 1) != Some(&b'(') { length } else { 0 }
    }
}

/// The redirection operator at the start of a text: its length and kind.
fn operator_of(rest: &str) -> (usize, RedirectionKind) {
    const OPERATORS: [(&str, RedirectionKind); 12] = [
        ("&>>", RedirectionKind::Append),
        ("&>", RedirectionKind::Output),
        ("<<<", RedirectionKind::HereString),
        ("<<-", RedirectionKind::HereDocument),
        ("<<", RedirectionKind::HereDocument),
        ("<&", RedirectionKind::Duplicate),
        (">&", RedirectionKind::Duplicate),
        ("<>", RedirectionKind::ReadWrite),
        (">>", RedirectionKind::Append),
        (">|", RedirectionKind::Output),
        (">", RedirectionKind::Output),
        ("<", RedirectionKind::Input),
    ];
    let found = OPERATORS.iter().find(|(text, _)| rest.starts_with(text));
    found.map_or((1, RedirectionKind::ReadWrite), |&(text, kind)| (text.len(), kind))
}

/// True when the target of `<&` or `>&` would change by being expanded a second time, as bash does when it turns out to
/// be a file: a quoted `$(…)` runs then.
fn expands_again(word: &Word) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => {
            text.contains(|c: char| c.is_whitespace() || "$`*?[]{}~\\'\"!()<>|&;".contains(c))
        }
        Piece::Variable(_) | Piece::Unknown(_) | Piece::Glob(_) => true,
        Piece::Home => false,
    })
}

/// What `<&word` or `>&word` means: a descriptor when the word is a number or a dash, otherwise a file.
fn duplicate(input: bool, word: Word) -> Redirection {
    let word = if expands_again(&word) { Word::unknown(word.to_display()) } else { word };
    let descriptor = word.as_literal().is_some_and(|text| {
        let number = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    if descriptor {
        return Redirection { kind: RedirectionKind::Duplicate, target: None };
    }
    let kind = if input { RedirectionKind::Input } else { RedirectionKind::Output };
    Redirection { kind, target: Some(word) }
}
