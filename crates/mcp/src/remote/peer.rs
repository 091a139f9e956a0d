//! The life of one connection: it begins with a transport and a handshake within the patience of the start, lives until
//! either side lets go, and ends with the child process or the session. Connecting again makes a new one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, InputResponses, ProtocolVersion,
    ServerPeerInfo,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport as Carrier;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::ask::{Asker, Terms};
use super::events::Events;
use super::fault::{CLOSED, Fault, Watched};
use super::handler::Handler;
use super::http::{self, EventTransport, Requests};
use super::stdio::{Leftovers, Pipes, Start, with_leftovers};
use super::{Lifecycle, PeerContext, failure, listing, wire};
use crate::{CallToolResult, Greeting, ListedTool, McpPeer, PeerError, PeerEvents, ToolCall};
use qoder_types::server::{NamedServer, Transport};

/// How long `close` waits for the end of a connection; the end itself continues after that.
const CLOSE_PATIENCE: Duration = Duration::from_secs(15);

type Service = RunningService<RoleClient, Arc<Handler>>;

/// A server outside of this process.
#[derive(Clone)]
pub struct RemotePeer {
    shared: Arc<Shared>,
}

struct Shared {
    server: NamedServer,
    context: PeerContext,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Gives up the attempt that is under way.
    given_up: Mutex<CancellationToken>,
    /// Over streamable HTTP: whether the server keeps a session for the connection.
    in_session: Mutex<Option<Arc<AtomicBool>>>,
}

struct Connection {
    asker: Asker,
    /// Completes when everything of the connection is gone.
    done: CancellationToken,
    /// Ends the connection when the last one lets go of it.
    _ending: DropGuard,
}

/// What one attempt to connect needs.
struct Attempt {
    handler: Arc<Handler>,
    leftovers: Arc<Leftovers>,
    ending: CancellationToken,
    given_up: CancellationToken,
}

impl RemotePeer {
    /// Nothing is started yet.
    #[must_use]
    pub fn new(server: NamedServer, context: PeerContext) -> Self {
        let shared = Shared {
            server,
            context,
            connection: Mutex::default(),
            given_up: Mutex::default(),
            in_session: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// True when the server was reached over streamable HTTP and keeps no session for the connection: it cannot tell who
    /// calls but by the credential.
    pub(super) fn is_stateless(&self) -> bool {
        let in_session = self.shared.in_session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        in_session.is_some_and(|in_session| !in_session.load(Ordering::Relaxed))
    }
}

impl Shared {
    async fn connect(&self, sink: PeerEvents) -> Result<Greeting, PeerError> {
        // The later of two attempts wins.
        let given_up = self.give_up();
        self.disconnect().await;
        let events = Arc::new(Events::new(sink));
        let attempt = self.attempt(&events, given_up.clone())?;
        let begun = self.begin(&attempt, &events);
        let patience = self.context.limits.start_up;
        let outcome = tokio::select! {
            biased;
            () = given_up.cancelled() => return Err(closed()),
            outcome = tokio::time::timeout(patience, begun) => outcome,
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(_) => {
                let text = format!("the server did not get ready within {} s", patience.as_secs_f64());
                Err(PeerError::Failed(with_leftovers(text, &attempt.leftovers)))
            }
        }
    }

    fn attempt(&self, events: &Arc<Events>, given_up: CancellationToken) -> Result<Attempt, PeerError> {
        let offered = self.context.protocol_version.as_deref();
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version.has_initialize());
        let version = match offered {
            Some(text) => known
                .find(|version| version.as_str() == text)
                .cloned()
                .ok_or_else(|| PeerError::Failed(format!("`{text}` is no revision that can be offered")))?,
            None => ProtocolVersion::V_2025_11_25,
        };
        let handler = Handler::new(
            &self.server.name,
            Arc::clone(&self.context.questions),
            version,
            Arc::clone(events),
            Arc::new(Fault::default()),
        )
        .sampling(self.server.config.sampling);
        Ok(Attempt {
            handler: Arc::new(handler),
            leftovers: Arc::default(),
            ending: CancellationToken::new(),
            given_up,
        })
    }

    async fn begin(&self, attempt: &Attempt, events: &Arc<Events>) -> Result<Greeting, PeerError> {
        // A second attempt, where there is one, has its own handler.
        let (service, ending) = match &self.server.config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let start = Start { command, arguments: args, environment: env, directory: cwd.as_deref() };
                let fault = Arc::clone(&attempt.handler.fault);
                let pipes = Pipes::start(&start, &self.context, fault, Arc::clone(&attempt.leftovers))?;
                (
                    self.serve(attempt, pipes).await.map_err(|error| started(error, attempt))?,
                    attempt.ending.clone(),
                )
            }
            Transport::Sse { url, headers } => {
                let url = address(url)?;
                let fault = Arc::clone(&attempt.handler.fault);
                let requests = Requests::new(&url, headers, &self.context, fault)?;
                (self.serve_events(&url, requests, attempt).await?, attempt.ending.clone())
            }
            Transport::Http { url, headers } => {
                let url = address(url)?;
                let fault = Arc::clone(&attempt.handler.fault);
                let requests = Requests::new(&url, headers, &self.context, fault)?;
                let in_session = Arc::clone(&requests.in_session);
                let typed = self.context.lifecycle == Lifecycle::Discover;
                let carrier = http::transport(&url, requests, typed);
                match self.serve(attempt, carrier).await {
                    Ok(service) => {
                        let known = Some(in_session);
                        *self.in_session.lock().unwrap_or_else(PoisonError::into_inner) = known;
                        (service, attempt.ending.clone())
                    }
                    Err(error) if failure::is_legacy(&error) => {
                        let second = self.attempt(events, attempt.given_up.clone())?;
                        let fault = Arc::clone(&second.handler.fault);
                        let requests = Requests::new(&url, headers, &self.context, fault)?;
                        // When that fails as well, the first answer is the one that means something.
                        let service = self.serve_events(&url, requests, &second).await;
                        (service.map_err(|_| started(error, attempt))?, second.ending)
                    }
                    Err(error) => return Err(started(error, attempt)),
                }
            }
            Transport::Sdk { name } => {
                return Err(PeerError::Failed(format!("the server `{name}` is not reached this way")));
            }
        };
        self.greet(service, ending, &attempt.given_up).await
    }

    async fn serve_events(
        &self,
        url: &Url,
        requests: Requests,
        attempt: &Attempt,
    ) -> Result<Service, PeerError> {
        let carrier = EventTransport::open(url, requests).await.map_err(|problem| {
            // Nothing was ever there that could be gone.
            match failure::of_problem(&problem) {
                PeerError::Closed(text) => PeerError::Failed(text),
                other => other,
            }
        })?;
        self.serve(attempt, carrier).await.map_err(|error| started(error, attempt))
    }

    async fn serve<C: Carrier<RoleClient> + 'static>(
        &self,
        attempt: &Attempt,
        carrier: C,
    ) -> Result<Service, ClientInitializeError> {
        let carrier = Watched::new(carrier, Arc::clone(&attempt.handler.fault));
        let lifecycle = match self.context.lifecycle {
            Lifecycle::Initialize => ClientLifecycleMode::Initialize,
            Lifecycle::Discover => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let handler = Arc::clone(&attempt.handler);
        Box::pin(serve_client_with_lifecycle_and_ct(handler, carrier, lifecycle, attempt.ending.clone()))
            .await
    }

    /// Reads what the server said of itself and lists its tools; from then on the connection is open.
    async fn greet(
        &self,
        service: Service,
        ending: CancellationToken,
        given_up: &CancellationToken,
    ) -> Result<Greeting, PeerError> {
        let handler = Arc::clone(service.service());
        let asker = Asker { peer: service.peer().clone(), handler: Arc::clone(&handler) };
        let info = service.peer().peer_info();
        let info = info
            .as_deref()
            .ok_or_else(|| PeerError::Failed("the server said nothing of itself".to_owned()))?;
        check_version(info, self.context.lifecycle)?;
        let mut greeting = Greeting {
            server_info: info.server_info.as_ref().and_then(|server| serde_json::to_value(server).ok()),
            capabilities: serde_json::to_value(&info.capabilities).unwrap_or_default(),
            instructions: info.instructions.clone(),
            tools: Vec::new(),
        };
        if info.capabilities.tools.is_some() {
            greeting.tools = listing::tools(&asker, &self.context.limits).await?;
        }
        let done = CancellationToken::new();
        let connection = Connection { asker, done: done.clone(), _ending: ending.drop_guard() };
        {
            let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            // Looked at under the lock: a later `give_up` finds the connection there.
            if given_up.is_cancelled() {
                return Err(closed());
            }
            *current = Some(Arc::new(connection));
        }
        tokio::spawn(watch(service, handler, done));
        Ok(greeting)
    }

    fn current(&self) -> Result<Arc<Connection>, PeerError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let connection =
            connection.ok_or_else(|| PeerError::NotConnected("the connection was closed".to_owned()))?;
        match connection.asker.handler.fault.text() {
            Some(problem) => Err(PeerError::NotConnected(problem)),
            None => Ok(connection),
        }
    }

    /// Gives up what is under way; the token is that of the next attempt.
    fn give_up(&self) -> CancellationToken {
        let next = CancellationToken::new();
        let mut current = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, next.clone()).cancel();
        next
    }

    async fn close(&self) {
        self.give_up();
        self.disconnect().await;
    }

    async fn disconnect(&self) {
        let Some(connection) = self.connection.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        connection.asker.handler.events.silence();
        let done = connection.done.clone();
        // Calls may still hold the connection; they end with it.
        connection.asker.handler.fault.fail("the connection was closed");
        drop(connection);
        let _ = tokio::time::timeout(CLOSE_PATIENCE, done.cancelled()).await;
    }

    async fn list_tools(&self) -> Result<Vec<ListedTool>, PeerError> {
        let connection = self.current()?;
        let patience = self.context.limits.start_up;
        match tokio::time::timeout(patience, listing::tools(&connection.asker, &self.context.limits)).await {
            Ok(tools) => tools,
            Err(_) => Err(PeerError::Failed(format!(
                "the server did not list its tools within {} s",
                patience.as_secs_f64()
            ))),
        }
    }

    async fn call(&self, call: ToolCall) -> Result<CallToolResult, PeerError> {
        let connection = self.current()?;
        let Value::Object(arguments) = call.arguments else {
            return Err(PeerError::Failed("the arguments of a tool must be an object".to_owned()));
        };
        let terms = Terms {
            patience: self.server.config.timeout.unwrap_or(self.context.limits.call),
            cancelled: Some(call.cancelled),
            progress: call.progress,
        };
        let request = |responses, state| {
            let mut params = CallToolRequestParams::new(call.tool.clone()).with_arguments(arguments.clone());
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let mut answer = wire::value(connection.asker.ask_in_rounds(request, &terms).await?);
        if let Value::Object(fields) = &mut answer {
            fields.retain(|_, value| !value.is_null());
        }
        serde_json::from_value(answer)
            .map_err(|error| PeerError::Failed(format!("the result cannot be read: {error}")))
    }

    async fn request(&self, method: &'static str, params: Value) -> Result<Value, PeerError> {
        let connection = self.current()?;
        let terms = Terms::within(self.context.limits.request);
        let request = |responses: Option<InputResponses>, state: Option<String>| {
            let mut params = params.clone();
            if let Value::Object(fields) = &mut params {
                let responses = responses.map(|responses| json!(responses));
                fields.extend(responses.map(|responses| ("inputResponses".to_owned(), responses)));
                fields.extend(state.map(|state| ("requestState".to_owned(), Value::String(state))));
            }
            let params = Some(params).filter(|params| !params.is_null());
            ClientRequest::CustomRequest(CustomRequest::new(method, params))
        };
        connection.asker.ask_in_rounds(request, &terms).await.map(wire::value)
    }

    async fn roots_changed(&self) {
        if let Ok(connection) = self.current() {
            // A server that is gone will ask when it is back.
            let _ = connection.asker.peer.notify_roots_list_changed().await;
        }
    }
}

/// Reports the end as soon as it is known, and completes `done` when everything is gone.
async fn watch(service: Service, handler: Arc<Handler>, done: CancellationToken) {
    let ended = service.waiting();
    tokio::pin!(ended);
    tokio::select! {
        () = handler.fault.gone() => {
            report_end(&handler);
            // How the loop ended says nothing that the fault does not.
            let _ = ended.await;
        }
        _ = &mut ended => report_end(&handler),
    }
    done.cancel();
}

fn closed() -> PeerError {
    PeerError::Closed("the connection was closed".to_owned())
}

fn report_end(handler: &Handler) {
    handler.fault.fail(CLOSED);
    handler.events.report_closed(handler.fault.text().unwrap_or_default());
}

/// Why the handshake failed, with what the process wrote.
fn started(error: ClientInitializeError, attempt: &Attempt) -> PeerError {
    let known = attempt.handler.fault.text();
    match failure::of_start(error, &attempt.handler.fault) {
        // What was written down has it already.
        PeerError::Failed(text) if known.is_none() => {
            PeerError::Failed(with_leftovers(text, &attempt.leftovers))
        }
        other => other,
    }
}

fn address(text: &str) -> Result<Url, PeerError> {
    let url = Url::parse(text)
        .map_err(|error| PeerError::Failed(format!("the address cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(PeerError::Failed(
            "the address must begin with http:// or https:// and name a host".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(PeerError::Failed("the address must not hold credentials; use a header".to_owned()));
    }
    Ok(url)
}

fn check_version(info: &ServerPeerInfo, lifecycle: Lifecycle) -> Result<(), PeerError> {
    let version = &info.protocol_version;
    let known = ProtocolVersion::KNOWN_VERSIONS.contains(version);
    let fits = match lifecycle {
        Lifecycle::Initialize => known && version.has_initialize(),
        Lifecycle::Discover => known,
    };
    if fits {
        return Ok(());
    }
    let text = super::events::shortened(version.as_str(), 50);
    Err(PeerError::Failed(format!(
        "the server speaks revision `{text}` of the protocol; known here are 2024-11-05 to 2025-11-25"
    )))
}

impl McpPeer for RemotePeer {
    fn connect(&self, events: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        let shared = Arc::clone(&self.shared);
        async move { shared.connect(events).await }.boxed()
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        let shared = Arc::clone(&self.shared);
        async move { shared.list_tools().await }.boxed()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        let shared = Arc::clone(&self.shared);
        async move { shared.call(call).await }.boxed()
    }

    fn request(&self, method: &'static str, params: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        let shared = Arc::clone(&self.shared);
        async move { shared.request(method, params).await }.boxed()
    }

    fn roots_changed(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        async move { shared.roots_changed().await }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        async move { shared.close().await }.boxed()
    }
}
