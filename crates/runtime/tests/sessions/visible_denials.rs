//! A tool that is denied and stays visible: the model sees it, and each call is answered with the denial. An ordinary rule that
//! denies a whole tool still hides it.

use qoder_runtime::sessions::FirstPrompt;
use serde_json::json;

use crate::hooks::support::{Ran, Stage, call, text};
use crate::sessions::support::to_the_end;

async fn ran(visible: &[&str], hidden: &[&str]) -> Ran {
    let replies = json!([call("Write", json!({ "file_path": "a.txt", "content": "x" })), text("done")]);
    let mut stage = Stage::new(replies).rules(&["Write"], hidden);
    stage.options.disallowed_visible_tools = visible.iter().map(|name| (*name).to_owned()).collect();
    let ran = to_the_end(&stage, FirstPrompt::Text("go".to_owned())).await;
    assert!(!stage.path("a.txt").exists());
    ran
}

fn sees_write(ran: &Ran) -> bool {
    let tools = ran.of_type("epoch")[0]["tools"].as_array().unwrap().clone();
    tools.iter().any(|tool| tool["name"] == "Write")
}

#[tokio::test]
async fn the_model_sees_the_tool_and_reads_the_denial() {
    let ran = ran(&["Write"], &[]).await;
    assert!(sees_write(&ran));
    assert_eq!(ran.outcomes(), ["denied"]);
    let decision = ran.decision();
    assert_eq!((&decision["behavior"], &decision["layer"]), (&json!("deny"), &json!("rule")));
}

#[tokio::test]
async fn an_ordinary_rule_hides_the_tool_even_beside_a_visible_one() {
    for visible in [&["Write"][..], &[]] {
        let ran = ran(visible, &["Write"]).await;
        assert!(!sees_write(&ran));
        assert!(ran.results().contains("There is no tool named Write"), "{}", ran.results());
    }
}
