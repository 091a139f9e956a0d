//! `$'…'`, the quotes that decode escapes. What comes out is known where every escape stands for printable ASCII, a line
//! break or a tab; other characters depend on the locale, and a NUL ends the text early.

use super::lexer::Builder;
use super::reader::Reader;
use crate::shell::reading::DoubtKind;

impl Reader<'_, '_> {
    /// The quotes that start here, dollar sign included.
    pub fn ansi_quotes(&mut self, builder: &mut Builder) {
        let start = self.at;
        self.at += 2;
        let mut decoded = Some(String::new());
        loop {
            match self.peek(0) {
                None => {
                    self.doubt(DoubtKind::SyntaxError, start);
                    decoded = None;
                    break;
                }
                Some(b'\'') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.at += 1;
                    match (self.ansi_escape(), &mut decoded) {
                        (Some(character), Some(text)) => text.push(character),
                        (Some(_), None) => {}
                        (None, _) => decoded = None,
                    }
                }
                Some(_) => {
                    let from = self.at;
                    self.skip_character();
                    if let Some(text) = &mut decoded {
                        text.push_str(self.slice(from, self.at));
                    }
                }
            }
        }
        match decoded {
            Some(text) => builder.text(&text),
            None => builder.unknown(self.slice(start, self.at)),
        }
    }

    /// What stands behind a backslash; `None` for what is not known. At least one character is passed.
    fn ansi_escape(&mut self) -> Option<char> {
        let byte = self.peek(0)?;
        let known = match byte {
            b'\\' | b'\'' | b'"' | b'?' => char::from(byte),
            b'n' => '\n',
            b't' => '\t',
            b'x' => return self.ansi_number(1, 2, 16),
            b'u' => return self.ansi_number(1, 4, 16),
            b'U' => return self.ansi_number(1, 8, 16),
            b'0'..=b'7' => return self.ansi_number(0, 3, 8),
            _ => {
                self.skip_character();
                return None;
            }
        };
        self.at += 1;
        Some(known)
    }

    /// The character with a number, whose digits stand behind `skipped` bytes.
    fn ansi_number(&mut self, skipped: usize, most: usize, radix: u32) -> Option<char> {
        self.at += skipped;
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let length = self.rest().bytes().take(most).take_while(is_digit).count();
        let digits = self.slice(self.at, self.at + length);
        let character = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        self.at += length;
        character.filter(|it| matches!(it, ' '..='~' | '\n' | '\t'))
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::{Word, read};

    fn argument(text: &str) -> Option<String> {
        let reading = read(&format!("echo {text}"));
        reading.commands[0].words.get(1).and_then(Word::as_literal).map(ToOwned::to_owned)
    }

    #[test]
    fn escapes_of_printable_characters_are_decoded() {
        for (text, decoded) in [
            (r"$'can\x61ry'", "canary"),
            (r"$'can\141ry'", "canary"),
            (r"$'can\u0061ry'", "canary"),
            (r"$'can\U00000061ry'", "canary"),
            (r"$'a\x9:'", "a\t:"),
            (r"$'\'\\\n'", "'\\\n"),
        ] {
            assert_eq!(argument(text).as_deref(), Some(decoded), "{text}");
        }
    }

    #[test]
    fn what_depends_on_the_locale_or_ends_the_text_is_not_known() {
        for text in [r"$'a\0b'", r"$'a\xffb'", r"$'\u00e9'", r"$'\e[1m'", r"$'\ca'", r"$'\x'", r"$'a\q'"] {
            assert_eq!(argument(text), None, "{text}");
        }
    }
}
