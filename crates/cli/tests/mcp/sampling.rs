//! A server that asks the session's model: refused and not declared unless its description says `sampling`; then the
//! reply reaches the server, and what it cost is on record.

use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::mcp::support::{bodies, everything, model, offered, results_in, trusted, turn};

const TOOL: &str = "mcp__all__trigger-sampling-request";

fn settings(sampling: bool) -> Value {
    let mut server = everything();
    server["sampling"] = json!(sampling);
    json!({ "mcpServers": { "all": server }, "permissions": { "allow": ["mcp__all"] } })
}

#[test]
fn a_server_that_may_gets_a_reply_of_the_model() {
    let sandbox = trusted(&settings(true));
    let server = ScriptedServer::start(Script::list(vec![
        Reply::tool(TOOL, json!({ "prompt": "Name a colour.", "maxTokens": 20 })),
        Reply::text("Heliotrope."),
        Reply::text("done"),
    ]));
    let ran = turn(&sandbox, &server, &["go"]);
    let requests = bodies(&server);
    assert_eq!(requests.len(), 3, "{}", ran.stderr);
    assert!(offered(&requests[0]).contains(&TOOL.to_owned()));
    let asked = requests[1]["messages"].to_string();
    assert!(asked.contains("Name a colour.") && offered(&requests[1]).is_empty(), "{}", requests[1]);
    assert_eq!(requests[1]["max_tokens"], 20);
    let (told, failed) = results_in(&requests[2])[0].clone();
    assert!(!failed && told.to_string().contains("Heliotrope."), "{told}");
    assert_eq!(ran.result()["result"], "done");
}

#[test]
fn others_are_not_told_that_there_is_a_model() {
    let sandbox = trusted(&settings(false));
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["go"]).ok();
    assert!(!offered(&bodies(&server)[0]).contains(&TOOL.to_owned()));
}
