//! `qodercli sessions show` draws the timeline: turns, model calls, tools with their decisions, agents, compactions and
//! tasks, with bars and totals; as data with `--json`; one turn with `--turn`, whole texts with `--full`.

use qoder_runtime::store::line::{Owner, encode};
use qoder_testkit::{LogBuilder, Reply, Sandbox};
use qoder_types::{Behavior, ReplayClass};
use serde_json::{Value, json};

use crate::sessions::support::{ID, append, log_of, run, run_with, server, side_of};

fn playbook(sandbox: &Sandbox, replies: &Value) -> String {
    format!("scripted:{}", sandbox.write("playbook.json", replies.to_string()).display())
}

/// Two turns: a command that is allowed by a rule and one that is denied, then an agent that reads a file.
fn session() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "the text of the notes\n");
    let model = playbook(
        &sandbox,
        &json!([
            {"when": {"contains": "first"}, "text": "I try.", "toolCalls": [
                {"name": "Bash", "id": "t1", "input": {"command": "echo out-of-the-command"}},
                {"name": "Bash", "id": "t2", "input": {"command": "touch made"}}]},
            {"when": {"contains": "second"}, "toolCalls": [
                {"name": "Agent", "id": "t3", "input": {"prompt": "CHILD look", "description": "look"}}]},
            {"when": {"purpose": "subagent", "turn": 1}, "toolCalls": [
                {"name": "Read", "id": "t4", "input": {"file_path": "notes.txt"}}]},
            {"when": {"purpose": "subagent", "turn": 2}, "text": "words of the child"},
            {"text": "\u{1b}[31mdone\u{7}", "repeat": true},
        ]),
    );
    let settings = r#"{"model": {"prices": {"scripted": {"input": 1000, "output": 1000}}}}"#;
    let more = ["--model", &model, "--allowed-tools", "Bash(echo:*),Agent", "--settings", settings];
    run(&sandbox, &[&["-p", "first prompt", "--session-id", ID], &more[..]].concat()).exits(0);
    run(&sandbox, &[&["-p", "second prompt", "--resume", ID], &more[..]].concat()).exits(0);
    sandbox
}

#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not in its place in {text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn the_timeline_has_turns_tools_decisions_agents_tokens_and_money() {
    let sandbox = session();
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    in_order(
        &shown,
        &[
            "turn 1  ",
            "> first prompt",
            "  * scripted  ",
            " in (",
            " cached) + ",
            " out tokens  $0.",
            "  I try.",
            "  • Bash {\"command\":\"touch made\"}",
            "    deny: no one to ask",
            "    denied",
            "  • Bash {\"command\":\"echo out-of-the-command\"}",
            "█",
            "    allow: rule Bash(echo:*)",
            "    completed in ",
            "  = done after 2 model calls, ",
            "turn 2  ",
            "> second prompt",
            "  • Agent ",
            "    agent ",
            "    > CHILD look",
            "      • Read {\"file_path\":\"notes.txt\"}",
            "      words of the child",
            "      = done after 2 model calls",
            "totals",
            "turns   2",
            "models  4 calls, ",
            "tools   3 calls, 1 denied",
            "cost    $",
            "time    ",
            "model ",
            "tools ",
            "hooks ",
            "questions ",
        ],
    );
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
        "no colour without a terminal, nothing obeyed"
    );
    assert!(!shown.contains("out-of-the-command\n"), "results are shown with --full only");
}

#[test]
fn without_a_name_it_is_the_newest_session_of_the_directory() {
    let sandbox = session();
    let named = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout.clone();
    assert_eq!(run(&sandbox, &["sessions", "show"]).exits(0).stdout, named);
    let none = Sandbox::new();
    let told = run(&none, &["sessions", "show"]).exits(42).stderr.clone();
    assert!(told.contains("there is no session of") && told.contains("sessions list --all"), "{told}");
}

#[test]
fn one_turn_and_whole_texts_can_be_asked_for() {
    let sandbox = session();
    let second = run(&sandbox, &["sessions", "show", ID, "--turn", "2"]).exits(0).stdout;
    assert!(second.contains("> second prompt") && !second.contains("> first prompt"), "{second}");
    let full = run(&sandbox, &["sessions", "show", ID, "--full"]).exits(0).stdout;
    assert!(full.contains("    out-of-the-command"), "{full}");
    assert!(full.contains("the text of the notes"), "of the agent too: {full}");
    let none = run(&sandbox, &["sessions", "show", ID, "--turn", "9"]).exits(42);
    none.says(&["there is no turn 9", "the session has 2 turns"]);
}

#[test]
fn json_gives_the_same_as_data() {
    let sandbox = session();
    let data = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    let turns = data["turns"].as_array().unwrap();
    assert_eq!(
        (turns.len(), turns[0]["number"].as_u64(), turns[0]["prompt"].as_str()),
        (2, Some(1), Some("first prompt"))
    );
    let kinds: Vec<&str> =
        turns[0]["spans"].as_array().unwrap().iter().map(|span| span["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "model").count(), 2, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "tool").count(), 2, "{kinds:?}");
    let spans = turns[0]["spans"].as_array().unwrap();
    let denied = spans.iter().find(|span| span["toolUseId"] == "t2").unwrap();
    assert_eq!((&denied["outcome"], &denied["decision"]["behavior"]), (&json!("denied"), &json!("deny")));
    assert!(denied["beganMs"].as_i64().unwrap() <= denied["endedMs"].as_i64().unwrap());
    let agent = turns[1]["spans"].as_array().unwrap().iter().find(|span| span["agent"].is_object()).unwrap();
    let prompts: Vec<&Value> =
        agent["agent"]["turns"].as_array().unwrap().iter().map(|turn| &turn["prompt"]).collect();
    assert!(prompts.contains(&&json!("CHILD look")), "{prompts:?}");
    assert_eq!(agent["agent"]["totals"]["modelCalls"], 2);
    let totals = &data["totals"];
    assert_eq!(
        (&totals["turns"], &totals["toolCalls"], &totals["denied"]),
        (&json!(2), &json!(3), &json!(1))
    );
    let whole = data["totalCostUsd"].as_f64().unwrap();
    let by_turn: f64 = turns.iter().map(|turn| turn["end"]["costUSD"].as_f64().unwrap()).sum();
    assert!(whole > 0.0 && (whole - by_turn).abs() < 1e-9, "{whole} {by_turn}");
}

#[test]
fn compactions_tasks_and_open_calls_have_their_place() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["-p", "hello", "--session-id", ID]).exits(0);
    let records = LogBuilder::new()
        .prompt("a long one")
        .finished_call("a", "Read", json!({"file_path": "x"}), "text")
        .compaction("what happened so far")
        .tool_call("b", "Bash", json!({"command": "sleep 9"}))
        .decision("b", "Bash", Behavior::Allow)
        .tool_started("b", "Bash", ReplayClass::Effectful)
        .build();
    let mut text = Vec::new();
    records
        .iter()
        .for_each(|record| encode(record, Owner { session_id: ID, agent_id: None }, &mut text).unwrap());
    std::fs::write(log_of(&sandbox, ID), text).unwrap();
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    in_order(
        &shown,
        &[
            "> a long one",
            "= older messages were replaced by a summary",
            "• Bash {\"command\":\"sleep 9\"}",
            "    no result",
            "  = unfinished after ",
            "turns   1, unfinished: continue with --resume",
        ],
    );
}

#[test]
fn an_agent_whose_call_has_no_result_is_shown_too() {
    let sandbox = session();
    let folder = side_of(&sandbox, ID).join("subagents");
    let one = std::fs::read_dir(&folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|end| end == "jsonl").then_some(path)
    });
    std::fs::copy(one.unwrap(), folder.join("agent-left.jsonl")).unwrap();
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    in_order(&shown, &["an agent without a result", "agent left", "> CHILD look", "totals"]);
}

#[test]
fn a_torn_tail_is_told_and_the_rest_is_shown() {
    let sandbox = session();
    append(&sandbox, ID, "{\"type\":\"user\",\"mess");
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0);
    assert!(shown.stdout.contains("! the last record was never completed (20 bytes)"), "{}", shown.stdout);
    in_order(&shown.stdout, &["> first prompt", "> second prompt", "totals"]);
    let data = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    assert_eq!(data["damage"], "the last record was never completed (20 bytes)");
}

#[test]
fn a_failed_model_call_is_shown_with_its_reason() {
    let sandbox = Sandbox::new();
    let refused = Reply::HttpError { status: 400, headers: Vec::new(), body: "no such thing".to_owned() };
    run_with(&sandbox, &server(vec![refused]), &["-p", "hello", "--session-id", ID]).exits(1);
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    in_order(&shown, &["  no reply", "  ! ", "  = error after "]);
    let data = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    let call =
        data["turns"][0]["spans"].as_array().unwrap().iter().find(|span| span["kind"] == "model").unwrap();
    assert_eq!(call["failure"]["status"], 400);
}

#[test]
fn what_the_program_answers_by_itself_is_a_turn() {
    let sandbox = Sandbox::new();
    let model = playbook(&sandbox, &json!([{"text": "done", "repeat": true}]));
    for prompt in [&["-p", "hello", "--session-id", ID][..], &["-p", "/compact", "--resume", ID]] {
        run(&sandbox, &[prompt, &["--model", &model]].concat()).exits(0);
    }
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0).stdout;
    in_order(
        &shown,
        &["turn 1  ", "> hello", "turn 2  ", "> /compact", "replaced by a summary", "  = done", "totals"],
    );
    assert!(!shown.contains("between turns") && !shown.contains("taken back"), "{shown}");
}
