//! Every field of an entry and of a group does what it says.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Ran, Stage, call, entry, entry_with, say, say_when, specific};
use qoder_testkit::Sandbox;

#[test]
fn a_command_gets_json_on_stdin_qoder_project_dir_and_the_cwd_of_the_session() {
    let command = format!("{NOTE}; echo \"$QODER_PROJECT_DIR $(pwd)\" > ../surroundings");
    let stage = Stage::command("PreToolUse", &command);
    stage.bash();
    let input = &stage.seen()[0];
    for field in ["session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode"] {
        assert!(input[field].is_string(), "{field}: {input:#}");
    }
    assert_eq!(input["tool_input"]["command"], "touch made");
    let project = stage.sandbox.project().display().to_string();
    let surroundings = std::fs::read_to_string(stage.beside("surroundings")).unwrap();
    assert_eq!(surroundings.trim(), format!("{project} {project}"));
}

#[test]
fn args_are_the_exec_form_and_no_shell_interprets_them() {
    let more = json!({ "args": ["-c", "import sys,json; json.load(sys.stdin); open('../argv','w').write(repr(sys.argv[1:]))", "$HOME `id` *", "${QODER_PROJECT_DIR}"] });
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with("python3", &more)] }));
    let (made, ran) = stage.bash();
    assert!(made, "{ran:#?}");
    let project = stage.sandbox.project().display().to_string();
    let argv = std::fs::read_to_string(stage.beside("argv")).unwrap();
    assert_eq!(argv, format!("['$HOME `id` *', '{project}']"));
}

#[test]
fn env_adds_variables_and_keys_are_hidden() {
    let more = json!({ "env": { "COLOUR": "green" } });
    let command = "echo \"$COLOUR ${ANTHROPIC_API_KEY:-hidden} ${BASH_ENV:-clean}\" > ../env";
    let stage = Stage::new(&json!({ "SessionStart": [entry_with(command, &more)] }));
    let mut command = stage.prepared(&json!([say("hi")]), &[]);
    command.env("ANTHROPIC_API_KEY", "sk-secret").env("BASH_ENV", "/nonexistent");
    Ran::of(&Sandbox::finish(command)).said();
    assert_eq!(std::fs::read_to_string(stage.beside("env")).unwrap(), "green hidden clean\n");
}

#[test]
fn a_shell_that_is_not_there_is_a_failure_with_its_name() {
    let more = json!({ "shell": "powershell" });
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with("exit 0", &more)] }));
    let mut command =
        stage.prepared(&json!([call(1, "Bash", &json!({ "command": "true" })), say("done")]), &[]);
    command.env("PATH", "/usr/bin:/bin");
    let ran = Ran::of(&Sandbox::finish(command));
    if !std::path::Path::new("/usr/bin/pwsh").exists() {
        assert!(ran.stderr.contains("pwsh"), "{}", ran.stderr);
    }
}

#[test]
fn timeout_ends_a_hook_and_that_is_a_failure() {
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with("sleep 1000", &json!({ "timeout": 0.2 }))] }));
    let (made, ran) = stage.bash();
    assert!(!made && ran.stderr.contains("no answer within 0.2 s"), "{ran:#?}");
    assert_eq!(stage.records()[0]["runs"][0]["outcome"], "timeout");
}

#[test]
fn once_runs_a_hook_once_in_a_session() {
    let stage =
        Stage::new(&json!({ "PreToolUse": [entry_with("echo x >> ../ran", &json!({ "once": true }))] }));
    let bash = |number| call(number, "Bash", &json!({ "command": "true" }));
    stage.run(&json!([bash(1), bash(2), say("done")]), &["--allowedTools", "Bash"]).said();
    assert_eq!(std::fs::read_to_string(stage.beside("ran")).unwrap(), "x\n");
}

#[test]
fn name_and_status_message_are_told() {
    let more = json!({ "name": "my check", "statusMessage": "checking the call" });
    let stage = Stage::new(&json!({ "PreToolUse": [entry_with("exit 2", &more)] }));
    let (_, ran) = stage.bash();
    assert_eq!(stage.records()[0]["by"], "my check");
    assert!(ran.stderr.contains("checking the call"), "{}", ran.stderr);
}

#[test]
fn include_hook_events_shows_start_progress_and_response_with_streams_and_exit_code() {
    let stage = Stage::command("PreToolUse", "echo out; echo err >&2; exit 7");
    let replies = json!([call(1, "Bash", &json!({ "command": "true" })), say("done")]);
    let ran = stage.run(&replies, &["--include-hook-events"]);
    let of_event = |subtype: &str| {
        let all = ran.system(subtype).into_iter();
        all.filter(|message| message["hook_event"] == "PreToolUse").cloned().collect::<Vec<Value>>()
    };
    let (started, response) = (of_event("hook_started"), of_event("hook_response"));
    assert_eq!((started.len(), response.len()), (1, 1), "{:#?}", ran.lines);
    let response = &response[0];
    assert_eq!(
        (&response["stdout"], &response["stderr"]),
        (&json!("out\n"), &json!("err\n")),
        "{response:#}"
    );
    assert_eq!((&response["exit_code"], &response["outcome"]), (&json!(7), &json!("error")));
    assert_eq!(response["hook_id"], started[0]["hook_id"]);
    let progress = of_event("hook_progress");
    assert!(progress.iter().any(|message| message["output"] == "out\n" || message["output"] == "err\n"));
}

/// Answers one request with this body and gives back what was asked.
fn one_answer(status: &'static str, body: String) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut buffer = [0_u8; 4096];
        loop {
            let count = stream.read(&mut buffer).unwrap();
            asked.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&asked).into_owned();
            let Some((head, sent)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length:").and_then(|length| length.trim().parse::<usize>().ok())
            });
            if sent.len() >= length.unwrap_or(0) {
                break;
            }
        }
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .unwrap();
        String::from_utf8_lossy(&asked).into_owned()
    });
    (address, serving)
}

#[test]
fn an_http_hook_posts_the_json_with_headers_from_allowed_env_vars_alone() {
    let deny = specific(
        "PreToolUse",
        &json!({ "permissionDecision": "deny", "permissionDecisionReason": "by web" }),
    );
    let (url, serving) = one_answer("200 OK", deny.to_string());
    let hook = json!({ "type": "http", "url": url, "allowedEnvVars": ["ALLOWED"],
        "headers": { "x-token": "t-${ALLOWED}-${FORBIDDEN}" } });
    let stage = Stage::new(&json!({ "PreToolUse": [{ "hooks": [hook] }] }));
    let replies = json!([call(1, "Bash", &json!({ "command": "touch made" })), say("done")]);
    let mut command = stage.prepared(&replies, &["--allowedTools", "Bash"]);
    command.env("ALLOWED", "yes").env("FORBIDDEN", "no");
    let ran = Ran::of(&Sandbox::finish(command));
    assert!(ran.tool_results().contains("by web"), "{ran:#?}");
    let asked = serving.join().unwrap();
    assert!(asked.starts_with("POST /hook") && asked.contains("x-token: t-yes-\r\n"), "{asked}");
    assert!(asked.contains("\"hook_event_name\":\"PreToolUse\""), "{asked}");
}

#[test]
fn an_http_hook_that_answers_with_an_error_fails() {
    let (url, serving) = one_answer("500 Internal Server Error", String::new());
    let stage = Stage::new(&json!({ "PreToolUse": [{ "hooks": [{ "type": "http", "url": url }] }] }));
    let (made, ran) = stage.bash();
    assert!(!made && ran.stderr.contains("status 500"), "{ran:#?}");
    serving.join().unwrap();
}

#[test]
fn async_of_a_group_or_an_entry_does_not_hold_the_call_up_and_cannot_block_it() {
    let mut group = entry("exit 2");
    group["async"] = json!(true);
    for groups in [json!([group]), json!([entry_with("exit 2", &json!({ "async": true }))])] {
        let stage = Stage::new(&json!({ "PreToolUse": groups }));
        let (made, ran) = stage.bash();
        assert!(made, "{ran:#?}");
        assert_eq!(stage.records()[0]["runs"][0]["outcome"], "background");
    }
}

#[test]
fn an_output_with_async_true_lets_the_program_go_on_in_the_background() {
    let command = "echo '{\"async\": true, \"asyncTimeout\": 60000}'; sleep 1000";
    let stage = Stage::command("PreToolUse", command);
    let (made, ran) = stage.bash();
    assert!(made, "{ran:#?}");
    assert_eq!(stage.records()[0]["runs"][0]["outcome"], "background");
}

#[test]
fn system_message_is_told_and_suppress_output_hides_stdout() {
    let output = json!({ "systemMessage": "look here", "suppressOutput": true });
    let stage = Stage::command("UserPromptSubmit", &crate::hooks::support::print(&output));
    let ran = stage.run(&json!([say("hi")]), &["--include-hook-events"]);
    assert!(ran.stderr.contains("look here"), "{}", ran.stderr);
    let response =
        ran.system("hook_response").into_iter().find(|one| one["hook_event"] == "UserPromptSubmit");
    assert_eq!(response.unwrap()["stdout"], "");
}

#[test]
fn additional_context_of_several_hooks_stands_in_order() {
    let context = |text: &str| {
        entry(&crate::hooks::support::print(&specific(
            "UserPromptSubmit",
            &json!({ "additionalContext": text }),
        )))
    };
    let stage = Stage::new(&json!({ "UserPromptSubmit": [context("one"), context("two")] }));
    assert_eq!(stage.run(&json!([say_when("one\n\ntwo", "both")]), &[]).said(), "both");
}
