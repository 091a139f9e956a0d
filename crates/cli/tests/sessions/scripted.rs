//! Models for tests of one's own agent: playbooks by `--model scripted:FILE`, and recordings of a real model that play
//! back by `--model replay:FILE`.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{ID, OTHER_ID, assert_success, run, run_with, server, tool_results};

#[test]
fn a_playbook_answers_and_goes_on_after_a_resume() {
    let sandbox = Sandbox::new();
    let playbook = json!({"replies": [
        {"when": {"contains": "add"}, "text": "let me", "toolCalls": [
            {"name": "Bash", "input": {"command": "echo $((40 + 2))"}, "id": "t1"}]},
        {"when": {"lastToolResultContains": "42"}, "text": "it is 42"},
        {"when": {"turn": 3}, "text": "third"},
    ]});
    let model = format!("scripted:{}", sandbox.write("playbook.json", playbook.to_string()).display());
    let rules = ["--model", &model, "--allowed-tools", "Bash", "--output-format", "json"];
    let first = run(&sandbox, &[&["-p", "please add", "--session-id", ID], &rules[..]].concat()).exits(0);
    assert_success(&first.json(), ID, "it is 42");
    assert_eq!(first.json()["num_turns"], 2);
    assert_eq!(tool_results(&sandbox, ID), [("completed".to_owned(), "42\n".to_owned())]);
    let second = run(&sandbox, &[&["-p", "more", "--resume", ID], &rules[..]].concat()).exits(0);
    assert_success(&second.json(), ID, "third");
}

#[test]
fn the_replies_of_an_agent_are_used_up_in_its_own_conversation() {
    let sandbox = Sandbox::new();
    let start = |id: &str| json!({"name": "Agent", "input": {"prompt": "look"}, "id": id});
    let playbook = json!({"replies": [
        {"toolCalls": [start("t1"), start("t2")]},
        {"when": {"purpose": "subagent"}, "toolCalls": [{"name": "Bash", "input": {"command": "echo one"}}]},
        {"when": {"purpose": "subagent"}, "text": "looked"},
        {"text": "done"},
    ]});
    let model = format!("scripted:{}", sandbox.write("playbook.json", playbook.to_string()).display());
    let rules = ["--model", &model, "--allowed-tools", "Agent,Bash", "--output-format", "json"];
    let ran = run(&sandbox, &[&["-p", "go", "--session-id", ID], &rules[..]].concat()).exits(0);
    assert_success(&ran.json(), ID, "done");
    let looked = ("completed".to_owned(), "looked".to_owned());
    assert_eq!(tool_results(&sandbox, ID), [looked.clone(), looked]);
}

#[test]
fn a_playbook_can_fail_like_an_endpoint() {
    let sandbox = Sandbox::new();
    let playbook = json!({"replies": [
        {"when": {"contains": "busy"}, "error": {"status": 529, "times": 2}, "text": "at last"},
        {"when": {"contains": "key"}, "error": {"status": 401, "message": "wrong key"}},
    ]});
    let model = format!("scripted:{}", sandbox.write("playbook.json", playbook.to_string()).display());
    let busy = ["-p", "busy", "--model", &model, "--output-format", "stream-json"];
    let lines = run(&sandbox, &busy).exits(0).lines();
    let retries = lines.iter().filter(|line| line["subtype"] == "api_retry").count();
    assert_eq!(retries, 2);
    assert_eq!(lines.last().unwrap()["result"], "at last");
    let denied = run(&sandbox, &["-p", "key", "--model", &model, "--output-format", "json"]).exits(41).json();
    assert_eq!(denied["api_error_status"], 401);
    assert!(denied["errors"][0].as_str().unwrap().contains("wrong key"), "{denied}");
}

#[test]
fn a_playbook_that_cannot_be_read_is_a_matter_of_configuration() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("playbook.json", "{\"replies\": [{\"txt\": 1}]}").display().to_string();
    let model = format!("scripted:{path}");
    run(&sandbox, &["-p", "x", "--model", &model]).exits(52).says(&[&path, "txt", "hint: "]);
    run(&sandbox, &["-p", "x", "--model", "scripted:/no/such/file"]).exits(52).says(&["/no/such/file"]);
    run(&sandbox, &["-p", "x", "--model", "replay:/no/such/file"]).exits(52).says(&["/no/such/file"]);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_recording_plays_back_without_the_endpoint_and_holds_no_key() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello from the file\n");
    let tape = sandbox.home().join("tape.jsonl").display().to_string();
    let server =
        server(vec![Reply::tool("Read", json!({"file_path": "notes.txt"})), Reply::text("it says hello")]);
    let mut command =
        crate::sessions::support::online(&sandbox, &server, &["-p", "read it", "--session-id", ID]);
    command.env("ANTHROPIC_API_KEY", "a-very-secret-key").args([
        "--record",
        &tape,
        "--output-format",
        "json",
    ]);
    let recorded = crate::sessions::support::finish(command).exits(0);
    assert_success(&recorded.json(), ID, "it says hello");
    let text = std::fs::read_to_string(&tape).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains("a-very-secret-key"));
    drop(server);

    let model = format!("replay:{tape}");
    let arguments = ["-p", "read it", "--session-id", OTHER_ID, "--model", &model, "--output-format", "json"];
    let replayed = run(&sandbox, &arguments).exits(0);
    assert_success(&replayed.json(), OTHER_ID, "it says hello");
    assert_eq!(replayed.json()["usage"], recorded.json()["usage"]);
    assert_eq!(tool_results(&sandbox, OTHER_ID), tool_results(&sandbox, ID));
    let beyond = run(&sandbox, &["-p", "more", "--resume", OTHER_ID, "--model", &model]).exits(1);
    beyond.says(&["error: "]);
}

#[test]
fn a_recording_that_cannot_be_written_is_refused_before_a_call_is_paid_for() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("never asked")]);
    let answer = run_with(&sandbox, &server, &["-p", "x", "--record", "/no/such/folder/tape"]).exits(52);
    answer.says(&["cannot record to /no/such/folder/tape", "--record"]);
    assert!(server.requests().is_empty());
}
