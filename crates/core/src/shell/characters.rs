//! Characters that a person cannot see or that reorder what is seen. A command with one of them is never automatic, and
//! wherever it is shown they are escaped, so that what is approved is what is read.

/// What makes a character suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// A control character.
    Control,
    /// Invisible, a strange blank, or direction-changing.
    Invisible,
}

/// Ranges of characters that show as nothing, as a blank other than the space, or change the direction of text.
const INVISIBLE: [(u32, u32); 30] = [
    (0x00A0, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
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
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFD),
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
pub(super) fn suspicion(character: char) -> Option<Suspicion> {
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
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if suspicion(character).is_some() {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
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
}
