//! What a terminal may show of text that others wrote: the one table of characters that steer a terminal, cannot be seen
//! or reorder what is seen, and the escapes that stand in for them. A command with such a character is never automatic,
//! and wherever one is shown it is escaped, so that what is approved is what is read.

mod prose;
mod spelling;

pub use prose::Prose;
pub use spelling::distance;

/// What makes a character suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspicion {
    /// A control character.
    Control,
    /// Invisible, a strange blank, or direction-changing.
    Invisible,
}

/// Ranges of characters that show as nothing, as a blank other than the space, or change the direction of text.
const INVISIBLE: [(u32, u32); 32] = [
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x070F, 0x070F),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xD7B0, 0xD7FF),
    (0xE000, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0xFFFFF),
    (0x100000, 0x10FFFF),
];

/// What is suspicious about a character, if anything.
pub fn suspicion(character: char) -> Option<Suspicion> {
    let code = u32::from(character);
    if code < 0x80 {
        let control = (code < 0x20 && character != '\n' && character != '\t') || code == 0x7F;
        return control.then_some(Suspicion::Control);
    }
    if code < 0xA0 {
        return Some(Suspicion::Control);
    }
    // The ranges are sorted, so the last one that starts at or before the character is the only candidate.
    let after = INVISIBLE.partition_point(|&(first, _)| first <= code);
    let found = after.checked_sub(1).and_then(|at| INVISIBLE.get(at)).is_some_and(|&(_, last)| code <= last);
    found.then_some(Suspicion::Invisible)
}

/// The text with every control, invisible and direction-changing character shown as an escape, newline and tab excepted.
#[must_use]
pub fn escaped_for_display(text: &str) -> String {
    escaped(text, |character| suspicion(character).is_some())
}

/// The text on one line: as [`escaped_for_display`], with newlines and tabs escaped too, so that a name cannot pass for a
/// second row.
#[must_use]
pub fn escaped_line(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t') || suspicion(character).is_some())
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        // The sign for what could not be decoded is seen as what it is.
        if is_escaped(character) && character != char::REPLACEMENT_CHARACTER {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Escapes the same characters in JSON text as JSON does, so that it reads back equal.
pub fn escape_json(json: &mut Vec<u8>) {
    // Most JSON is plain ASCII, in which the serializer has escaped every control character but DEL.
    if !json.iter().any(|byte| *byte >= 0x7F || (*byte < 0x20 && !matches!(byte, b'\n' | b'\t'))) {
        return;
    }
    let text = String::from_utf8_lossy(json);
    if !text.chars().any(|character| suspicion(character).is_some()) {
        return;
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if character == '\r' {
            // Only a blank between values is written so.
            shown.push(' ');
        } else if suspicion(character).is_some() {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    *json = shown.into_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_sorted_and_do_not_overlap() {
        for pair in INVISIBLE.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:x?}");
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(escaped_line("a\nb\tc\u{1b}"), "a\\u{a}b\\u{9}c\\u{1b}");
    }

    #[test]
    fn escaped_json_reads_back_equal() {
        let hostile: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
        let value = serde_json::json!({ "text": hostile, "list": ["世界 🎉", 1.5] });
        for text in [value.to_string(), format!("{value:#}")] {
            let mut json = text.into_bytes();
            escape_json(&mut json);
            let shown = String::from_utf8(json).unwrap();
            assert!(shown.contains("世界 🎉"));
            assert!(!shown.chars().any(|character| suspicion(character).is_some()));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
    }
}
