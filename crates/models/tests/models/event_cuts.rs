//! Events of all three protocols, cut, merged and repeated at every byte: a call ends with the whole reply or with a failure,
//! never with a panic and never with a reply that the server did not send.

use proptest::prelude::*;
use qoder_models::resolve;
use qoder_types::ContentBlock;
use serde_json::{Value, json};

use crate::support::{Collected, Server, Step, anthropic_text, ask, request, stream_text, user};

const STYLES: [&str; 3] = ["anthropic", "openai", "openai-responses"];

fn reply(style: &str) -> Vec<Value> {
    match style {
        "anthropic" => anthropic_text("héllo"),
        "openai" => vec![
            json!({"id": "c", "model": "m", "choices": [{"delta": {"role": "assistant", "content": "hé"}}]}),
            json!({"id": "c", "choices": [{"delta": {"role": "assistant", "content": "llo"}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
            Value::String("[DONE]".into()),
        ],
        _ => vec![
            json!({"type": "response.created", "response": {"id": "r", "model": "m"}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": "hé"}),
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": "llo"}),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    }
}

fn answer(pieces: &[&[u8]]) -> Vec<Step> {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
    let mut steps = vec![Step::Send(head.into_bytes())];
    steps.extend(pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| Step::Send(piece.to_vec())));
    steps
}

async fn ask_all(style: &str, answers: Vec<Vec<Step>>) -> Vec<Collected> {
    let count = answers.len();
    let server = Server::start(answers).await;
    let mut options = server.styled(style, "m");
    options.max_attempts = 1;
    let model = resolve(&options).unwrap();
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(ask(&model, request(vec![user("a")])).await);
    }
    all
}

#[tokio::test]
async fn two_pieces_cut_at_every_byte_are_the_whole_reply() {
    for style in STYLES {
        for ends in ["\n", "\r\n"] {
            let text = stream_text(&reply(style)).replace('\n', ends).into_bytes();
            let answers = (0..=text.len()).map(|at| answer(&[&text[..at], &text[at..]])).collect();
            for (at, told) in ask_all(style, answers).await.iter().enumerate() {
                assert_eq!(told.reply().content, [ContentBlock::text("héllo")], "{style} {at}");
            }
        }
    }
}

#[tokio::test]
async fn comments_between_events_and_a_role_in_every_piece_cost_nothing() {
    for style in STYLES {
        let text =
            stream_text(&reply(style)).replace("data:", ": keep-alive\n\n: OPENROUTER PROCESSING\ndata:");
        let told = ask_all(style, vec![answer(&[text.as_bytes()])]).await;
        assert_eq!(told[0].reply().content, [ContentBlock::text("héllo")], "{style}");
    }
}

/// What to do with the events of a reply: which to take, in order, and where to cut the bytes.
fn disorder() -> impl Strategy<Value = (usize, Vec<usize>, Vec<prop::sample::Index>)> {
    (
        0..STYLES.len(),
        prop::collection::vec(0..8_usize, 0..12),
        prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_in_any_order_and_number_end_in_a_reply_or_in_words((style, order, cuts) in disorder()) {
        let style = STYLES[style];
        let events = reply(style);
        let taken: Vec<Value> = order.iter().filter_map(|at| events.get(*at).cloned()).collect();
        let bytes = stream_text(&taken).into_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let told = runtime.block_on(ask_all(style, vec![answer(&pieces)])).remove(0);
        match &told.result {
            Ok(reply) => {
                let said: String = reply.content.iter().filter_map(|block| match block {
                    ContentBlock::Text { text } => Some(text.as_str()),
                    _ => None,
                }).collect();
                let known = said.replace("hé", "").replace("llo", "");
                prop_assert!(known.is_empty(), "{}: {:?}", style, said);
            }
            Err(failure) => prop_assert!(!failure.message.is_empty()),
        }
    }
}
