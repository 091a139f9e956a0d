//! A server that answers with exactly the bytes a test wants, in the pieces it wants, and short
//! ways to ask a model. The n-th request gets the n-th answer; a request too many is answered
//! 500.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use qoder_core::ports::{Model, ModelEvent, ModelRequest, PromptMessage, Thinking};
use qoder_models::{ModelOptions, resolve};
use qoder_types::{
    ContentBlock, Message, MessageContent, ModelFailure, ModelReply, Purpose, Role, ToolDefinition,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One thing the server does.
#[derive(Clone)]
pub enum Step {
    /// Writes these bytes and flushes.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Keeps the connection open and silent.
    Hang,
}

/// What the server received.
#[derive(Clone)]
pub struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Received>>>,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn start(answers: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (kept, counted) = (Arc::clone(&requests), Arc::clone(&connections));
        let answers = Arc::new(answers);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&kept)));
            }
        });
        Self { url, requests, connections, task }
    }

    pub fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Options for an Anthropic-style model behind this server.
    pub fn options(&self) -> ModelOptions {
        self.styled("anthropic", "claude-sonnet-4-5")
    }

    /// Options for any protocol. Waits between attempts are short.
    pub fn styled(&self, style: &str, model: &str) -> ModelOptions {
        ModelOptions {
            model: Some(model.into()),
            base_url: Some(self.url.clone()),
            api_style: Some(style.into()),
            environment: BTreeMap::from([
                ("QODER_RETRY_BASE_MS".into(), "1".into()),
                ("ANTHROPIC_API_KEY".into(), "sk-ant-secret-1".into()),
                ("OPENAI_API_KEY".into(), "sk-oai-secret-2".into()),
            ]),
            max_attempts: 3,
            ..ModelOptions::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, answers: Arc<Vec<Vec<Step>>>, requests: Arc<Mutex<Vec<Received>>>) {
    let mut buffer = Vec::new();
    while let Some(received) = read_request(&mut stream, &mut buffer).await {
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(received);
            requests.len() - 1
        };
        let steps = answers.get(number).cloned().unwrap_or_else(|| status(500, &[], "no answer is left"));
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                    // Lets the reader see this piece by itself.
                    tokio::task::yield_now().await;
                }
                Step::Close => return,
                Step::Hang => std::future::pending().await,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    let mut piece = vec![0_u8; 65536];
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length = Received { head: head.clone(), body: Vec::new() }
                .header("content-length")
                .map_or(0, |value| value.parse::<usize>().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Some(Received { head, body });
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffer.extend_from_slice(&piece[..count]),
        }
    }
}

/// An answer that is no stream.
pub fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let mut text = format!("HTTP/1.1 {code} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    vec![Step::Send(text.into_bytes())]
}

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_42\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// Events as the text of a stream.
pub fn stream_text(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| match event {
            Value::String(text) => format!("data: {text}\n\n"),
            other => format!("event: {}\ndata: {other}\n\n", other["type"].as_str().unwrap_or("message")),
        })
        .collect()
}

/// A complete stream in one piece.
pub fn events(events: &[Value]) -> Vec<Step> {
    pieces(&stream_text(events), usize::MAX)
}

/// A complete stream in pieces of `size` bytes, wherever that cuts.
pub fn pieces(text: &str, size: usize) -> Vec<Step> {
    let mut steps = cut_stream(text, size);
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

/// A stream that has not ended.
pub fn cut_stream(text: &str, size: usize) -> Vec<Step> {
    let mut steps = vec![Step::Send(STREAM_HEAD.to_vec())];
    steps.extend(text.as_bytes().chunks(size.min(text.len().max(1))).map(|piece| Step::Send(chunk(piece))));
    steps
}

/// The events of a plain Anthropic reply.
pub fn anthropic_text(text: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": [], "stop_reason": null,
            "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

pub fn tool(name: &str, required: &[&str]) -> ToolDefinition {
    let properties: serde_json::Map<String, Value> =
        required.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    ToolDefinition {
        name: name.into(),
        description: format!("The tool {name}").into(),
        input_schema: json!({"type": "object", "properties": properties, "required": required}).into(),
    }
}

pub fn message(role: Role, blocks: Vec<ContentBlock>) -> Arc<PromptMessage> {
    Arc::new(PromptMessage::new(Message { role, content: MessageContent::Blocks(blocks) }))
}

pub fn user(text: &str) -> Arc<PromptMessage> {
    Arc::new(PromptMessage::new(Message::user(text)))
}

pub fn request(messages: Vec<Arc<PromptMessage>>) -> ModelRequest {
    ModelRequest {
        purpose: Purpose::Main,
        session_id: "session-1".into(),
        system: vec!["You are terse.".to_owned(), "Second block.".to_owned()].into(),
        tools: vec![tool("Read", &["file_path"]), tool("Bash", &["command"])].into(),
        messages,
        max_output_tokens: None,
        thinking: Thinking::Default,
        effort: None,
        parameters: BTreeMap::new(),
        partial: true,
    }
}

/// Everything a call reported.
#[derive(Debug)]
pub struct Collected {
    pub partials: Vec<Value>,
    pub notices: Vec<String>,
    pub retries: Vec<(u32, u32, u64, ModelFailure)>,
    pub fallbacks: Vec<(String, String)>,
    pub result: Result<ModelReply, ModelFailure>,
}

impl Collected {
    pub fn reply(&self) -> &ModelReply {
        self.result.as_ref().unwrap()
    }

    pub fn failure(&self) -> &ModelFailure {
        self.result.as_ref().unwrap_err()
    }

    /// The types of the partial events, in order.
    pub fn kinds(&self) -> Vec<&str> {
        self.partials.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }

    /// The text of all text deltas since the last start of a message.
    pub fn partial_text(&self) -> String {
        let start = self.partials.iter().rposition(|event| event["type"] == "message_start").unwrap_or(0);
        self.partials[start..].iter().filter_map(|event| event["delta"]["text"].as_str()).collect()
    }
}

/// Asks and collects; a minute is a guard against hanging, not a measure.
pub async fn ask(model: &Arc<dyn Model>, request: ModelRequest) -> Collected {
    tokio::time::timeout(Duration::from_secs(60), async {
        let mut told = Collected {
            partials: Vec::new(),
            notices: Vec::new(),
            retries: Vec::new(),
            fallbacks: Vec::new(),
            result: Err(ModelFailure {
                class: qoder_types::ModelFailureClass::Configuration,
                message: "the stream ended without a result".into(),
                status: None,
                retry_after_ms: None,
            }),
        };
        let mut stream = model.stream(request);
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::Partial(text)) => told.partials.push(serde_json::from_str(&text).unwrap()),
                Ok(ModelEvent::Retry { attempt, max_retries, delay_ms, failure }) => {
                    told.retries.push((attempt, max_retries, delay_ms, failure));
                }
                Ok(ModelEvent::Fallback { from, to, .. }) => told.fallbacks.push((from, to)),
                Ok(ModelEvent::Reply(reply)) => told.result = Ok(*reply),
                Ok(ModelEvent::Notice(notice)) => told.notices.push(notice.text),
                Err(failure) => told.result = Err(failure),
            }
        }
        told
    })
    .await
    .unwrap()
}

/// Resolves and asks once with a plain question.
pub async fn ask_once(options: &ModelOptions) -> Collected {
    ask(&resolve(options).unwrap(), request(vec![user("hello")])).await
}

/// Asserts that partial events form one well-ordered message.
pub fn assert_well_ordered(partials: &[Value]) {
    assert_eq!(partials.first().unwrap()["type"], "message_start");
    assert_eq!(partials.last().unwrap()["type"], "message_stop");
    let mut open: Option<u64> = None;
    let mut next = 0;
    for event in partials {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!((open, event["index"].as_u64()), (None, Some(next)), "{event}");
                open = Some(next);
                next += 1;
            }
            "content_block_delta" => assert_eq!(event["index"].as_u64(), open, "{event}"),
            "content_block_stop" => {
                assert_eq!(event["index"].as_u64(), open, "{event}");
                open = None;
            }
            "message_delta" => assert_eq!(open, None),
            _ => {}
        }
    }
}
