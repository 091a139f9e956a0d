//! Questions of MCP servers: hooks of settings see them and may answer or decline them where no one else does.

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Ran, Stage, call, entry, print, say, specific};

/// A server with one tool that asks for a name and says what it was told.
const SERVER: &str = r#"
import json, sys
def send(message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    method = request["method"]
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "asker", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "ask", "description": "asks", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
              "params": {"message": "Your name?", "requestedSchema": schema}})
        while True:
            answer = json.loads(sys.stdin.readline())
            if answer.get("id") == "q1" and "method" not in answer:
                break
        result = {"content": [{"type": "text", "text": "told: " + json.dumps(answer.get("result"))}]}
    else:
        result = {}
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})
"#;

fn asked(hooks: &Value) -> (Stage, String) {
    let stage = Stage::new(hooks);
    let script = stage.sandbox.write("../server.py", SERVER);
    let servers = json!({ "mcpServers": { "asker": { "command": "python3", "args": [script] } } });
    let replies = json!([call(1, "mcp__asker__ask", &json!({})), say("done")]);
    let flags = ["--allowedTools", "mcp__asker", "--mcp-config", &servers.to_string()];
    let mut run = stage.prepared(&replies, &flags);
    run.env("QODER_MCP_START_WAIT_MS", "60000");
    let ran = Ran::of(&qoder_testkit::Sandbox::finish(run));
    assert_eq!(ran.said(), "done", "{ran:#?}");
    let results = ran.tool_results().replace("\\\\\\\"", "'").replace("\\\"", "'");
    (stage, results)
}

#[test]
fn an_elicitation_hook_accepts_with_content_where_nobody_answers() {
    let accept = json!({ "action": "accept", "content": { "name": "Ada" } });
    let command = format!("{NOTE}; {}", print(&specific("Elicitation", &accept)));
    let (stage, results) = asked(&json!({ "Elicitation": [entry(&command)] }));
    assert!(results.contains("'accept'") && results.contains("Ada"), "{results}");
    let input = &stage.seen()[0];
    assert_eq!(
        (&input["mcp_server_name"], &input["message"]),
        (&json!("asker"), &json!("Your name?")),
        "{input:#}"
    );
    assert!(input["requested_schema"].is_object() && input["mode"] == "form", "{input:#}");
}

#[test]
fn exit_code_2_of_elicitation_declines() {
    let (_, results) = asked(&json!({ "Elicitation": [entry("exit 2")] }));
    assert!(results.contains("'decline'"), "{results}");
}

#[test]
fn without_anybody_the_question_is_cancelled_and_its_result_is_told() {
    let (stage, results) = asked(&json!({ "ElicitationResult": [entry(NOTE)] }));
    assert!(results.contains("'cancel'"), "{results}");
    assert_eq!(stage.seen()[0]["action"], "cancel");
}

#[test]
fn exit_code_2_of_elicitation_result_makes_an_accepted_answer_a_decline() {
    let accept = json!({ "action": "accept", "content": { "name": "Ada" } });
    let hooks = json!({
        "Elicitation": [entry(&print(&specific("Elicitation", &accept)))], "ElicitationResult": [entry("exit 2")],
    });
    let (_, results) = asked(&hooks);
    assert!(results.contains("'decline'") && !results.contains("Ada"), "{results}");
}

#[test]
fn notification_tells_of_questions_of_servers() {
    let (stage, _) = asked(&json!({ "Notification": [entry(NOTE)] }));
    let kinds: Vec<Value> = stage.seen().iter().map(|input| input["notification_type"].clone()).collect();
    assert!(
        kinds.contains(&json!("elicitation_dialog")) && kinds.contains(&json!("elicitation_response")),
        "{kinds:?}"
    );
}
