//! Where a turn ends: the limit on model calls, the output limit that cuts replies, replies that say nothing, and what
//! the result says about tokens and money.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{
    MODEL, assert_calls_in_order, bodies, counted, keys, records, results_in, stopped, stream,
};

#[test]
fn the_turn_limit_ends_the_turn_with_its_own_code() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let server = ScriptedServer::start(Script::by(|request, _| {
        match request["messages"].as_array().unwrap().last().unwrap()["content"].as_str() {
            Some("continue") => Reply::text("finished"),
            _ => Reply::tool("Read", json!({ "file_path": "notes.txt" })),
        }
    }));
    let session = "30000000-0000-4000-8000-000000000001";
    let finished = stream(&sandbox, &server, &["loop", "--max-turns", "2", "--session-id", session]);
    assert_eq!(finished.code, 53, "{}", finished.stderr);
    let result = finished.result();
    let expected = [
        "duration_api_ms",
        "duration_ms",
        "error_code",
        "errors",
        "is_error",
        "modelUsage",
        "num_turns",
        "permission_denials",
        "session_id",
        "stop_reason",
        "subtype",
        "terminal_reason",
        "total_cost_usd",
        "type",
        "usage",
        "uuid",
    ];
    assert_eq!(keys(&result), expected);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("error_max_turns"), &json!(true)));
    assert_eq!((&result["error_code"], &result["num_turns"]), (&json!(47_902), &json!(2)));
    assert_eq!(result["terminal_reason"], "max_turns");
    assert_eq!(result["errors"].as_array().unwrap().len(), 1);
    assert!(result["errors"][0].as_str().unwrap().contains("(2)"), "{}", result["errors"]);
    assert_eq!(server.requests().len(), 2);
    assert_calls_in_order(&sandbox);
    let lines = sandbox.transcript_lines();
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["subtype"]), (&json!("turn-end"), &json!("error_max_turns")));
    assert_eq!((&last["errorCode"], &last["isError"]), (&json!(47_902), &json!(true)));
    let again = stream(&sandbox, &server, &["continue", "--resume", session]);
    assert_eq!(again.success()["result"], "finished");
}

#[test]
fn a_reply_cut_by_the_output_limit_is_continued_and_joined() {
    let sandbox = Sandbox::new();
    let replies =
        vec![stopped("One, tw", "max_tokens"), stopped("o, thr", "max_tokens"), stopped("ee.", "end_turn")];
    let server = ScriptedServer::start(Script::list(replies));
    let result = stream(&sandbox, &server, &["count"]).success();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("One, two, three."), &json!(3)));
    assert_eq!(result["stop_reason"], "end_turn");
    let bodies = bodies(&server);
    let messages = bodies[2]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(messages[4]["content"].as_str().unwrap().contains("Continue exactly where it stopped"));
}

#[test]
fn a_reply_that_is_cut_again_and_again_ends_the_turn() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![stopped("more ", "max_tokens")]));
    let result = stream(&sandbox, &server, &["never stop"]).success();
    assert_eq!(result["stop_reason"], "max_tokens");
    assert_eq!(result["result"], "more more more more ");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn empty_replies_are_nudged_and_then_an_error() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("")]));
    let finished = stream(&sandbox, &server, &["say something"]);
    assert_eq!(finished.code, 1);
    let result = finished.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["errors"], json!(["The model returned 3 empty replies in a row."]));
    assert_eq!(result["error_code"], 10_500);
    assert_eq!(server.requests().len(), 3);
    assert!(records(&sandbox, "user").iter().skip(1).all(|entry| entry["isMeta"] == true));
}

#[test]
fn an_empty_reply_after_tools_have_done_the_work_ends_the_turn() {
    let touch = || Reply::tool("Bash", json!({ "command": "touch made" }));
    let with_text = Reply::Blocks {
        thinking: None,
        text: Some("I make it.".to_owned()),
        tools: vec![("toolu_1".to_owned(), "Bash".to_owned(), json!({ "command": "touch made" }))],
        stop_reason: None,
        usage: None,
    };
    for (first, said) in [(touch(), ""), (with_text, "I make it.")] {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::list(vec![first, Reply::text("")]));
        let result = stream(&sandbox, &server, &["make it", "--allowed-tools", "Bash"]).success();
        assert_eq!((&result["result"], &result["stop_reason"]), (&json!(said), &json!("end_turn")));
        assert_eq!(server.requests().len(), 2, "the model is not asked again");
        assert!(sandbox.project().join("made").exists());
        let again = ["and now?", "--resume", result["session_id"].as_str().unwrap()];
        let silent = stream(&sandbox, &server, &again).success();
        assert_eq!(silent["result"], "", "a conversation that has done something may have nothing to add");
    }
}

#[test]
fn an_empty_reply_that_the_output_limit_cut_is_no_end() {
    let sandbox = Sandbox::new();
    let replies = vec![
        Reply::tool("Bash", json!({ "command": "true" })),
        stopped("", "max_tokens"),
        Reply::text("there"),
    ];
    let server = ScriptedServer::start(Script::list(replies));
    let result = stream(&sandbox, &server, &["go", "--allowed-tools", "Bash"]).success();
    assert_eq!(result["result"], "there");
}

#[test]
fn reasoning_alone_is_no_answer() {
    let sandbox = Sandbox::new();
    let thinking = Reply::Blocks {
        thinking: Some(("hm".to_owned(), "sig".to_owned())),
        text: None,
        tools: Vec::new(),
        stop_reason: Some("end_turn".to_owned()),
        usage: None,
    };
    let server = ScriptedServer::start(Script::list(vec![thinking, Reply::text("here it is")]));
    assert_eq!(stream(&sandbox, &server, &["go"]).success()["result"], "here it is");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn one_empty_reply_is_nudged() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text(""), Reply::text("here I am")]));
    let result = stream(&sandbox, &server, &["say something"]).success();
    assert_eq!(result["result"], "here I am");
    let request = &bodies(&server)[1];
    let messages = request["messages"].as_array().unwrap();
    assert!(messages.iter().all(|message| message["role"] == "user"), "{request:#}");
    assert!(messages[1]["content"].as_str().unwrap().starts_with("Your last reply was empty."));
}

#[test]
fn tokens_are_counted_and_priced() {
    let sandbox = Sandbox::new();
    let price = json!({ "input": 2.0, "output": 10.0, "cacheRead": 1.0, "cacheWrite": 4.0 });
    let settings = json!({ "model": { "prices": { MODEL: price } } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let usage = json!({ "input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 500,
        "cache_creation_input_tokens": 250 });
    let server = ScriptedServer::start(Script::list(vec![counted("counted", usage.clone())]));
    let session = "30000000-0000-4000-8000-000000000002";
    let first = stream(&sandbox, &server, &["count", "--session-id", session]).success();
    assert_eq!(first["usage"], usage);
    assert_close(&first["total_cost_usd"], 0.0045);
    assert_close(&first["modelUsage"][MODEL]["costUSD"], 0.0045);
    let second = stream(&sandbox, &server, &["again", "--resume", session]).success();
    assert_eq!(second["usage"], usage, "usage is that of the turn");
    assert_close(&second["total_cost_usd"], 0.009);
    assert_eq!(second["modelUsage"][MODEL]["inputTokens"], 2000);
    assert_close(&second["modelUsage"][MODEL]["costUSD"], 0.009);
    let kept = records(&sandbox, "assistant");
    assert_close(&kept[0]["costUSD"], 0.0045);
}

fn assert_close(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn the_last_calls_of_a_limited_turn_have_results() {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let read = || Reply::tool("Read", json!({ "file_path": "notes.txt" }));
    let server = ScriptedServer::start(Script::by_assistant_count(vec![read(), Reply::text("done")]));
    let session = "30000000-0000-4000-8000-000000000003";
    let finished = stream(&sandbox, &server, &["read", "--max-turns", "1", "--session-id", session]);
    assert_eq!((finished.code, finished.of("user").len()), (53, 1));
    stream(&sandbox, &server, &["continue", "--resume", session]).success();
    let request = bodies(&server).pop().unwrap();
    let mut messages = request.clone();
    messages["messages"].as_array_mut().unwrap().pop();
    let results = results_in(&messages);
    assert_eq!((results.len(), results[0].1.as_str()), (1, "     1\thello\n"), "{request:#}");
}

#[test]
fn a_refusal_is_an_error_with_its_own_code() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![stopped("I will not", "refusal")]));
    let finished = stream(&sandbox, &server, &["do something bad"]);
    let result = finished.result();
    assert_eq!((finished.code, server.requests().len()), (1, 1));
    assert_eq!((&result["subtype"], &result["error_code"]), (&json!("error_during_execution"), &json!(406)));
    assert_eq!(result["stop_reason"], "refusal");
}

#[test]
fn a_paused_turn_is_continued_and_an_unknown_end_is_an_end() {
    let sandbox = Sandbox::new();
    let replies = vec![stopped("a moment", "pause_turn"), stopped("here it is", "brand_new_reason")];
    let server = ScriptedServer::start(Script::list(replies));
    let result = stream(&sandbox, &server, &["search"]).success();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("here it is"), &json!(2)));
    assert_eq!(result["stop_reason"], "brand_new_reason");
}
