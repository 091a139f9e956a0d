//! Usage and budgets: what model calls cost, per request and per session, and what happens when a budget is spent.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, id, kind, toolset};

/// A model with a price, whose every reply has these tokens.
fn priced() -> Server {
    let usage = json!({ "input_tokens": 1_000, "output_tokens": 100, "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 9 });
    let script = Script::by(move |request, _| {
        let calls = if qoder_testkit::assistant_count(request).is_multiple_of(2) {
            vec![("t1".to_owned(), "Bash".to_owned(), json!({ "command": "true" }))]
        } else {
            Vec::new()
        };
        let text = calls.is_empty().then(|| "done".to_owned());
        Reply::Blocks { thinking: None, text, tools: calls, stop_reason: None, usage: Some(usage.clone()) }
    });
    let sandbox = qoder_testkit::Sandbox::new();
    let prices = "settings:\n  model:\n    prices:\n      priced-model: { input: 1000.0, output: 10000.0 }\n";
    let config = sandbox.write("serve.yaml", prices);
    Server::with(Some(script), &["--config", config.to_str().unwrap()], &[])
}

fn session(server: &Server, more: &Value) -> super::support::Answer {
    let agent = json!({ "name": "a", "model": "priced-model", "tools": [toolset(&[])] });
    let agent = id(&server.post("/v1/agents", &agent).ok());
    let mut body = json!({ "agent": agent, "environment_id": server.environment() });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post("/v1/sessions", &body)
}

#[test]
fn tokens_and_money_add_up() {
    let server = priced();
    let session = id(&session(&server, &json!({})).ok());
    server.ask(&session, "go");
    let shown = server.get(&format!("/v1/sessions/{session}")).ok();
    let usage = &shown["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2_000), &json!(200)));
    assert_eq!(usage["cache_read_input_tokens"], 14);
    let amount: f64 = usage["list_cost"]["amount"].as_str().unwrap().parse().unwrap();
    assert!((3.99..4.01).contains(&amount), "{amount}");
    assert!(usage["total_credits"].as_f64().unwrap() > 399.0, "{usage}");
    assert!(shown["stats"]["active_seconds"].as_f64().unwrap() > 0.0);
    let events = server.events(&session);
    let span = events.iter().find(|event| kind(event) == "span.model_request_end").unwrap();
    assert_eq!(span["model_usage"]["cache_creation_input_tokens"], 9);
    assert!(span["model_usage"]["credits"].as_f64().unwrap() > 199.0, "{span}");
}

#[test]
fn a_budget_ends_the_turn_and_can_be_raised() {
    let server = priced();
    let budget =
        |amount: &str| json!({ "type": "limit", "max_list_cost": { "amount": amount, "currency": "USD" } });
    let created = session(&server, &json!({ "budget": budget("3.00") })).ok();
    assert_eq!(created["budget"], budget("3.00"));
    let session = id(&created);
    server.ask(&session, "go");
    assert_eq!(server.ask(&session, "more")["stop_reason"]["type"], "budget_reached");
    let events = server.events(&session);
    let usage = events.iter().rev().find(|event| kind(event) == "session.usage").unwrap();
    assert_eq!(usage["budget"], budget("3.00"));
    assert!(usage["usage"]["list_cost"]["amount"].is_string());
    let spent = server.model.as_ref().unwrap().requests().len();
    assert_eq!(server.ask(&session, "and more")["stop_reason"]["type"], "budget_reached");
    assert_eq!(server.model.as_ref().unwrap().requests().len(), spent, "the model is not asked");
    let path = format!("/v1/sessions/{session}");
    let refused = server.post(&path, &json!({ "budget": budget("1.00") }));
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "budget_not_raised");
    server.post(&path, &json!({ "budget": budget("100") })).ok();
    assert_eq!(server.ask(&session, "again")["stop_reason"]["type"], "end_turn");
    let removed = server.post(&path, &json!({ "budget": null })).ok();
    assert_eq!(removed["budget"], Value::Null);
    server.post(&path, &json!({ "budget": budget("100") })).error(400);
}

#[test]
fn credits_are_a_budget_too_and_a_model_without_a_price_has_none() {
    let server = priced();
    let credits = json!({ "type": "limit", "max_credit_cost": "100" });
    let session = id(&session(&server, &json!({ "budget": credits })).ok());
    server.ask(&session, "go");
    assert_eq!(server.ask(&session, "more")["stop_reason"]["type"], "budget_reached", "a credit is a cent");
    let agent = id(&server.post("/v1/agents", &json!({ "name": "a", "model": "who-knows-what" })).ok());
    let body = json!({ "agent": agent, "environment_id": server.environment(), "budget": credits });
    let refused = server.post("/v1/sessions", &body);
    refused.error(400);
    assert_eq!(refused.json()["error"]["details"]["error_code"], "model_not_budgetable");
}

#[test]
fn a_model_that_fails_for_good_ends_the_turn_with_an_error() {
    let server = Server::scripted(Script::by(|_, number| match number {
        0 => Reply::HttpError {
            status: 400,
            headers: Vec::new(),
            body: json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } })
                .to_string(),
        },
        1 => bash("true"),
        _ => Reply::text("fine"),
    }));
    let session = server.session(&json!([toolset(&[])]));
    let idle = server.ask(&session, "go");
    assert_eq!(idle["stop_reason"]["type"], "retries_exhausted");
    let events = server.events(&session);
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    assert_eq!(error["error"]["type"], "model_request_failed_error");
    assert_eq!(error["error"]["retry_status"]["type"], "exhausted");
    assert_eq!(server.ask(&session, "again")["stop_reason"]["type"], "end_turn");
}
