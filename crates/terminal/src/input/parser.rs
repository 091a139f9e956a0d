//! From bytes to keys. A sequence may arrive in pieces: what a read happened to return decides nothing. An escape that is
//! followed by nothing for a while is the Escape key; the one who reads knows the time.

use super::csi::{self, Meaning};
use super::key::{Key, KeyCode};

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A key.
    Key(Key),
    /// A paste, whole.
    Paste(String),
    /// The terminal has the focus, or no longer.
    Focus(bool),
}

/// What ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";
/// The largest paste that is taken.
const LARGEST_PASTE: usize = 16 * 1024 * 1024;
/// The longest reply of a terminal that is passed over.
const LONGEST_REPLY: usize = 64 * 1024;
/// The longest sequence of parameters.
const LONGEST_SEQUENCE: usize = 256;

/// Reads bytes as they come.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: State,
    events: Vec<Input>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// A character of several bytes.
    Utf8 {
        bytes: Vec<u8>,
        length: usize,
        alt: bool,
    },
    /// Behind an escape; true when it was the second.
    Escape(bool),
    /// Behind `ESC [`.
    Csi {
        parameters: Vec<u8>,
        alt: bool,
    },
    /// The bytes of a mouse report of the oldest kind that are still to come.
    Mouse(u8),
    /// Behind `ESC O`.
    Ss3 {
        alt: bool,
    },
    /// In a string that a terminal sends; the sign behind the escape, and how much of it came.
    Reply {
        sign: u8,
        length: usize,
        escaped: bool,
    },
    Paste(Vec<u8>),
}

impl Parser {
    /// Takes bytes; answers with what they came to.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if let State::Paste(_) = &self.state {
                rest = self.take_paste(rest);
                continue;
            }
            rest = after;
            self.take(byte);
        }
        std::mem::take(&mut self.events)
    }

    /// True when an escape or the start of a sequence waits for more.
    pub(crate) fn is_waiting(&self) -> bool {
        match &self.state {
            State::Ground | State::Paste(_) => false,
            State::Utf8 { .. }
            | State::Escape(_)
            | State::Csi { .. }
            | State::Mouse(_)
            | State::Ss3 { .. }
            | State::Reply { .. } => true,
        }
    }

    /// Nothing came for a while: what waits is what was meant.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Input> {
        match std::mem::take(&mut self.state) {
            State::Escape(second) => {
                if second {
                    self.key(Key::plain(KeyCode::Esc));
                }
                self.key(Key::plain(KeyCode::Esc));
            }
            State::Csi { parameters, .. } if parameters.is_empty() => self.key(Key::alt(KeyCode::Char('['))),
            State::Ss3 { .. } => self.key(Key::alt(KeyCode::Char('O'))),
            State::Reply { sign, length: 0, .. } => self.key(Key::alt(KeyCode::Char(char::from(sign)))),
            paste @ State::Paste(_) => self.state = paste,
            State::Ground
            | State::Utf8 { .. }
            | State::Csi { .. }
            | State::Mouse(_)
            | State::Reply { .. } => {}
        }
        std::mem::take(&mut self.events)
    }

    fn key(&mut self, key: Key) {
        self.events.push(Input::Key(key));
    }

    fn take(&mut self, byte: u8) {
        match std::mem::take(&mut self.state) {
            State::Ground => self.take_ground(byte, false),
            State::Utf8 { bytes, length, alt } => self.take_utf8(byte, bytes, length, alt),
            State::Escape(second) => self.take_escape(byte, second),
            State::Csi { parameters, alt } => self.take_csi(byte, parameters, alt),
            State::Mouse(1) => {}
            State::Mouse(left) => self.state = State::Mouse(left.saturating_sub(1)),
            State::Ss3 { alt } => self.take_meaning(csi::ss3(byte), alt),
            State::Reply { sign, length, escaped } => {
                let ends = byte == 7 || byte == 0x9c || (escaped && byte == b'\\');
                if !ends && length < LONGEST_REPLY {
                    self.state = State::Reply { sign, length: length + 1, escaped: byte == 0x1b };
                }
            }
            State::Paste(bytes) => self.state = State::Paste(bytes),
        }
    }

    fn take_ground(&mut self, byte: u8, alt: bool) {
        let code = match byte {
            0x1b => {
                self.state = State::Escape(alt);
                return;
            }
            b'\r' => Key::plain(KeyCode::Enter),
            b'\t' => Key::plain(KeyCode::Tab),
            0x7f | 0x08 => Key::plain(KeyCode::Backspace),
            0 => Key::ctrl(' '),
            0x01..=0x1a => Key::ctrl(char::from(byte - 1 + b'a')),
            0x1c..=0x1f => Key::ctrl(char::from(byte - 0x1c + b'\\')),
            0x20..=0x7e => Key::char(char::from(byte)),
            0xc2..=0xdf => return self.begin_utf8(byte, 2, alt),
            0xe0..=0xef => return self.begin_utf8(byte, 3, alt),
            0xf0..=0xf4 => return self.begin_utf8(byte, 4, alt),
            // Not the start of a character.
            0x80..=0xc1 | 0xf5..=0xff => return,
        };
        self.key(Key { alt, ..code });
    }

    fn begin_utf8(&mut self, byte: u8, length: usize, alt: bool) {
        self.state = State::Utf8 { bytes: vec![byte], length, alt };
    }

    fn take_utf8(&mut self, byte: u8, mut bytes: Vec<u8>, length: usize, alt: bool) {
        if byte & 0xc0 != 0x80 {
            // What was begun is not a character; this byte may begin one.
            return self.take_ground(byte, false);
        }
        bytes.push(byte);
        if bytes.len() < length {
            self.state = State::Utf8 { bytes, length, alt };
        } else if let Some(sign) = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()) {
            self.key(Key { alt, ..Key::char(sign) });
        }
    }

    fn take_escape(&mut self, byte: u8, second: bool) {
        match byte {
            b'[' => self.state = State::Csi { parameters: Vec::new(), alt: second },
            b'O' => self.state = State::Ss3 { alt: second },
            0x1b if !second => self.state = State::Escape(true),
            0x1b => {
                self.key(Key::plain(KeyCode::Esc));
                self.state = State::Escape(true);
            }
            b']' | b'P' | b'X' | b'^' | b'_' if !second => {
                self.state = State::Reply { sign: byte, length: 0, escaped: false };
            }
            _ => {
                if second {
                    self.key(Key::plain(KeyCode::Esc));
                }
                self.take_ground(byte, true);
            }
        }
    }

    fn take_csi(&mut self, byte: u8, mut parameters: Vec<u8>, alt: bool) {
        match byte {
            0x20..=0x3f if parameters.len() < LONGEST_SEQUENCE => {
                parameters.push(byte);
                self.state = State::Csi { parameters, alt };
            }
            b'M' if parameters.is_empty() => self.state = State::Mouse(3),
            0x40..=0x7e => self.take_meaning(csi::meaning(&parameters, byte), alt),
            // Another sequence begins in the midst of this one.
            0x1b => self.state = State::Escape(false),
            _ => {}
        }
    }

    fn take_meaning(&mut self, meaning: Meaning, alt: bool) {
        match meaning {
            Meaning::Key(key) => self.key(Key { alt: key.alt || alt, ..key }),
            Meaning::Paste => self.state = State::Paste(Vec::new()),
            Meaning::Focus(has) => self.events.push(Input::Focus(has)),
            Meaning::Nothing => {}
        }
    }

    /// Takes what belongs to a paste; answers with what follows it.
    fn take_paste<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let State::Paste(pasted) = &mut self.state else { return bytes };
        // The end may have begun in the bytes before.
        let from = pasted.len().saturating_sub(PASTE_END.len() - 1);
        let before = pasted.len();
        pasted.extend_from_slice(bytes);
        match memchr::memmem::find(&pasted[from..], PASTE_END) {
            Some(at) => {
                let end = from + at;
                let used = end + PASTE_END.len() - before;
                let text = clean(&pasted[..end]);
                self.state = State::Ground;
                self.events.push(Input::Paste(text));
                &bytes[used..]
            }
            None => {
                if pasted.len() > LARGEST_PASTE {
                    let text = clean(&pasted[..LARGEST_PASTE]);
                    self.state = State::Ground;
                    self.events.push(Input::Paste(text));
                }
                &[]
            }
        }
    }
}

/// A paste as text: line ends are newlines, and bytes that no text has are gone.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(bytes: &[u8]) -> Vec<Input> {
        let mut parser = Parser::default();
        let mut events = parser.feed(bytes);
        events.extend(parser.give_up_waiting());
        events
    }

    fn key(key: Key) -> Vec<Input> {
        vec![Input::Key(key)]
    }

    #[test]
    fn keys_of_all_protocols_are_read() {
        let shift_enter = Key { shift: true, ..Key::plain(KeyCode::Enter) };
        for (bytes, expected) in [
            (&b"a"[..], Key::char('a')),
            (b"\r", Key::plain(KeyCode::Enter)),
            (b"\n", Key::ctrl('j')),
            (b"\x03", Key::ctrl('c')),
            (b"\x1d", Key::ctrl(']')),
            (b"\x7f", Key::plain(KeyCode::Backspace)),
            (b"\x1b", Key::plain(KeyCode::Esc)),
            (b"\x1b[A", Key::plain(KeyCode::Up)),
            (b"\x1bOA", Key::plain(KeyCode::Up)),
            (b"\x1b\x1b[A", Key::alt(KeyCode::Up)),
            (b"\x1b[1;5D", Key { ctrl: true, ..Key::plain(KeyCode::Left) }),
            (b"\x1b[3~", Key::plain(KeyCode::Delete)),
            (b"\x1b[Z", Key { shift: true, ..Key::plain(KeyCode::Tab) }),
            (b"\x1b[9;2u", Key { shift: true, ..Key::plain(KeyCode::Tab) }),
            (b"\x1b[13;2u", shift_enter),
            (b"\x1b[27;2;13~", shift_enter),
            (b"\x1b[27u", Key::plain(KeyCode::Esc)),
            (b"\x1b[99;5u", Key::ctrl('c')),
            (b"\x1b\r", Key::alt(KeyCode::Enter)),
            (b"\x1bb", Key::alt(KeyCode::Char('b'))),
            (b"\x1b[15~", Key::plain(KeyCode::F(5))),
            ("é".as_bytes(), Key::char('é')),
            ("世".as_bytes(), Key::char('世')),
            ("🦀".as_bytes(), Key::char('🦀')),
            (b"\x1b]", Key::alt(KeyCode::Char(']'))),
        ] {
            assert_eq!(keys(bytes), key(expected), "{bytes:?}");
        }
    }

    #[test]
    fn replies_and_nonsense_mean_nothing() {
        for bytes in [
            &b"\x1b[?62;22c"[..],
            b"\x1b[24;80R",
            b"\x1b]11;rgb:0000/0000/0000\x1b\\",
            b"\x1b]11;rgb:0000/0000/0000\x07",
            b"\x1bP1+r544e\x1b\\",
            b"\x1b[<0;10;20M",
            b"\x1b[M !!",
            b"\x1b[97;1:3u",
            b"\xff\xfe",
        ] {
            assert_eq!(keys(bytes), vec![], "{bytes:?}");
        }
    }

    #[test]
    fn an_escape_waits_for_what_may_follow() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(b"\x1b"), vec![]);
        assert!(parser.is_waiting());
        assert_eq!(parser.feed(b"["), vec![]);
        assert_eq!(parser.feed(b"B"), key(Key::plain(KeyCode::Down)));
        assert!(!parser.is_waiting());
        assert_eq!(parser.feed(b"\x1b"), vec![]);
        assert_eq!(parser.give_up_waiting(), key(Key::plain(KeyCode::Esc)));
        assert_eq!(parser.feed(b"[A").len(), 2);
    }

    #[test]
    fn a_paste_is_one_event_however_it_arrives() {
        let bytes = b"\x1b[200~one\r\ntwo\rthree \x1b[31m\x1b[201~x";
        for size in 1..bytes.len() {
            let mut parser = Parser::default();
            let events: Vec<Input> = bytes.chunks(size).flat_map(|chunk| parser.feed(chunk)).collect();
            let expected =
                vec![Input::Paste("one\ntwo\nthree \u{1b}[31m".to_owned()), Input::Key(Key::char('x'))];
            assert_eq!(events, expected, "{size}");
        }
    }

    #[test]
    fn focus_is_reported() {
        assert_eq!(keys(b"\x1b[I\x1b[O"), vec![Input::Focus(true), Input::Focus(false)]);
    }

    proptest! {
        /// Whatever a terminal sends: no panic, and the pieces make no difference.
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..20) {
            let mut whole = Parser::default();
            let once = whole.feed(&bytes);
            let mut parser = Parser::default();
            let pieces: Vec<Input> = bytes.chunks(size).flat_map(|chunk| parser.feed(chunk)).collect();
            prop_assert_eq!(once, pieces);
        }
    }
}
