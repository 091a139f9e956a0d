//! Recordings: every request and response of a real endpoint as one JSON line each, and a model that
//! plays them back. Keys are never written: only the address without query, the body, and a few
//! response headers are.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use qoder_core::ports::{ModelFacts, ModelRequest};
use qoder_types::ModelFailureClass;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::Timeouts;
use super::read::{Response, read};
use crate::calls::Endpoint;
use crate::error::ModelConfigError;
use crate::failure::{AttemptFailure, failure};
use crate::protocol::Protocol;
use crate::routes::{Credentials, Route, provider, public_url};
use crate::settings::Price;
use crate::settings::catalog::Entry;
use crate::wires::reply::{Decoded, Sink};

/// Response headers that matter for reading a response again.
const KEPT_HEADERS: &[&str] = &[
    "content-type",
    "content-length",
    "transfer-encoding",
    "request-id",
    "x-request-id",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
];

/// One line of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    protocol: String,
    model: String,
    method: String,
    url: String,
    message_count: usize,
    body: String,
    status: u16,
    headers: Vec<(String, String)>,
    response: String,
}

/// Appends to a recording.
pub(crate) struct Recorder {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Recorder {
    /// Opens the file once, so that a path that cannot be written is known before a call is paid for.
    pub(crate) fn new(path: PathBuf) -> Result<Self, ModelConfigError> {
        match open_for_writing(&path) {
            Ok(_) => Ok(Self { path, writing: Mutex::new(()) }),
            Err(error) => Err(ModelConfigError::Unwritable {
                path: path.display().to_string(),
                reason: error.to_string(),
            }),
        }
    }

    fn append(&self, line: &Line) -> std::io::Result<()> {
        let _guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        open_for_writing(&self.path)?.write_all(&text)
    }
}

/// Opens a recording at its end. Only its owner may read it.
fn open_for_writing(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Collects one response; written when it is dropped, so that responses that break off are recorded as well.
pub(crate) struct Tape {
    recorder: Arc<Recorder>,
    route: Route,
    line: Option<Line>,
    request: (usize, Bytes),
    response: Vec<u8>,
}

impl Tape {
    pub(crate) fn new(recorder: Arc<Recorder>, route: &Route, message_count: usize, body: &Bytes) -> Self {
        Self {
            recorder,
            route: route.clone(),
            line: None,
            request: (message_count, body.clone()),
            response: Vec::new(),
        }
    }

    /// The response began.
    pub(crate) fn begin(&mut self, status: u16, headers: &HeaderMap) {
        let kept = KEPT_HEADERS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned())))
            .collect();
        self.line = Some(Line {
            protocol: self.route.protocol.name().to_owned(),
            model: self.route.model.clone(),
            method: "POST".into(),
            url: public_url(&self.route.endpoint()),
            message_count: self.request.0,
            body: String::new(),
            status,
            headers: kept,
            response: String::new(),
        });
    }

    /// A piece of the response.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.response.extend_from_slice(bytes);
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        line.body = self.route.mask(&String::from_utf8_lossy(&self.request.1));
        line.response = self.route.mask(&String::from_utf8_lossy(&self.response));
        if let Err(error) = self.recorder.append(&line) {
            // A recording is an aid; the conversation continues without it, but not silently.
            // A closed stderr leaves no one to report it to.
            let text = format!("cannot record to {}: {error}", self.recorder.path.display());
            let _ = writeln!(std::io::stderr(), "{}", qoder_types::display::escaped_line(&text));
        }
    }
}

/// Plays a recording back, one response per call, in order.
pub(crate) struct Replay {
    path: String,
    lines: Vec<Line>,
    next: AtomicUsize,
    entry: Entry,
    timeouts: Timeouts,
}

impl Replay {
    /// Reads the recording. `entry` describes a model by its name.
    pub(crate) fn open(
        path: &Path,
        timeouts: Timeouts,
        entry: impl Fn(&str) -> Entry,
    ) -> Result<Self, ModelConfigError> {
        let shown = path.display().to_string();
        let unreadable =
            |line, reason: String| ModelConfigError::Unreadable { path: shown.clone(), line, reason };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(None, error.to_string()))?;
        // Some editors put a byte order mark in front.
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let parsed: Line =
                serde_json::from_str(line).map_err(|error| unreadable(Some(index + 1), error.to_string()))?;
            if Protocol::parse(&parsed.protocol).is_none() {
                return Err(unreadable(Some(index + 1), format!("unknown protocol `{}`", parsed.protocol)));
            }
            lines.push(parsed);
        }
        let Some(first) = lines.first() else {
            return Err(unreadable(None, "the recording holds no response".into()));
        };
        let entry = entry(&first.model);
        Ok(Self { path: shown, lines, next: AtomicUsize::new(0), entry, timeouts })
    }

    fn misfit(&self, reason: &str) -> AttemptFailure {
        failure(
            ModelFailureClass::Configuration,
            format!("the recording {} does not fit this session: {reason}. Record it again", self.path),
        )
        .into()
    }

    fn line_for(&self, request: &ModelRequest) -> Result<&Line, AttemptFailure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(line) = self.lines.get(number) else {
            return Err(self.misfit(&format!(
                "it holds {} responses and call {} was made",
                self.lines.len(),
                number + 1
            )));
        };
        if line.message_count != request.messages.len() {
            return Err(self.misfit(&format!(
                "call {} has {} messages, the recorded one had {}",
                number + 1,
                request.messages.len(),
                line.message_count
            )));
        }
        Ok(line)
    }

    async fn play(&self, request: &ModelRequest, sink: &Sink) -> Result<Decoded, AttemptFailure> {
        let line = self.line_for(request)?;
        let protocol = Protocol::parse(&line.protocol).unwrap_or(Protocol::AnthropicMessages);
        let mut route = Route::new("replay", protocol, &line.url, Credentials::default(), "the recording")
            .map_err(|error| self.misfit(&error.to_string()))?;
        route.model.clone_from(&line.model);
        let mut headers = HeaderMap::new();
        for (name, value) in &line.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        let body = stream::iter([Ok(Bytes::from(line.response.clone()))]).boxed();
        let response = Response { status: line.status, headers, body };
        let profile = route.profile();
        read(response, &Arc::new(route), &profile, self.timeouts, request.partial.then(|| sink.clone())).await
    }
}

impl Endpoint for Replay {
    fn facts(&self) -> ModelFacts {
        let first = self.lines.first();
        let host = first
            .and_then(|line| Url::parse(&line.url).ok())
            .and_then(|url| url.host_str().map(str::to_owned));
        let protocol = first.and_then(|line| Protocol::parse(&line.protocol));
        let protocol = protocol.unwrap_or(Protocol::AnthropicMessages);
        ModelFacts {
            name: first.map(|line| line.model.clone()).unwrap_or_default(),
            provider: provider::of(&host.unwrap_or_default(), "replay", protocol).to_owned(),
            context_window: self.entry.context_window,
            max_output_tokens: self.entry.max_output_tokens,
            key_source: "none",
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
        Box::pin(self.play(request, sink))
    }
}
