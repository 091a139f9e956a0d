//! A disk that is full or cannot be written, and a reader that goes away: each ends with its own message and exit code,
//! and the session can be resumed later.

use std::process::{Command, Stdio};

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{
    ID, assert_failure, assert_success, end, finish, kinds, log_has, log_of, log_text, offline, online,
    records, run, run_with, server,
};

/// The command under a limit for the size of files, in blocks of 512 bytes.
fn limited(command: &Command, blocks: u64) -> Command {
    limited_by("trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", command, blocks)
}

/// The command under a limit that a script sets.
fn limited_by(script: &str, command: &Command, blocks: u64) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, &blocks.to_string()]);
    shell.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

#[test]
fn a_full_disk_ends_the_turn_and_the_session_goes_on_later() {
    let sandbox = Sandbox::new();
    let replies = || server(vec![Reply::text("one"), Reply::text("two")]);
    let server = replies();
    run_with(&sandbox, &server, &["-p", "first", "--session-id", ID]).exits(0);
    let before = log_text(&sandbox, ID);
    // Room for a part of the prompt's record only.
    let blocks = before.len() as u64 / 512 + 2;
    let prompt = "p".repeat(64 * 1024);
    for (format, code) in [("text", 55), ("json", 55), ("stream-json", 55)] {
        let arguments = ["-p", &prompt, "--resume", ID, "--output-format", format];
        let full = finish(limited(&online(&sandbox, &server, &arguments), blocks)).exits(code);
        if format == "text" {
            assert_eq!(full.stdout, "");
        } else {
            assert_failure(full.lines().last().unwrap(), "File too large");
            assert_eq!(full.lines().last().unwrap()["session_id"], ID);
        }
        full.says(&["error: ", "File too large", &log_of(&sandbox, ID).display().to_string(), "--resume"]);
    }
    assert_eq!(server.requests().len(), 1, "a prompt that is not kept is not asked");
    let resumed = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "two");
    assert!(log_text(&sandbox, ID).starts_with(&before));
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_turn_does_not_run_what_is_not_announced() {
    let sandbox = Sandbox::new();
    sandbox.write("long.txt", "0123456789abcdef\n".repeat(2000));
    let read = Reply::tool("Read", json!({"file_path": "long.txt"}));
    let run_it = Reply::tool("Bash", json!({"command": "echo ran >> effects"}));
    let server = server(vec![read, run_it, Reply::text("done")]);
    let arguments =
        ["-p", "go", "--session-id", ID, "--allowed-tools", "Bash", "--output-format", "stream-json"];
    // The epoch fits, the content of the file does not.
    let full = finish(limited(&online(&sandbox, &server, &arguments), 96)).exits(55);
    let lines = full.lines();
    assert_eq!(lines[0]["subtype"], "init");
    assert_failure(lines.last().unwrap(), "File too large");
    assert!(!sandbox.project().join("effects").exists());
    let resume = ["--resume", ID, "--allowed-tools", "Bash", "--output-format", "json"];
    let resumed = run_with(&sandbox, &server, &resume).exits(0);
    assert_success(&resumed.json(), ID, "done");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("effects")).unwrap(), "ran\n");
}

#[test]
fn the_signal_of_a_file_limit_is_an_error_like_a_full_disk() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("one"), Reply::text("two")]);
    run_with(&sandbox, &server, &["-p", "first", "--session-id", ID]).exits(0);
    let blocks = log_text(&sandbox, ID).len() as u64 / 512 + 2;
    let prompt = "p".repeat(64 * 1024);
    for format in ["json", "stream-json"] {
        let arguments = ["-p", &prompt, "--resume", ID, "--output-format", format];
        let command = online(&sandbox, &server, &arguments);
        let full = finish(limited_by("ulimit -f \"$0\"; exec \"$@\"", &command, blocks)).exits(55);
        assert_failure(full.lines().last().unwrap(), "File too large");
    }
    let resumed = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "two");
}

#[test]
fn commands_do_not_inherit_that_the_signal_is_handled() {
    let sandbox = Sandbox::new();
    let command = "ulimit -f 1; head -c 100000 /dev/zero > large; echo status $?";
    let server = server(vec![Reply::tool("Bash", json!({"command": command})), Reply::text("done")]);
    run_with(&sandbox, &server, &["-p", "go", "--session-id", ID, "--allowed-tools", "Bash"]).exits(0);
    // 128 and the number of the signal.
    assert!(log_text(&sandbox, ID).contains("status 153"), "{}", log_text(&sandbox, ID));
}

#[test]
fn a_session_that_cannot_begin_begins_later() {
    let sandbox = Sandbox::new();
    let arguments = ["-p", "hello", "--session-id", ID, "--output-format", "json"];
    let full = finish(limited(&offline(&sandbox, &arguments), 0)).exits(55);
    assert_failure(&full.json(), "File too large");
    full.says(&[
        "error: cannot lock",
        "hint: check that the directory exists, is writable and the disk has room",
    ]);
    let begun = run(&sandbox, &arguments).exits(0).json();
    assert_eq!(begun["subtype"], "success");
    assert_eq!(begun["session_id"], ID);
}

/// A folder that cannot be written to, not even by the superuser.
fn read_only(sandbox: &Sandbox) -> String {
    use std::os::unix::fs::PermissionsExt;
    let folder = sandbox.home().join("read-only");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o500)).unwrap();
    let writable = std::fs::write(folder.join("try"), "").is_ok();
    if writable { "/proc/sys/kernel".to_owned() } else { folder.display().to_string() }
}

#[test]
fn a_configuration_directory_that_cannot_be_written_is_named() {
    let sandbox = Sandbox::new();
    let folder = read_only(&sandbox);
    for arguments in [&["-p", "hello"][..], &["-p", "hello", "--output-format", "json"]] {
        let mut command = offline(&sandbox, arguments);
        command.env("QODER_CONFIG_DIR", format!("{folder}/config"));
        let refused = finish(command).exits(55);
        if arguments.len() > 2 {
            assert_failure(&refused.json(), "cannot create");
        }
        refused.says(&["error: cannot create", &folder, "hint: ", "QODER_CONFIG_DIR"]);
    }
    let mut command = offline(&sandbox, &["-p", "hello", "--no-session-persistence"]);
    command.env("QODER_CONFIG_DIR", format!("{folder}/config"));
    finish(command).exits(0);
    let mut command = offline(&sandbox, &["trust"]);
    command.env("QODER_CONFIG_DIR", format!("{folder}/config"));
    finish(command).exits(55).says(&["error: cannot write", &folder]);
}

#[test]
fn a_configuration_directory_below_a_file_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("plain", "");
    let mut command = offline(&sandbox, &["-p", "hello"]);
    command.env("QODER_CONFIG_DIR", file.join("below"));
    let refused = finish(command).exits(52);
    refused.says(&["error: ", &file.display().to_string(), "Not a directory"]);
}

/// The command with a standard output whose reader is gone.
fn into_closed_pipe(mut command: Command) -> crate::sessions::support::Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    end(child)
}

#[test]
fn a_closed_output_is_its_own_exit_code_and_loses_nothing() {
    for format in ["text", "json", "stream-json"] {
        let sandbox = Sandbox::new();
        let server = server(vec![Reply::text("for a closed pipe")]);
        let arguments = ["-p", "hello", "--session-id", ID, "--output-format", format];
        let closed = into_closed_pipe(online(&sandbox, &server, &arguments)).exits(141);
        closed.says(&["the output was closed", "--resume"]);
        let resumed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
        assert_success(&resumed.json(), ID, "for a closed pipe");
        assert_eq!(kinds(&sandbox, ID).iter().filter(|kind| *kind == "turn-end").count(), 1);
        assert_eq!(kinds(&sandbox, ID).iter().filter(|kind| *kind == "user").count(), 1);
    }
}

#[test]
fn commands_whose_output_is_closed_do_not_panic() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["-p", "hello", "--session-id", ID]).exits(0);
    let commands: [&[&str]; 7] = [
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", ID],
        &["sessions", "show", ID, "--json"],
        &["sessions", "export", ID],
        &["config"],
        &["config", "--json"],
    ];
    for arguments in commands {
        let closed = into_closed_pipe(offline(&sandbox, arguments));
        assert!(!closed.stderr.contains("panicked"), "{arguments:?}: {}", closed.stderr);
        closed.exits(141);
    }
}

#[test]
fn a_closed_error_output_does_not_matter() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = offline(&sandbox, &["-p", "hello", "--verbose", "--settings", "{\"nonsense\": 1}"]);
    command.stderr(writer).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    end(child).exits(0);
    assert!(log_has(&sandbox, "\"type\":\"turn-end\""));
}

#[test]
fn a_task_whose_output_does_not_fit_goes_on_and_its_end_says_what_is_missing() {
    let sandbox = Sandbox::new();
    let flood = "head -c 400000 /dev/zero | tr '\\0' x; touch over";
    let wait =
        "until grep -q '\"type\":\"task-end\"' \"$QODER_CONFIG_DIR\"/projects/*/*.jsonl; do sleep 0.02; done";
    let server = server(vec![
        Reply::tool("Bash", json!({ "command": flood, "run_in_background": true })),
        Reply::tool("Bash", json!({ "command": wait })),
        Reply::text("done"),
    ]);
    let arguments = ["-p", "go", "--session-id", ID, "--allowed-tools", "Bash", "--output-format", "json"];
    // 256 KiB: the log fits, the output of the task does not.
    let run = finish(limited(&online(&sandbox, &server, &arguments), 512)).exits(0);
    assert_success(&run.json(), ID, "done");
    assert!(sandbox.project().join("over").exists(), "the task was not held up");
    let ends: Vec<_> = records(&sandbox, ID).into_iter().filter(|line| line["type"] == "task-end").collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["status"], "completed");
    let summary = ends[0]["summary"].as_str().unwrap();
    assert!(summary.contains("output was lost") && summary.contains("File too large"), "{summary}");
}
