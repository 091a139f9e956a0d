//! The traits that the outside implements, with their obligations beside them.
//!
//! * [`Model`]: streams one reply. Retries inside; a reply is complete or it is an error, never half.
//! * [`Tool`]: declares itself, says what it would touch, and runs. Failure is a result, never a panic.
//! * [`McpPort`]: the MCP servers of a session, for tools that reach them by name.
//! * [`LogStore`]: keeps one session's records. One writer; a failed write or sync ends it.

mod mcp;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use qoder_types::Record;
use qoder_types::record::SideCalled;
use qoder_types::{
    CallOutcome, ContentBlock, Message, ModelFailure, ModelReply, Observation, PermissionMode,
    PermissionUpdate, Purpose, ReplayClass, RuleValue, TaskEnded, TaskParked, TaskStarted, ToolAnnotations,
    ToolDefinition, ToolResultContent, Worktree, WorktreeChange,
};
use serde_json::Value;

pub use mcp::McpPort;
pub use qoder_types::{Access, CommandEnvironment};

use crate::permissions::SessionPermissions;
use crate::redact::Redactor;

/// Completes when the work it was given to shall stop. Clone it freely; `peek().is_some()` asks without waiting.
pub type Cancelled = Shared<BoxFuture<'static, ()>>;

/// A message of the prompt. Each wire protocol serialises it once and keeps the bytes here, so that a turn costs what
/// it adds and not what the conversation has become.
#[derive(Debug)]
pub struct PromptMessage {
    /// The message.
    pub message: Message,
    encoded: OnceLock<(u64, Bytes)>,
}

impl PromptMessage {
    /// Wraps a message.
    #[must_use]
    pub fn new(message: Message) -> Self {
        Self { message, encoded: OnceLock::new() }
    }

    /// The bytes of this message in the form `format`, a number for a wire protocol and what its server takes, made by `encode` at the first call. A second format on the
    /// same message is encoded each time: a session speaks one.
    pub fn encoded(&self, format: u64, encode: impl Fn(&Message) -> Bytes) -> Bytes {
        let (kept, bytes) = self.encoded.get_or_init(|| (format, encode(&self.message)));
        if *kept == format { bytes.clone() } else { encode(&self.message) }
    }
}

/// How much the model shall think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As the model does by itself.
    #[default]
    Default,
    /// Not at all, where the provider can switch it off.
    Disabled,
    /// The model decides how much.
    Adaptive,
    /// At most this many tokens.
    Budget(u32),
}

/// One request to a model. Everything in front of `messages` is fixed within an epoch.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Why the model is called.
    pub purpose: Purpose,
    /// The session, for provider-side cache routing.
    pub session_id: String,
    /// The system prompt, in blocks.
    pub system: Arc<[String]>,
    /// The advertised tools, in order. Held by `Arc` so that an encoder can recognise an unchanged list.
    pub tools: Arc<[ToolDefinition]>,
    /// The conversation.
    pub messages: Vec<Arc<PromptMessage>>,
    /// Limit for the reply; `None` takes the model's own.
    pub max_output_tokens: Option<u32>,
    /// How much to think.
    pub thinking: Thinking,
    /// `low`, `medium`, `high`, `xhigh` or `max`.
    pub effort: Option<String>,
    /// What the provider's request gets besides, such as `temperature`; usually nothing.
    pub parameters: BTreeMap<String, Value>,
    /// False when no one reads partial replies; the model then sends no [`ModelEvent::Partial`].
    pub partial: bool,
}

/// What a model call reports while it runs. The last item is `Reply` or an error.
#[derive(Debug)]
pub enum ModelEvent {
    /// A piece of the reply, as the JSON text of an Anthropic-shaped stream event. After a retry the pieces start again
    /// with a new `message_start`.
    Partial(String),
    /// An attempt failed and another will follow.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
        /// How long the model waits now.
        delay_ms: u64,
        /// What went wrong.
        failure: ModelFailure,
    },
    /// The main model failed for good and the fallback model takes over.
    Fallback {
        /// The model that failed.
        from: String,
        /// The model that is asked instead.
        to: String,
        /// What went wrong.
        failure: ModelFailure,
    },
    /// Something that was done otherwise than asked, so that the server takes the request.
    Notice(ModelNotice),
    /// The complete reply.
    Reply(Box<ModelReply>),
}

/// What a model reports besides its reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelNotice {
    /// For people: what happened and what to do.
    pub text: String,
    /// The server and model it is about, as the model names them.
    pub place: String,
    /// What was learned about the server, as `compat` of a provider has it; none where nothing was.
    pub compat: Option<Value>,
}

/// What is known about a model without asking it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The name to show and to record.
    pub name: String,
    /// The provider behind it, by its name in the GenAI conventions of OpenTelemetry where it has one.
    pub provider: String,
    /// Context window in tokens.
    pub context_window: u64,
    /// The most tokens one reply may have.
    pub max_output_tokens: u64,
    /// Where the key came from, as `apiKeySource`: `user`, `project`, `org`, `temporary` or `none`.
    pub key_source: &'static str,
}

/// One model behind one route.
///
/// Contract: the stream never panics, ends after `Reply` or the first error, and stops all work when it is dropped.
/// Tool calls whose arguments are not JSON are delivered with the raw text as a string `input`.
pub trait Model: Send + Sync {
    /// What is known about it.
    fn facts(&self) -> ModelFacts;
    /// Starts a reply.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelFailure>>;
}

/// A question to a model beside the conversation.
#[derive(Debug, Clone)]
pub struct SideQuestion {
    /// Why it is asked.
    pub purpose: Purpose,
    /// The system prompt.
    pub system: String,
    /// The question, with everything the model shall read.
    pub prompt: String,
    /// The most tokens of the answer.
    pub max_output_tokens: u32,
}

/// Calls of models that a tool made, each with its cost; put on record with the tool's result.
pub type Spent = Arc<Mutex<Vec<SideCalled>>>;

/// Asks a model beside the conversation; the error is for the model that called the tool. The cost is put on record.
pub type SideModel = Arc<dyn Fn(SideQuestion) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Lets a caller wait until something is on record. Dropped unconfirmed, with all its clones, it says that this
/// will never be.
#[derive(Debug, Clone)]
pub struct Receipt(Arc<Mutex<Option<oneshot::Sender<()>>>>);

impl Receipt {
    /// A receipt, and what completes with `Ok` once it is confirmed.
    pub fn pair() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// It is on record. The caller that waited may be gone.
    pub fn confirm(&self) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = sender.send(());
        }
    }
}

/// News of a call while it runs. What a task does goes into the log; the rest is ephemeral.
#[derive(Debug, Clone)]
pub enum ToolProgress {
    /// A piece of output.
    Output(String),
    /// A background task is about to start; it starts when that is on record.
    TaskStarted {
        /// The task.
        start: TaskStarted,
        /// To be confirmed as soon as the start is on record.
        receipt: Receipt,
    },
    /// A background task has said something new.
    TaskProgress {
        /// The task.
        task_id: String,
        /// How long it runs.
        duration_ms: u64,
        /// The last line it said.
        last_line: Option<String>,
        /// Tokens of its model calls, of an agent.
        total_tokens: u64,
        /// Its tool calls, of an agent.
        tool_uses: u64,
        /// The tool that it called last, of an agent.
        last_tool: Option<String>,
    },
    /// An agent ended its drive because calls of it wait.
    TaskParked(TaskParked),
    /// A background task ended.
    TaskEnded(TaskEnded),
}

/// Receives [`ToolProgress`]; must not block.
pub type ProgressSink = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// Looks up what the session last saw of a file.
pub type Observed = Arc<dyn Fn(&Path) -> Option<Observation> + Send + Sync>;

/// True for places that a search must pass over: a rule keeps their content from the model.
pub type Hidden = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A file as it is just before a tool changes it.
#[derive(Debug, Clone, Copy)]
pub struct BeforeChange<'a> {
    /// Where it is; real path.
    pub path: &'a Path,
    /// Its content and permission bits; `None` when there is no file yet.
    pub file: Option<(&'a [u8], u32)>,
    /// The content that it gets.
    pub becomes: &'a [u8],
}

/// Keeps a file as it is before a change. The error says why it cannot be kept; the change is then not made.
pub type KeepBefore = Arc<dyn Fn(&BeforeChange<'_>) -> Result<(), String> + Send + Sync>;

/// Where outputs are kept that are too long for the model, and what must not be kept with them.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    /// Private directory (0700). Created on first use.
    pub directory: PathBuf,
    /// Takes secrets out of what is kept or shown.
    pub redactor: Redactor,
}

/// What a tool is given besides its input.
#[derive(Clone)]
pub struct ToolContext {
    /// The session.
    pub session_id: String,
    /// The call.
    pub tool_use_id: String,
    /// Working directory of the session; real path.
    pub cwd: PathBuf,
    /// Directories the session may work in; real paths, `cwd`'s root first.
    pub roots: Arc<[PathBuf]>,
    /// Where outputs go that are too long for the model.
    pub outputs: Outputs,
    /// Looks up what the session last saw of a file, by real path.
    pub observed: Observed,
    /// Keeps files as they are before the call changes them; `None` where nothing is kept.
    pub keep_before: Option<KeepBefore>,
    /// What a search must pass over; `None` is nothing.
    pub hidden: Option<Hidden>,
    /// Completes when the call shall stop.
    pub cancelled: Cancelled,
    /// Receives news while the call runs.
    pub progress: ProgressSink,
    /// How the environment of commands differs from that of this process.
    pub environment: Arc<CommandEnvironment>,
    /// Asks a model beside the conversation; `None` where no model is available.
    pub side_model: Option<SideModel>,
    /// What models the call asked besides; the side model adds itself.
    pub spent: Spent,
    /// What the session changed about its permissions, for a child that must not have more.
    pub permissions: SessionPermissions,
    /// The mode the session is in.
    pub mode: PermissionMode,
    /// The mode to return to when planning ends.
    pub mode_after_plan: PermissionMode,
    /// The worktree the session works in.
    pub worktree: Option<Worktree>,
    /// Things shared by the tools of one session, such as its background tasks.
    pub shared: Arc<dyn Any + Send + Sync>,
}

/// What a call came to.
#[derive(Debug)]
pub struct ToolOutcome {
    /// What the model reads. Already bounded by the tool.
    pub content: ToolResultContent,
    /// How it ended: `Completed`, `Failed` or `Interrupted`.
    pub outcome: CallOutcome,
    /// The typed output (`tool_use_result`).
    pub structured: Value,
    /// What it saw of files.
    pub observations: Vec<Observation>,
    /// The working directory from now on, when the call changed it.
    pub new_cwd: Option<PathBuf>,
    /// Changes of permissions that the call brings; only of calls that a person approved.
    pub permission_updates: Vec<PermissionUpdate>,
    /// A worktree that was entered or left.
    pub worktree: Option<WorktreeChange>,
    /// Background tasks whose end the content reports; the model needs no other notice of it.
    pub ended_tasks: Vec<String>,
    /// Rules that allow calls until the turn ends.
    pub turn_rules: Vec<RuleValue>,
    /// Why the turn ends with this call: a hook has stopped the agent that the call started.
    pub stop: Option<String>,
    /// True when the call has no result yet: the agent that it started waits for an answer.
    pub parked: bool,
}

impl ToolOutcome {
    /// A success with plain text.
    pub fn completed(text: impl Into<String>, structured: Value) -> Self {
        Self {
            content: ToolResultContent::Text(text.into()),
            outcome: CallOutcome::Completed,
            structured,
            observations: Vec::new(),
            new_cwd: None,
            permission_updates: Vec::new(),
            worktree: None,
            ended_tasks: Vec::new(),
            turn_rules: Vec::new(),
            stop: None,
            parked: false,
        }
    }

    /// A failure that the model can act on.
    pub fn failed(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            structured: serde_json::json!({ "error": text }),
            content: ToolResultContent::Text(text),
            outcome: CallOutcome::Failed,
            observations: Vec::new(),
            new_cwd: None,
            permission_updates: Vec::new(),
            worktree: None,
            ended_tasks: Vec::new(),
            turn_rules: Vec::new(),
            stop: None,
            parked: false,
        }
    }

    /// A success with blocks.
    #[must_use]
    pub fn blocks(blocks: Vec<ContentBlock>, structured: Value) -> Self {
        Self { content: ToolResultContent::Blocks(blocks), ..Self::completed(String::new(), structured) }
    }
}

/// A tool.
///
/// Contract: `accesses` is total over any JSON and names everything `run` would touch; `run` ends in bounded time and
/// memory, reacts to `cancelled` within two seconds, leaves no process behind, and never panics.
pub trait Tool: Send + Sync {
    /// As advertised to the model.
    fn definition(&self) -> &ToolDefinition;
    /// The MCP hints.
    fn annotations(&self) -> ToolAnnotations;
    /// What may be done if the process dies while it runs.
    fn replay(&self) -> ReplayClass;
    /// Calls that are read-only run together; the others one at a time, in order.
    fn is_read_only(&self, input: &Value) -> bool;
    /// False while there is nothing to call it for; the model is then not offered it.
    fn is_offered(&self) -> bool {
        true
    }
    /// True for a tool that runs outside the runtime: its call is asked for like a question and never run here.
    fn runs_outside(&self) -> bool {
        false
    }
    /// False for a tool whose calls no rule, policy or mode concerns.
    fn is_gated(&self) -> bool {
        true
    }
    /// Finds out, before a turn of the session `session_id` announces its tools, what [`Tool::is_offered`] depends on.
    /// `None` when that is known.
    fn learn(&self, session_id: &str) -> Option<BoxFuture<'static, ()>> {
        let _ = session_id;
        None
    }
    /// What the model reads behind the description and what may change while the session runs.
    fn addition(&self) -> Option<String> {
        None
    }
    /// What the call would touch.
    fn accesses(&self, input: &Value) -> Vec<Access>;
    /// Runs the call. The input has passed the schema.
    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome>;
}

/// Why a store cannot continue.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogStoreError {
    /// A write or sync failed; the session is read-only from now on.
    #[error("cannot write the session log {place}: {problem}")]
    Failed {
        /// The file or table.
        place: String,
        /// What the system said.
        problem: String,
    },
    /// Another holder has a newer lease of the session; nothing of this one is accepted.
    #[error("the session log {place} was taken over by another process")]
    Fenced {
        /// The file or table.
        place: String,
    },
    /// An earlier write failed; nothing more is accepted.
    #[error("the session log {place} is closed because an earlier write failed")]
    Ended {
        /// The file or table.
        place: String,
    },
}

/// Keeps the records of one session.
///
/// Contract: `append` hands records over, completely and in order; `barrier` completes when everything handed over is
/// durable, by the grade that the store was opened with. Effects that a record announces wait for the barrier. After any
/// error every later call fails; [`LogStoreError::Fenced`] says that a newer lease exists. Records are never changed or
/// removed.
pub trait LogStore: Send {
    /// Hands records over, all of them in one write.
    fn append(&mut self, records: &[Record]) -> Result<(), LogStoreError>;
    /// Appends a line without number, such as a title. It is no record, and nothing waits for it.
    fn note(&mut self, line: &Value) -> Result<(), LogStoreError>;
    /// Makes everything appended so far survive a loss of power.
    fn sync(&mut self) -> Result<(), LogStoreError>;
    /// Completes when everything handed over so far is durable. A store whose `append` makes it so is ready at once.
    fn barrier(&mut self) -> BoxFuture<'static, Result<(), LogStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
