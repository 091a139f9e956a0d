//! Prompts of a real server as commands: named at the start of a turn, replaced by what the server makes of them, and told
//! to the person when they cannot be made.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::mcp::support::{bodies, everything, model, trusted, turn};

fn sandbox() -> Sandbox {
    trusted(&json!({ "mcpServers": { "all": everything() } }))
}

/// The text of the last user message of the first request.
fn asked(sent: &Value) -> String {
    sent["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
}

#[test]
fn a_command_is_replaced_by_the_prompt_of_the_server() {
    let server = model(vec![Reply::text("sunny")]);
    let ran = turn(&sandbox(), &server, &["/mcp__all__args-prompt 'New York' \"the state\""]);
    assert_eq!(ran.result()["result"], "sunny", "{}", ran.stderr);
    let text = asked(&bodies(&server)[0]);
    assert!(text.contains("What's weather in New York, the state?"), "{text}");
    let commands = ran.init()["slash_commands"].clone();
    assert!(commands.as_array().unwrap().contains(&json!("mcp__all__args-prompt")), "{commands}");
}

#[test]
fn content_of_other_kinds_comes_along() {
    let server = model(vec![Reply::text("seen")]);
    let ran = turn(&sandbox(), &server, &["/mcp__all__resource-prompt Text 1"]);
    assert_eq!(ran.result()["result"], "seen", "{}", ran.stderr);
    let text = asked(&bodies(&server)[0]);
    assert!(text.contains("plaintext resource"), "{text}");
}

#[test]
fn a_command_that_cannot_be_made_is_told_and_no_model_is_asked() {
    for (command, told) in [
        ("/mcp__all__nothing", "There is no command /mcp__all__nothing. Commands of all: /mcp__all__"),
        ("/mcp__other__x", "There is no MCP server named `other`"),
        ("/mcp__all__args-prompt", "needs `city`. Usage: /mcp__all__args-prompt <city> [state]"),
    ] {
        let server = model(vec![Reply::text("never")]);
        let ran = turn(&sandbox(), &server, &[command]);
        let result = ran.result();
        assert_eq!((ran.code, &result["is_error"]), (1, &json!(true)), "{result}");
        assert!(result["errors"][0].as_str().unwrap().contains(told), "{result}");
        assert!(bodies(&server).is_empty(), "{command}");
    }
}

#[test]
fn without_servers_the_text_is_refused_too() {
    let server = model(vec![Reply::text("never")]);
    let ran = turn(&trusted(&json!({})), &server, &["/mcp__x__y z"]);
    assert!(
        ran.result()["errors"][0].as_str().unwrap().contains("There is no command /mcp__x__y"),
        "{ran:?}"
    );
    assert!(bodies(&server).is_empty());
}
