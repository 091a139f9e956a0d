//! Sequences that begin with `ESC [` or `ESC O`: arrows, function keys, keys with modifiers in both newer protocols, focus and
//! the start of a paste. Anything else is a reply that no one asked for, and means nothing.

use super::key::{Key, KeyCode};

/// What a sequence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A key.
    Key(Key),
    /// A paste begins.
    Paste,
    /// The terminal has the focus, or no longer.
    Focus(bool),
    /// Nothing.
    Nothing,
}

/// What the sequence with these parameters and this last byte means.
pub(super) fn meaning(parameters: &[u8], last: u8) -> Meaning {
    // A private marker begins a reply of the terminal.
    if parameters.first().is_some_and(|byte| matches!(byte, b'?' | b'<' | b'=' | b'>')) {
        return Meaning::Nothing;
    }
    let text = String::from_utf8_lossy(parameters);
    let numbers: Vec<Vec<u32>> = text
        .split(';')
        .map(|part| part.split(':').map(|number| number.parse().unwrap_or(0)).collect())
        .collect();
    let number = |at: usize| numbers.get(at).and_then(|part| part.first()).copied().unwrap_or(0);
    // The second part of the modifiers says whether the key was pressed, repeated or released.
    let released = numbers.get(1).and_then(|part| part.get(1)) == Some(&3);
    if released {
        return Meaning::Nothing;
    }
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' if parameters.is_empty() || number(0) == 1 => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        b'Z' => return Meaning::Key(Key { shift: true, ..Key::plain(KeyCode::Tab) }),
        b'I' if parameters.is_empty() => return Meaning::Focus(true),
        b'O' if parameters.is_empty() => return Meaning::Focus(false),
        b'u' => return kitty(number(0), number(1)),
        b'~' => match number(0) {
            200 => return Meaning::Paste,
            27 => return kitty(number(2), number(1)),
            1 | 7 => KeyCode::Home,
            2 => KeyCode::Insert,
            3 => KeyCode::Delete,
            4 | 8 => KeyCode::End,
            5 => KeyCode::PageUp,
            6 => KeyCode::PageDown,
            code @ 11..=15 => KeyCode::F(u8::try_from(code - 10).unwrap_or(1)),
            code @ 17..=21 => KeyCode::F(u8::try_from(code - 11).unwrap_or(1)),
            code @ 23..=24 => KeyCode::F(u8::try_from(code - 12).unwrap_or(1)),
            _ => return Meaning::Nothing,
        },
        _ => return Meaning::Nothing,
    };
    Meaning::Key(modified(code, number(1)))
}

/// A key with the modifiers of a sequence: one more than the sum of shift 1, alt 2, ctrl 4.
fn modified(code: KeyCode, modifiers: u32) -> Key {
    let bits = modifiers.saturating_sub(1);
    Key { code, shift: bits & 1 > 0, alt: bits & 2 > 0, ctrl: bits & 4 > 0 }
}

/// A key by its code point.
fn kitty(code: u32, modifiers: u32) -> Meaning {
    let mut key = modified(KeyCode::Esc, modifiers);
    key.code = match code {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10).unwrap_or('0')),
        57344..=63743 | 0 => return Meaning::Nothing,
        code => match char::from_u32(code) {
            Some(sign) => {
                if key.shift && !key.ctrl && !key.alt {
                    key.shift = false;
                    KeyCode::Char(sign.to_uppercase().next().unwrap_or(sign))
                } else {
                    KeyCode::Char(sign)
                }
            }
            None => return Meaning::Nothing,
        },
    };
    Meaning::Key(key)
}

/// A key of the keypad or an arrow, as `ESC O` writes it.
pub(super) fn ss3(last: u8) -> Meaning {
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P' => KeyCode::F(1),
        b'Q' => KeyCode::F(2),
        b'R' => KeyCode::F(3),
        b'S' => KeyCode::F(4),
        b'p'..=b'y' => KeyCode::Char(char::from(last - b'p' + b'0')),
        b'j' => KeyCode::Char('*'),
        b'k' => KeyCode::Char('+'),
        b'm' => KeyCode::Char('-'),
        b'n' => KeyCode::Char('.'),
        b'o' => KeyCode::Char('/'),
        _ => return Meaning::Nothing,
    };
    Meaning::Key(Key::plain(code))
}
