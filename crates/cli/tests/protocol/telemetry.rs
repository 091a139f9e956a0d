//! A whole session at a real collector: turn, model calls, a tool, a hook and a subagent as one tree of spans, and what
//! was measured.

use std::collections::BTreeMap;

use qoder_testkit::{Collector, CollectorManner, ReceivedSpan, Sandbox};
use serde_json::{Value, json};

use crate::protocol::host::Host;

const SESSION: &str = "44444444-4444-4444-8444-444444444444";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn replies() -> Value {
    json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [
            { "name": "Agent", "id": "toolu_agent", "input": { "prompt": "look", "description": "x" } }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "toolCalls": [
            { "name": "Read", "id": "toolu_read", "input": { "file_path": "a.txt" } }] },
        { "when": { "purpose": "subagent", "turn": 2 }, "text": "looked" },
        { "when": { "lastToolResultContains": "looked" }, "text": "all good", "usage": {
            "input_tokens": 100, "output_tokens": 77, "cache_read_input_tokens": 900 } },
    ])
}

fn by_name(spans: &[ReceivedSpan]) -> BTreeMap<&str, Vec<&ReceivedSpan>> {
    let mut all: BTreeMap<&str, Vec<&ReceivedSpan>> = BTreeMap::new();
    for span in spans {
        all.entry(span.name.as_str()).or_default().push(span);
    }
    all
}

/// Runs the session against a collector.
fn observed(protocol: &str, content: bool) -> (Sandbox, Collector) {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "content of the file");
    let collector = Collector::start(CollectorManner::Accepts);
    let mut command =
        Host::command(&sandbox, &replies(), &["--allowedTools", "Agent", "--session-id", SESSION]);
    command.env("QODER_ENABLE_TELEMETRY", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base_url());
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol).env("OTEL_SERVICE_NAME", "the-test");
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key-of-the-collector");
    command.env("TRACEPARENT", format!("00-{TRACE}-b7ad6b7169203331-01"));
    if content {
        command.env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    }
    let mut host = Host::spawn(command);
    host.initialize(
        json!({ "hooks": { "PreToolUse": [{ "matcher": "Read", "hookCallbackIds": ["hook_0"] }] } }),
    );
    host.prompt("go and look");
    let asked = host.asked("hook_callback");
    host.respond(&asked, &json!({}));
    assert_eq!(host.result()["result"], "all good");
    assert_eq!(host.end().0, 0);
    (sandbox, collector)
}

fn assert_tree(collector: &Collector) {
    let spans = collector.spans();
    let named = by_name(&spans);
    let only = |name: &str| -> &ReceivedSpan {
        let found = named.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", named.keys()));
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    };
    assert!(spans.iter().all(|span| span.trace_id == TRACE && span.ended >= span.began), "{spans:#?}");
    let turn = only("invoke_agent qodercli");
    assert_eq!(turn.parent_id, "b7ad6b7169203331", "TRACEPARENT is the parent");
    let tool = only("execute_tool Agent");
    assert_eq!(tool.parent_id, turn.span_id);
    let agent = only("invoke_agent general-purpose");
    assert_eq!(agent.parent_id, tool.span_id, "an agent stands below the call that started it");
    assert!(!named.contains_key("background_task"), "nothing runs beside a call that waits for its agent");
    let read = only("execute_tool Read");
    assert_eq!(read.parent_id, agent.span_id);
    let hook = only("hook PreToolUse");
    assert_eq!(hook.parent_id, agent.span_id);
    assert_eq!(hook.attributes["qoder.hook.outcome"], "success");
    let mut chats: Vec<&str> = named["chat scripted"].iter().map(|span| span.parent_id.as_str()).collect();
    chats.sort_unstable();
    let mut expected = vec![turn.span_id.as_str(), &turn.span_id, &agent.span_id, &agent.span_id];
    expected.sort_unstable();
    assert_eq!(chats, expected);
    assert!(named["chat scripted"].iter().all(|span| span.kind == 3 && !span.is_error));
}

fn assert_conventions(collector: &Collector) {
    let spans = collector.spans();
    let find = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let turn = find("invoke_agent qodercli");
    assert_eq!(turn.attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(turn.attributes["gen_ai.conversation.id"], SESSION);
    assert_eq!(turn.attributes["qoder.turn.terminal_reason"], "completed");
    assert_eq!(
        turn.attributes["gen_ai.provider.name"], "scripted",
        "required of every operation on an agent"
    );
    assert_eq!(turn.attributes["gen_ai.request.model"], "scripted");
    let agent = find("invoke_agent general-purpose");
    assert_eq!(agent.attributes["gen_ai.conversation.id"], SESSION, "of the person's session");
    let id = agent.attributes["gen_ai.agent.id"].as_str().unwrap();
    assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    let tool = &find("execute_tool Read").attributes;
    assert_eq!(tool["gen_ai.operation.name"], "execute_tool");
    assert_eq!(
        (&tool["gen_ai.tool.name"], &tool["gen_ai.tool.call.id"]),
        (&json!("Read"), &json!("toolu_read"))
    );
    assert_eq!(
        (&tool["qoder.tool.outcome"], &tool["qoder.decision.behavior"]),
        (&json!("completed"), &json!("allow"))
    );
    let counted =
        |span: &&ReceivedSpan| span.attributes.get("gen_ai.usage.output_tokens") == Some(&json!(77));
    let chat = spans.iter().filter(|span| span.name == "chat scripted").find(counted).unwrap();
    let expected = json!({
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted", "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.cache_read.input_tokens": 900, "gen_ai.response.finish_reasons": ["end_turn"],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(chat.attributes.get(name), Some(value), "{name}");
    }
}

fn assert_measured(collector: &Collector) {
    let metrics = collector.metrics();
    let sum = |name: &str, with: &[(&str, &str)]| -> (u64, f64) {
        let fits = |attributes: &BTreeMap<String, Value>| {
            with.iter().all(|(key, value)| attributes.get(*key) == Some(&json!(value)))
        };
        let points = metrics.iter().filter(|point| point.name == name && fits(&point.attributes));
        points.fold((0, 0.0), |(count, sum), point| (count + point.count, sum + point.sum))
    };
    assert_eq!(sum("gen_ai.client.token.usage", &[("gen_ai.token.type", "output")]).0, 4, "{metrics:#?}");
    assert!(sum("gen_ai.client.token.usage", &[("gen_ai.token.type", "input")]).1 >= 1000.0);
    assert_eq!(sum("gen_ai.client.operation.duration", &[("gen_ai.request.model", "scripted")]).0, 4);
    assert_eq!(sum("qoder.decisions", &[("qoder.decision.behavior", "allow")]), (2, 2.0));
    assert_eq!(sum("qoder.turns", &[("qoder.turn.subtype", "success")]), (1, 2.0));
    assert_eq!(sum("qoder.tool.duration", &[("gen_ai.tool.name", "Read")]).0, 1);
}

#[test]
fn a_session_with_turn_tool_hook_and_subagent_is_one_tree_of_spans() {
    for protocol in ["http/protobuf", "http/json"] {
        let (_sandbox, collector) = observed(protocol, false);
        assert_tree(&collector);
        assert_conventions(&collector);
        assert_measured(&collector);
        assert!(
            collector.headers("authorization").iter().all(|value| value == "Bearer key-of-the-collector")
        );
        let bodies = [collector.bodies("/v1/traces"), collector.bodies("/v1/metrics")].concat();
        let sent: String = bodies.iter().map(Value::to_string).collect();
        assert!(sent.contains("the-test"), "OTEL_SERVICE_NAME");
        for text in ["unknown field", "broken", "go and look", "content of the file", "all good"] {
            assert!(!sent.contains(text), "{protocol}: `{text}` was sent");
        }
    }
}

#[test]
fn texts_of_the_conversation_are_sent_only_when_asked_for() {
    let (_sandbox, collector) = observed("http/json", true);
    let spans = collector.spans();
    let find = |name: &str| &spans.iter().find(|span| span.name == name).unwrap().attributes;
    let prompt: Value =
        serde_json::from_str(find("invoke_agent qodercli")["gen_ai.input.messages"].as_str().unwrap())
            .unwrap();
    assert_eq!(prompt, json!([{ "role": "user", "parts": [{ "type": "text", "content": "go and look" }] }]));
    assert!(
        find("execute_tool Read")["gen_ai.tool.call.result"]
            .as_str()
            .unwrap()
            .contains("content of the file")
    );
    assert_eq!(find("execute_tool Read")["gen_ai.tool.call.arguments"], "{\"file_path\":\"a.txt\"}");
}
