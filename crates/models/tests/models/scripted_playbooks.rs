//! Playbooks: matching by turn and content, use once and repeat, errors with retries,
//! partial pieces, resuming in another process, and what is said when nothing
//! matches.

use std::sync::Arc;

use qoder_core::ports::{Model, PromptMessage};
use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, ModelFailureClass, Purpose, Role, StopReason, ToolResultContent, Usage};
use serde_json::{Value, json};

use crate::support::{Collected, ask, assert_well_ordered, message, request, user};

fn options(playbook: &Value) -> (ModelOptions, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("playbook.json");
    std::fs::write(&path, playbook.to_string()).unwrap();
    let mut options =
        ModelOptions { model: Some(format!("scripted:{}", path.display())), ..ModelOptions::default() };
    options.environment.insert("QODER_RETRY_BASE_MS".into(), "1".into());
    (options, folder)
}

fn model(playbook: &Value) -> Arc<dyn Model> {
    resolve(&options(playbook).0).unwrap()
}

async fn say(model: &Arc<dyn Model>, messages: &mut Vec<Arc<PromptMessage>>) -> Collected {
    let told = ask(model, request(messages.clone())).await;
    messages.push(message(Role::Assistant, told.reply().content.clone()));
    told
}

fn result(id: &str, text: &str) -> Arc<PromptMessage> {
    message(
        Role::User,
        vec![ContentBlock::ToolResult {
            tool_use_id: id.into(),
            content: ToolResultContent::Text(text.into()),
            is_error: false,
        }],
    )
}

fn text_of(told: &Collected) -> String {
    match &told.reply().content[..] {
        [ContentBlock::Text { text }] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

#[tokio::test]
async fn replies_match_by_turn_prompt_and_result() {
    let playbook = json!({"replies": [
        {"when": {"lastToolResultContains": "42"}, "text": "it was 42"},
        {"when": {"contains": "add"}, "thinking": "hm", "text": "let me", "toolCalls": [
            {"name": "Bash", "input": {"command": "echo 42"}, "id": "t1"}, {"name": "Read"}]},
        {"when": {"turn": 3}, "text": "third", "stopReason": "max_tokens",
            "usage": {"input_tokens": 5, "output_tokens": 6}},
        {"text": "anything", "repeat": true},
    ]});
    let model = model(&playbook);
    let mut messages = vec![user("please add")];
    let first = say(&model, &mut messages).await;
    assert_eq!(first.reply().stop_reason, StopReason::ToolUse);
    assert_eq!(first.reply().content.len(), 4);
    assert_well_ordered(&first.partials);
    messages.push(result("t1", "42"));
    assert_eq!(text_of(&say(&model, &mut messages).await), "it was 42");
    messages.push(user("continue"));
    let third = say(&model, &mut messages).await;
    assert_eq!(text_of(&third), "third");
    assert_eq!(third.reply().stop_reason, StopReason::MaxTokens);
    assert_eq!(third.reply().usage, Usage { input_tokens: 5, output_tokens: 6, ..Usage::default() });
    for _ in 0..2 {
        messages.push(user("please add"));
        assert_eq!(text_of(&say(&model, &mut messages).await), "anything");
    }
}

#[tokio::test]
async fn a_resumed_session_goes_on_at_the_right_place() {
    let playbook = json!({"replies": [{"text": "one"}, {"text": "two"}, {"text": "three"}]});
    let mut messages = vec![user("a")];
    for expected in ["one", "two", "three"] {
        // A new model each time acts like a new process.
        assert_eq!(text_of(&say(&model(&playbook), &mut messages).await), expected);
        messages.push(user("next"));
    }
    let told = ask(&model(&playbook), request(messages)).await;
    let failure = told.failure();
    assert_eq!(failure.class, ModelFailureClass::Configuration);
    for expected in ["turn 4", "`next`", "[1] always (used)"] {
        assert!(failure.message.contains(expected), "{expected} is missing in {}", failure.message);
    }
}

#[tokio::test]
async fn the_same_request_gets_the_same_reply() {
    let model = model(&json!([{"text": "one"}, {"text": "two"}]));
    let messages = vec![user("a")];
    for _ in 0..3 {
        assert_eq!(text_of(&ask(&model, request(messages.clone())).await), "one");
    }
}

#[tokio::test]
async fn errors_take_the_path_of_an_endpoints_errors() {
    let playbook = json!({"replies": [
        {"error": {"status": 529, "message": "busy", "times": 2}, "text": "at last"},
        {"when": {"turn": 2}, "error": {"status": 429, "times": 1, "retryAfterMs": 3}},
        {"when": {"turn": 2}, "text": "after the limit"},
        {"when": {"turn": 3}, "error": {"status": 400, "message": "prompt is too long"}},
    ]});
    let model = model(&playbook);
    let mut messages = vec![user("a")];
    let first = say(&model, &mut messages).await;
    assert_eq!(text_of(&first), "at last");
    assert_eq!(first.retries.len(), 2);
    assert_eq!((first.retries[0].3.class, first.retries[0].1), (ModelFailureClass::Overloaded, 9));
    messages.push(user("b"));
    let second = say(&model, &mut messages).await;
    assert_eq!(text_of(&second), "after the limit");
    assert_eq!(second.retries.iter().map(|retry| retry.2).collect::<Vec<_>>(), [3]);
    messages.push(user("c"));
    let third = ask(&model, request(messages)).await;
    assert_eq!(third.failure().class, ModelFailureClass::ContextTooLong);
}

#[tokio::test]
async fn text_comes_in_as_many_pieces_as_asked_and_delays_hold() {
    let model = model(&json!([{"text": "héllo wörld, in pieces", "chunks": 5, "delayMs": 1}]));
    let told = ask(&model, request(vec![user("a")])).await;
    assert_eq!(told.partial_text(), "héllo wörld, in pieces");
    let deltas = told.kinds().iter().filter(|kind| **kind == "content_block_delta").count();
    assert_eq!(deltas, 5);
    let mut quiet = request(vec![user("a")]);
    quiet.partial = false;
    assert!(ask(&model, quiet).await.partials.is_empty());
}

#[tokio::test]
async fn compacting_does_not_use_up_replies() {
    let playbook = json!({"replies": [{"text": "one"}, {"when": {"purpose": "compact"}, "text": "short"}]});
    let model = model(&playbook);
    let mut compact = request(vec![user("a")]);
    compact.purpose = Purpose::Compact;
    assert_eq!(text_of(&ask(&model, compact.clone()).await), "short");
    assert_eq!(text_of(&ask(&model, request(vec![user("a")])).await), "one");
    let plain = self::model(&json!([{"text": "one"}]));
    assert!(text_of(&ask(&plain, compact).await).contains("The user said: a"));
}

#[tokio::test]
async fn windows_and_prices_come_from_the_settings() {
    let (mut options, _folder) = options(&json!([{"text": "x", "usage": {"input_tokens": 1_000_000}}]));
    options.settings = serde_json::from_value(json!({"prices": {"scripted": {"input": 2.5}}})).unwrap();
    options.context_window = Some(9000);
    let model = resolve(&options).unwrap();
    assert_eq!(model.facts().context_window, 9000);
    let told = ask(&model, request(vec![user("a")])).await;
    assert!((told.reply().cost_usd - 2.5).abs() < 1e-9);
}

#[tokio::test]
async fn a_byte_order_mark_in_front_is_no_part_of_a_playbook() {
    let (options, folder) = options(&json!([]));
    for playbook in ["\u{feff}[{\"text\": \"yes\"}]", "\u{feff}{\"text\": \"yes\"}\n{\"text\": \"no\"}"] {
        std::fs::write(folder.path().join("playbook.json"), playbook).unwrap();
        let told = ask(&resolve(&options).unwrap(), request(vec![user("a")])).await;
        assert_eq!(text_of(&told), "yes");
    }
}
