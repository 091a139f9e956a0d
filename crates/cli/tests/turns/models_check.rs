//! `qodercli models check`: small requests to a real endpoint over each protocol, what they show, and what it costs.

use std::process::Command;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");
const STYLES: [&str; 3] = ["anthropic", "openai-chat", "openai-responses"];

/// A server that passes every probe, except where `special` returns another reply.
fn server(special: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> ScriptedServer {
    let sum = |a: u32, b: u32| ("add".to_owned(), json!({"a": a, "b": b}));
    ScriptedServer::start(Script::by(move |request, _| {
        let text = request.to_string();
        if let Some(reply) = special(&text) {
            return reply;
        }
        let is_answered = text.contains("tool_result")
            || text.contains("function_call_output")
            || text.contains("\"role\":\"tool\"");
        match () {
            () if is_answered => Reply::text("The sum is 42."),
            () if text.contains("Call add twice") => Reply::ToolCalls(vec![sum(1, 2), sum(3, 4)]),
            () if text.contains("Call add with") => Reply::ToolCalls(vec![sum(17, 25)]),
            () if text.contains("picture") => Reply::text("Red."),
            () if text.contains("plus one? Answer") => Reply::text("4417"),
            () if text.contains("Think first") => Reply::Blocks {
                thinking: Some(("Three times seventeen.".into(), "c2ln".into())),
                text: Some("51".into()),
                tools: Vec::new(),
                stop_reason: None,
                usage: None,
            },
            () => Reply::text("one two three four five six seven eight nine ten"),
        }
    }))
}

/// What the program printed; it must end with this code.
struct Checked {
    stdout: String,
    stderr: String,
}

impl Checked {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

fn finish(command: Command, code: i32) -> Checked {
    let output = Sandbox::finish(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
    Checked { stdout, stderr }
}

fn check(server: &ScriptedServer, style: &str, further: &[&str], code: i32) -> Checked {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(BINARY);
    command
        .args(["models", "check", "--base-url", &server.base_url(), "--api-style", style])
        .args(further)
        .env("QODER_RETRY_BASE_MS", "1");
    finish(command, code)
}

fn verdicts(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|finding| (text(finding, "probe"), text(finding, "verdict"))).collect()
}

fn verdict(report: &Value, probe: &str) -> String {
    verdicts(report).into_iter().find(|(name, _)| name == probe).unwrap().1
}

#[test]
fn a_server_that_can_do_everything_passes_over_each_protocol() {
    for style in STYLES {
        let server = server(|_| None);
        let report = check(&server, style, &["small", "--json"], 0).json();
        for (probe, verdict) in verdicts(&report) {
            // The scripted list does not name this model.
            let expected = if probe == "list" { "partly" } else { "works" };
            assert_eq!(verdict, expected, "{style} {probe}: {report:#}");
        }
        assert_eq!(report["usable"], true);
        assert!(report["profile"]["name"].is_string(), "{report:#}");
    }
}

#[test]
fn the_table_has_a_row_for_each_probe() {
    let server = server(|_| None);
    let run = check(&server, "openai-chat", &["small"], 0);
    for row in ["list", "text", "stream", "usage", "tool call", "parallel calls", "image", "reasoning"] {
        assert!(run.stdout.lines().any(|line| line.trim_start().starts_with(row)), "{row}: {}", run.stdout);
    }
    assert!(run.stdout.contains("profile: "), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "no colours into a pipe");
}

#[test]
fn a_model_without_calls_or_eyes_is_told_from_a_server_that_refuses() {
    let server = server(|text| {
        let refusal =
            json!({"error": {"message": "this model cannot think", "type": "invalid_request_error"}});
        match () {
            () if text.contains("Call add") => Some(Reply::text("I would call add.")),
            () if text.contains("picture") => Some(Reply::text("I see nothing.")),
            () if text.contains("Think first") => {
                Some(Reply::HttpError { status: 400, headers: Vec::new(), body: refusal.to_string() })
            }
            () => None,
        }
    });
    let report = check(&server, "openai-chat", &["small", "--json"], 0).json();
    assert_eq!(verdict(&report, "tool call"), "partly");
    assert_eq!(verdict(&report, "parallel calls"), "partly");
    assert_eq!(verdict(&report, "image"), "partly");
    assert_eq!(verdict(&report, "reasoning"), "fails");
    let detail = report["findings"].as_array().unwrap().iter().find(|it| it["probe"] == "reasoning").unwrap();
    assert!(detail["detail"].as_str().unwrap().contains("cannot think"), "{detail}");
}

#[test]
fn a_rejected_key_ends_the_check_and_says_so() {
    let body = json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}});
    let server = ScriptedServer::start(Script::by(move |_, _| Reply::HttpError {
        status: 401,
        headers: Vec::new(),
        body: body.to_string(),
    }));
    let run = check(&server, "openai-chat", &["small", "--json"], 41);
    let report = run.json();
    assert_eq!(verdict(&report, "text"), "fails");
    assert_eq!(verdict(&report, "tool call"), "skipped");
    assert_eq!(report["usable"], false);
}

#[test]
fn a_dear_model_is_asked_only_what_a_cent_pays_for() {
    let server = server(|_| None);
    let report = check(&server, "anthropic", &["claude-opus-4-1", "--json"], 0).json();
    assert_eq!(verdict(&report, "text"), "works");
    assert_eq!(verdict(&report, "reasoning"), "skipped", "1,200 tokens would cost nine cents");
    let asked = server.requests().iter().filter(|request| !request.body.is_empty()).count();
    let report = check(&server, "anthropic", &["claude-opus-4-1", "--json", "--max-cost", "1"], 0).json();
    assert_eq!(verdict(&report, "reasoning"), "works");
    assert!(server.requests().iter().filter(|request| !request.body.is_empty()).count() > 2 * asked);
}

#[test]
fn the_models_without_a_network_can_be_checked() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(BINARY);
    command.args(["models", "check", "offline", "--json"]);
    let report = finish(command, 0).json();
    assert_eq!(verdict(&report, "tool call"), "works");
    assert_eq!(report["profile"], Value::Null);
    let playbook = json!({"replies": [
        {"when": {"contains": "Call add with"}, "toolCalls": [{"name": "add", "input": {"a": 17, "b": 25}}]},
        {"when": {"lastToolResultContains": "42"}, "text": "It is 42."},
        {"text": "one two three", "repeat": true},
    ]});
    let playbook = sandbox.write("book.json", playbook.to_string());
    let mut command = sandbox.command(BINARY);
    command.args(["models", "check", &format!("scripted:{}", playbook.display()), "--json"]);
    let report = finish(command, 0).json();
    assert_eq!(verdict(&report, "tool call"), "works", "{report:#}");
    assert_eq!(verdict(&report, "parallel calls"), "partly");
}

#[test]
fn a_provider_is_checked_by_its_name_and_an_unknown_one_is_an_error() {
    let server = server(|_| None);
    let sandbox = Sandbox::new();
    let settings = json!({"providers": {"local": {
        "protocol": "openai-chat", "baseUrl": server.base_url(), "models": ["tiny", "large"]
    }}});
    let mut command = sandbox.command(BINARY);
    command.args(["models", "check", "local", "--json", "--settings", &settings.to_string()]);
    let report = finish(command, 0).json();
    assert_eq!(report["model"], "tiny");
    let mut command = sandbox.command(BINARY);
    command.args(["models", "check", "lokal/tiny", "--settings", &settings.to_string()]);
    let run = finish(command, 52);
    assert!(run.stderr.contains("`lokal`") && run.stderr.contains("local"), "{}", run.stderr);
}
