//! Calls that run outside the runtime: they wait without rules, mode or timeout until their result is brought, by a handle or
//! by another process, and the first result counts.

use qoder_protocol::{ActionId, Answer};
use qoder_runtime::events::AnswerError;
use qoder_runtime::sessions::{FirstPrompt, OpenedSession};
use qoder_types::{
    Actor, AskKind, ContentBlock, ExternalResult, ImageSource, PermissionMode, ToolResultContent,
};
use serde_json::json;

use crate::hooks::support::{Stage, call, text};
use crate::sessions::support::{PATIENCE, booking, kinds, leave_for, question, to_the_end, until_it_waits};

fn result(content: &str) -> Answer {
    let content = ToolResultContent::Text(content.to_owned());
    Answer::of_result(ExternalResult { content, is_error: false }, Actor::Named("client".to_owned()))
}

fn call_1() -> ActionId {
    ActionId::main("call_1")
}

fn go() -> FirstPrompt {
    FirstPrompt::Text("go".to_owned())
}

#[tokio::test]
async fn a_call_waits_without_an_answerer_and_another_process_brings_its_result() {
    let stage = booking();
    let waiting = until_it_waits(&stage, go()).await;
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].kind, waiting[0].tool_use_id.as_str()), (AskKind::External, "call_1"));
    // It keeps waiting in any other process.
    until_it_waits(&stage, FirstPrompt::Continue).await;
    let mut wrong = leave_for(&stage, json!({ "kind": "answer", "toolUseId": "call_1", "allow": true }));
    let mut ticket =
        leave_for(&stage, json!({ "kind": "result", "toolUseId": "call_1", "content": "seat 4A" }));
    let ran = to_the_end(&stage, FirstPrompt::Continue).await;
    assert_eq!(ran.end.as_ref().unwrap().result.as_deref(), Some("booked"));
    let refused = wrong.look().unwrap();
    assert_eq!(refused.details["code"], "answer_wrong_kind", "{}", refused.message);
    assert_eq!(serde_json::to_value(ticket.look().unwrap().outcome).unwrap(), "accepted");
    assert!(ran.results().contains("seat 4A"), "{}", ran.results());
    assert_eq!(ran.outcomes(), ["completed"]);
    let decision = ran.decision();
    assert_eq!(
        (&decision["behavior"], &decision["answered_by"]),
        (&json!("allow"), &json!(null)),
        "{decision}"
    );
    assert_eq!(decision["answeredBy"], "worker-7");
    assert_eq!(ran.of_type("permission-ask").len(), 1, "asked once");
    assert_eq!(ran.of_type("permission-ask")[0]["kind"], "external");
    assert!(!kinds(&ran).contains(&"tool-start"), "nothing ran here: {:?}", kinds(&ran));
}

#[tokio::test]
async fn no_rule_and_no_mode_applies_to_it() {
    for mode in [PermissionMode::DontAsk, PermissionMode::Plan, PermissionMode::BypassPermissions] {
        let mut stage = booking().rules(&[], &["book_flight"]);
        stage.options.permission_mode = Some(mode);
        assert_eq!(until_it_waits(&stage, go()).await[0].kind, AskKind::External, "{mode:?}");
    }
}

#[tokio::test]
async fn a_handle_brings_blocks_and_the_first_result_counts() {
    // The attached answerer knows allow and deny alone; the question stays open.
    let stage = booking().answering(true);
    let (OpenedSession { handle, attachment }, heard) = stage.open(go());
    let asked = question(&handle, AskKind::External).await;
    assert_eq!((asked.tool_name.as_str(), &asked.input), ("book_flight", &json!({ "to": "Oslo" })));
    let allow = Answer { allow: true, ..Answer::default() };
    let refused = handle.answer(&call_1(), allow).await;
    assert_eq!(refused, Err(AnswerError::WrongKind(AskKind::External)));
    let blocks = |blocks| {
        let result = ExternalResult { content: ToolResultContent::Blocks(blocks), is_error: true };
        Answer::of_result(result, Actor::Named("client".to_owned()))
    };
    let thinking = ContentBlock::Thinking { thinking: "hm".to_owned(), signature: String::new() };
    let refused = handle.answer(&call_1(), blocks(vec![thinking])).await;
    assert_eq!(refused, Err(AnswerError::UnusableBlock("thinking")));
    let source = ImageSource::Base64 { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let picture = vec![ContentBlock::text("no seat left"), ContentBlock::Image { source }];
    handle.answer(&call_1(), blocks(picture)).await.unwrap();
    let late = handle.answer(&call_1(), result("seat 4A")).await;
    assert!(
        matches!(late, Err(AnswerError::Lost(_) | AnswerError::NotPending | AnswerError::Withdrawn)),
        "{late:?}"
    );
    let finished = handle.finished();
    drop((handle, attachment));
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    assert!(finished.take_error().is_none());
    let ran = stage.ran(&finished, heard);
    assert_eq!(ran.outcomes(), ["failed"]);
    let results = ran.results();
    for part in ["no seat left", "image/png", "\"is_error\":true"] {
        assert!(results.contains(part), "{part}: {results}");
    }
}

#[tokio::test]
async fn a_question_for_permission_takes_no_result() {
    let stage = Stage::new(json!([call("Write", json!({ "file_path": "a", "content": "" })), text("done")]));
    let mut stage = stage;
    stage.options.settings = Some(json!({ "permissions": { "unattended": "park" } }).to_string());
    until_it_waits(&stage, go()).await;
    let mut ticket = leave_for(&stage, json!({ "kind": "result", "toolUseId": "call_1", "content": "no" }));
    until_it_waits(&stage, FirstPrompt::Continue).await;
    let reply = ticket.look().unwrap();
    assert_eq!(reply.details["code"], "answer_wrong_kind", "{}", reply.message);
}

#[tokio::test]
async fn an_interrupt_closes_it_like_any_open_call() {
    let stage = booking().answering(true);
    let (OpenedSession { handle, attachment }, heard) = stage.open(go());
    question(&handle, AskKind::External).await;
    handle.interrupt(Actor::Host).await.unwrap();
    let finished = handle.finished();
    drop((handle, attachment));
    let finished = tokio::time::timeout(PATIENCE, finished).await.unwrap();
    let ran = stage.ran(&finished, heard);
    assert_eq!(ran.outcomes(), ["not_run"]);
    assert!(ran.end.unwrap().is_error);
}

#[tokio::test]
async fn a_host_that_is_about_to_speak_does_not_close_it() {
    let stage = booking();
    until_it_waits(&stage, go()).await;
    until_it_waits(&stage, FirstPrompt::FromHost).await;
    leave_for(&stage, json!({ "kind": "result", "toolUseId": "call_1", "content": "seat 4A" }));
    let ran = to_the_end(&stage, FirstPrompt::FromHost).await;
    assert!(ran.results().contains("seat 4A"), "{}", ran.results());
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_the_models_to_repair() {
    let mut stage = Stage::new(json!([call("book_flight", json!({})), text("sorry")]));
    stage.options.external_tools = crate::sessions::support::external_tools();
    let ran = to_the_end(&stage, go()).await;
    assert!(ran.results().contains("do not fit its schema"), "{}", ran.results());
}
