//! Words after quote and escape removal: literal where the value is known, pieces where it is not.

use qoder_policy::shell::{Piece, Word, read};

/// The arguments of the first command.
fn arguments(line: &str) -> Vec<Word> {
    let reading = read(line);
    reading.commands.last().unwrap().words.iter().skip(1).cloned().collect()
}

#[test]
fn quotes_and_escapes_are_removed() {
    let cases = [
        ("a b", "b"),
        ("a 'b c'", "b c"),
        ("a \"b c\"", "b c"),
        ("a b\\ c", "b c"),
        ("a b\"c\"'d'e", "bcde"),
        ("a \"b\\\"c\\$d\\\\e\\`f\"", "b\"c$d\\e`f"),
        ("a \"b\\qc\"", "b\\qc"),
        ("a 'b\\c'", "b\\c"),
        ("a ''", ""),
        ("a \"\"", ""),
        ("a \"b\\\nc\"", "bc"),
        ("a $'b\\'c\\td\\n'", "b'c\td\n"),
        ("a --opt=value", "--opt=value"),
        ("a x=y", "x=y"),
        ("a b~", "b~"),
        ("a '~'", "~"),
        ("a b#c", "b#c"),
        ("a \\*", "*"),
        ("a {}", "{}"),
        ("a HEAD@{1}", "HEAD@{1}"),
        ("a $", "$"),
        ("a \"$\"", "$"),
        ("a 'é ü'", "é ü"),
        ("a \\é", "é"),
        ("a !", "!"),
        ("a }", "}"),
        ("a [", "["),
    ];
    for (line, expected) in cases {
        assert_eq!(
            arguments(line),
            [if expected.is_empty() { Word::default() } else { Word::literal(expected) }],
            "{line:?}"
        );
    }
}

#[test]
fn what_is_not_known_says_what_it_is() {
    let literal = |text: &str| Piece::Literal(text.to_owned());
    let unknown = |text: &str| Piece::Unknown(text.to_owned());
    let variable = |text: &str| Piece::Variable(text.to_owned());
    let glob = |text: &str| Piece::Glob(text.to_owned());
    let cases = [
        ("a $b", vec![variable("b")]),
        ("a ${b}", vec![variable("b")]),
        ("a \"x$b/y\"", vec![literal("x"), variable("b"), literal("/y")]),
        ("a *.rs", vec![glob("*"), literal(".rs")]),
        ("a x?[a-z]", vec![literal("x"), glob("?"), glob("[a-z]")]),
        ("a ~", vec![Piece::Home]),
        ("a ~/x", vec![Piece::Home, literal("/x")]),
        ("a ~user/x", vec![unknown("~"), literal("user/x")]),
        ("a ~+", vec![unknown("~"), literal("+")]),
        ("a x=~/y", vec![literal("x="), unknown("~"), literal("/y")]),
        ("a {b,c}", vec![unknown("{b,c}")]),
        ("a x{1..3}", vec![unknown("x{1..3}")]),
        ("a $(b)", vec![unknown("$(b)")]),
        ("a x`b`", vec![literal("x"), unknown("`b`")]),
        ("a $'\\xff'", vec![unknown("$'\\xff'")]),
        ("a $\"b\"", vec![unknown("$\"b\"")]),
        ("a ${b:-c}", vec![unknown("${b:-c}")]),
        ("a ${#b}", vec![unknown("${#b}")]),
        ("a $1", vec![unknown("$1")]),
        ("a \"$@\"", vec![unknown("$@")]),
        ("a $((1+2))", vec![unknown("$((1+2))")]),
    ];
    for (line, pieces) in cases {
        assert_eq!(arguments(line), [Word { pieces }], "{line:?}");
    }
}

#[test]
fn blanks_only_separate() {
    assert_eq!(arguments("a  b\t c \\\n d"), ["b", "c", "d"].map(Word::literal));
    assert_eq!(arguments("cat > out b c"), ["b", "c"].map(Word::literal));
}

#[test]
fn assignments_are_reported_with_their_values() {
    let reading = read("A=1 B='x y' C=$D cmd; export E=f; G=(1 2); H[3]=4");
    let found: Vec<_> = reading
        .commands
        .iter()
        .flat_map(|command| &command.assignments)
        .map(|it| (it.name.as_str(), it.value.to_display(), it.subscript))
        .collect();
    let expected = [("A", "1"), ("B", "x y"), ("C", "$D"), ("E", "f"), ("G", "(1 2)"), ("H", "4")];
    let expected: Vec<_> =
        expected.iter().map(|&(name, value)| (name, value.to_owned(), name == "H")).collect();
    assert_eq!(found, expected);
    assert!(reading.is_proven(), "{:?}", reading.doubts);
}
