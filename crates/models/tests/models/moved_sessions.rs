//! A conversation that moves between wires and providers in every order: each request is one that the new side takes, and
//! what cannot be carried over is reported.

use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role, ToolResultContent};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::support::{Server, Step, ask, events, message, request, user};

const STYLES: [&str; 3] = ["anthropic", "openai", "openai-responses"];

/// A reply with reasoning and a call, as each wire sends it.
fn reply(style: &str, turn: usize) -> Vec<Step> {
    let (id, arguments) = (format!("call.{turn}:0"), r#"{"command":"ls"}"#);
    events(&match style {
        "anthropic" => vec![
            json!({"type": "message_start", "message": {"id": "m", "model": "x"}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "a"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
        "openai" => vec![
            json!({"choices": [{"delta": {"reasoning_content": "b"}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": id,
                "function": {"name": "Bash", "arguments": arguments}}]}, "finish_reason": "tool_calls"}]}),
        ],
        _ => vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs",
                "summary": [{"type": "summary_text", "text": "c"}], "encrypted_content": "zzz"}}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "function_call",
                "call_id": id, "name": "Bash", "arguments": arguments}}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    })
}

fn image() -> ContentBlock {
    ContentBlock::Image {
        source: ImageSource::Base64 { media_type: "image/png".into(), data: "AAAA".into() },
    }
}

/// Ids of calls and of results in the order they are sent.
fn ids(style: &str, body: &Value) -> (Vec<String>, Vec<String>) {
    let list = if style == "openai-responses" { &body["input"] } else { &body["messages"] };
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for entry in list.as_array().unwrap() {
        match style {
            "anthropic" => {
                for block in entry["content"].as_array().into_iter().flatten() {
                    match block["type"].as_str().unwrap() {
                        "tool_use" => calls.push(text(&block["id"])),
                        "tool_result" => results.push(text(&block["tool_use_id"])),
                        _ => {}
                    }
                }
            }
            "openai" => {
                calls.extend(
                    entry["tool_calls"].as_array().into_iter().flatten().map(|call| text(&call["id"])),
                );
                results.extend(entry.get("tool_call_id").map(text));
            }
            _ => match entry["type"].as_str().unwrap() {
                "function_call" => calls.push(text(&entry["call_id"])),
                "function_call_output" => results.push(text(&entry["call_id"])),
                _ => {}
            },
        }
    }
    (calls, results)
}

#[tokio::test]
async fn every_order_of_wires_keeps_calls_and_results_together() {
    for first in STYLES {
        for second in STYLES {
            for third in STYLES {
                let order = [first, second, third, first];
                let answers = order.iter().enumerate().map(|(turn, style)| reply(style, turn)).collect();
                let server = Server::start(answers).await;
                let mut messages = vec![user("start")];
                for (turn, style) in order.into_iter().enumerate() {
                    let model = resolve(&server.styled(style, "m")).unwrap();
                    let told = ask(&model, request(messages.clone())).await;
                    let mut content = told.reply().content.clone();
                    // What a log keeps is JSON.
                    content = serde_json::from_str(&serde_json::to_string(&content).unwrap()).unwrap();
                    let id = content.iter().find_map(|block| match block {
                        ContentBlock::ToolUse { id, .. } => Some(id.clone()),
                        _ => None,
                    });
                    messages.push(message(Role::Assistant, content));
                    let result = ContentBlock::ToolResult {
                        tool_use_id: id.unwrap(),
                        content: ToolResultContent::Blocks(vec![ContentBlock::text("out"), image()]),
                        is_error: false,
                    };
                    messages.push(message(Role::User, vec![result]));
                    let body = server.requests()[turn].json();
                    let (calls, results) = ids(style, &body);
                    assert_eq!((calls.len(), &calls), (turn, &results), "{order:?} {turn}: {body}");
                    let text = body.to_string();
                    assert!(
                        !text.contains("chat:") && !text.contains("responses:"),
                        "{order:?} {turn}: {text}"
                    );
                    if style == "anthropic" {
                        assert!(!text.contains("zzz"), "{text}");
                    } else {
                        assert!(!text.contains("c2ln"), "{text}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn what_the_new_side_does_not_take_is_reported_once() {
    let answers = vec![reply("openai", 0), reply("openai", 1), reply("openai", 2)];
    let server = Server::start(answers).await;
    let mut options: ModelOptions = server.styled("openai", "m");
    options.compat = json!({"images": "none"});
    let model = resolve(&options).unwrap();
    let thinking = ContentBlock::Thinking { thinking: "hm".into(), signature: "c2ln".into() };
    let mut messages = vec![
        message(Role::User, vec![ContentBlock::text("look"), image()]),
        message(Role::Assistant, vec![thinking, ContentBlock::text("seen")]),
        user("more"),
    ];
    let told = ask(&model, request(messages.clone())).await;
    assert_eq!(told.notices.len(), 1, "{:?}", told.notices);
    assert!(
        told.notices[0].contains("1 block of reasoning") && told.notices[0].contains("1 image"),
        "{:?}",
        told.notices
    );
    let sent = server.requests()[0].json();
    assert!(sent.to_string().contains("does not take images"));
    messages.push(message(Role::Assistant, vec![ContentBlock::text("a")]));
    messages.push(user("b"));
    assert!(ask(&model, request(messages)).await.notices.is_empty());
}

#[tokio::test]
async fn after_a_failed_turn_roles_alternate_and_no_message_is_empty() {
    for style in STYLES {
        let server = Server::start(vec![reply(style, 0)]).await;
        let mut options = server.styled(style, "m");
        options.compat = json!({"rolesAlternate": true});
        let model = resolve(&options).unwrap();
        let empty = Arc::new(qoder_core::ports::PromptMessage::new(Message {
            role: Role::Assistant,
            content: MessageContent::Blocks(vec![ContentBlock::text("")]),
        }));
        let foreign = message(
            Role::Assistant,
            vec![ContentBlock::Thinking { thinking: "x".into(), signature: "other:".into() }],
        );
        let mut asked = request(vec![user("first"), empty, user("again"), user("once more")]);
        if style != "anthropic" {
            asked.messages.insert(3, foreign);
        }
        ask(&model, asked).await.reply();
        let body = server.requests()[0].json();
        let list = body.get("messages").or_else(|| body.get("input")).unwrap().as_array().unwrap().clone();
        let users: Vec<&Value> = list.iter().filter(|entry| entry["role"] == "user").collect();
        assert_eq!(users.len(), 1, "{style}: {body}");
        for word in ["first", "again", "once more"] {
            assert!(users[0].to_string().contains(word), "{style}: {body}");
        }
    }
}

// https://docs.claude.com/en/api/messages and https://github.com/vllm-project/vllm/issues/6862, in the words of both.
#[tokio::test]
async fn a_server_that_demands_alternation_is_obeyed_after_its_first_refusal() {
    for (style, words) in [
        (
            "anthropic",
            "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row",
        ),
        (
            "openai-responses",
            "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        ),
    ] {
        let refused = crate::support::status(400, &[], &json!({"error": {"message": words}}).to_string());
        let server = Server::start(vec![refused, reply(style, 0)]).await;
        let told =
            ask(&resolve(&server.styled(style, "m")).unwrap(), request(vec![user("a"), user("b")])).await;
        told.reply();
        assert!(told.notices[0].contains("\"rolesAlternate\":true"), "{:?}", told.notices);
        let body = server.requests()[1].json();
        let list = body.get("messages").or_else(|| body.get("input")).unwrap().as_array().unwrap().clone();
        assert_eq!(list.len(), 1, "{style}: {body}");
    }
}
