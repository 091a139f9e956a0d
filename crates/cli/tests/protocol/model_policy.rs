//! What the host's choice of a model comes to when it cannot be used, and what of it is for whom: the key, the window, the
//! parameters. Nothing is answered by another model than the one that was chosen.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::protocol::host::{Host, call, say};

fn choosing(sandbox: &Sandbox, flags: &[&str]) -> Host {
    Host::connect(sandbox, &json!([say("usual")]), flags, json!({ "modelPolicy": true }))
}

/// The result of a turn whose model is this one.
fn chosen(host: &mut Host, choice: &Value) -> Value {
    host.prompt("hello");
    let asked = host.asked("get_model_policy");
    host.respond(&asked, choice);
    host.result()
}

fn own(server: &ScriptedServer, parameters: &Value) -> Value {
    let credentials = json!({ "provider": "mine", "api_key": "byok-key", "url": server.base_url() });
    json!({ "model": "m", "credentials": credentials, "parameters": parameters })
}

#[track_caller]
fn failed(result: &Value) -> &str {
    assert_eq!(result["is_error"], true, "{result:#}");
    result["errors"][0].as_str().unwrap()
}

#[test]
fn a_model_that_nobody_has_fails_the_query_and_the_built_in_one_does_not_answer() {
    let sandbox = Sandbox::new();
    let mut host = choosing(&sandbox, &[]);
    let result = chosen(&mut host, &json!({ "model": "no-such-model" }));
    assert!(failed(&result).contains("model `no-such-model`: no provider is configured"), "{result:#}");
    assert_eq!(chosen(&mut host, &json!({ "model": "offline" }))["is_error"], false);
    assert_eq!(
        chosen(&mut host, &json!({ "model": "auto" }))["is_error"],
        false,
        "a tier is whatever answers"
    );
}

#[test]
fn a_fault_of_a_custom_model_is_told_in_the_names_of_its_fields() {
    let sandbox = Sandbox::new();
    let refusal = json!({ "error": { "message": "no such key" } }).to_string();
    let refusal = Reply::HttpError { status: 401, headers: Vec::new(), body: refusal };
    let server = ScriptedServer::start(Script::list(vec![refusal]));
    let mut host = choosing(&sandbox, &[]);
    let result = chosen(&mut host, &own(&server, &json!({})));
    assert!(failed(&result).contains("the `api_key` that resolve_model returned"), "{result:#}");
    for (field, value) in [("api_key", ""), ("style", "soap"), ("url", "nowhere")] {
        let mut choice = own(&server, &json!({}));
        choice["credentials"][field] = json!(value);
        let result = chosen(&mut host, &choice);
        assert!(failed(&result).contains(&format!("`{field}`")), "{result:#}");
    }
}

#[test]
fn context_window_bounds_the_conversation_and_is_nothing_for_the_provider() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hi"), Reply::text("hi")]));
    let mut host = choosing(&sandbox, &[]);
    let result = chosen(&mut host, &own(&server, &json!({ "contextWindow": 50_000, "temperature": 0.5 })));
    assert_eq!(result["result"], "hi");
    let body = server.requests().pop().unwrap().json();
    assert_eq!((&body["temperature"], body.get("contextWindow")), (&json!(0.5), None));
    chosen(&mut host, &own(&server, &json!({ "contextWindow": 60_000 })));
    let usage = host.request(&json!({ "subtype": "get_context_usage" })).unwrap();
    assert_eq!(usage["rawMaxTokens"], 60_000, "{usage:#}");
}

#[test]
fn parameters_that_make_no_sense_fail_the_query() {
    let sandbox = Sandbox::new();
    let mut host = choosing(&sandbox, &[]);
    for (name, value) in [
        ("max_tokens", json!("many")),
        ("max_tokens", json!(0)),
        ("contextWindow", json!(-1)),
        ("reasoningEffort", json!(3)),
    ] {
        let result = chosen(&mut host, &json!({ "model": "offline", "parameters": { name: value } }));
        assert!(failed(&result).contains(&format!("`{name}`")), "{result:#}");
    }
}

#[test]
fn the_judge_of_auto_mode_is_chosen_with_the_purpose_utility() {
    let sandbox = Sandbox::new();
    let settings = json!({ "autoMode": { "classifier": "offline" } }).to_string();
    sandbox.write(sandbox.config().join("settings.json"), settings);
    let replies = json!([call(1, "Bash", &json!({ "command": "npm i left-pad" })), say("done")]);
    let flags = ["--permission-mode", "auto"];
    let mut host = Host::connect(&sandbox, &replies, &flags, json!({ "modelPolicy": true }));
    let playbook = sandbox.write("../chosen.json", replies.to_string());
    host.prompt("go");
    let mut purposes = Vec::new();
    let result = loop {
        let line = host.until(|line| line["type"] == "result" || line["type"] == "control_request");
        if line["type"] == "result" {
            break line;
        }
        purposes.push(line["request"]["purpose"].as_str().unwrap().to_owned());
        let judges = line["request"]["purpose"] == "utility";
        let model = if judges { "offline".to_owned() } else { format!("scripted:{}", playbook.display()) };
        host.respond(&line, &json!({ "model": model }));
    };
    assert_eq!(
        (&result["result"], purposes),
        (&json!("done"), vec!["main".to_owned(), "utility".into(), "main".into()])
    );
}
