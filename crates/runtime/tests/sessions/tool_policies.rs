//! What a program has decided about each tool: by its exact name, beside rules and mode, and only to tighten them.

use qoder_runtime::sessions::FirstPrompt;
use qoder_types::server::ToolPolicy;
use qoder_types::workspace::Isolation;
use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, text};
use crate::sessions::support::{leave_for, to_the_end, until_it_waits};

fn stage(replies: Value, policies: &[(&str, ToolPolicy)]) -> Stage {
    let mut stage = Stage::new(replies).rules(&["Read", "Write", "Edit", "Bash"], &[]);
    stage.options.settings = Some(json!({ "permissions": { "unattended": "park" } }).to_string());
    stage.options.isolation = Some(Isolation::new(vec![stage.options.cwd.clone()]));
    stage.options.tool_policies.tools =
        policies.iter().map(|(name, policy)| ((*name).to_owned(), *policy)).collect();
    stage
}

fn go() -> FirstPrompt {
    FirstPrompt::Text("go".to_owned())
}

fn write() -> Value {
    call("Write", json!({ "file_path": "a.txt", "content": "x" }))
}

#[tokio::test]
async fn always_ask_of_one_tool_is_no_question_of_another() {
    // A rule for Edit would cover Write and what commands change, too.
    let edit = [("Edit", ToolPolicy::AlwaysAsk), ("Read", ToolPolicy::AlwaysDeny)];
    let bash = call("Bash", json!({ "command": "echo y > b.txt && cat b.txt" }));
    for replies in [json!([write(), text("done")]), json!([bash, text("done")])] {
        let ran = to_the_end(&stage(replies, &edit), go()).await;
        assert_eq!(ran.outcomes(), ["completed"], "{}", ran.results());
    }
}

#[tokio::test]
async fn always_deny_is_a_result_that_names_the_policy() {
    let ran =
        to_the_end(&stage(json!([write(), text("done")]), &[("Write", ToolPolicy::AlwaysDeny)]), go()).await;
    assert_eq!(ran.outcomes(), ["denied"]);
    assert!(ran.results().contains("always_deny"), "{}", ran.results());
}

#[tokio::test]
async fn an_answer_holds_although_an_earlier_call_has_moved_the_session() {
    let both = json!([{ "toolCalls": [
        { "id": "call_1", "name": "Bash", "input": { "command": "mkdir -p sub && cd sub" } },
        { "id": "call_2", "name": "Write", "input": { "file_path": "a.txt", "content": "x" } },
    ] }, text("done")]);
    let stage = stage(both, &[("Write", ToolPolicy::AlwaysAsk)]);
    let waiting = until_it_waits(&stage, go()).await;
    let id = &waiting[0].tool_use_id;
    leave_for(&stage, json!({ "kind": "answer", "toolUseId": id, "allow": true }));
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert_eq!(ran.outcomes(), ["completed", "completed"], "{}", ran.results());
}

#[tokio::test]
async fn auto_without_a_classifier_asks() {
    let stage = stage(json!([write(), text("done")]), &[("Write", ToolPolicy::Auto)]);
    let waiting = until_it_waits(&stage, go()).await;
    assert_eq!(waiting[0].reason, "the policy of Write is auto");
}

#[tokio::test]
async fn auto_with_a_classifier_follows_its_clear_word_and_asks_otherwise() {
    for (judged, outcomes) in [
        ("{\"decision\": \"allow\", \"reason\": \"asked for\"}", &["completed"][..]),
        ("{\"decision\": \"deny\", \"reason\": \"risky\"}", &["denied"][..]),
        ("I cannot tell.", &[][..]),
    ] {
        let mut stage = stage(json!([write(), text("done")]), &[("Write", ToolPolicy::Auto)]);
        let judge = stage.folder().join("judge.json");
        let playbook = json!({ "replies": [{ "when": { "purpose": "classifier" }, "text": judged }] });
        std::fs::write(&judge, playbook.to_string()).unwrap();
        let settings = json!({
            "permissions": { "unattended": "park" },
            "autoMode": { "classifier": format!("scripted:{}", judge.display()) },
        });
        stage.options.settings = Some(settings.to_string());
        if outcomes.is_empty() {
            let waiting = until_it_waits(&stage, go()).await;
            assert!(waiting[0].reason.starts_with("the policy of Write is auto: "), "{}", waiting[0].reason);
        } else {
            let ran = to_the_end(&stage, go()).await;
            assert_eq!(ran.outcomes(), outcomes, "{judged}: {}", ran.results());
        }
    }
}
