//! The clipboard through the terminal itself (OSC 52), for a terminal at the other end of a network.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Terminals take no more.
const MOST_BYTES: usize = 74_000;

/// The sequence that puts text into the clipboard, and whether the text was too long and is cut.
pub(crate) fn clipboard_sequence(text: &str) -> (String, bool) {
    let mut end = text.len().min(MOST_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(&text[..end])), end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_encoded() {
        assert_eq!(clipboard_sequence("hi\u{1b}"), ("\u{1b}]52;c;aGkb\u{7}".to_owned(), false));
        assert!(clipboard_sequence(&"x".repeat(80_000)).1);
    }
}
