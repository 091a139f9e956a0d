//! Characters that cannot be seen are doubts wherever they appear, and are shown escaped.

use super::kinds;
use qoder_policy::shell::DoubtKind::{ControlCharacter, InvisibleCharacter};
use qoder_policy::shell::read;
use qoder_types::display::escaped_for_display;

#[test]
fn control_characters_are_doubts_also_in_quotes() {
    for character in ['\r', '\0', '\x07', '\x1b', '\x7f', '\u{85}', '\x0b', '\x0c'] {
        for line in [format!("a{character}b"), format!("a '{character}'"), format!("a # {character}")] {
            assert!(kinds(&line).contains(&ControlCharacter), "{line:?}");
        }
    }
}

#[test]
fn invisible_and_direction_changing_characters_are_doubts() {
    let characters = [
        '\u{a0}',
        '\u{ad}',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2066}',
        '\u{2060}',
        '\u{feff}',
        '\u{fe0f}',
        '\u{3000}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{115f}',
        '\u{3164}',
        '\u{2800}',
        '\u{1680}',
        '\u{180e}',
        '\u{2028}',
        '\u{e000}',
    ];
    for character in characters {
        let line = format!("a 'x{character}y'");
        assert!(kinds(&line).contains(&InvisibleCharacter), "{line:?}");
        assert!(!escaped_for_display(&line).contains(character), "{line:?}");
    }
}

#[test]
fn ordinary_text_of_any_language_is_neither() {
    for line in ["echo 'grüße, 世界 — “ok” 🎉'", "a\tb\nc"] {
        assert!(read(line).is_proven(), "{line:?}: {:?}", read(line).doubts);
        assert_eq!(escaped_for_display(line), line);
    }
}

#[test]
fn escapes_show_the_code() {
    assert_eq!(escaped_for_display("a\u{202e}b\rc"), "a\\u{202e}b\\u{d}c");
}
