//! A call of an agent that waits: the agent ends its drive, the parent's turn waits with it, and an answer, from any process,
//! continues both from their logs.

use qoder_runtime::events::AnswerError;
use qoder_runtime::sessions::{FirstPrompt, OpenedSession};
use qoder_types::AskKind;
use serde_json::{Value, json};

use crate::hooks::barrier::without_files;
use crate::hooks::support::{Stage, text};
use crate::sessions::support::{
    PATIENCE, external_tools, kinds, leave_for, parking, to_the_end, until_it_waits,
};

fn of_child(mut reply: Value) -> Value {
    reply["when"] = json!({ "purpose": "subagent" });
    reply
}

fn of_parent(mut reply: Value) -> Value {
    reply["when"] = json!({ "purpose": "main" });
    reply
}

fn calls(calls: &[(&str, &str, Value)]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|(id, name, input)| json!({ "id": id, "name": name, "input": input })).collect();
    json!({ "toolCalls": calls })
}

fn agent(background: bool) -> Value {
    json!({ "prompt": "look around", "description": "look", "run_in_background": background })
}

fn write(name: &str) -> Value {
    json!({ "file_path": name, "content": "x" })
}

fn go() -> FirstPrompt {
    FirstPrompt::Text("go".to_owned())
}

/// A parent with one agent that writes a file and then answers.
fn family(background: bool) -> Stage {
    let mut stage = parking(json!([
        of_parent(calls(&[("call_agent", "Agent", agent(background))])),
        of_parent(text("parent done")),
        of_parent(text("parent heard")),
        of_child(calls(&[("call_write", "Write", write("a.txt"))])),
        of_child(text("child done")),
    ]));
    stage.options.allowed_tools = vec!["Agent".to_owned()];
    stage
}

#[tokio::test]
async fn an_agent_waits_and_another_process_answers_it() {
    is_answered_by_another_process(family(false)).await;
}

#[tokio::test]
async fn an_agent_of_a_session_in_any_store_waits_and_is_answered() {
    let mut stage = family(false);
    stage.store = Some(without_files(&stage));
    is_answered_by_another_process(stage).await;
}

async fn is_answered_by_another_process(stage: Stage) {
    let waiting = until_it_waits(&stage, go()).await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    let agent = waiting[0].agent_id.clone().unwrap();
    assert_eq!((waiting[0].tool_use_id.as_str(), waiting[0].kind), ("call_write", AskKind::Permission));
    assert!(!stage.path("a.txt").exists());
    // Without an answer it keeps waiting, and nothing is repeated.
    assert_eq!(until_it_waits(&stage, FirstPrompt::Continue).await[0].agent_id.as_ref(), Some(&agent));
    leave_for(
        &stage,
        json!({ "kind": "answer", "toolUseId": "call_write", "agentId": agent, "allow": true }),
    );
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("parent done"));
    assert!(stage.path("a.txt").exists());
    assert!(ran.results().contains("child done"), "{}", ran.results());
    assert_eq!(ran.outcomes(), ["completed"]);
    let (starts, ends) = (ran.of_type("task-start").len(), ran.of_type("task-end").len());
    assert_eq!((starts, ends), (1, 1), "one agent: {:?}", kinds(&ran));
    assert_eq!(ran.of_type("task-parked")[0]["calls"][0]["toolUseId"], "call_write");
}

#[tokio::test]
async fn a_denial_reaches_the_agent_and_it_continues() {
    let stage = family(false);
    let agent = until_it_waits(&stage, go()).await[0].agent_id.clone().unwrap();
    // The agent need not be named while it is the only one.
    let denial = json!({ "kind": "answer", "toolUseId": "call_write", "agentId": agent, "allow": false, "message": "no" });
    leave_for(&stage, denial);
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert!(!stage.path("a.txt").exists());
    assert!(ran.results().contains("child done"), "{}", ran.results());
}

#[tokio::test]
async fn several_agents_wait_together_and_are_answered_one_by_one() {
    let mut stage = parking(json!([
        of_parent(calls(&[("call_a", "Agent", agent(false)), ("call_b", "Agent", agent(false))])),
        of_parent(text("parent done")),
        of_child(calls(&[("call_write", "Write", write("a.txt"))])),
        of_child(text("child done")),
    ]));
    stage.options.allowed_tools = vec!["Agent".to_owned()];
    let waiting = until_it_waits(&stage, go()).await;
    let agents: Vec<String> = waiting.iter().filter_map(|call| call.agent_id.clone()).collect();
    assert_eq!(agents.len(), 2, "{waiting:?}");
    let allow = |agent: &str| {
        leave_for(
            &stage,
            json!({ "kind": "answer", "toolUseId": "call_write", "agentId": agent, "allow": true }),
        );
    };
    allow(&agents[0]);
    let left = until_it_waits(&stage, FirstPrompt::Continue).await;
    let left: Vec<Option<String>> = left.into_iter().map(|call| call.agent_id).collect();
    assert_eq!(left, [Some(agents[1].clone())]);
    allow(&agents[1]);
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert_eq!(ran.outcomes(), ["completed", "completed"]);
    assert_eq!(ran.of_type("task-start").len(), 2);
}

#[tokio::test]
async fn an_agent_in_the_background_waits_after_the_turn_and_continues() {
    let stage = family(true);
    let waiting = until_it_waits(&stage, go()).await;
    let agent = waiting[0].agent_id.clone().unwrap();
    leave_for(
        &stage,
        json!({ "kind": "answer", "toolUseId": "call_write", "agentId": agent, "allow": true }),
    );
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert!(stage.path("a.txt").exists());
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("parent heard"));
    assert!(ran.said("child done"), "{:?}", ran.conversation);
    assert_eq!(ran.of_type("task-end")[0]["status"], "completed");
    assert_eq!(ran.of_type("task-start").len(), 1);
}

#[tokio::test]
async fn an_answer_for_an_agent_in_the_background_wakes_a_session_that_is_idle() {
    let stage = family(true);
    let agent = until_it_waits(&stage, go()).await[0].agent_id.clone().unwrap();
    let (OpenedSession { handle, attachment }, heard) = stage.open(FirstPrompt::FromHost);
    let action = qoder_protocol::ActionId { agent_id: Some(agent), tool_use_id: "call_write".to_owned() };
    let allow = qoder_protocol::Answer { allow: true, ..qoder_protocol::Answer::default() };
    // The agent may be asking again at this very moment.
    let answered = async {
        while handle.answer(&action, allow.clone()).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.unwrap();
    let finished = handle.finished();
    drop(handle);
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    drop(attachment);
    assert!(finished.take_error().is_none());
    let ran = stage.ran(&finished, heard);
    assert!(stage.path("a.txt").exists());
    assert_eq!(ran.end.unwrap().result.as_deref(), Some("parent heard"));
}

#[tokio::test]
async fn a_call_of_an_agent_that_runs_outside_is_answered_by_its_result() {
    let mut stage = parking(json!([
        of_parent(calls(&[("call_agent", "Agent", agent(false))])),
        of_parent(text("parent done")),
        of_child(calls(&[("call_book", "book_flight", json!({ "to": "Oslo" }))])),
        of_child(text("child done")),
    ]));
    // The posture does not matter to it.
    stage.options.settings = None;
    stage.options.allowed_tools = vec!["Agent".to_owned()];
    stage.options.external_tools = external_tools();
    let waiting = until_it_waits(&stage, go()).await;
    assert_eq!(waiting[0].kind, AskKind::External);
    let agent = waiting[0].agent_id.clone().unwrap();
    leave_for(
        &stage,
        json!({ "kind": "result", "toolUseId": "call_book", "agentId": agent, "content": "seat 4A" }),
    );
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("parent done"));
    let log = stage.paths().agent(&agent).log;
    let child = std::fs::read_to_string(log).unwrap();
    assert!(child.contains("seat 4A") && !child.contains("tool-start"), "{child}");
}

#[tokio::test]
async fn an_attached_answerer_is_asked_and_nothing_waits() {
    let stage = family(false).answering(true);
    let (OpenedSession { handle, attachment }, heard) = stage.open(go());
    let finished = handle.finished();
    drop(handle);
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    drop(attachment);
    let ran = stage.ran(&finished, heard);
    assert!(stage.path("a.txt").exists());
    assert!(ran.of_type("task-parked").is_empty());
}

#[tokio::test]
async fn a_new_prompt_closes_the_turn_and_ends_the_agent() {
    let stage = family(false);
    let agent = until_it_waits(&stage, go()).await[0].agent_id.clone().unwrap();
    let ran = to_the_end(&stage, FirstPrompt::Text("something else".to_owned())).await;
    assert_eq!(ran.of_type("task-end")[0]["taskId"], json!(agent));
    let (OpenedSession { handle, attachment }, _) = stage.open(FirstPrompt::FromHost);
    let action = qoder_protocol::ActionId { agent_id: Some(agent), tool_use_id: "call_write".to_owned() };
    let late = handle.answer(&action, qoder_protocol::Answer::denial("late")).await;
    assert_eq!(late, Err(AnswerError::NotPending));
    drop((handle, attachment));
}
