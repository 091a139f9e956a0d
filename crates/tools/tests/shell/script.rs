//! Bash: the command means what it says, and the shell brings nothing of its own.
//!
//! Here-documents, comments, exits and syntax errors at the end must survive our reporting of the directory.

use crate::common::{Bench, text};
use qoder_types::CallOutcome;
use serde_json::json;

#[tokio::test]
async fn the_text_of_a_command_is_not_altered() {
    let bench = Bench::new();
    for (command, expected) in [
        ("cat <<E\nhello\nE", "hello\n"),
        ("echo a # comment", "a\n"),
        ("echo a \\\n  b", "a b\n"),
        ("echo \"$#:$1:$0\"", "0::bash\n"),
        ("echo $LINENO\necho $LINENO", "1\n2\n"),
        ("f() { echo \"in f $1\"; }\nf x", "in f x\n"),
        ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n"),
        ("set -e; echo a; true", "a\n"),
        ("echo 'it''s'; echo \"$((1+1))\"", "its\n2\n"),
        ("shopt -q expand_aliases || echo off", "off\n"),
    ] {
        assert_eq!(bench.succeed("Bash", json!({ "command": command })).await, expected, "{command}");
    }
}

#[tokio::test]
async fn syntax_errors_are_reported_without_our_own_line() {
    let bench = Bench::new();
    let text = bench.fail("Bash", json!({ "command": "echo (" })).await;
    assert!(text.contains("syntax error") && !text.contains("trap"), "{text}");
    assert!(text.contains("Exit code"), "{text}");
}

#[tokio::test]
async fn there_is_no_input_and_no_terminal() {
    let bench = Bench::new();
    let command = "read line || echo none; tty; [ -t 1 ] || echo piped";
    let text = bench.succeed("Bash", json!({ "command": command })).await;
    assert!(text.contains("none") && text.contains("not a tty") && text.contains("piped"), "{text}");
}

#[tokio::test]
async fn hidden_variables_do_not_reach_the_command() {
    let mut bench = Bench::new();
    // Any variable that the test process has serves: this one is set by the test runner.
    bench.hidden = vec!["CARGO_PKG_NAME".to_owned()];
    let text =
        bench.succeed("Bash", json!({ "command": "echo \"[$CARGO_PKG_NAME][$CARGO_PKG_VERSION]\"" })).await;
    assert!(text.starts_with("[][") && !text.contains("[]\n"), "{text}");
}

#[tokio::test]
async fn the_shell_leads_its_own_session_below_a_supervisor() {
    let bench = Bench::new();
    let command = "read -r stat < /proc/$$/stat; set -- ${stat##*) }; echo $$ $2 $3 $4; \
                   read -r stat < /proc/$PPID/stat; set -- ${stat##*) }; echo $2";
    let text = bench.succeed("Bash", json!({ "command": command })).await;
    let fields: Vec<&str> = text.split_whitespace().collect();
    if cfg!(target_os = "linux") {
        assert_eq!(fields[4], std::process::id().to_string(), "its supervisor is a child of this process");
    }
    assert_eq!((fields[0], fields[0]), (fields[2], fields[3]), "it leads its group and session");
}

#[tokio::test]
async fn impossible_commands_are_refused() {
    let bench = Bench::new();
    assert!(bench.fail("Bash", json!({ "command": "a\0b" })).await.contains("NUL"));
    assert!(bench.fail("Bash", json!({ "command": "  " })).await.contains("empty"));
    let long = format!("true {}", "x".repeat(70_000));
    assert!(bench.fail("Bash", json!({ "command": long })).await.contains("65536"));
    let fitting = format!("true {}", "x".repeat(60_000));
    assert!(bench.succeed("Bash", json!({ "command": fitting })).await.contains("without output"));
}

#[tokio::test]
async fn the_directory_is_kept_inside_and_reset_outside() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("sub dir/deep")).unwrap();
    for command in ["cd 'sub dir'", "cd 'sub dir'; exit 0", "trap 'true' EXIT; cd 'sub dir'"] {
        let outcome = bench.run("Bash", json!({ "command": command })).await;
        assert_eq!(outcome.new_cwd, Some(bench.path("sub dir")), "{command}");
    }
    let outcome = bench.run("Bash", json!({ "command": "cd 'sub dir/deep' && exit 3" })).await;
    assert_eq!((outcome.new_cwd, outcome.outcome), (Some(bench.path("sub dir/deep")), CallOutcome::Failed));
    let outcome = bench.run("Bash", json!({ "command": "cd /; pwd" })).await;
    assert_eq!(outcome.new_cwd, None);
    assert!(text(&outcome).contains("was reset"), "{}", text(&outcome));
    for command in ["(cd 'sub dir')", "true", "cd 'sub dir'; exec true"] {
        let outcome = bench.run("Bash", json!({ "command": command })).await;
        assert_eq!(outcome.new_cwd, None, "{command}");
        assert!(!text(&outcome).contains("was reset"));
    }
}

#[tokio::test]
async fn a_vanished_directory_is_left() {
    let mut bench = Bench::new();
    let root = bench.cwd.clone();
    bench.cwd = root.join("gone");
    let mut context = bench.context(crate::common::never());
    context.roots = std::sync::Arc::from([root.clone()]);
    let outcome = bench.tool("Bash").run(json!({ "command": "true" }), context).await;
    assert_eq!(outcome.new_cwd, Some(root));
    assert!(text(&outcome).contains("no longer exists"));
}
