//! Words of the command line itself: they may have been pasted.

use qoder_testkit::Sandbox;

use crate::screen::support::{BINARY, assert_tame, hostile, shown};

#[test]
fn words_of_the_command_line_come_back_escaped() {
    let sandbox = Sandbox::new();
    let hostile = hostile();
    let flag = format!("--{hostile}");
    let cases: &[&[&str]] = &[
        &[&flag],
        &["-p", "hello", "--resume", &hostile],
        &["-p", "hello", "--output-format", &hostile],
        &["-p", "hello", "--settings", &hostile],
        &["-p", "hello", "--agents", &hostile],
        &["-p", "hello", "--agent", &hostile],
        &["-p", "hello", "--mcp-config", &hostile],
        &["-p", "hello", "--allowed-tools", &hostile],
        &["-p", "hello", "--permission-mode", &hostile],
        &["-p", "hello", "--add-dir", &hostile],
        &["-p", "hello", "--plugin-dir", &hostile],
        &["sessions", &hostile],
        &["sessions", "show", &hostile],
        &["sessions", "delete", &hostile],
        &["config", &hostile],
        &["config", "--cwd", &hostile],
        &["trust", &hostile],
        &["mcp", "get", &hostile],
        &["mcp", "auth", &hostile],
        &["mcp", "add", &hostile, "--", &hostile],
        &["mcp", "remove", &hostile],
        &["plugins", "install", &hostile],
        &["plugins", "enable", &hostile],
        &["plugins", "validate", &hostile],
        &["permissions", "explain", &hostile, &hostile],
        &["permissions", "pending", &hostile],
    ];
    let mut repeated = 0;
    for arguments in cases {
        let shown = shown(&sandbox, arguments);
        assert_tame(&shown, &format!("{arguments:?}"));
        repeated += usize::from(shown.contains("\\u{1b}[41m"));
        let piped = sandbox.run(BINARY, arguments);
        let text = String::from_utf8(piped.stderr).unwrap() + &String::from_utf8(piped.stdout).unwrap();
        assert_tame(&text, &format!("piped {arguments:?}"));
    }
    assert!(repeated > cases.len() / 2, "only {repeated} of {} words came back", cases.len());
}
