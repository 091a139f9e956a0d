//! Hooks bind agents too: their calls are shown with the agent's id, and their start and end are events.

use serde_json::{Value, json};

use crate::hooks::support::{SESSION, Stage, call, specific, text, verdict};

fn family(child: Value) -> Value {
    let mut replies = vec![call("Agent", json!({"prompt": "look around"})), text("done")];
    let Value::Array(children) = child else { panic!("the replies of a child are a list") };
    let children = children.into_iter().map(|mut reply| {
        reply["when"] = json!({"purpose": "subagent", "turn": 1});
        reply
    });
    replies.extend(children);
    Value::Array(replies)
}

fn write() -> Value {
    json!({"toolCalls": [{"id": "inner", "name": "Write", "input": {"file_path": "a.txt", "content": "x"}}]})
}

#[tokio::test]
async fn calls_of_agents_are_shown_and_denied() {
    let mut replies = family(json!([write()]));
    let mut last = text("I could not");
    last["when"] = json!({"purpose": "subagent", "turn": 2});
    replies.as_array_mut().unwrap().push(last);
    let mut stage = Stage::new(replies).rules(&["Agent", "Write"], &[]);
    let told = stage.hook("PreToolUse", Some("Write"), verdict("deny", "not for agents"));
    let ran = stage.run(&["go"]).await;
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["session_id"], SESSION);
    assert_eq!(told[0]["transcript_path"], stage.log());
    assert_eq!(told[0]["agent_id"].as_str().unwrap().len(), 32);
    assert_eq!(told[0]["agent_type"], "general-purpose");
    assert!(!stage.path("a.txt").exists());
    assert!(ran.results().contains("I could not"));
}

#[tokio::test]
async fn the_start_and_the_end_of_an_agent_are_events() {
    let mut stage = Stage::new(family(json!([text("found it")]))).rules(&["Agent"], &[]);
    let started = stage.hook("SubagentStart", Some("general-purpose"), json!({}));
    let ended = stage.hook("SubagentStop", None, json!({}));
    let stop = stage.hook("Stop", None, json!({}));
    let session = stage.hook("SessionStart", None, json!({}));
    let prompt = stage.hook("UserPromptSubmit", None, json!({}));
    stage.run(&["go"]).await;
    let (started, ended) = (started.lock().unwrap(), ended.lock().unwrap());
    assert_eq!((started.len(), ended.len()), (1, 1));
    assert_eq!(started[0]["agent_id"], ended[0]["agent_id"]);
    assert_eq!(ended[0]["stop_hook_active"], false);
    let log = ended[0]["agent_transcript_path"].as_str().unwrap();
    assert!(log.ends_with(".jsonl") && log.contains("subagents"), "{log}");
    let others = [stop, session, prompt].map(|told| told.lock().unwrap().len());
    assert_eq!(others, [1, 1, 1], "those are the main session's");
}

#[tokio::test]
async fn an_agent_can_be_made_to_go_on() {
    let mut replies = family(json!([text("half of it")]));
    let mut whole = text("all of it");
    whole["when"] = json!({"purpose": "subagent", "turn": 2});
    replies.as_array_mut().unwrap().push(whole);
    let mut stage = Stage::new(replies).rules(&["Agent"], &[]);
    stage.hook_by("SubagentStop", None, |input| {
        let active = input["stop_hook_active"] == Value::Bool(true);
        Ok(if active { json!({}) } else { json!({"decision": "block", "reason": "finish it"}) })
    });
    stage.hook("SubagentStart", None, specific("SubagentStart", json!({"additionalContext": "be thorough"})));
    let ran = stage.run(&["go"]).await;
    assert!(ran.results().contains("all of it"), "{}", ran.results());
}

#[tokio::test]
async fn continue_false_in_an_agent_ends_the_turn_of_the_session() {
    for (event, child) in [("SubagentStop", text("found it")), ("PreToolUse", write())] {
        let mut stage = Stage::new(family(json!([child]))).rules(&["Agent", "Write"], &[]);
        let matcher = (event == "PreToolUse").then_some("Write");
        stage.hook(event, matcher, json!({"continue": false, "stopReason": "that is enough"}));
        let ran = stage.run(&["go"]).await;
        let result = ran.result();
        assert_eq!(
            (&result["errors"], &result["error_code"]),
            (&json!(["that is enough"]), &json!(48_716)),
            "{event}"
        );
        assert_eq!(result["num_turns"], 1, "{event}: the session's model is not asked again");
        assert!(ran.results().contains("that is enough"), "{event}: {}", ran.results());
        assert!(!stage.path("a.txt").exists(), "{event}");
    }
}
