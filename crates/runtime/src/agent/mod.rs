//! The Agent tool: hands a task to a child session with a conversation and a log of its own, and returns its last words.
//! The child sees the same gate, with the rules and the mode the parent has at that moment; it can be given less, never
//! more. A child starts no children.

mod child_host;
mod definition;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, CommandEnvironment, Model, Tool, ToolContext, ToolOutcome};
use qoder_tools::{parse_input, tool_definition};
use qoder_types::record::{PermissionsChanged, RecordBody, SideCalled, TurnEnded, TurnSubtype};
use qoder_types::{
    CallOutcome, Message, PermissionMode, PermissionUpdate, Purpose, ReplayClass, ToolAnnotations,
    ToolDefinition, UpdateDestination,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::checkpoints::Checkpoints;
use crate::driver::Driver;
use crate::engine::{AgentIdentity, Classifier, Confines, Engine, SystemPrompt};
use crate::error::SessionError;
use crate::events::Host;
use crate::extensions::Extensions;
use crate::gate::Gate;
use crate::hooks::Hooks;
use crate::interrupt::Interrupt;
use crate::layout::SessionPaths;
use crate::mcp::McpServers;
use crate::mcp::lazy::Lazy;
use crate::permission_updates::PermissionUpdates;
use crate::redact::Redactor;
use crate::session::{Keep, Session};
use crate::spending::Spending;
use crate::store::jsonl::Durability;
use crate::switched_model::SwitchedModel;
use crate::toolbox::{Offered, Toolbox};
use child_host::ChildHost;

pub use definition::{AgentDefinition, AgentList, Isolation, Listed, ServerReference, Standing};
pub(crate) use definition::{apply_overrides, covers, read_place};

/// The name the model calls.
pub const NAME: &str = "Agent";
/// The folder of children's logs, inside the folder of the session that started them.
pub const FOLDER: &str = "subagents";
/// The agent that is meant when none is named.
const GENERAL_PURPOSE: &str = "general-purpose";
/// What that agent is for.
const DESCRIPTION: &str =
    "Works on one task by itself, with most tools of the session, and returns its final answer.";
/// Model calls a child may make.
const MOST_TURNS: u64 = 150;
/// Tools that need the person or the main conversation.
const NOT_FOR_CHILDREN: [&str; 6] =
    [NAME, "AskUserQuestion", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "Config"];

/// What a child is told before anything else.
const ROLE: &str = "You work on one task for another agent. You see nothing of its conversation, and it sees nothing of \
yours but your last message: end with a complete answer that says what you found or did, where (path:line), and what is \
left open. You cannot ask anybody. Do exactly the task, and nothing beside it.";

/// Hands a task to another agent that works on its own and returns its final answer.
///
/// Use it for work that needs many steps or much reading and of which only the outcome matters here: searching a large
/// code base, checking several places, a self-contained change. Do not use it to read one known file or to find one
/// known name; Read and Grep are faster.
///
/// - The agent starts without any of this conversation. Put everything it needs into `prompt`: the goal, what is known,
///   paths, what it may change, and what its answer must contain.
/// - Its answer comes back to you, not to the person. Check it, and tell the person what matters.
/// - Independent agents can be started together in one reply.
#[derive(Debug, Deserialize, JsonSchema)]
struct AgentInput {
    /// The task, complete in itself.
    prompt: String,
    /// What it is about, in three to five words, for the person who watches.
    #[serde(rename = "description")]
    _description: Option<String>,
    /// Which agent; `general-purpose` when left out.
    #[serde(default)]
    agent: Option<String>,
    /// Another name of `agent`.
    #[serde(default)]
    subagent_type: Option<String>,
    /// Time limit in milliseconds.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// The agent that an input names.
#[must_use]
pub fn named(input: &Value) -> String {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    text("agent").or_else(|| text("subagent_type")).unwrap_or(GENERAL_PURPOSE).to_owned()
}

/// Finds a model by its name; the error is for the model that called.
pub type ModelByName = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, String> + Send + Sync>;

/// What children are made of.
pub struct AgentTool {
    /// The agents there are, among what files define.
    pub extensions: Arc<Extensions>,
    /// Finds the models that definitions name.
    pub models: ModelByName,
    /// The model they speak with.
    pub model: Arc<SwitchedModel>,
    /// The tools of the parent; some are not for children.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The parent's servers.
    pub servers: Arc<McpServers>,
    /// Which tools of the servers the parent's model sees.
    pub offered: Offered,
    /// Decides whether tools of servers are looked up by name.
    pub lazy: Arc<Lazy>,
    /// The parent's hooks bind children too.
    pub hooks: Arc<Hooks>,
    /// The parent's gate.
    pub gate: Arc<Gate>,
    /// The parent's way of changing permissions.
    pub updates: PermissionUpdates,
    /// The parent's judge of auto mode.
    pub classifier: Option<Classifier>,
    /// The parent's system prompt.
    pub system: SystemPrompt,
    /// Whoever listens to the parent.
    pub host: Arc<dyn Host>,
    /// How the environment of commands differs from that of this process.
    pub environment: Arc<CommandEnvironment>,
    /// Knows the secrets.
    pub redactor: Redactor,
    /// When a record counts as kept.
    pub durability: Durability,
    /// Whether commands run in the sandbox.
    pub confines: Confines,
    /// What the parent's host wants to find on every user message.
    pub custom_context: Option<Map<String, Value>>,
    /// What the parent and its agents may spend together.
    pub spending: Arc<Spending>,
    /// The parent's checkpoints keep what children change.
    pub checkpoints: Option<Arc<Checkpoints>>,
}

/// The tool itself.
pub struct Agents {
    tool: Arc<AgentTool>,
    definition: ToolDefinition,
}

impl Agents {
    /// The tool that starts these agents; its description names those that a front defined.
    #[must_use]
    pub fn new(tool: AgentTool) -> Self {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        let mut definition = tool_definition::<AgentInput>(&CELL, NAME).clone();
        definition.description.extend(tool.extensions.current().agents.told());
        Self { tool: Arc::new(tool), definition }
    }
}

impl Tool for Agents {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: true, open_world_hint: true }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    /// Children run together: each has a log of its own, and what they do passes the gate by itself.
    fn is_read_only(&self, _: &Value) -> bool {
        true
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![Access::Agent(named(input))]
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let tool = Arc::clone(&self.tool);
        Box::pin(async move {
            let mut input: AgentInput = match parse_input(NAME, input) {
                Ok(input) => input,
                Err(refusal) => return *refusal,
            };
            input.agent = input.agent.take().or(input.subagent_type.take());
            let agents = Arc::clone(&tool.extensions.current().agents);
            let known = agents.names();
            if let Some(name) = input.agent.as_deref().filter(|name| !known.contains(name)) {
                return ToolOutcome::failed(format!(
                    "There is no agent named {name}. The agents are: {}.",
                    known.join(", ")
                ));
            }
            if input.prompt.trim().is_empty() {
                return ToolOutcome::failed("The prompt is empty. Describe the task completely.");
            }
            tool.run_child(input, context).await
        })
    }
}

impl AgentTool {
    async fn run_child(&self, input: AgentInput, context: ToolContext) -> ToolOutcome {
        let agent_id = format!("agent-{}", uuid::Uuid::new_v4().simple());
        let name = input.agent.as_deref().unwrap_or(GENERAL_PURPOSE);
        let engine = match self.engine(name, &agent_id, &context) {
            Ok(engine) => engine,
            Err(problem) => {
                return ToolOutcome::failed(format!("The agent {name} could not be started: {problem}."));
            }
        };
        let mut session = match self.open(&agent_id, &context) {
            Ok(session) => session,
            Err(error) => return ToolOutcome::failed(format!("The agent could not be started: {error}.")),
        };
        let began = self.begin(&mut session, &input, &context);
        if let Err(error) = began {
            return ToolOutcome::failed(format!("The agent could not be started: {error}."));
        }
        let interrupt = Interrupt::default();
        let mut driver = Driver::new(&engine, &mut session, interrupt.clone());
        let limit = input.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
        let mut timed_out = false;
        let driven = {
            let mut run = Box::pin(driver.run());
            tokio::select! {
                driven = &mut run => driven,
                () = context.cancelled.clone() => {
                    interrupt.trigger();
                    run.await
                }
                () = sleep(limit) => {
                    timed_out = true;
                    interrupt.trigger();
                    run.await
                }
            }
        };
        let ended = driver.end_tasks().await;
        self.account(&session, &context);
        match driven.and_then(|end| ended.map(|()| end)) {
            Ok(Some(end)) => outcome(&end, (name, &agent_id), &session, timed_out),
            Ok(None) => ToolOutcome::failed("The agent ended without an answer."),
            Err(error) => ToolOutcome::failed(format!("The agent could not go on: {error}.")),
        }
    }

    fn engine(&self, name: &str, agent_id: &str, context: &ToolContext) -> Result<Engine, String> {
        let definition = self.extensions.current().agents.get(name).cloned();
        let has = |tool: &str| definition.as_ref().is_none_or(|definition| definition.has(tool));
        let for_children = |tool: &&Arc<dyn Tool>| {
            let name = tool.definition().name.as_str();
            !NOT_FOR_CHILDREN.contains(&name) && has(name)
        };
        let tools = self.tools.iter().filter(for_children);
        let mut blocks = match &definition {
            Some(definition) => {
                vec![definition.prompt.clone(), format!("Working directory: {}", context.cwd.display())]
            }
            None => self.system.blocks.clone(),
        };
        blocks.push(ROLE.to_owned());
        let model = match definition.as_ref().and_then(AgentDefinition::other_model) {
            Some(other) => Arc::new(SwitchedModel::new((self.models)(other)?)),
            None => Arc::clone(&self.model),
        };
        let (offered, limits) = (Arc::clone(&self.offered), definition.clone());
        let offered: Offered = Arc::new(move |tool| {
            offered(tool) && limits.as_ref().is_none_or(|definition| definition.has(tool))
        });
        let mode = definition.as_ref().map_or(context.mode, |definition| definition.mode(context.mode));
        let limit = definition.as_ref().and_then(|definition| definition.max_turns);
        let source = format!(
            "{}+agent {name} {}",
            self.system.source,
            definition.as_ref().map_or("", |one| &one.prompt)
        );
        let host =
            ChildHost::new(Arc::clone(&self.host), agent_id, &context.tool_use_id, &context.session_id);
        Ok(Engine {
            model,
            extensions: Arc::clone(&self.extensions),
            toolbox: Toolbox::new(tools.cloned().collect(), Arc::clone(&self.servers), offered)
                .lazily(Arc::clone(&self.lazy)),
            questions: None,
            hooks: Arc::clone(&self.hooks),
            gate: Arc::new(self.gate.of_child(mode)),
            updates: self.updates.clone(),
            classifier: self.classifier.clone(),
            confines: Arc::clone(&self.confines),
            purpose: Purpose::Subagent,
            agent: Some(identity(name, agent_id, context)),
            max_turns: Some(limit.unwrap_or(MOST_TURNS)),
            spending: Arc::clone(&self.spending),
            thinking: qoder_core::ports::Thinking::Default,
            effort: definition.and_then(|definition| definition.effort),
            max_output_tokens: None,
            system: SystemPrompt { blocks, source },
            environment: Arc::clone(&self.environment),
            auth_expired: Mutex::default(),
            checkpoints: self.checkpoints.clone(),
            shared: qoder_tools::SessionShared::new(),
            host: Arc::new(host),
            nested_memory: None,
            replay_user_messages: false,
            custom_context: self.custom_context.clone(),
            prompt_suggestions: false,
            expose_request_id: false,
        })
    }

    fn open(&self, agent_id: &str, context: &ToolContext) -> Result<Session, SessionError> {
        let keep = match &context.session_dir {
            Some(folder) => Keep::Files {
                paths: SessionPaths::new(&folder.join(FOLDER), agent_id),
                durability: self.durability,
            },
            None => Keep::Nowhere { outputs: context.output_dir.join(agent_id) },
        };
        let mut session = Session::open(agent_id, keep, self.redactor.clone(), &context.cwd)?;
        session.is_sidechain = true;
        Ok(session)
    }

    /// The child starts with what the parent's session changed about its permissions.
    fn begin(
        &self,
        session: &mut Session,
        input: &AgentInput,
        context: &ToolContext,
    ) -> Result<(), SessionError> {
        let mut updates: Vec<PermissionUpdate> = context.permissions.updates().to_vec();
        let agents = Arc::clone(&self.extensions.current().agents);
        let definition = input.agent.as_deref().and_then(|name| agents.get(name));
        let mode = self.mode_in_force(context);
        let mode = definition.map_or(mode, |definition| definition.mode(mode));
        updates.push(PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session });
        let changed = PermissionsChanged { updates, by: format!("parent {}", context.session_id) };
        session.append(RecordBody::PermissionsChanged(changed)).map_err(SessionError::Store)?;
        session.prompt(Message::user(input.prompt.clone())).map_err(SessionError::Store)?;
        Ok(())
    }

    /// The parent's mode as it counts. One that only the settings chose loosens nothing in a folder that nobody vouched
    /// for; the child, for which the mode is chosen here, must not take it for a person's choice.
    fn mode_in_force(&self, context: &ToolContext) -> PermissionMode {
        let counts = self.gate.trusted || self.gate.mode_holds_anywhere || context.permissions.mode.is_some();
        match context.mode {
            PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::BypassPermissions
                if !counts =>
            {
                PermissionMode::Default
            }
            mode @ (PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto
            | PermissionMode::BypassPermissions
            | PermissionMode::Plan
            | PermissionMode::DontAsk) => mode,
        }
    }

    /// What the child spent is the parent's to account for.
    fn account(&self, session: &Session, context: &ToolContext) {
        let mut spent = context.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (model, totals) in &session.state.totals {
            spent.push(SideCalled {
                tool_use_id: context.tool_use_id.clone(),
                purpose: Purpose::Subagent,
                model: model.clone(),
                usage: totals.usage(),
                cost_usd: totals.cost_usd,
                duration_api_ms: session.state.last_turn.as_ref().map_or(0, |turn| turn.duration_api_ms),
            });
        }
    }
}

fn identity(name: &str, agent_id: &str, context: &ToolContext) -> AgentIdentity {
    let log = context.session_dir.as_deref().and_then(|side| {
        let project = side.parent()?;
        Some(SessionPaths::new(project, &context.session_id).log.to_string_lossy().into_owned())
    });
    AgentIdentity {
        agent_id: agent_id.to_owned(),
        agent_type: name.to_owned(),
        session_id: context.session_id.clone(),
        transcript_path: log.unwrap_or_default(),
    }
}

async fn sleep(limit: Duration) {
    if limit == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(limit).await;
}

fn outcome(
    end: &TurnEnded,
    (name, agent_id): (&str, &str),
    session: &Session,
    timed_out: bool,
) -> ToolOutcome {
    let log: Option<PathBuf> = session.log_path().map(PathBuf::from);
    let mut structured = json!({
        "agent": name, "agentId": agent_id, "numTurns": end.num_turns, "usage": end.usage,
        "totalDurationMs": end.duration_ms, "transcript": log,
    });
    if end.subtype == TurnSubtype::Success {
        let result = end.result.clone().unwrap_or_default();
        structured["result"] = json!(result);
        structured["status"] = json!("completed");
        let text =
            if result.trim().is_empty() { "(The agent ended without text.)".to_owned() } else { result };
        let (text, _) = qoder_tools::bounded_text(text, session.outputs(), "agent");
        return ToolOutcome::completed(text, structured);
    }
    let why = if timed_out { "its time limit was reached".to_owned() } else { end.errors.join("; ") };
    structured["error"] = json!(why);
    structured["status"] = json!("failed");
    let interrupted = matches!(
        end.terminal_reason,
        qoder_types::record::TerminalReason::AbortedStreaming
            | qoder_types::record::TerminalReason::AbortedTools
    );
    let outcome = if interrupted && !timed_out { CallOutcome::Interrupted } else { CallOutcome::Failed };
    ToolOutcome { outcome, ..ToolOutcome::completed(format!("The agent did not finish: {why}."), structured) }
}
