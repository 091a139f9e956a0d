//! Hooks bind everything that acts: the calls of subagents, of MCP servers, and commands in the background.

use serde_json::json;

use crate::hooks::support::{NOTE, Stage, call, entry, say};

/// Denies whatever touches something, and notes it.
const DENY: &str = "input=$(cat); printf '%s\\n' \"$input\" >> ../seen; case \"$input\" in *touch*) echo forbidden >&2; exit 2;; esac";

#[test]
fn hooks_bind_subagents() {
    let stage = Stage::command("PreToolUse", DENY);
    let replies = json!([
        call(1, "Agent", &json!({ "prompt": "make it", "description": "make" })),
        { "when": { "purpose": "subagent", "contains": "make it" },
          "toolCalls": [{ "name": "Bash", "id": "toolu_9", "input": { "command": "touch made" } }] },
        { "when": { "purpose": "subagent", "lastToolResultContains": "forbidden" }, "text": "I may not" },
        say("done"),
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Agent,Bash"]);
    assert_eq!(ran.said(), "done");
    assert!(!stage.sandbox.project().join("made").exists());
    let of_agent = stage.seen().into_iter().find(|input| input["tool_use_id"] == "toolu_9").unwrap();
    assert!(of_agent["agent_id"].is_string() && of_agent["agent_type"] == "general-purpose", "{of_agent:#}");
}

#[test]
fn include_hook_events_shows_the_hooks_of_subagents() {
    let events = ["PreToolUse", "SubagentStart", "SubagentStop"];
    let hooks = events.map(|event| (event.to_owned(), json!([entry("exit 0")])));
    let stage = Stage::new(&hooks.into_iter().collect());
    let replies = json!([
        call(1, "Agent", &json!({ "prompt": "look" })),
        { "when": { "purpose": "subagent", "turn": 1 },
          "toolCalls": [{ "name": "Bash", "id": "toolu_9", "input": { "command": "true" } }] },
        { "when": { "purpose": "subagent", "turn": 2 }, "text": "looked" },
        say("done"),
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Agent,Bash", "--include-hook-events"]);
    let session = &ran.result()["session_id"];
    for subtype in ["hook_started", "hook_response"] {
        let told = ran.system(subtype);
        assert!(told.iter().all(|message| message["session_id"] == *session), "{told:#?}");
        let told: Vec<&str> = told.iter().filter_map(|message| message["hook_event"].as_str()).collect();
        assert_eq!(told, ["PreToolUse", "SubagentStart", "PreToolUse", "SubagentStop"], "{subtype}");
    }
}

#[test]
fn hooks_bind_background_tasks() {
    let stage = Stage::command("PreToolUse", DENY);
    let start = json!({ "command": "touch made", "run_in_background": true });
    stage.run(&json!([call(1, "Bash", &start), say("done")]), &["--allowedTools", "Bash"]).said();
    assert!(!stage.sandbox.project().join("made").exists());
    assert_eq!(stage.seen()[0]["tool_input"]["run_in_background"], true);
}

/// A server with one tool that makes a file.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request["method"]
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "maker", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "make", "description": "makes", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        open("made", "w").write("x")
        result = {"content": [{"type": "text", "text": "made it"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn hooks_bind_mcp_calls_and_are_told_mcp_context() {
    for (command, runs) in [(NOTE.to_owned(), true), (format!("{NOTE}; exit 2"), false)] {
        let mut group = entry(&command);
        group["matcher"] = json!("mcp__.*");
        let stage = Stage::new(&json!({ "PreToolUse": [group] }));
        let script = stage.sandbox.write("../server.py", SERVER);
        let servers = json!({ "mcpServers": { "maker": { "command": "python3", "args": [script] } } });
        let replies = json!([call(1, "mcp__maker__make", &json!({})), say("done")]);
        let flags = ["--allowedTools", "mcp__maker", "--mcp-config", &servers.to_string()];
        let mut run = stage.prepared(&replies, &flags);
        run.env("QODER_MCP_START_WAIT_MS", "60000");
        let ran = crate::hooks::support::Ran::of(&qoder_testkit::Sandbox::finish(run));
        assert_eq!(ran.said(), "done");
        assert_eq!(stage.sandbox.project().join("made").exists(), runs, "{ran:#?}");
        let input = &stage.seen()[0];
        assert_eq!(input["mcp_context"]["server_name"], "maker", "{input:#}");
        assert_eq!(
            (&input["mcp_context"]["tool_name"], &input["original_request_name"]),
            (&json!("make"), &json!("make"))
        );
    }
}
