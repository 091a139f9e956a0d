//! A model behind HTTP: puts a body together, sends it, and has the answer read, once more where the server refused
//! something that can be left out.
//!
//! Bodies end with the list of messages, and every message is encoded once: body n without its closing brackets is a
//! byte prefix of body n+1, which is what providers' caches need.

pub(crate) mod body;
pub(crate) mod cassette;
mod read;
mod timeouts;
mod unpack;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::StreamExt;
use qoder_core::ports::{ModelEvent, ModelFacts, ModelNotice, ModelRequest, Thinking};
use qoder_types::{ContentBlock, ModelFailure, ModelFailureClass, ToolDefinition};
use reqwest::Client;
use serde_json::Value;

use self::cassette::{Recorder, Tape};
use self::read::{Response, read};
use crate::calls::Endpoint;
use crate::failure::{self, AttemptFailure, failure};
use crate::learn::lesson::{self, Refusal};
use crate::learn::{self, Learned};
use crate::profile::Profile;
use crate::profile::choose::{self, Choice};
use crate::protocol::Protocol;
use crate::routes::{HttpClients, Route};
use crate::settings::catalog::{DEFAULT_OUTPUT, Entry};
use crate::settings::{ModelOptions, Price};
use crate::wires::call_id::Accepted;
use crate::wires::head::HeadOptions;
use crate::wires::reply::{Decoded, Sink};
use crate::wires::{carry, compose};

pub(crate) use timeouts::Timeouts;

/// The most things that one call may learn; each costs a request.
const MOST_LESSONS: u32 = 4;
/// How long to wait for a list of models that may say which server this is.
const IDENTIFYING: Duration = Duration::from_secs(5);

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
pub(crate) struct HttpEndpoint {
    route: Arc<Route>,
    entry: Entry,
    timeouts: Timeouts,
    environment: BTreeMap<String, String>,
    clients: HttpClients,
    client: OnceLock<Client>,
    cached_head: Mutex<Option<CachedHead>>,
    recorder: Option<Arc<Recorder>>,
    learned: Learned,
    /// Where it was learned: protocol, address and model.
    place: String,
    /// True once the server answered.
    is_reached: AtomicBool,
    /// How many messages were looked at for what this route loses of them.
    seen: AtomicUsize,
}

impl HttpEndpoint {
    /// Nothing is opened before the first request.
    pub(crate) fn new(
        route: Route,
        entry: Entry,
        options: &ModelOptions,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        let place = route.learned_under();
        Self {
            route: Arc::new(route),
            entry,
            timeouts: Timeouts::new(options),
            environment: qoder_http::variables()
                .filter_map(|name| Some((name.to_owned(), options.variable(name)?.to_owned())))
                .collect(),
            clients: options.clients.clone(),
            client: OnceLock::new(),
            cached_head: Mutex::new(None),
            recorder,
            learned: options.learned.clone(),
            place,
            is_reached: AtomicBool::new(false),
            seen: AtomicUsize::new(0),
        }
    }

    /// What the server accepts, as far as it is known by now.
    fn profile(&self) -> Profile {
        self.learned.profile(&self.place, self.route.profile())
    }

    fn client(&self) -> Result<Client, ModelFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let built = self.clients.get(&self.route, &self.environment)?;
        Ok(self.client.get_or_init(|| built).clone())
    }

    fn head_options(&self, request: &ModelRequest, profile: Profile) -> HeadOptions {
        let wanted = request.max_output_tokens.map_or(DEFAULT_OUTPUT, u64::from).max(1);
        let most = profile.most_output_tokens.unwrap_or(u64::MAX).max(1);
        HeadOptions {
            model: self.route.model.clone(),
            max_tokens: wanted.min(self.entry.max_output_tokens).min(most),
            is_limited: request.max_output_tokens.is_some()
                || self.entry.has_output_limit
                || profile.most_output_tokens.is_some(),
            profile,
        }
    }

    fn head(&self, request: &ModelRequest, profile: Profile) -> (Bytes, Bytes) {
        let options = self.head_options(request, profile);
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

    fn body(&self, request: &ModelRequest, profile: Profile) -> Bytes {
        let protocol = self.route.protocol;
        let (head, first) = self.head(request, profile);
        let pieces = compose::pieces(&request.messages, protocol, &profile, protocol.key(&profile));
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
        let mut may_resend = self.is_reached.load(Ordering::Relaxed);
        let response = loop {
            let sent = self
                .client()?
                .post(self.route.endpoint())
                .headers(self.route.request_headers())
                .body(body.clone())
                .send();
            match tokio::time::timeout(self.timeouts.idle(), sent).await {
                Ok(Ok(response)) => break response,
                // A server may close a kept connection just when the next request goes out. That says nothing.
                Ok(Err(error)) if may_resend && failure::is_closed(&error) => may_resend = false,
                Ok(Err(error)) => return Err(failure::from_sending(&error, &self.route)),
                Err(_) => return Err(body::silence(&self.route, self.timeouts.idle()).into()),
            }
        };
        self.is_reached.store(true, Ordering::Relaxed);
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

    /// Asks, and asks again at once when the server refused something that can be left out.
    async fn exchange(&self, request: &ModelRequest, sink: &Sink) -> Result<Decoded, AttemptFailure> {
        let mut lessons = 0;
        loop {
            let failed = match self.exchange_once(request, sink).await {
                Ok(decoded) => return Ok(decoded),
                Err(failed) => failed,
            };
            lessons += 1;
            if lessons > MOST_LESSONS
                || !(self.learn(&failed, request, sink) || self.identify(&failed, request, sink).await)
            {
                return Err(failed);
            }
        }
    }

    /// True when the failure teaches something that was not known, so that asking again may help.
    fn learn(&self, failed: &AttemptFailure, request: &ModelRequest, sink: &Sink) -> bool {
        let Some((status, body)) = &failed.response else { return false };
        let profile = self.profile();
        let head = self.head_options(request, profile);
        let refusal = Refusal {
            status: *status,
            body,
            protocol: self.route.protocol,
            request,
            max_tokens: head.sends_limit(self.route.protocol).then_some(head.max_tokens),
        };
        let Some(lesson) = lesson::from_refusal(&refusal, &profile) else { return false };
        if !self.learned.teach(&self.place, &lesson) {
            return false;
        }
        let changes = learn::changes(&self.route.profile(), &lesson.profile);
        let text = format!(
            "{} refused the request ({status}: {}). It was sent again {}, and so is every later one of this session. \
             To settle it, put this into the settings: {}",
            self.route.place(),
            lesson::words_of(body),
            lesson.how,
            self.route.settings_line(&changes),
        );
        sink.push(ModelEvent::Notice(ModelNotice {
            text: self.route.mask(&text),
            place: self.place.clone(),
            compat: Some(Value::Object(changes)),
        }));
        true
    }

    /// After a refusal that teaches nothing, asks a server that nothing identified for its list of models, once a session.
    /// True when the list identifies it, and the request to that kind of server is another one.
    async fn identify(&self, failed: &AttemptFailure, request: &ModelRequest, sink: &Sink) -> bool {
        let is_unexplained =
            failed.response.is_some() && failed.failure.class == ModelFailureClass::InvalidRequest;
        // Over Messages, the servers that such a list identifies take what an unknown one gets.
        let is_unknown = self.route.protocol != Protocol::AnthropicMessages
            && self.route.choice().is_guess
            && self.profile().name == self.route.profile().name;
        let server = self.route.server_key();
        if !is_unexplained || !is_unknown || !self.learned.is_news(&server, "asked for its list of models") {
            return false;
        }
        let before = self.profile();
        let asked = self.models_profile();
        let Ok(Some(told)) = tokio::time::timeout(IDENTIFYING, asked).await else { return false };
        self.learned.recognise(&server, told.profile);
        let profile = self.profile();
        if self.body(request, before) == self.body(request, profile) {
            return false;
        }
        let changes = learn::changes(&self.route.profile(), &profile);
        let text = format!(
            "{} refused the request, and {}: it was sent again as {} takes it, and so is every later one of this session. \
             To settle it, put this into the settings: {}",
            self.route.place(),
            told.reason,
            profile.title,
            self.route.settings_line(&changes),
        );
        sink.push(ModelEvent::Notice(ModelNotice {
            text: self.route.mask(&text),
            place: self.place.clone(),
            compat: Some(Value::Object(changes)),
        }));
        true
    }

    /// The profile that the server's list of models shows.
    async fn models_profile(&self) -> Option<Choice> {
        let client = self.client().ok()?;
        let sent = client.get(self.route.models_endpoint()).headers(self.route.request_headers()).send();
        let response = sent.await.ok().filter(|response| response.status().is_success())?;
        let headers = response.headers().clone();
        let route = Arc::clone(&self.route);
        let pieces = response
            .bytes_stream()
            .map(move |piece| piece.map_err(|error| failure::from_network(&error, &route)));
        let list = serde_json::from_slice(&body::collect(pieces.boxed()).await.ok()?).ok()?;
        choose::by_headers(&headers).or_else(|| choose::by_models(&list))
    }

    /// Reports what the messages that are new here lose on this route.
    fn report_left_out(&self, request: &ModelRequest, profile: &Profile, sink: &Sink) {
        let seen = self.seen.swap(request.messages.len(), Ordering::Relaxed);
        let Some(new) = request.messages.get(seen..) else { return };
        let left_out = carry::left_out(new, self.route.protocol, profile).in_words();
        if let Some(what) = left_out.filter(|what| self.learned.is_news(&self.place, what)) {
            let text = format!(
                "{what} of this conversation cannot be sent to {} at {} and are left out there; the log keeps them",
                self.route.model,
                self.route.place()
            );
            sink.push(ModelEvent::Notice(ModelNotice { text, place: self.place.clone(), compat: None }));
        }
    }

    async fn exchange_once(&self, request: &ModelRequest, sink: &Sink) -> Result<Decoded, AttemptFailure> {
        let profile = self.profile();
        self.report_left_out(request, &profile, sink);
        let body = self.body(request, profile);
        let tape = self
            .recorder
            .as_ref()
            .map(|recorder| Tape::new(Arc::clone(recorder), &self.route, request.messages.len(), &body));
        let mut response = self.send(body).await?;
        if self.route.choice().is_guess
            && let Some(told) = choose::by_headers(&response.headers)
        {
            self.learned.recognise(&self.route.server_key(), told.profile);
        }
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
        let partial = request.partial.then(|| sink.clone());
        let mut decoded = read(response, &self.route, &profile, self.timeouts, partial).await?;
        give_names_back(&mut decoded, request, &profile);
        if let Some(note) = decoded.note.filter(|note| self.learned.is_news(&self.place, note)) {
            let text = format!("{} {note}", self.route.place());
            sink.push(ModelEvent::Notice(ModelNotice { text, place: self.place.clone(), compat: None }));
        }
        Ok(decoded)
    }
}

/// Tools whose names the server does not take are sent under others; calls of those get the names back.
fn give_names_back(decoded: &mut Decoded, request: &ModelRequest, profile: &Profile) {
    for block in &mut decoded.content {
        if let ContentBlock::ToolUse { name, .. } = block
            && !request.tools.iter().any(|tool| tool.name == *name)
        {
            let sent = |tool: &&ToolDefinition| Accepted::TOOL.id(&tool.name, profile.tool_names) == *name;
            if let Some(tool) = request.tools.iter().find(sent) {
                name.clone_from(&tool.name);
            }
        }
    }
}

impl Endpoint for HttpEndpoint {
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
            let result = match tokio::time::timeout(self.timeouts.total(), self.exchange(request, sink)).await
            {
                Ok(result) => result,
                Err(_) => Err(failure(
                    ModelFailureClass::Timeout,
                    format!(
                        "the call to {} took longer than {} ms in all (QODER_API_TIMEOUT_MS)",
                        self.route.place(),
                        self.timeouts.total().as_millis()
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
