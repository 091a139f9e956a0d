//! What servers send otherwise, by profile, with the bytes as they send them. Each case names the public source.

use qoder_models::resolve;
use qoder_types::{ContentBlock, ModelFailureClass as Class};
use serde_json::{Value, json};

use crate::support::{Collected, Server, ask, events, request, status, user};

async fn told(profile: &str, sent: &[Value]) -> Collected {
    let server = Server::start(vec![events(sent)]).await;
    let mut options = server.styled("openai", "some-model");
    options.compat = json!(profile);
    let told = ask(&resolve(&options).unwrap(), request(vec![user("go")])).await;
    assert_eq!(server.requests().len(), 1, "{profile}: the reply is taken at once");
    told
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "fea45b", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": null,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish, "matched_stop": null}],
    })
}

fn thinking_of(blocks: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Thinking { thinking, .. } => Some(thinking.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect()
}

fn text_of(blocks: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => Some(text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect()
}

fn calls_of(blocks: &[ContentBlock]) -> Vec<(String, Value)> {
    let call = |block: &ContentBlock| match block {
        ContentBlock::ToolUse { name, input, .. } => Some((name.clone(), input.clone())),
        _ => None,
    };
    blocks.iter().filter_map(call).collect()
}

// https://github.com/sgl-project/sglang/pull/9657 shows deltas with `role`, `content` and `tool_calls` null beside the
// reasoning, and `matched_stop`.
#[tokio::test]
async fn sglang_sends_every_field_of_a_delta_also_as_null() {
    let delta = |field: &str, text: &str| {
        let mut delta = json!({"role": null, "content": null, "reasoning_content": null, "tool_calls": null});
        delta[field] = json!(text);
        chunk(&delta, None)
    };
    let told = told(
        "sglang",
        &[
            chunk(&json!({"role": "assistant", "content": ""}), None),
            delta("reasoning_content", "2+2"),
            delta("reasoning_content", "=4"),
            delta("content", "four"),
            chunk(&json!({"role": null, "content": null}), Some("stop")),
        ],
    )
    .await;
    let blocks = &told.reply().content;
    assert_eq!((thinking_of(blocks), text_of(blocks)), ("2+2=4".to_owned(), "four".to_owned()));
}

// https://github.com/sgl-project/sglang/pull/8417: a chunk with text has a finish reason, and another one follows.
#[tokio::test]
async fn sglang_ends_a_reply_twice() {
    let told = told(
        "sglang",
        &[
            chunk(&json!({"role": "assistant", "content": "one "}), None),
            chunk(&json!({"content": "two"}), Some("stop")),
            chunk(&json!({}), Some("stop")),
        ],
    )
    .await;
    assert_eq!(text_of(&told.reply().content), "one two");
}

// https://github.com/InternLM/lmdeploy/issues/3412 compares servers: SGLang sends parallel calls with the index 0 each,
// told apart by their ids, which every piece repeats; vLLM sends the id in the first piece and an empty one after it.
#[tokio::test]
async fn calls_that_share_an_index_are_told_apart_by_their_ids() {
    let piece = |id: &str, name: Option<&str>, arguments: &str| {
        chunk(
            &json!({"tool_calls": [{
                "index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
            }]}),
            None,
        )
    };
    let expected = [("Read".to_owned(), json!({"path": "a"})), ("Read".to_owned(), json!({"path": "b"}))];
    for (profile, ids) in [("sglang", ["0", "0", "1", "1"]), ("vllm", ["call-a", "", "call-b", ""])] {
        let told = told(
            profile,
            &[
                piece(ids[0], Some("Read"), ""),
                piece(ids[1], None, r#"{"path": "a"}"#),
                piece(ids[2], Some("Read"), ""),
                piece(ids[3], None, r#"{"path": "b"}"#),
                chunk(&json!({}), Some("tool_calls")),
            ],
        )
        .await;
        assert_eq!(calls_of(&told.reply().content), expected, "{profile}");
    }
}

// https://github.com/infiniflow/ragflow/pull/14957 reads the reasoning of Together from `delta.reasoning`;
// https://github.com/BerriAI/litellm/pull/38248 shows that it is not under `reasoning_content`.
#[tokio::test]
async fn together_sends_reasoning_under_its_own_name() {
    let told = told(
        "together",
        &[
            chunk(&json!({"role": "assistant", "content": "", "reasoning": "17*23"}), None),
            chunk(&json!({"role": "assistant", "content": "", "reasoning": " is 391"}), None),
            chunk(&json!({"role": "assistant", "content": "391", "reasoning": ""}), None),
            chunk(&json!({"role": "assistant", "content": ""}), Some("stop")),
        ],
    )
    .await;
    let blocks = &told.reply().content;
    assert_eq!((thinking_of(blocks), text_of(blocks)), ("17*23 is 391".to_owned(), "391".to_owned()));
}

async fn refused(profile: &str, refusal: &Value) -> Class {
    let refusal = refusal.to_string();
    let server = Server::start(vec![status(400, &[("content-type", "application/json")], &refusal)]).await;
    let mut options = server.styled("openai", "some-model");
    options.compat = json!(profile);
    ask(&resolve(&options).unwrap(), request(vec![user("go")])).await.failure().class
}

// https://github.com/earendil-works/pi/issues/5506 and https://github.com/HeyPuter/puter/issues/3168 quote the words for a
// model that has no shared endpoint, and for one whose endpoint does not run.
#[tokio::test]
async fn together_refuses_a_model_by_its_own_words() {
    for (message, code) in [
        (
            "Unable to access non-serverless model some-model. Please visit its page to start an endpoint.",
            "model_not_available",
        ),
        (
            "The dedicated endpoint for some-model is not running. Please visit its page to start the endpoint.",
            "dedicated_endpoint_not_running",
        ),
    ] {
        let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
        let refusal = json!({"id": "okkMWqL-2kFHot", "error": error});
        assert_eq!(refused("together", &refusal).await, Class::NotFound, "{code}");
    }
}

// https://github.com/QwenLM/Qwen3/issues/1321: the error is the whole body, and its code is the status.
#[tokio::test]
async fn sglang_says_without_an_envelope_that_a_prompt_is_too_long() {
    let message = "The input (61709 tokens) is longer than the model's context length (40960 tokens).";
    let refusal =
        json!({"object": "error", "message": message, "type": "BadRequestError", "param": null, "code": 400});
    assert_eq!(refused("sglang", &refusal).await, Class::ContextTooLong);
}
