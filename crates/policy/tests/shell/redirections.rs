//! Redirections in every form the grammar knows, with their direction and target.

use RedirectionKind::{Append, Duplicate, HereDocument, HereString, Input, Output, ReadWrite};
use qoder_policy::shell::{RedirectionKind, read};

#[test]
fn every_form_has_its_direction_and_target() {
    let cases: [(&str, RedirectionKind, Option<&str>); 24] = [
        ("a > f", Output, Some("f")),
        ("a >f", Output, Some("f")),
        ("> f a", Output, Some("f")),
        ("a 2> f", Output, Some("f")),
        ("a >| f", Output, Some("f")),
        ("a >> f", Append, Some("f")),
        ("a &> f", Output, Some("f")),
        ("a &>> f", Append, Some("f")),
        ("a >& f", Output, Some("f")),
        ("a < f", Input, Some("f")),
        ("a 0<f", Input, Some("f")),
        ("a <> f", ReadWrite, Some("f")),
        ("a 2>&1", Duplicate, None),
        ("a >&2", Duplicate, None),
        ("a <&3", Duplicate, None),
        ("a 2>&-", Duplicate, None),
        ("a <&3-", Duplicate, None),
        ("a >& $x", Output, Some("$x")),
        ("a <<< 'x y'", HereString, Some("x y")),
        ("a <<E\nx\nE", HereDocument, Some("x\n")),
        ("a > /dev/tcp/h/1", Output, Some("/dev/tcp/h/1")),
        ("{ a; } > f", Output, Some("f")),
        ("if a; then b; fi > f", Output, Some("f")),
        ("{fd}> f a", Output, Some("f")),
    ];
    for (line, kind, target) in cases {
        let reading = read(line);
        let found = reading.commands.iter().flat_map(|it| &it.redirections).next().unwrap();
        assert_eq!(found.kind, kind, "{line:?}");
        assert_eq!(
            found.target.as_ref().map(qoder_policy::shell::Word::to_display).as_deref(),
            target,
            "{line:?}"
        );
    }
}

#[test]
fn words_behind_a_redirection_belong_to_the_command() {
    let reading = read("cat < in -n > out x");
    let words: Vec<_> =
        reading.commands.first().unwrap().words.iter().map(qoder_policy::shell::Word::to_display).collect();
    assert_eq!(words, ["cat", "-n", "x"]);
}

#[test]
fn a_number_apart_is_an_argument() {
    let reading = read("a 2 > f");
    assert_eq!(reading.commands.first().unwrap().words.len(), 2);
}
