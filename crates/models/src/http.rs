//! A model behind HTTP: puts a body together, sends it, and reads the answer, once. Also reads answers that come from a
//! recording, so that both take exactly the same path.
//!
//! Bodies end with the list of messages, and every message is encoded once: body n without its closing brackets is a
//! byte prefix of body n+1, which is what providers' caches need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use eventsource_stream::{EventStreamError, Eventsource};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use qoder_core::ports::{ModelFacts, ModelRequest, Thinking};
use qoder_types::{ModelFailure, ModelFailureClass, ToolDefinition};
use reqwest::Client;
use serde_json::Value;

use crate::body::{self, Body};
use crate::call::{Backend, Decoded, Sink};
use crate::cassette::{Recorder, Tape};
use crate::catalog::{DEFAULT_OUTPUT, Entry};
use crate::client;
use crate::failure::{self, AttemptFailure, failure, malformed};
use crate::partial::tell_whole;
use crate::protocol::{HeadOptions, Protocol};
use crate::route::Route;
use crate::settings::{ModelOptions, Price};

/// The longest silence before a call counts as dead.
const IDLE_MS: u64 = 300_000;
const TOTAL_MS: u64 = 600_000;
/// How long to wait for the end of a response after its last event; reading it makes the connection reusable.
const DRAIN: Duration = Duration::from_millis(100);
/// How long to wait for more, such as token counts, when the reply is complete but the endpoint has not said the last word.
const SETTLE: Duration = Duration::from_secs(3);

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    idle: Duration,
    total: Duration,
}

impl Timeouts {
    /// The defaults, or `QODER_API_TIMEOUT_MS`.
    pub(crate) fn new(options: &ModelOptions) -> Self {
        let total = options
            .variable("QODER_API_TIMEOUT_MS")
            .and_then(|value| value.parse().ok())
            .filter(|value| *value > 0)
            .unwrap_or(TOTAL_MS);
        Self { idle: Duration::from_millis(IDLE_MS.min(total)), total: Duration::from_millis(total) }
    }

    /// The longest time in all.
    pub(crate) fn total(self) -> Duration {
        self.total
    }

    /// The longest silence.
    pub(crate) fn idle(self) -> Duration {
        self.idle
    }
}

/// An answer before it is read.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

struct CachedHead {
    system: Arc<[String]>,
    tools: Arc<[ToolDefinition]>,
    thinking: Thinking,
    effort: Option<String>,
    parameters: BTreeMap<String, Value>,
    session_id: String,
    options: HeadOptions,
    head: (Bytes, Bytes),
}

/// A model behind HTTP.
pub(crate) struct HttpBackend {
    route: Arc<Route>,
    entry: Entry,
    timeouts: Timeouts,
    environment: BTreeMap<String, String>,
    client: OnceLock<Client>,
    cached_head: Mutex<Option<CachedHead>>,
    recorder: Option<Arc<Recorder>>,
}

impl HttpBackend {
    /// Nothing is opened before the first request.
    pub(crate) fn new(
        route: Route,
        entry: Entry,
        options: &ModelOptions,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        Self {
            route: Arc::new(route),
            entry,
            timeouts: Timeouts::new(options),
            environment: qoder_http::variables()
                .filter_map(|name| Some((name.to_owned(), options.variable(name)?.to_owned())))
                .collect(),
            client: OnceLock::new(),
            cached_head: Mutex::new(None),
            recorder,
        }
    }

    fn client(&self) -> Result<Client, ModelFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let built = client::build(&self.route, &self.environment)?;
        Ok(self.client.get_or_init(|| built).clone())
    }

    fn head(&self, request: &ModelRequest) -> (Bytes, Bytes) {
        let wanted = request.max_output_tokens.map_or(DEFAULT_OUTPUT, u64::from).max(1);
        let options = HeadOptions {
            model: self.route.model.clone(),
            max_tokens: wanted.min(self.entry.max_output_tokens),
        };
        let mut cached = self.cached_head.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*cached
            && Arc::ptr_eq(&known.system, &request.system)
            && Arc::ptr_eq(&known.tools, &request.tools)
            && known.thinking == request.thinking
            && known.effort == request.effort
            && known.parameters == request.parameters
            && known.session_id == request.session_id
            && known.options == options
        {
            return known.head.clone();
        }
        let head = self.route.protocol.head(&options, request);
        *cached = Some(CachedHead {
            system: Arc::clone(&request.system),
            tools: Arc::clone(&request.tools),
            thinking: request.thinking,
            effort: request.effort.clone(),
            parameters: request.parameters.clone(),
            session_id: request.session_id.clone(),
            options,
            head: head.clone(),
        });
        head
    }

    fn body(&self, request: &ModelRequest) -> Bytes {
        let protocol = self.route.protocol;
        let (head, first) = self.head(request);
        let pieces: Vec<Bytes> = request
            .messages
            .iter()
            .map(|message| message.encoded(protocol.name(), |message| protocol.encode(message)))
            .filter(|piece| !piece.is_empty())
            .collect();
        let length = pieces.iter().map(|piece| piece.len() + 1).sum::<usize>();
        let mut body = Vec::with_capacity(head.len() + first.len() + length + 3);
        body.extend_from_slice(&head);
        body.extend_from_slice(&first);
        let mut needs_comma = !first.is_empty();
        for piece in &pieces {
            if needs_comma {
                body.push(b',');
            }
            body.extend_from_slice(piece);
            needs_comma = true;
        }
        body.extend_from_slice(b"]}");
        body.into()
    }

    async fn send(&self, body: Bytes) -> Result<Response, AttemptFailure> {
        let sent = self
            .client()?
            .post(self.route.endpoint())
            .headers(self.route.request_headers())
            .body(body)
            .send();
        let response = match tokio::time::timeout(self.timeouts.idle, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failure::from_sending(&error, &self.route)),
            Err(_) => return Err(body::silence(&self.route, self.timeouts.idle).into()),
        };
        let route = Arc::clone(&self.route);
        Ok(Response {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response
                .bytes_stream()
                .map(move |piece| piece.map_err(|error| failure::from_network(&error, &route)))
                .boxed(),
        })
    }

    async fn exchange(&self, request: &ModelRequest, sink: &Sink) -> Result<Decoded, AttemptFailure> {
        let body = self.body(request);
        let tape = self
            .recorder
            .as_ref()
            .map(|recorder| Tape::new(Arc::clone(recorder), &self.route, request.messages.len(), &body));
        let mut response = self.send(body).await?;
        if let Some(mut tape) = tape {
            tape.begin(response.status, &response.headers);
            response.body = response
                .body
                .map(move |piece| {
                    if let Ok(bytes) = &piece {
                        tape.add(bytes);
                    }
                    piece
                })
                .boxed();
        }
        read(response, &self.route, self.timeouts, request.partial.then(|| sink.clone())).await
    }
}

impl Backend for HttpBackend {
    fn facts(&self) -> ModelFacts {
        ModelFacts {
            name: self.route.model.clone(),
            provider: self.route.known_provider().to_owned(),
            context_window: self.entry.context_window,
            max_output_tokens: self.entry.max_output_tokens,
            key_source: self.route.key_source(),
        }
    }

    fn price(&self) -> Option<Price> {
        self.entry.price
    }

    fn attempt<'a>(
        &'a self,
        request: &'a ModelRequest,
        sink: &'a Sink,
    ) -> BoxFuture<'a, Result<Decoded, AttemptFailure>> {
        Box::pin(async move {
            let result = match tokio::time::timeout(self.timeouts.total, self.exchange(request, sink)).await {
                Ok(result) => result,
                Err(_) => Err(failure(
                    ModelFailureClass::Timeout,
                    format!(
                        "the call to {} took longer than {} ms in all (QODER_API_TIMEOUT_MS)",
                        self.route.place(),
                        self.timeouts.total.as_millis()
                    ),
                )
                .into()),
            };
            // The one place through which every failure of a route passes: an endpoint may quote the key it was sent.
            result.map_err(|mut failed| {
                failed.failure.message = self.route.mask(&failed.failure.message);
                failed
            })
        })
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(
    response: Response,
    route: &Arc<Route>,
    timeouts: Timeouts,
    sink: Option<Sink>,
) -> Result<Decoded, AttemptFailure> {
    let Response { status, headers, body } = response;
    let body = body::guard(body, Arc::clone(route), timeouts.idle);
    let request_id = ["request-id", "x-request-id"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(str::to_owned);
    if !(200..300).contains(&status) {
        let text = String::from_utf8_lossy(&body::collect(body).await.unwrap_or_default()).into_owned();
        return Err(failure::from_status(status, &headers, &text, route));
    }
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("");
    let (first, body) = body::open(body).await?;
    let Some(first) = first else { return Err(empty(status, route)) };
    // An error or a whole reply may call itself a stream; no event starts like one.
    let is_document = matches!(first, b'{' | b'[' | b'<');
    let mut decoded = if !is_document && (content_type.is_empty() || content_type.contains("event-stream")) {
        read_events(body, route.protocol, sink).await?
    } else {
        let bytes = body::collect(body).await?;
        read_whole(bytes, content_type, route, sink).await?
    };
    decoded.request_id = request_id;
    Ok(decoded)
}

async fn read_events(body: Body, protocol: Protocol, sink: Option<Sink>) -> Result<Decoded, AttemptFailure> {
    let mut decoder = protocol.decoder(sink);
    let mut events = body::by_event(body).eventsource();
    loop {
        let next = if decoder.may_end() {
            // Whatever goes wrong from here on, and be it silence, costs at most the token counts.
            match tokio::time::timeout(SETTLE, events.next()).await {
                Ok(Some(Ok(event))) => Some(Ok(event)),
                Ok(Some(Err(_)) | None) | Err(_) => return Ok(decoder.finish()),
            }
        } else {
            events.next().await
        };
        let event = match next {
            Some(Ok(event)) => event,
            Some(Err(EventStreamError::Transport(failure))) => return Err(failure.into()),
            Some(Err(EventStreamError::Utf8(_))) => {
                return Err(malformed("the stream is not valid UTF-8").into());
            }
            Some(Err(EventStreamError::Parser(_))) => {
                return Err(malformed("the stream does not consist of server-sent events").into());
            }
            None => return Err(malformed("the stream ended before the reply was complete").into()),
        };
        if event.data.trim().is_empty() {
            continue;
        }
        match decoder.event(event.data) {
            Ok(false) => {}
            Ok(true) => {
                let drain = async { while let Some(Ok(_)) = events.next().await {} };
                // An endpoint that keeps the response open only loses the reuse of its connection.
                let _ = tokio::time::timeout(DRAIN, drain).await;
                return Ok(decoder.finish());
            }
            Err(failed) if failed.class == ModelFailureClass::MalformedStream && decoder.may_end() => {
                return Ok(decoder.finish());
            }
            Err(failed) => return Err(failed.into()),
        }
    }
}

/// A success without a body. It may pass by itself: gateways send it while a server behind them restarts.
fn empty(status: u16, route: &Route) -> AttemptFailure {
    let message = format!(
        "{} answered {status} with an empty body instead of a reply. Check the base URL and the protocol ({})",
        route.place(),
        route.protocol.name()
    );
    ModelFailure { status: Some(status), ..malformed(message) }.into()
}

/// True for JSON that breaks off: the rest was lost on its way, which asking again may mend.
fn is_truncated(text: &str) -> bool {
    text.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// An answer with status 200 that does not call itself a stream.
async fn read_whole(
    bytes: Vec<u8>,
    content_type: &str,
    route: &Route,
    sink: Option<Sink>,
) -> Result<Decoded, AttemptFailure> {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.trim_start();
    if start.starts_with("data:") || start.starts_with("event:") {
        // A stream behind a wrong content type, as some gateways send it.
        let body = stream::iter([Ok(Bytes::from(bytes))]).boxed();
        return read_events(body, route.protocol, sink).await;
    }
    if let Some(decoded) = route.protocol.whole(&text) {
        if let Some(sink) = sink {
            tell_whole(sink, &decoded, 1);
        }
        return Ok(decoded);
    }
    if let Some(error) = failure::refusal(&text) {
        return Err(failure::from_event(&error).into());
    }
    if is_truncated(start) {
        let message = format!(
            "{} answered 200 with a response that ends before the reply is complete: {}",
            route.place(),
            failure::excerpt(&text)
        );
        return Err(ModelFailure { status: Some(200), ..malformed(message) }.into());
    }
    let kind = if start.starts_with('<') { "a web page" } else { "something that is not a reply" };
    let message = format!(
        "{} answered 200 with {kind} ({content_type}) instead of a stream: {}. Check the base URL and the protocol ({})",
        route.place(),
        failure::excerpt(&text),
        route.protocol.name()
    );
    Err(AttemptFailure {
        failure: ModelFailure { status: Some(200), ..malformed(message) },
        should_retry: Some(false),
        is_refused: false,
    })
}
