//! What a server asks and sends: pings, roots, forms, progress, and notices of change. Sampling is
//! declared and served where the server's description says so; every way of asking a person but a form is refused.
#![expect(
    deprecated,
    reason = "roots, sampling and logging are on their way out of the protocol, and servers use them"
)]

mod elicitation;
mod sampling;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult, CustomRequest,
    CustomResult, ElicitRequestParams, ElicitResult, ErrorCode, ErrorData, Implementation, InputRequest,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use url::Url;

use super::events::{Events, shortened};
use super::fault::Fault;
use crate::peer::CallProgress;
use crate::questions::{ElicitationAnswer, ServerQuestions};
use crate::{PeerEvent, VERSION};

/// Questions of one server that wait at one time.
const MOST_QUESTIONS: usize = 8;
/// Reports of progress that came before their call was known to run.
const MOST_EARLY: usize = 32;
/// Characters of a report of progress.
const LONGEST_PROGRESS: usize = 2_000;

/// Who gets the progress of one call.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) tell: Arc<dyn Fn(CallProgress) + Send + Sync>,
    pub(super) tick: Arc<Notify>,
}

#[derive(Default)]
struct Watchers {
    known: HashMap<ProgressToken, Watcher>,
    early: VecDeque<(ProgressToken, CallProgress)>,
}

/// Our side of one connection.
pub(super) struct Handler {
    server: String,
    questions: Arc<dyn ServerQuestions>,
    version: ProtocolVersion,
    pub(super) events: Arc<Events>,
    pub(super) fault: Arc<Fault>,
    watchers: Mutex<Watchers>,
    waiting: AtomicUsize,
    sampling: bool,
}

impl Handler {
    pub(super) fn new(
        server: &str,
        questions: Arc<dyn ServerQuestions>,
        version: ProtocolVersion,
        events: Arc<Events>,
        fault: Arc<Fault>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            questions,
            version,
            events,
            fault,
            watchers: Mutex::default(),
            waiting: AtomicUsize::new(0),
            sampling: false,
        }
    }

    /// Whether the server may ask our model.
    pub(super) fn sampling(self, sampling: bool) -> Self {
        Self { sampling, ..self }
    }

    /// Asks our model. `params` are those of the server, whatever they hold.
    async fn sample(&self, params: &Value) -> Result<Value, String> {
        if !self.sampling {
            return Err("the server wants sampling, which is not offered".to_owned());
        }
        let Some(_open) = Open::begin(&self.waiting) else {
            return Err("too many questions at once".to_owned());
        };
        let question = sampling::question(&self.server, params)?;
        tokio::select! {
            sampled = self.questions.sample(question) => match sampled {
                Ok(sampled) => Ok(sampling::answer(&sampled)),
                Err(error) => Err(error.to_string()),
            },
            () = self.fault.gone() => Err("the connection is gone".to_owned()),
        }
    }

    /// True while a person is being asked.
    pub(super) fn is_asking(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Sends `watcher` the progress of a call from here on, and what has come before.
    pub(super) fn watch(&self, token: ProgressToken, watcher: &Watcher) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let (mine, others): (VecDeque<_>, VecDeque<_>) =
            watchers.early.drain(..).partition(|(early, _)| *early == token);
        watchers.early = others;
        watchers.known.insert(token, watcher.clone());
        drop(watchers);
        for (_, progress) in mine {
            (watcher.tell)(progress);
        }
    }

    /// The call has ended.
    pub(super) fn forget(&self, token: &ProgressToken) {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).known.remove(token);
    }

    fn progressed(&self, token: ProgressToken, progress: CallProgress) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = watchers.known.get(&token).cloned();
        if known.is_none() {
            if watchers.early.len() >= MOST_EARLY {
                watchers.early.pop_front();
            }
            watchers.early.push_back((token, progress.clone()));
        }
        drop(watchers);
        if let Some(watcher) = known {
            watcher.tick.notify_one();
            (watcher.tell)(progress);
        }
    }

    /// Puts a form before a person. `params` are those of the server, whatever they hold.
    async fn elicit(&self, params: &Value, display_name: Option<String>) -> Result<Value, ErrorData> {
        if elicitation::is_url_mode(params) {
            let text = "Client does not support URL-mode elicitation requests";
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, text, None));
        }
        let Some(_open) = Open::begin(&self.waiting) else {
            self.events.log("warning", "the server asks too many questions at once; one was cancelled");
            return Ok(json!({ "action": "cancel" }));
        };
        let question = elicitation::question(&self.server, display_name, params);
        let given = tokio::select! {
            given = self.questions.elicit(question.clone()) => given,
            () = self.fault.gone() => ElicitationAnswer::cancel(),
        };
        Ok(elicitation::answer(&question, given, &self.events))
    }

    fn roots(&self) -> Value {
        let uris = self.questions.roots().into_iter().filter_map(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            // Only an absolute path has an address.
            let uri = Url::from_directory_path(&path).ok()?;
            let uri = uri.as_str().trim_end_matches('/').to_owned();
            Some(json!({ "uri": uri, "name": name }))
        });
        json!({ "roots": uris.collect::<Vec<_>>() })
    }

    /// What the newest revision asks for inside of an answer. The error is for people.
    pub(super) async fn fulfil(&self, request: InputRequest) -> Result<Value, String> {
        match request {
            InputRequest::Elicitation(request) => {
                let params = serde_json::to_value(&request.params).unwrap_or_default();
                self.elicit(&params, None).await.map_err(|error| error.message.into_owned())
            }
            InputRequest::ListRoots(_) => Ok(self.roots()),
            InputRequest::CreateMessage(request) => {
                self.sample(&serde_json::to_value(&request.params).unwrap_or_default()).await
            }
            other => Err(format!("the server asks for something unknown: {other:?}")),
        }
    }
}

/// A question that waits.
struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Option<Self> {
        let open = Self(waiting);
        // Counted before it is judged, so that two at once cannot both be the last one.
        (waiting.fetch_add(1, Ordering::SeqCst) < MOST_QUESTIONS).then_some(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the server calls itself, for people.
fn display_name(context: &RequestContext<RoleClient>) -> Option<String> {
    let info = context.peer.peer_info()?;
    let server = info.server_info.as_ref()?;
    Some(server.title.clone().unwrap_or_else(|| server.name.clone()))
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = json!({ "roots": { "listChanged": true }, "elicitation": { "form": {} } });
        if self.sampling {
            capabilities["sampling"] = json!({});
        }
        ClientConfig::new(
            serde_json::from_value(capabilities).unwrap_or_default(),
            Implementation::new("qodercli", VERSION),
        )
        .with_protocol_version(self.version.clone())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        serde_json::from_value(self.roots())
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        if !self.sampling {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        let params = serde_json::to_value(&params).unwrap_or_default();
        let answer = tokio::select! {
            answer = self.sample(&params) => answer,
            () = context.ct.cancelled() => Err("the request was cancelled".to_owned()),
        };
        let answer = answer.map_err(|problem| ErrorData::new(ErrorCode::INVALID_REQUEST, problem, None))?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(&request).unwrap_or_default();
        let answer = tokio::select! {
            answer = self.elicit(&params, display_name(&context)) => answer?,
            () = context.ct.cancelled() => json!({ "action": "cancel" }),
        };
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.unwrap_or_default();
        let answer = tokio::select! {
            answer = self.elicit(&params, display_name(&context)) => answer?,
            () = context.ct.cancelled() => json!({ "action": "cancel" }),
        };
        Ok(CustomResult(answer))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = params.message.map(|message| shortened(&message, LONGEST_PROGRESS));
        let progress = CallProgress { progress: params.progress, total: params.total, message };
        self.progressed(params.progress_token, progress);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(params.level).unwrap_or_default();
        let text = match &params.data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = match &params.logger {
            Some(logger) => format!("{logger}: {text}"),
            None => text,
        };
        self.events.log(level.as_str().unwrap_or("info"), &text);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.events.report(PeerEvent::ResourceUpdated(params.uri));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.events.report(PeerEvent::ResourcesChanged);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.events.report(PeerEvent::ToolsChanged);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.events.report(PeerEvent::PromptsChanged);
    }
}
