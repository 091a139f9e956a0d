//! A command in the sandbox sees an empty home, an empty project and no variable of the
//! caller but the path; what it leaves behind can be read, and vanishes with the
//! sandbox.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

#[test]
fn only_four_variables_reach_the_program() {
    let sandbox = Sandbox::new();
    let output = sandbox.run("env", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "QODER_CONFIG_DIR"]);
}

#[test]
fn a_server_is_handed_over_by_its_address() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hi")]));
    let output = sandbox.run_with("sh", &server, &["-c", "echo $ANTHROPIC_BASE_URL; pwd"]);
    let expected = format!("{}\n{}\n", server.base_url(), sandbox.project().display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn exit_code_and_both_streams_come_back() {
    let output = Sandbox::new().run("sh", &["-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn session_files_are_read_line_by_line() {
    let sandbox = Sandbox::new();
    assert!(sandbox.transcript_lines().is_empty());
    let folder = sandbox.config().join("projects/key");
    sandbox.write(folder.join("a.jsonl"), "{\"type\":\"user\"}\n{\"type\":\"assistant\"}\n");
    sandbox.write(folder.join("a/lock"), "1");
    sandbox.write(folder.join("b.jsonl"), "{\"type\":\"system\"}\n");
    let kinds: Vec<String> =
        sandbox.transcript_lines().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["user", "assistant", "system"]);
    assert_eq!(sandbox.session_files().len(), 2);
}

#[test]
fn everything_vanishes_with_the_sandbox() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("deep/down/file.txt", "text");
    assert!(file.starts_with(sandbox.project()) && file.exists());
    let home = sandbox.home().to_path_buf();
    drop(sandbox);
    assert!(!file.exists() && !home.exists());
}
