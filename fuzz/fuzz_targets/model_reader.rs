//! Any bytes are answered as the body of a response, on each of the three wires, as a stream or a document, in pieces: the
//! call ends with a reply or with a failure that says something, its partial events are JSON, and nothing panics.
#![no_main]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use libfuzzer_sys::fuzz_target;
use qoder_core::ports::{Model, ModelEvent, ModelRequest, PromptMessage, Thinking};
use qoder_models::{ModelOptions, resolve};
use qoder_types::{Message, Purpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const STYLES: [&str; 3] = ["anthropic", "openai", "openai-responses"];
const KINDS: [&str; 3] = ["text/event-stream", "application/json", "text/html"];
const STATUSES: [u16; 4] = [200, 200, 200, 400];

/// The pieces of the next answer.
type Answer = Arc<Mutex<Vec<Vec<u8>>>>;

struct Bench {
    runtime: tokio::runtime::Runtime,
    answer: Answer,
    models: Vec<Arc<dyn Model>>,
}

thread_local! {
    static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let answer = Answer::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port of this machine");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Arc::clone(&answer);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("pieces are not held back");
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        let model = |style: &&str| {
            let environment = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"].map(|name| (name.into(), "key".into()));
            let options = ModelOptions {
                model: Some("m".into()),
                base_url: Some(url.clone()),
                api_style: Some((*style).into()),
                environment: BTreeMap::from(environment),
                max_attempts: 1,
                ..ModelOptions::default()
            };
            resolve(&options).expect("a model")
        };
        let models = STYLES.iter().map(model).collect();
        Self { runtime, answer, models }
    }

    fn ask(&self, wire: usize, pieces: Vec<Vec<u8>>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = pieces;
        let request = ModelRequest {
            purpose: Purpose::Main,
            session_id: "s".into(),
            system: Arc::from([]),
            tools: Arc::from([]),
            messages: vec![Arc::new(PromptMessage::new(Message::user("a")))],
            max_output_tokens: None,
            thinking: Thinking::Default,
            effort: None,
            parameters: BTreeMap::new(),
            partial: true,
        };
        let read = async {
            let mut events = self.models[wire].stream(request);
            let mut is_over = false;
            while let Some(event) = events.next().await {
                match event {
                    Ok(ModelEvent::Partial(json)) => {
                        serde_json::from_str::<serde_json::Value>(&json).expect("a partial event is JSON");
                    }
                    Ok(ModelEvent::Reply(_)) => is_over = true,
                    Ok(ModelEvent::Retry { .. } | ModelEvent::Fallback { .. } | ModelEvent::Notice(_)) => {}
                    Err(failure) => {
                        assert!(!failure.message.is_empty());
                        is_over = true;
                    }
                }
            }
            assert!(is_over, "a call ends with a reply or a failure");
        };
        let guarded = async { tokio::time::timeout(Duration::from_secs(20), read).await };
        self.runtime.block_on(guarded).expect("a response that is over ends the call");
    }
}

async fn serve(mut stream: TcpStream, answer: Answer) {
    let mut buffer = vec![0_u8; 65536];
    let mut held = Vec::new();
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
        held.extend_from_slice(&buffer[..count]);
        let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&held[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if held.len() < end + 4 + length.unwrap_or(0_usize) {
            continue;
        }
        held.clear();
        let pieces = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for piece in pieces {
            if stream.write_all(&piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [first, second, body @ ..] = data else { return };
    let (first, second) = (usize::from(*first), usize::from(*second));
    let (status, kind) = (STATUSES[first / 9 % 4], KINDS[first / 3 % 3]);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut pieces = vec![head.into_bytes()];
    pieces.extend(body.chunks(second + 1).map(<[u8]>::to_vec));
    BENCH.with_borrow_mut(|bench| bench.get_or_insert_with(Bench::new).ask(first % 3, pieces));
});
