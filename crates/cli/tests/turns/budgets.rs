//! What a run may spend: dollars over the whole run, tokens in each turn. Both are looked at before each call of a model,
//! and what agents spend counts as it is spent.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::agents::{agent, child_requests, family};
use crate::turns::support::{
    MODEL, Wire, assert_calls_in_order, bodies, calls, command, feed, records, stream,
};

/// A sandbox where a reply of 1000 tokens in and 100 out costs 0.003 dollars.
fn with_prices() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    let price = json!({ "input": 2.0, "output": 10.0, "cacheRead": 1.0, "cacheWrite": 4.0 });
    let settings = json!({ "model": { "prices": { MODEL: price } } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

fn usage() -> Value {
    json!({ "input_tokens": 1000, "output_tokens": 100 })
}

fn reading() -> Reply {
    Reply::Blocks {
        thinking: None,
        text: None,
        tools: vec![("toolu_read".to_owned(), "Read".to_owned(), json!({ "file_path": "notes.txt" }))],
        stop_reason: None,
        usage: Some(usage()),
    }
}

fn said(text: &str) -> Reply {
    crate::turns::support::counted(text, usage())
}

/// A model that reads for ever; each call has an id of its own.
fn restless() -> ScriptedServer {
    ScriptedServer::start(Script::by(|_, number| match reading() {
        Reply::Blocks { thinking, text, tools, stop_reason, usage } => Reply::Blocks {
            tools: tools
                .into_iter()
                .map(|(id, name, input)| (format!("{id}_{number}"), name, input))
                .collect(),
            thinking,
            text,
            stop_reason,
            usage,
        },
        other => other,
    }))
}

#[test]
fn the_turn_ends_when_the_money_is_spent() {
    let sandbox = with_prices();
    let server = restless();
    let finished = stream(&sandbox, &server, &["go", "--max-budget-usd", "0.005"]);
    assert_eq!(finished.code, 1);
    let result = finished.result();
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!("error_max_budget_usd"), &json!("max_budget"))
    );
    assert!(result["errors"][0].as_str().unwrap().contains("$0.005"), "{result:#}");
    assert_eq!(server.requests().len(), 2, "the second call went over it, the third is not made");
    assert_eq!(records(&sandbox, "turn-end")[0]["subtype"], "error_max_budget_usd");
    assert_calls_in_order(&sandbox);
}

#[test]
fn a_turn_that_ends_by_itself_is_no_error_but_the_next_one_of_the_run_is() {
    let sandbox = with_prices();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![said("one"), said("two")]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["--input-format", "stream-json", "--output-format", "stream-json"]);
    command.args(["--max-budget-usd", "0.001"]);
    let line = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
    let finished = feed(command, &format!("{}\n{}\n", line("first"), line("second")));
    let results = finished.of("result");
    assert_eq!(results[0]["subtype"], "success");
    assert_eq!(
        (&results[1]["subtype"], &results[1]["num_turns"]),
        (&json!("error_max_budget_usd"), &json!(0))
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn another_run_of_the_session_has_its_own_money() {
    let sandbox = with_prices();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![said("one"), said("two")]));
    let session = "30000000-0000-4000-8000-000000000078";
    let budget = ["--max-budget-usd", "0.002"];
    stream(&sandbox, &server, &[&["first", "--session-id", session], &budget[..]].concat()).success();
    let second = stream(&sandbox, &server, &[&["second", "--resume", session], &budget[..]].concat());
    assert_eq!(second.success()["result"], "two");
}

#[test]
fn agents_spend_the_same_money() {
    let sandbox = with_prices();
    let server =
        family(vec![calls(&[agent("toolu_agent", &json!({}))])], (0..9).map(|_| reading()).collect());
    let finished =
        stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--max-budget-usd", "0.005"]);
    let result = finished.result();
    assert_eq!(result["subtype"], "error_max_budget_usd");
    assert_eq!(child_requests(&server).len(), 2, "the agent stops in the middle of its own turn");
    assert_eq!(bodies(&server).len(), 3, "and the parent asks nothing more");
    assert_calls_in_order(&sandbox);
}

#[test]
fn the_tokens_of_a_task_are_those_of_one_turn() {
    let sandbox = with_prices();
    let server = restless();
    let session = "30000000-0000-4000-8000-000000000079";
    let finished = stream(&sandbox, &server, &["go", "--task-budget", "2000", "--session-id", session]);
    assert_eq!(finished.code, 1);
    let result = finished.result();
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!("error_max_task_budget"), &json!("max_task_budget"))
    );
    assert!(result["errors"][0].as_str().unwrap().contains("(2000)"), "{result:#}");
    assert_eq!(server.requests().len(), 2);
    let again = stream(&sandbox, &server, &["again", "--task-budget", "2000", "--resume", session]);
    assert_eq!(again.result()["subtype"], "error_max_task_budget");
    assert_eq!(server.requests().len(), 4, "another turn has its own tokens");
}

#[test]
fn a_model_without_a_price_is_named() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![said("one")]));
    let finished = stream(&sandbox, &server, &["go", "--max-budget-usd", "0.001"]);
    finished.success();
    let warning = format!("the price of the model `{MODEL}` is not known");
    assert!(finished.stderr.contains(&warning), "{}", finished.stderr);
    let priced = with_prices();
    let finished = stream(&priced, &server, &["go", "--max-budget-usd", "0.1"]);
    assert!(!finished.stderr.contains("the price of the model"), "{}", finished.stderr);
}

#[test]
fn a_budget_that_is_none_is_bad_input() {
    let sandbox = Sandbox::new();
    for (flag, value) in [
        ("--max-budget-usd", "0"),
        ("--max-budget-usd", "-1"),
        ("--max-budget-usd", "much"),
        ("--max-budget-usd", "NaN"),
        ("--max-budget-usd", "inf"),
        ("--task-budget", "0"),
        ("--task-budget", "1.5"),
        ("--task-budget", "-5"),
    ] {
        let flag_with_value = format!("{flag}={value}");
        let output = sandbox.run(env!("CARGO_BIN_EXE_qodercli"), &["-p", "hi", &flag_with_value]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(42), "{flag_with_value}: {told}");
        assert!(told.contains(flag), "{told}");
    }
}
