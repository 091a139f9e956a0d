//! The Agent tool as the model sees it: its input, what is refused before anything starts, and how a call waits for the
//! agent, gives it up to the background, or continues with the one that it started in an earlier process.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_tools::{AgentTask, SessionShared, parse_input, tool_definition};
use qoder_types::{AGENT_TASK, CallOutcome, ReplayClass, TaskStarted, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::run::Run;
use super::{AgentTool, NAME};
use crate::engine::interrupt::Interrupt;
use crate::session::sidecar::Sidecar;
use crate::store::SessionLocation;
use qoder_config::agents::GENERAL_PURPOSE;

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
/// - With `run_in_background` the call returns at once and you are told when the agent has ended; go on with other work
///   meanwhile.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(super) struct AgentInput {
    /// The task, complete in itself.
    pub(super) prompt: String,
    /// What it is about, in three to five words, for the person who watches.
    #[serde(default)]
    description: Option<String>,
    /// Which agent; `general-purpose` when left out.
    #[serde(default)]
    agent: Option<String>,
    /// Another name of `agent`.
    #[serde(default)]
    subagent_type: Option<String>,
    /// Another model than the agent's own.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// Time limit in milliseconds.
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
    /// Whether the agent works in the background.
    #[serde(default)]
    run_in_background: Option<bool>,
    /// `worktree` gives the agent a fresh worktree of the repository for itself.
    #[serde(default)]
    pub(super) isolation: Option<String>,
}

/// The agent that an input names.
#[must_use]
pub fn named(input: &Value) -> String {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    text("agent").or_else(|| text("subagent_type")).unwrap_or(GENERAL_PURPOSE).to_owned()
}

/// The tool itself.
pub struct Agents {
    pub(super) tool: Arc<AgentTool>,
}

impl Agents {
    /// The tool that starts agents.
    #[must_use]
    pub fn new(tool: AgentTool) -> Self {
        let agents = Self { tool: Arc::new(tool) };
        // Agents of the session itself judge for hooks.
        if agents.tool.tree.parent.is_none() {
            agents.tool.hooks.judged_by(agents.judge());
        }
        agents
    }
}

impl Tool for Agents {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        tool_definition::<AgentInput>(&CELL, NAME)
    }

    /// The agents there are; they may be read anew while the session runs.
    fn addition(&self) -> Option<String> {
        self.tool.common.extensions.current().agents.prompt_text()
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: true, open_world_hint: true }
    }

    /// The agent's log says how far it came.
    fn replay(&self) -> ReplayClass {
        ReplayClass::Resumable
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
            let name = named(&input);
            let input: AgentInput = match parse_input(NAME, input) {
                Ok(input) => input,
                Err(refusal) => return *refusal,
            };
            let shared = match Arc::clone(&context.shared).downcast::<SessionShared>() {
                Ok(shared) => shared,
                Err(_) => {
                    return ToolOutcome::failed("The agent could not be started: this session has no tasks.");
                }
            };
            let announced = shared.announced_agent(&context.tool_use_id);
            let started = match tool.refusal(&name, &input) {
                Some(text) => Err(text),
                None => Box::pin(tool.start(name, input, context, shared, announced.as_ref())).await.map_err(
                    |problem| {
                        let problem = problem.trim_end_matches('.');
                        format!("The agent could not be started: {problem}.")
                    },
                ),
            };
            started.unwrap_or_else(|problem| match announced {
                Some(announced) => not_resumed(&announced, &problem),
                None => ToolOutcome::failed(problem),
            })
        })
    }
}

impl AgentTool {
    /// Why nothing can be started.
    fn refusal(&self, name: &str, input: &AgentInput) -> Option<String> {
        let agents = Arc::clone(&self.common.extensions.current().agents);
        let known: Vec<&str> = agents.names().into_iter().filter(|one| self.tree.reaches(one)).collect();
        if !known.contains(&name) {
            let known = known.join(", ");
            return Some(format!("There is no agent named {name}. The agents are: {known}."));
        }
        if input.prompt.trim().is_empty() {
            return Some("The prompt is empty. Describe the task completely.".to_owned());
        }
        match input.isolation.as_deref() {
            None | Some("worktree") => None,
            Some(other) => Some(format!("`isolation` is {other}; it can only be worktree.")),
        }
    }

    /// Starts the agent, or continues the one that this very call has started before, and waits for its end unless it
    /// works in the background.
    async fn start(
        self: &Arc<Self>,
        name: String,
        input: AgentInput,
        context: ToolContext,
        shared: Arc<SessionShared>,
        announced: Option<&TaskStarted>,
    ) -> Result<ToolOutcome, String> {
        let session = self.location()?;
        let earlier = match announced {
            Some(announced) => Some(left_behind(session, announced)?),
            // One whose process ended before it was announced has done nothing yet.
            None => Sidecar::of_call(session, &context.tool_use_id, |id| shared.is_over(id))
                .map_err(|error| error.to_string())?,
        };
        if earlier.is_none() {
            self.tree.slots.enter(session)?;
        }
        let definition = self.common.extensions.current().agents.get(&name).cloned();
        let background = definition.as_ref().is_some_and(|definition| definition.background);
        let background = input.run_in_background.unwrap_or(background);
        let mut child = self.child(name, definition, &input, earlier, &context).await?;
        let task = TaskStarted {
            task_id: child.agent_id.clone(),
            tool_use_id: context.tool_use_id.clone(),
            description: child.sidecar.description.clone(),
            task_type: AGENT_TASK.to_owned(),
            output_file: String::new(),
            command: child.sidecar.agent_type.clone(),
        };
        let foreground = (!background).then(|| shared.enter_foreground(&context.tool_use_id));
        let task = match AgentTask::begin(&shared, task, &context).await {
            Ok(task) => task,
            Err(problem) => {
                child.leave_servers().await;
                child.leave_worktree(&context).await;
                return Err(problem.to_string());
            }
        };
        let launched = launched(task.start(), &input.prompt);
        let interrupt = Interrupt::default();
        let cancelled = context.cancelled.clone();
        let run = Run { tool: Arc::clone(self), child, input, task, context, interrupt: interrupt.clone() };
        let mut running = tokio::spawn(run.work_to_the_end());
        let Some(foreground) = foreground else { return Ok(launched) };
        let mut given_up = GivenUp(Some(interrupt.clone()));
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = cancelled => {
                interrupt.trigger();
                running.await
            }
            () = foreground.moving() => {
                given_up.0 = None;
                return Ok(launched);
            }
        };
        ended.map_err(|error| format!("it failed because of an internal error ({error})"))
    }
}

/// The agent that an earlier process announced, if its sidecar and its log are there to resume it from. Without one of them it is
/// unknown what it has done, and it must not do it again.
fn left_behind(session: &SessionLocation, announced: &TaskStarted) -> Result<(String, Sidecar), String> {
    let id = &announced.task_id;
    let agent = session.agent(id);
    let sidecar = Sidecar::read(&agent).filter(|sidecar| sidecar.tool_use_id == announced.tool_use_id);
    let sidecar = sidecar.ok_or_else(|| format!("the sidecar of agent {id} is missing or damaged"))?;
    let mut lines = 0_u64;
    // A log that is damaged further on is refused when it is opened.
    let _ = agent.read(|_| lines += 1);
    if lines == 0 {
        return Err(format!("the log of agent {id} is missing or empty"));
    }
    Ok((id.clone(), sidecar))
}

/// What a call comes to whose agent began in an earlier process and cannot be resumed.
fn not_resumed(announced: &TaskStarted, problem: &str) -> ToolOutcome {
    let text = format!(
        "Outcome unknown: the program stopped while the agent {} was working, and the agent cannot be resumed. {problem} \
         Its task may be done completely, in part or not at all, and it was not run again. Check before you repeat it.",
        announced.command
    );
    ToolOutcome { outcome: CallOutcome::Unknown, ..ToolOutcome::failed(text) }
}

/// Stops an agent whose caller no longer waits.
struct GivenUp(Option<Interrupt>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(interrupt) = &self.0 {
            interrupt.trigger();
        }
    }
}

/// What a call comes to whose agent works in the background.
fn launched(start: &TaskStarted, prompt: &str) -> ToolOutcome {
    let text = format!(
        "The agent {} works in the background as task {}. You are told when it has ended, so do not wait for it. Its \
         answer will be in {}; TaskStop stops it.",
        start.command, start.task_id, start.output_file
    );
    let structured = json!({
        "status": "async_launched", "agentId": start.task_id, "agent": start.command, "agentType": start.command,
        "description": start.description, "prompt": prompt, "outputFile": start.output_file,
    });
    ToolOutcome::completed(text, structured)
}

impl AgentInput {
    /// The input of a call that continues the agent in the background.
    pub(super) fn to_value(&self) -> Value {
        let mut input = json!(self);
        if let Some(fields) = input.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
            fields.insert("run_in_background".to_owned(), json!(true));
        }
        input
    }

    /// What it is about, for the person who watches.
    pub(super) fn about(&self) -> String {
        let said = self.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let first = || self.prompt.trim().lines().next().unwrap_or_default();
        said.unwrap_or_else(first).chars().take(100).collect()
    }
}
