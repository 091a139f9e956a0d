//! `[[ … ]]` and `case`: constructs with words of their own syntax. A test is reported as a command named `[[`, so that the
//! policy can judge the files it looks at; comparing as numbers evaluates text unless the operands are numbers.

use super::lexer::Builder;
use super::places::Flow;
use super::reader::Reader;
use crate::shell::Word;
use crate::shell::reading::DoubtKind;

/// Comparisons that evaluate their operands as arithmetic.
const NUMERIC: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Reader<'_, '_> {
    /// A test in double brackets.
    pub fn condition(&mut self, start: usize) -> Flow {
        self.starts.push(start);
        let mut command = self.blank_command();
        loop {
            self.skip_lines();
            match self.peek(0) {
                None => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    break;
                }
                Some(b'<' | b'>') if self.peek(1) == Some(b'(') => {}
                Some(byte @ (b'(' | b')' | b'<' | b'>')) => {
                    self.at += 1;
                    command.words.push(Word::literal(char::from(byte)));
                    continue;
                }
                Some(b'&' | b'|') => {
                    let from = self.at;
                    if self.looking_at("&&") || self.looking_at("||") {
                        self.at += 2;
                    } else {
                        self.at += 1;
                        self.doubt(DoubtKind::SyntaxError, start);
                    }
                    command.words.push(Word::literal(self.slice(from, self.at)));
                    continue;
                }
                Some(b';') => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    break;
                }
                Some(_) => {}
            }
            let matching = command.words.last().and_then(Word::as_literal) == Some("=~");
            let closing = self.raw_word() == "]]";
            if self.raw_word() == "=~" {
                self.at += "=~".len();
                command.words.push(Word::literal("=~"));
                continue;
            }
            let word = if matching { self.regular_expression() } else { self.word() };
            command.words.extend(word);
            if closing {
                break;
            }
        }
        if evaluates_operands(&command.words) {
            self.doubt(DoubtKind::EvaluatesText, start);
        }
        command.text = self.slice(start, self.at).to_owned();
        self.finish(command, self.pending.len())
    }

    /// The pattern behind `=~`, in which parentheses and bars are part of the word.
    fn regular_expression(&mut self) -> Option<Word> {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' if open == 0 => break,
                b'(' => open += 1,
                b')' => open = open.saturating_sub(1),
                b'$' if self.peek(1).is_some_and(|next| !next.is_ascii_whitespace() && next != b')') => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    self.dollar(&mut Builder::default(), false);
                    continue;
                }
                b'`' | b'\'' | b'"' | b'\\' | b'<' | b'>' | b'&' | b';' => {
                    self.doubt(DoubtKind::UnknownConstruct, start);
                    let mut builder = Builder::default();
                    self.word_into(&mut builder);
                    if self.at == start {
                        self.skip_character();
                    }
                    return Some(Word::unknown(self.slice(start, self.at)));
                }
                _ => {}
            }
            self.skip_character();
        }
        (self.at > start).then(|| Word::unknown(self.slice(start, self.at)))
    }

    /// `case … esac`.
    pub fn cases(&mut self, start: usize) -> Flow {
        let before = self.here.clone();
        let mut leaving = before.clone();
        self.at += "case".len();
        self.skip_blanks();
        self.word();
        self.skip_lines();
        if !self.expect_word("in", start) {
            return Flow::staying(&before);
        }
        loop {
            self.skip_lines();
            if self.at >= self.end || self.raw_word() == "esac" {
                break;
            }
            if !self.patterns(start) {
                break;
            }
            self.here = before.clone().or(leaving.clone());
            let flow = self.list(&[";;&", ";;", ";&", "esac"]);
            leaving = leaving.or(flow.either());
            if self.peek(0) == Some(b';')
                && let Some(closer) = self.closer()
            {
                self.at += closer.len();
            }
        }
        self.expect_word("esac", start);
        Flow::staying(&leaving)
    }

    /// The patterns of one branch, up to and including the parenthesis.
    fn patterns(&mut self, start: usize) -> bool {
        if self.peek(0) == Some(b'(') {
            self.at += 1;
        }
        loop {
            self.skip_blanks();
            if self.word().is_none() {
                self.doubt(DoubtKind::SyntaxError, start);
                return false;
            }
            self.skip_blanks();
            match self.peek(0) {
                Some(b'|') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    return true;
                }
                _ => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    return false;
                }
            }
        }
    }
}

/// True when a test compares numbers that are not plain, or asks for a variable by anything but a plain name.
fn evaluates_operands(words: &[Word]) -> bool {
    let text = |at: Option<usize>| at.and_then(|at| words.get(at)).and_then(Word::as_literal);
    let number = |at: Option<usize>| {
        text(at).is_some_and(|text| {
            !text.is_empty() && text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit())
        })
    };
    (0..words.len()).any(|at| match text(Some(at)) {
        Some(operator) if NUMERIC.contains(&operator) => !number(at.checked_sub(1)) || !number(Some(at + 1)),
        Some("-v" | "-R") => !text(Some(at + 1)).is_some_and(is_plain_name),
        Some(_) | None => false,
    })
}

/// True for a name without subscript.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(super::reader::is_name_start) && bytes.all(super::reader::is_name)
}
