//! What keys in normal mode come to.

use super::*;

/// Types keys in normal mode at the start of a text; `<` stands for Escape.
fn after(text: &str, keys: &str) -> (String, usize) {
    let mut composer = Composer::default();
    composer.insert(text);
    composer.set_vim(true);
    composer.key(Key::plain(KeyCode::Esc), 80);
    composer.key(Key::char('g'), 80);
    composer.key(Key::char('g'), 80);
    for sign in keys.chars() {
        let key = if sign == '<' { Key::plain(KeyCode::Esc) } else { Key::char(sign) };
        composer.key(key, 80);
    }
    (composer.draft().text().to_owned(), composer.draft().cursor())
}

#[test]
fn operators_and_motions() {
    for (keys, text) in [
        ("x", "ne two-x three\nfour"),
        ("dw", "two-x three\nfour"),
        ("d2w", "-x three\nfour"),
        ("2dw", "-x three\nfour"),
        ("dW", "two-x three\nfour"),
        ("wd$", "one \nfour"),
        ("wD", "one \nfour"),
        ("dd", "four"),
        ("2dd", ""),
        ("jdd", "one two-x three"),
        ("dft", "wo-x three\nfour"),
        ("dtt", "two-x three\nfour"),
        ("wdiw", "one -x three\nfour"),
        ("wdaw", "one-x three\nfour"),
        ("cwzero<", "zero two-x three\nfour"),
        ("ecwX<", "onX two-x three\nfour"),
        ("cwzero<.", "zerzero two-x three\nfour"),
        ("cwzero<u", "one two-x three\nfour"),
        ("ihi <", "hi one two-x three\nfour"),
        ("A!<", "one two-x three!\nfour"),
        ("ox<", "one two-x three\nx\nfour"),
        ("Ox<", "x\none two-x three\nfour"),
        ("rO", "One two-x three\nfour"),
        ("~", "One two-x three\nfour"),
        ("J", "one two-x three four"),
        ("yyp", "one two-x three\none two-x three\nfour"),
        ("yyjp", "one two-x three\nfour\none two-x three"),
        ("xp", "noe two-x three\nfour"),
        ("dwu", "one two-x three\nfour"),
        ("dw.", "-x three\nfour"),
        ("vex", " two-x three\nfour"),
        ("dG", ""),
        ("jdgg", ""),
        ("$X", "one two-x thre\nfour"),
    ] {
        let (shown, _) = after("one two-x three\nfour", keys);
        assert_eq!(shown, text, "{keys}");
    }
}

#[test]
fn motions_move_the_cursor() {
    for (keys, cursor) in [
        ("w", 4),
        ("ww", 7),
        ("W", 4),
        ("WW", 10),
        ("e", 2),
        ("ee", 6),
        ("$", 14),
        ("$b", 10),
        ("G", 16),
        ("j", 16),
        ("fx", 8),
        ("tx", 7),
        ("$Fx", 8),
        ("ft;", 10),
        ("5l", 5),
        ("$0", 0),
        ("$^", 0),
    ] {
        assert_eq!(after("one two-x three\nfour", keys).1, cursor, "{keys}");
    }
}

#[test]
fn text_objects_know_brackets_and_quotes() {
    for (text, keys, expected) in [
        ("f(a, (b)) x", "fbdi(", "f(a, ()) x"),
        ("f(a, (b)) x", "f,da(", "f x"),
        ("say \"some words\" now", "fsci\"<", "say \"\" now"),
        ("[one]", "ldi[", "[]"),
    ] {
        assert_eq!(after(text, keys).0, expected, "{text} {keys}");
    }
}

#[test]
fn a_change_repeats_with_what_was_typed() {
    assert_eq!(after("one two three", "cwx<w.").0, "x x three");
}
