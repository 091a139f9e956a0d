//! Going on from an earlier entry (`--resume-session-at`): what came after is left out of the conversation, for every later
//! run too, and nothing is removed from the log. `--resume-drops-turn` refuses to leave out more than one turn.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::sessions::support::{ID, OTHER_ID, Run, assert_failure, log_text, records, run_with};

/// Answers every prompt with the number of the request; reads a file when it is asked to.
fn server() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, number| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            Some("read") => Reply::ToolCalls(vec![
                ("Read".to_owned(), json!({ "file_path": "a.txt" })),
                ("Read".to_owned(), json!({ "file_path": "b.txt" })),
            ]),
            _ => Reply::text(format!("answer {number}")),
        }
    }))
}

fn ask(sandbox: &Sandbox, server: &ScriptedServer, prompt: &str, more: &[&str]) -> Run {
    run_with(sandbox, server, &[&["-p", prompt, "--output-format", "json"], more].concat())
}

/// A session with the prompts `one`, `two` and `three`, each answered.
fn three_turns(sandbox: &Sandbox, server: &ScriptedServer) {
    ask(sandbox, server, "one", &["--session-id", ID]).exits(0);
    ask(sandbox, server, "two", &["--resume", ID]).exits(0);
    ask(sandbox, server, "three", &["--resume", ID]).exits(0);
}

/// The entries of the transcript: type and uuid.
fn entries(sandbox: &Sandbox, id: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let is_entry = |line: &Value| line["type"] == "user" || line["type"] == "assistant";
    let lines = records(sandbox, id).into_iter().filter(is_entry);
    lines.map(|line| (text(&line["type"]), text(&line["uuid"]))).collect()
}

/// What the model was last sent, one text a message.
fn last_texts(server: &ScriptedServer) -> Vec<String> {
    let body = server.requests().last().unwrap().json();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| {
                let kind = block["type"].as_str().unwrap();
                if kind == "text" { block["text"].as_str().unwrap().to_owned() } else { kind.to_owned() }
            })
            .collect::<Vec<_>>()
            .join("+"),
        other => other.to_string(),
    };
    body["messages"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn what_came_after_is_left_out_for_good() {
    let (sandbox, server) = (Sandbox::new(), server());
    three_turns(&sandbox, &server);
    let before = log_text(&sandbox, ID);
    let first_answer = &entries(&sandbox, ID)[1].1;
    let at = format!("--resume-session-at={first_answer}");
    ask(&sandbox, &server, "other", &["--resume", ID, &at]).exits(0);
    assert_eq!(last_texts(&server), ["one", "answer 0", "other"]);
    ask(&sandbox, &server, "more", &["--resume", ID]).exits(0);
    assert_eq!(last_texts(&server), ["one", "answer 0", "other", "answer 3", "more"]);
    assert!(log_text(&sandbox, ID).starts_with(&before), "history is not rewritten");
    let other = records(&sandbox, ID).into_iter().find(|line| line["message"]["content"] == "other").unwrap();
    assert_eq!(other["parentUuid"], json!(first_answer), "readers of the chain see the same conversation");
}

#[test]
fn a_cut_of_a_cut_conversation_knows_only_what_is_left() {
    let (sandbox, server) = (Sandbox::new(), server());
    three_turns(&sandbox, &server);
    let old = entries(&sandbox, ID);
    let cut = |uuid: &str| format!("--resume-session-at={uuid}");
    ask(&sandbox, &server, "other", &["--resume", ID, &cut(&old[1].1)]).exits(0);
    let gone = ask(&sandbox, &server, "again", &["--resume", ID, &cut(&old[3].1)]).exits(42);
    assert_failure(&gone.json(), "has no entry");
    ask(&sandbox, &server, "again", &["--resume", ID, &cut(&old[0].1)]).exits(0);
    assert_eq!(last_texts(&server), ["one", "again"]);
}

#[test]
fn calls_whose_results_are_left_out_get_one_that_says_so() {
    let (sandbox, server) = (Sandbox::new(), server());
    sandbox.write("a.txt", "alpha\n");
    sandbox.write("b.txt", "beta\n");
    ask(&sandbox, &server, "read", &["--session-id", ID]).exits(0);
    let entries = entries(&sandbox, ID);
    // The prompt, the reply with two calls, their results, the answer.
    assert_eq!(entries.len(), 5, "{entries:?}");
    let at = format!("--resume-session-at={}", entries[2].1);
    ask(&sandbox, &server, "other", &["--resume", ID, "--fork-session", "--session-id", OTHER_ID, &at])
        .exits(0);
    let body = server.requests().last().unwrap().json();
    let results = body["messages"][2]["content"].as_array().unwrap().clone();
    assert_eq!(results.len(), 2, "{body:#}");
    assert!(results[0].to_string().contains("alpha"), "{results:#?}");
    assert!(results[1].to_string().contains("taken back to this point"), "{results:#?}");
    assert_eq!(results[1]["is_error"], true);
    let at = format!("--resume-session-at={}", entries[1].1);
    ask(&sandbox, &server, "other", &["--resume", ID, &at]).exits(0);
    let body = server.requests().last().unwrap().json();
    let results = body["messages"][2]["content"].to_string();
    assert!(!results.contains("alpha") && results.matches("taken back").count() == 2, "{results}");
}

#[test]
fn more_than_the_turn_is_not_dropped() {
    let (sandbox, server) = (Sandbox::new(), server());
    three_turns(&sandbox, &server);
    let entries = entries(&sandbox, ID);
    let before = log_text(&sandbox, ID);
    let cut = |at: usize, turn: &str| {
        [format!("--resume-session-at={}", entries[at].1), format!("--resume-drops-turn={turn}")]
    };
    for [at, turn] in [cut(1, &entries[4].1), cut(1, &entries[2].1), cut(3, OTHER_ID)] {
        let refused = ask(&sandbox, &server, "other", &["--resume", ID, &at, &turn]).exits(42);
        assert_failure(&refused.json(), "Resume rejected by --resume-drops-turn:");
    }
    assert_eq!(log_text(&sandbox, ID), before, "nothing is added");
    let [at, turn] = cut(3, &entries[4].1);
    ask(&sandbox, &server, "other", &["--resume", ID, &at, &turn]).exits(0);
    assert_eq!(last_texts(&server), ["one", "answer 0", "two", "answer 1", "other"]);
}

#[test]
fn a_copy_that_cannot_be_cut_is_not_left_behind() {
    let (sandbox, server) = (Sandbox::new(), server());
    three_turns(&sandbox, &server);
    let at = format!("--resume-session-at={OTHER_ID}");
    ask(&sandbox, &server, "other", &["--resume", ID, "--fork-session", &at]).exits(42);
    assert_eq!(sandbox.session_files().len(), 1);
}

#[test]
fn what_makes_no_sense_is_bad_input() {
    let (sandbox, server) = (Sandbox::new(), server());
    three_turns(&sandbox, &server);
    for (arguments, problem) in [
        (vec!["--resume", ID, "--resume-session-at="], "it is empty"),
        (vec!["--resume", ID, "--resume-session-at=x", "--resume-drops-turn="], "it is empty"),
        (vec!["--resume-session-at=x"], "needs --resume"),
        (vec!["--resume", ID, "--resume-drops-turn=x"], "needs --resume-session-at"),
    ] {
        ask(&sandbox, &server, "other", &arguments).exits(42).says(&[problem]);
    }
    assert_eq!(server.requests().len(), 3);
}
