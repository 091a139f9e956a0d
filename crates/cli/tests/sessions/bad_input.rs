//! Input that cannot be used is refused with exit code 42, what is wrong, and what is accepted; nothing of it reaches
//! a session. Input that is merely large or comes from two places works.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{ID, Run, feed, finish, offline, online, records, run, server};

/// Refused before anything was kept.
#[track_caller]
fn refused(sandbox: &Sandbox, run: Run, texts: &[&str]) {
    let run = run.exits(42);
    assert_eq!(run.stdout, "");
    run.says(texts);
    assert!(sandbox.session_files().is_empty(), "nothing is kept of refused input");
}

#[test]
fn prompts_that_say_nothing_are_refused() {
    let sandbox = Sandbox::new();
    for prompt in ["", " ", "\n\t \u{a0}"] {
        refused(&sandbox, run(&sandbox, &["-p", prompt]), &["error: the prompt is empty", "hint: "]);
    }
    refused(&sandbox, run(&sandbox, &["-p"]), &["error: there is no prompt", "hint: "]);
    refused(&sandbox, run(&sandbox, &[]), &["error: there is no prompt"]);
    refused(&sandbox, feed(offline(&sandbox, &["-p"]), b""), &["error: there is no prompt"]);
    for piped in ["\n", "  \n\t\n"] {
        refused(&sandbox, feed(offline(&sandbox, &["-p"]), piped.as_bytes()), &["error: "]);
    }
}

#[test]
fn a_tool_that_does_not_exist_is_refused() {
    let sandbox = Sandbox::new();
    for list in ["Foo", "Read,Foo", "Read Foo", "read", "default,Foo"] {
        let texts = ["error: --tools: `", "` is not a tool", "accepted are default, Bash, Read, ", "mcp__"];
        refused(&sandbox, run(&sandbox, &["-p", "hello", "--tools", list]), &texts);
    }
    for list in ["", "default", "Read,Bash", "mcp__server__tool,Skill"] {
        run(&sandbox, &["-p", "hello", "--tools", list]).exits(0);
    }
}

#[test]
fn a_closed_standard_input_is_no_input() {
    let sandbox = Sandbox::new();
    let closed = |arguments: &[&str]| {
        let command = offline(&sandbox, arguments);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.current_dir(sandbox.project()).stdin(Stdio::null());
        finish(shell)
    };
    refused(&sandbox, closed(&["-p"]), &["error: there is no prompt"]);
    closed(&["-p", "hello"]).exits(0);
}

#[test]
fn a_pipe_without_writer_is_no_input() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    let mut command = offline(&sandbox, &["-p"]);
    command.stdin(reader);
    refused(&sandbox, finish(command), &["error: there is no prompt"]);
}

#[test]
fn text_that_is_not_text_is_refused() {
    let sandbox = Sandbox::new();
    refused(
        &sandbox,
        feed(offline(&sandbox, &["-p"]), b"good \xff bad"),
        &["error: the text on stdin is not valid UTF-8 (byte 5)", "iconv"],
    );
    refused(
        &sandbox,
        feed(offline(&sandbox, &["-p", "look at this"]), b"\xc3\x28"),
        &["not valid UTF-8 (byte 0)"],
    );
    refused(
        &sandbox,
        feed(offline(&sandbox, &["-p"]), b"a\0b"),
        &["error: the prompt contains a NUL character"],
    );
    let mut command = offline(&sandbox, &["-p"]);
    command.arg(OsStr::from_bytes(b"h\xffllo"));
    refused(&sandbox, finish(command), &["error: an argument is not valid UTF-8: h\u{fffd}llo"]);
    let mut command = offline(&sandbox, &["sessions", "show"]);
    command.arg(OsStr::from_bytes(b"h\xffllo"));
    refused(&sandbox, finish(command), &["error: "]);
}

#[test]
fn a_prompt_without_end_is_refused() {
    let sandbox = Sandbox::new();
    let endless = vec![b'x'; (64 << 20) + 2];
    refused(
        &sandbox,
        feed(offline(&sandbox, &["-p"]), &endless),
        &["error: the prompt is longer than 64 MiB"],
    );
}

#[test]
fn unknown_options_are_named() {
    let sandbox = Sandbox::new();
    refused(&sandbox, run(&sandbox, &["-p", "x", "--no-such-option"]), &["--no-such-option"]);
    refused(&sandbox, run(&sandbox, &["-p", "x", "--continu"]), &["--continu", "--continue"]);
    refused(&sandbox, run(&sandbox, &["sessions", "shoe"]), &["shoe", "show"]);
    refused(&sandbox, run(&sandbox, &["-p", "x", "--max-turns", "many"]), &["many", "--max-turns"]);
    refused(&sandbox, run(&sandbox, &["-p", "x", "another"]), &["another"]);
}

#[test]
fn unknown_values_come_with_the_accepted_ones() {
    let sandbox = Sandbox::new();
    let cases: [(&str, &[&str]); 6] = [
        ("--output-format", &["text", "json", "stream-json"]),
        ("--input-format", &["text", "stream-json"]),
        ("--permission-mode", &["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"]),
        ("--setting-sources", &["user", "project", "local"]),
        ("--effort", &["low", "medium", "high", "xhigh", "max"]),
        ("--thinking", &["adaptive", "disabled"]),
    ];
    for (flag, accepted) in cases {
        let texts = [&[flag, "nonsense"], accepted].concat();
        refused(&sandbox, run(&sandbox, &["-p", "x", flag, "nonsense"]), &texts);
    }
    let mut command = offline(&sandbox, &["-p", "x"]);
    command.env("QODER_PERMISSION_MODE", "nonsense");
    refused(&sandbox, finish(command), &["QODER_PERMISSION_MODE", "`nonsense`", "acceptEdits"]);
}

#[test]
fn a_working_directory_that_is_none_is_named() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("plain.txt", "").display().to_string();
    let missing = sandbox.project().join("missing").display().to_string();
    refused(&sandbox, run(&sandbox, &["-p", "x", "--cwd", &missing]), &["--cwd", &missing, "No such file"]);
    refused(&sandbox, run(&sandbox, &["-p", "x", "--cwd", &file]), &["--cwd", &file, "is not a directory"]);
    refused(&sandbox, run(&sandbox, &["-p", "x", "--add-dir", &missing]), &["--add-dir", &missing]);
}

#[test]
fn session_options_that_contradict_each_other_are_refused() {
    let sandbox = Sandbox::new();
    refused(&sandbox, run(&sandbox, &["-p", "x", "--resume", ID, "--continue"]), &["--resume", "--continue"]);
    for id in
        ["abc", "11111111-1111-4111-8111-11111111111", "../../etc/passwd", "11111111111141118111111111111111"]
    {
        let texts = [id, "is not a valid session ID", "a session ID is a UUID"];
        refused(&sandbox, run(&sandbox, &["-p", "x", "--session-id", id]), &texts);
    }
    refused(&sandbox, run(&sandbox, &["-p", "x", "--resume"]), &["--resume needs a session ID"]);
    let both = ["-p", "x", "--dangerously-skip-permissions", "--permission-mode", "plan"];
    refused(
        &sandbox,
        run(&sandbox, &both),
        &["`--permission-mode plan` contradicts --dangerously-skip-permissions"],
    );
}

#[test]
fn options_that_agree_are_no_conflict() {
    let sandbox = Sandbox::new();
    for flags in [
        &["--permission-mode", "bypassPermissions", "--dangerously-skip-permissions"][..],
        &["--dangerously-skip-permissions", "--permission-mode", "bypass_permissions"],
        &["--yolo", "--permission-mode", "yolo", "--allow-dangerously-skip-permissions"],
        &["--yolo", "--dangerously-skip-permissions"],
        &["--print", "--verbose", "--verbose"],
    ] {
        let mut arguments = vec!["-p", "call Bash with {\"command\": \"touch made\"}"];
        arguments.extend(flags);
        run(&sandbox, &arguments).exits(i32::from(flags[0] == "--print"));
        let made = sandbox.project().join("made");
        assert_eq!(made.exists(), flags[0] != "--print", "{flags:?}");
        if made.exists() {
            std::fs::remove_file(made).unwrap();
        }
    }
    // A flag of this run outranks what the environment says for all of them.
    let mut command = offline(&sandbox, &["-p", "call Bash with {\"command\": \"touch made\"}", "--yolo"]);
    command.env("QODER_PERMISSION_MODE", "plan");
    finish(command).exits(0);
    assert!(sandbox.project().join("made").exists());
}

fn prompt_of(sandbox: &Sandbox) -> Value {
    let prompt = records(sandbox, ID).into_iter().find(|record| record["origin"] == "prompt");
    prompt.unwrap()["message"]["content"].clone()
}

#[test]
fn piped_text_is_added_to_the_prompt() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("ok")]);
    let command = online(&sandbox, &server, &["-p", "review this", "--session-id", ID]);
    feed(command, b"diff --git a b\r\n+x\n\n").exits(0);
    assert_eq!(prompt_of(&sandbox), json!("review this\n\ndiff --git a b\r\n+x"));
}

#[test]
fn a_prompt_may_come_from_standard_input_alone_and_be_large() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("ok")]);
    let prompt = format!("{}\n\u{1F980} end", "ä b\n".repeat(2_500_000));
    assert!(prompt.len() > 10_000_000);
    let taken = feed(online(&sandbox, &server, &["--session-id", ID]), prompt.as_bytes()).exits(0);
    assert_eq!(taken.stdout, "ok\n");
    let asked = server.requests()[0].json()["messages"][0]["content"].clone();
    let text = asked.as_str().or_else(|| asked[0]["text"].as_str()).unwrap();
    assert!(text == prompt, "{} of {} bytes", text.len(), prompt.len());
}

#[test]
fn input_lines_that_cannot_be_taken_are_told_and_the_others_count() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("one"), Reply::text("two")]);
    let arguments =
        ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--session-id", ID];
    let good = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    let empty = json!({"type": "user", "message": {"role": "user", "content": ""}});
    let input = format!("not json\n\n{{}}\n[1]\n{empty}\n{{\"type\":\"user\"}}\n\u{0}\n{good}\n");
    // The last result decides.
    let taken = feed(online(&sandbox, &server, &arguments), input.as_bytes()).exits(0);
    let results: Vec<Value> = taken.lines().into_iter().filter(|line| line["type"] == "result").collect();
    let told = |problem: &str| results.iter().filter(|result| result["errors"][0] == problem).count();
    assert_eq!(told("a user message is empty"), 1, "{results:?}");
    assert_eq!(told("a user message has no `message.content`"), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| result["result"] == "one").count(), 1);
    assert_eq!(results.len(), 3);
    taken.says(&["warning: an input line is not a JSON message", "not json", "a user message is empty"]);
}

#[test]
fn a_word_near_a_command_is_not_sent_to_a_model() {
    let sandbox = Sandbox::new();
    for (arguments, meant) in [
        (&["mpc"][..], "qodercli mcp"),
        (&["session", "list"], "qodercli sessions list"),
        (&["Plugin"], "qodercli plugins"),
        (&["permision", "list"], "qodercli permissions list"),
        (&["doctor"], "qodercli sandbox status"),
        (&["model"], "qodercli models list"),
        (&["modles"], "qodercli models"),
    ] {
        let first = format!("`{}` is not a command", arguments[0]);
        refused(&sandbox, run(&sandbox, arguments), &[&first, meant, "use -p"]);
    }
    // With -p, and for words that are near nothing, it is a prompt.
    for arguments in [&["-p", "doctor"][..], &["doctor", "-p"], &["hello"], &["session list of last week"]] {
        run(&sandbox, arguments).exits(0);
    }
}

#[test]
fn every_command_is_in_the_list_of_commands() {
    let sandbox = Sandbox::new();
    let help = run(&sandbox, &["--help"]).exits(0).stdout;
    for command in [
        "sessions",
        "config",
        "permissions",
        "sandbox",
        "agents",
        "hooks",
        "skills",
        "commands",
        "models",
        "mcp",
        "plugins",
        "trust",
    ] {
        assert!(
            help.lines().any(|line| line.starts_with(&format!("  qodercli {command} "))),
            "{command}: {help}"
        );
    }
}
