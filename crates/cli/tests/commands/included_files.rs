//! `@path` includes files: behind the text, within bounds, through the rules about reading. Files that include each other
//! are cut with a message.

use qoder_testkit::Reply;

use crate::commands::support::{asked, bodies, command, model, trusted, turn};

#[test]
fn a_file_is_included_behind_the_text() {
    let sandbox = trusted();
    sandbox.write("src/a.rs", "fn a() {}");
    command(&sandbox, "look", "Look at @$1, and at @src/a.rs; mail me@example.com or @nowhere.");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/look src/a.rs"]);
    let text = asked(&bodies(&server)[0]);
    let expected = "Look at @src/a.rs, and at @src/a.rs; mail me@example.com or @nowhere.\n\
                    Contents of src/a.rs:\n\nfn a() {}";
    assert_eq!(text, expected);
}

#[test]
fn what_may_not_be_read_refuses_the_command() {
    let sandbox = trusted();
    sandbox.write(".env", "KEY=1");
    let outside = sandbox.write(sandbox.home().join("far.txt"), "far");
    command(&sandbox, "env", "Use @.env");
    command(&sandbox, "far", &format!("Use @{}", outside.display()));
    for (name, told) in [("/env", "the rule `Read(.env)`"), ("/far", "outside the workspace")] {
        let server = model(vec![Reply::text("never")]);
        let ran = turn(&sandbox, &server, &[name, "--disallowed-tools", "Read(.env)"]);
        let error = ran.error();
        assert!(error.contains("cannot be included") && error.contains(told), "{error}");
        assert!(bodies(&server).is_empty());
    }
}

#[test]
fn cyclic_includes_are_cut_with_a_message() {
    let sandbox = trusted();
    sandbox.write("docs/a.md", "A includes @b.md");
    sandbox.write("docs/b.md", "B includes @a.md");
    command(&sandbox, "look", "Read @docs/a.md");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/look"]);
    let text = asked(&bodies(&server)[0]);
    assert!(text.contains("A includes @b.md") && text.contains("B includes @a.md"), "{text}");
    assert!(text.ends_with("[@a.md is not included again: the files include each other.]"), "{text}");
}

#[test]
fn a_file_that_is_too_large_or_no_text_is_cut_or_left_out() {
    let sandbox = trusted();
    sandbox.write("big.txt", "x".repeat(400 * 1024));
    sandbox.write("raw.bin", [0_u8, 1, 2]);
    command(&sandbox, "look", "Read @big.txt and @raw.bin");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/look"]);
    let text = asked(&bodies(&server)[0]);
    assert!(text.len() < 300 * 1024 && text.contains("the rest of this file was left out"), "{}", text.len());
    assert!(text.contains("[@raw.bin is left out: it is not text.]"));
}
