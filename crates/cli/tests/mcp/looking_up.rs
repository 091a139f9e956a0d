//! Tools of servers that are not offered one by one: found, described and called through `Mcp`, and judged as what they
//! are. The beginning of the prompt stays the same meanwhile.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::mcp::support::{bodies, everything, model, offered, results_in, trusted, turn};

fn lazy(setting: &Value) -> Sandbox {
    trusted(&json!({ "mcpServers": { "all": everything() }, "mcp": { "lazyLoad": setting } }))
}

fn look(input: Value) -> Reply {
    Reply::tool("Mcp", input)
}

#[test]
fn tools_are_found_described_and_called_by_name() {
    let replies = vec![
        look(json!({ "action": "list", "query": "sum NUMBERS" })),
        look(json!({ "action": "describe", "server_name": "all", "tool_name": "get-sum" })),
        look(json!({ "server_name": "all", "tool_name": "get-sum", "arguments": { "a": 40, "b": 2 } })),
        look(json!({ "tool_name": "mcp__all__get-sum", "arguments": { "a": "many" } })),
        look(json!({ "server_name": "all", "tool_name": "no-such-tool" })),
        Reply::text("done"),
    ];
    let server = model(replies);
    let ran = turn(&lazy(&json!(true)), &server, &["go", "--allowed-tools", "mcp__all"]);
    assert_eq!(ran.result()["result"], "done", "{}", ran.stderr);
    let sent = bodies(&server);
    assert!(!offered(&sent[0]).iter().any(|name| name.starts_with("mcp__")), "{:?}", offered(&sent[0]));
    assert!(sent[0]["tools"].to_string().contains("find them with action list: all."));
    let told: Vec<(Value, bool)> = sent[1..].iter().map(|body| results_in(body)[0].clone()).collect();
    let texts: Vec<String> = told.iter().map(|(content, _)| content.to_string()).collect();
    assert!(texts[0].contains("mcp__all__get-sum") && !texts[0].contains("mcp__all__echo"), "{}", texts[0]);
    assert!(texts[1].contains("input_schema"), "{}", texts[1]);
    assert!(texts[2].contains("42") && !told[2].1, "{}", texts[2]);
    assert!(texts[3].contains("do not fit its schema") && told[3].1, "{}", texts[3]);
    assert!(texts[4].contains("has no tool") && told[4].1, "{}", texts[4]);
    for body in &sent {
        assert_eq!(body["tools"], sent[0]["tools"], "the beginning of the prompt is stable");
        assert_eq!(body["system"], sent[0]["system"]);
    }
}

#[test]
fn a_call_by_name_is_judged_as_the_tool_itself() {
    let call =
        || look(json!({ "server_name": "all", "tool_name": "echo", "arguments": { "message": "hi" } }));
    for (flags, runs) in [
        (&["--allowed-tools", "Mcp"][..], false),
        (&["--allowed-tools", "mcp__all__echo"], true),
        (&["--dangerously-skip-permissions", "--disallowed-tools", "mcp__all__echo"], false),
    ] {
        let server = model(vec![call(), Reply::text("done")]);
        let ran = turn(&lazy(&json!(true)), &server, &[&["go"], flags].concat());
        assert_eq!(ran.result()["subtype"], "success", "{}", ran.stderr);
        let (content, is_error) = &results_in(&bodies(&server)[1])[0];
        assert_eq!(!is_error, runs, "{flags:?}: {content}");
        assert_eq!(content.to_string().contains("Echo: hi"), runs, "{flags:?}: {content}");
    }
}

#[test]
fn the_size_of_the_context_decides() {
    for (setting, window, direct) in
        [(json!("auto"), "200000", true), (json!("auto"), "8000", false), (json!(false), "8000", true)]
    {
        let server = model(vec![Reply::text("done")]);
        let ran = turn(&lazy(&setting), &server, &["go", "--context-window", window]);
        let names = offered(&bodies(&server)[0]);
        assert_eq!(
            names.iter().any(|name| name == "mcp__all__echo"),
            direct,
            "{setting} {window}: {}",
            ran.stderr
        );
    }
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&lazy(&json!("sometimes")), &server, &["go"]);
    assert_eq!(ran.code, 52, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`mcp.lazyLoad`") && ran.stderr.contains("accepted are true, false"),
        "{}",
        ran.stderr
    );
}
