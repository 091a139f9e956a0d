//! Reads an answer to its end: a stream of events, or a document that came in its place. Answers of a server and of a
//! recording take exactly the same path.

use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use eventsource_stream::{EventStreamError, Eventsource};
use futures::stream::{self, StreamExt};
use qoder_types::{ModelFailure, ModelFailureClass};

use super::body::{self, Body};
use super::{Timeouts, unpack};
use crate::failure::{self, AttemptFailure, malformed};
use crate::profile::Profile;
use crate::routes::Route;
use crate::wires::partial::emit_whole;
use crate::wires::reply::{Decoded, Decoder, Sink};

/// How long to wait for the end of a response after its last event; reading it makes the connection reusable.
const DRAIN: Duration = Duration::from_millis(100);
/// How long to wait for more, such as token counts, when the reply is complete but the endpoint has not said the last word.
const SETTLE: Duration = Duration::from_secs(3);

/// An answer before it is read.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Reads an answer to its end.
pub(crate) async fn read(
    response: Response,
    route: &Arc<Route>,
    profile: &Profile,
    timeouts: Timeouts,
    sink: Option<Sink>,
) -> Result<Decoded, AttemptFailure> {
    let Response { status, headers, body } = response;
    let encoding = headers.get("content-encoding").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let body = unpack::unpacked(body::limit_silence(body, Arc::clone(route), timeouts.idle()), encoding);
    let request_id = ["request-id", "x-request-id"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(str::to_owned);
    if !(200..300).contains(&status) {
        let text = String::from_utf8_lossy(&body::collect(body).await.unwrap_or_default()).into_owned();
        return Err(failure::from_status(status, &headers, &text, route));
    }
    let is_ended = is_framed(&headers);
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or("");
    let (first, body) = body::open(body).await?;
    let Some(first) = first else { return Err(empty(status, route)) };
    // An error or a whole reply may call itself a stream; no event starts like one.
    let is_document = matches!(first, b'{' | b'[' | b'<');
    let mut decoded = if !is_document && (content_type.is_empty() || content_type.contains("event-stream")) {
        read_events(body, route.protocol.decoder(sink, profile), is_ended)
            .await
            .map_err(|failed| naming_server(failed, route))?
    } else {
        let bytes = body::collect(body).await?;
        read_whole(bytes, (content_type, is_ended), route, profile, sink).await?
    };
    decoded.request_id = request_id;
    Ok(decoded)
}

/// What is wrong with a stream does not say whose it is.
fn naming_server(mut failed: AttemptFailure, route: &Route) -> AttemptFailure {
    if failed.failure.class == ModelFailureClass::MalformedStream {
        failed.failure.message = format!("{}: {}", route.place(), failed.failure.message);
    }
    failed
}

/// True when the length of the body is known or said by its last piece: its end is the server's doing then.
fn is_framed(headers: &HeaderMap) -> bool {
    ["transfer-encoding", "content-length"].iter().any(|name| headers.contains_key(*name))
}

async fn read_events(
    body: Body,
    mut decoder: Box<dyn Decoder>,
    is_ended: bool,
) -> Result<Decoded, AttemptFailure> {
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
            None if decoder.is_said(is_ended) => return Ok(decoder.finish()),
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
    (content_type, is_ended): (&str, bool),
    route: &Route,
    profile: &Profile,
    sink: Option<Sink>,
) -> Result<Decoded, AttemptFailure> {
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.trim_start();
    if start.starts_with("data:") || start.starts_with("event:") {
        // A stream behind a wrong content type, as some gateways send it.
        let body = stream::iter([Ok(Bytes::from(bytes))]).boxed();
        let read = read_events(body, route.protocol.decoder(sink, profile), is_ended).await;
        return read.map_err(|failed| naming_server(failed, route));
    }
    if let Some(decoded) = route.protocol.whole(&text, profile) {
        if let Some(sink) = sink {
            emit_whole(sink, &decoded, 1);
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
        response: None,
    })
}
