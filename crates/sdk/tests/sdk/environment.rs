//! Variables of the options reach the commands of a session and what they start, as they would from a program that was
//! started with them. Keys do not.

use std::collections::BTreeMap;

use qoder_agent_sdk::query;

use crate::support::{Place, all, call_then_done, tool_results};
use serde_json::json;

#[tokio::test]
async fn commands_have_the_variables_of_the_options() {
    let place = Place::new();
    let command = r#"bash -c 'echo "[$GREETING] [$CARGO_PKG_NAME] [$ANTHROPIC_API_KEY] [$BASH_ENV] [$TOKEN_COPY]"'; fake 2>&1"#;
    let mut options = place
        .playing(&call_then_done("Bash", &json!({ "command": command })))
        .env("GREETING", "hello")
        .env("ANTHROPIC_API_KEY", "key-of-the-test")
        .env("TOKEN_COPY", "key-of-the-test")
        .env("BASH_ENV", "/nowhere/script")
        .env("BASH_FUNC_fake%%", "() { echo replaced; }")
        .allowed_tools(["Bash"]);
    // Set for tests of this package; taken away for its commands.
    options.env.insert("CARGO_PKG_NAME".to_owned(), None);
    let results = tool_results(&all(query("Go.", options).unwrap()).await);
    let text = &results[0].0;
    assert!(text.contains("[hello] [] [] [] []"), "{text}");
    assert!(!text.contains("replaced"), "{text}");
}

#[tokio::test]
async fn a_name_that_is_none_does_not_keep_commands_from_running() {
    let place = Place::new();
    let mut options =
        place.playing(&call_then_done("Bash", &json!({ "command": "echo runs" }))).allowed_tools(["Bash"]);
    options.env.extend(BTreeMap::from([
        ("BAD=NAME".to_owned(), Some("x".to_owned())),
        ("NUL".to_owned(), Some("a\0b".to_owned())),
    ]));
    let results = tool_results(&all(query("Go.", options).unwrap()).await);
    assert!(results[0].0.contains("runs") && !results[0].1, "{results:?}");
}
