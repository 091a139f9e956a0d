//! Bodies grow at their end only: body n without its closing brackets is a
//! byte prefix of body n+1, in every protocol. Providers' caches live from
//! this.

use qoder_models::resolve;
use qoder_types::{ContentBlock, Role, ToolResultContent};
use serde_json::{Value, json};

use crate::support::{Server, anthropic_text, ask, events, message, request, user};

fn answer(style: &str) -> Vec<Value> {
    match style {
        "anthropic" => anthropic_text("ok"),
        "openai-chat" => vec![
            json!({"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}),
            Value::String("[DONE]".into()),
        ],
        _ => vec![
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    }
}

#[tokio::test]
async fn every_body_is_a_prefix_of_the_next() {
    for style in ["anthropic", "openai-chat", "openai-responses"] {
        let server = Server::start(vec![events(&answer(style)); 8]).await;
        let model = resolve(&server.styled(style, "some-model")).unwrap();
        let base = request(vec![]);
        let mut messages = vec![user("start")];
        for turn in 0..8 {
            let mut asked = base.clone();
            asked.messages.clone_from(&messages);
            assert!(ask(&model, asked).await.result.is_ok());
            let id = format!("call_{turn}");
            messages.push(message(
                Role::Assistant,
                vec![
                    ContentBlock::Thinking { thinking: "t".into(), signature: "chat:".into() },
                    ContentBlock::text(if turn % 2 == 0 { "" } else { "words" }),
                    ContentBlock::ToolUse {
                        id: id.clone(),
                        name: "Bash".into(),
                        input: json!({"command": turn}),
                    },
                ],
            ));
            messages.push(message(
                Role::User,
                vec![ContentBlock::ToolResult {
                    tool_use_id: id,
                    content: ToolResultContent::Text("out".repeat(turn + 1)),
                    is_error: turn == 3,
                }],
            ));
        }
        let bodies: Vec<Vec<u8>> = server.requests().into_iter().map(|received| received.body).collect();
        assert_eq!(bodies.len(), 8);
        for pair in bodies.windows(2) {
            let open = pair[0].strip_suffix(b"]}").unwrap();
            assert!(pair[1].starts_with(open), "{style}: {}", String::from_utf8_lossy(&pair[1]));
            assert!(pair[1].len() > pair[0].len());
            assert!(serde_json::from_slice::<Value>(&pair[1]).is_ok());
        }
    }
}
