//! Damaged streams: whatever bytes arrive, a call ends with a reply or
//! a failure in words, and what was emitted before a reply is well
//! ordered.

use qoder_models::resolve;
use serde_json::{Value, json};

use crate::support::{Server, anthropic_text, ask, assert_well_ordered, pieces, request, stream_text, user};

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

fn sample(style: &str) -> String {
    let chat = vec![
        json!({"id": "c", "choices": [{"delta": {"content": "hi", "reasoning": "r"}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Bash", "arguments": "{}"}}]}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
        Value::String("[DONE]".into()),
    ];
    let responses = vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "call_id": "c", "name": "Bash"}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a\":1}"}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [], "usage": {"input_tokens": 1}}}),
    ];
    stream_text(&match style {
        "anthropic" => anthropic_text("some text"),
        "openai" => chat,
        _ => responses,
    })
}

/// Removes, doubles, swaps or overwrites a stretch of text.
fn damage(text: &str, random: &mut Random) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let start = random.below(letters.len());
        let end = (start + 1 + random.below(12)).min(letters.len());
        match random.below(4) {
            0 => drop(letters.drain(start..end)),
            1 => {
                let copy: Vec<char> = letters[start..end].to_vec();
                letters.splice(start..start, copy);
            }
            2 => {
                letters[start] =
                    ['"', '{', '}', '\n', '0', '\\', 'é', '\u{0}', '-', '\u{feff}'][random.below(10)]
            }
            _ => letters[start..end].reverse(),
        }
        if letters.is_empty() {
            letters.push('x');
        }
    }
    letters.into_iter().collect()
}

#[tokio::test]
async fn damaged_streams_end_in_a_reply_or_in_words() {
    for style in ["anthropic", "openai", "openai-responses"] {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let text = sample(style);
        let answers: Vec<_> =
            (0..150).map(|_| pieces(&damage(&text, &mut random), 1 + random.below(200))).collect();
        let count = answers.len();
        let server = Server::start(answers).await;
        let mut options = server.styled(style, "m");
        options.max_attempts = 1;
        let model = resolve(&options).unwrap();
        let mut failures = 0;
        for _ in 0..count {
            let told = ask(&model, request(vec![user("a")])).await;
            match &told.result {
                Ok(_) => {
                    assert_eq!(told.kinds().last(), Some(&"message_stop"));
                    if style != "anthropic" {
                        assert_well_ordered(&told.partials);
                    }
                }
                Err(failure) => {
                    failures += 1;
                    assert!(!failure.message.is_empty());
                }
            }
        }
        assert!(failures > 20, "{style}: only {failures} of {count} were noticed");
        assert_eq!(server.requests().len(), count);
    }
}

#[tokio::test]
async fn byte_order_marks_are_passed_over_wherever_packets_end() {
    for style in ["anthropic", "openai", "openai-responses"] {
        for marks in ["\u{feff}", "\u{feff}\u{feff}", "\n\u{feff}\n"] {
            let text = format!("{marks}{}", sample(style));
            let sizes = [1, 2, 3, 4, 5, usize::MAX];
            let server = Server::start(sizes.iter().map(|size| pieces(&text, *size)).collect()).await;
            let mut options = server.styled(style, "m");
            options.max_attempts = 1;
            let model = resolve(&options).unwrap();
            for size in sizes {
                let told = ask(&model, request(vec![user("a")])).await;
                assert!(!told.reply().content.is_empty(), "{style} {size}");
            }
        }
    }
}
