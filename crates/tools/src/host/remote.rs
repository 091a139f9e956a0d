//! A built-in tool whose calls run in a tool host. What it declares is what the tool declares here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{CallOutcome, ReplayClass, ToolAnnotations, ToolDefinition, ToolResultContent};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::error::HostError;
use super::link::Link;
use super::message::{Context, Outcome, ToHost};
use super::pending::CallEnd;
use super::tool_host::ToolHost;
use crate::call::refusal::interrupted;
use crate::files::paths::is_inside;
use crate::{SessionShared, ToolSettings};

/// How long a call that was cancelled may take to end.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// The tools, with those that the host runs in its hands.
pub(crate) fn remote(
    tools: Vec<Arc<dyn Tool>>,
    host: &Arc<ToolHost>,
    settings: &ToolSettings,
) -> Vec<Arc<dyn Tool>> {
    host.configure(settings);
    let placed = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
        if host.runs(&tool.definition().name) {
            return Arc::new(RemoteTool { tool, host: Arc::clone(host) });
        }
        tool
    };
    tools.into_iter().map(placed).collect()
}

struct RemoteTool {
    tool: Arc<dyn Tool>,
    host: Arc<ToolHost>,
}

impl Tool for RemoteTool {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    fn annotations(&self) -> ToolAnnotations {
        self.tool.annotations()
    }

    fn replay(&self) -> ReplayClass {
        self.tool.replay()
    }

    fn is_read_only(&self, input: &Value) -> bool {
        self.tool.is_read_only(input)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        self.tool.accesses(input)
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (name, host) = (self.tool.definition().name.clone(), Arc::clone(&self.host));
        let may_repeat = self.tool.replay() == ReplayClass::Pure;
        Box::pin(async move {
            let mut tries = if may_repeat { 2 } else { 1 };
            loop {
                tries -= 1;
                match run(&host, &name, input.clone(), &context).await {
                    // What changes nothing is asked of the next host.
                    Err(Failure::Gone { .. }) if tries > 0 => {}
                    Ok(outcome) => return outcome,
                    Err(failure) => return failure.outcome(&name),
                }
            }
        })
    }
}

/// Why a call has no result.
enum Failure {
    NotStarted(HostError),
    Gone { problem: String, printed: String },
}

impl Failure {
    fn outcome(self, tool: &str) -> ToolOutcome {
        let (text, code, outcome) = match self {
            Self::NotStarted(error) => {
                let text = format!("{tool} did not run: {error}. For the person: {}.", error.hint());
                (text, error.code(), CallOutcome::Failed)
            }
            Self::Gone { problem, printed } => {
                let mut text = format!(
                    "The environment of the session ended while {tool} ran ({problem}). How far the call came is unknown: it \
                     may have finished completely, in part or not at all. The next call starts the environment anew."
                );
                if !printed.is_empty() {
                    text.push_str(&format!("\nThe end of what it printed:\n{printed}"));
                }
                (text, "tool_host_gone", CallOutcome::Unknown)
            }
        };
        let structured = json!({ "error": text, "code": code });
        ToolOutcome { outcome, structured, ..ToolOutcome::failed(text) }
    }
}

async fn run(
    host: &Arc<ToolHost>,
    tool: &str,
    input: Value,
    context: &ToolContext,
) -> Result<ToolOutcome, Failure> {
    let link = tokio::select! {
        link = host.link() => link.map_err(Failure::NotStarted)?,
        () = context.cancelled.clone() => return Ok(interrupted()),
    };
    let call = link.number();
    let has_input = input["run_in_background"] == true || input["run_in_background"] == "true";
    let end = link.pending.enter(call, context.clone(), has_input);
    let sent = Context {
        session_id: context.session_id.clone(),
        tool_use_id: context.tool_use_id.clone(),
        cwd: context.cwd.clone(),
        roots: context.roots.to_vec(),
        outputs: host.outputs().to_path_buf(),
        hides: context.hidden.is_some(),
    };
    link.sender.send(&ToHost::Call { call, tool: tool.to_owned(), input, context: Box::new(sent) });
    match wait(&link, call, end, context).await {
        Some(CallEnd::Result(outcome, files)) => Ok(received(*outcome, &files, context)),
        Some(CallEnd::Gone { problem, printed }) => Err(Failure::Gone { problem, printed }),
        None => Err(Failure::Gone {
            problem: "it did not end a call that was cancelled".to_owned(),
            printed: String::new(),
        }),
    }
}

/// Waits for the end of a call. One that is cancelled gets some time to end; then its host is given up.
async fn wait(
    link: &Link,
    call: u64,
    end: oneshot::Receiver<CallEnd>,
    context: &ToolContext,
) -> Option<CallEnd> {
    let shared = Arc::clone(&context.shared).downcast::<SessionShared>().ok();
    let foreground = shared.map(|shared| shared.enter_foreground(&context.tool_use_id));
    let moving = async {
        match &foreground {
            Some(foreground) => foreground.moving().await,
            None => std::future::pending().await,
        }
    };
    let cancelled = context.cancelled.clone();
    tokio::pin!(end, moving, cancelled);
    let mut has_moved = false;
    loop {
        tokio::select! {
            biased;
            end = &mut end => return end.ok(),
            () = &mut moving, if !has_moved => {
                has_moved = true;
                link.sender.send(&ToHost::Move { call });
            }
            () = &mut cancelled => break,
        }
    }
    link.sender.send(&ToHost::Cancel { call });
    match tokio::time::timeout(CANCEL_PATIENCE, end).await {
        Ok(end) => end.ok(),
        Err(_) => {
            link.pending.close("it did not end a call that was cancelled");
            None
        }
    }
}

/// What a host brought, as far as it may.
fn received(outcome: Outcome, files: &[(String, String)], context: &ToolContext) -> ToolOutcome {
    let Outcome { mut content, outcome, mut structured, observations, new_cwd } = outcome;
    for (named, here) in files {
        rename(&mut structured, named, here);
        if let ToolResultContent::Text(text) = &mut content {
            *text = text.replace(named, here);
        }
    }
    let outcome = match outcome {
        ended @ (CallOutcome::Completed | CallOutcome::Failed | CallOutcome::Interrupted) => ended,
        CallOutcome::Denied | CallOutcome::NotRun | CallOutcome::Unknown => CallOutcome::Failed,
    };
    let new_cwd = new_cwd.map(PathBuf::from).filter(|cwd| may_be_cwd(cwd, context));
    ToolOutcome {
        content,
        outcome,
        structured,
        observations,
        new_cwd,
        ..ToolOutcome::completed(String::new(), Value::Null)
    }
}

fn may_be_cwd(cwd: &Path, context: &ToolContext) -> bool {
    let is_plain = |part| matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_));
    cwd.components().all(is_plain) && is_inside(cwd, &context.roots)
}

fn rename(value: &mut Value, named: &str, here: &str) {
    match value {
        Value::String(text) if text.contains(named) => *text = text.replace(named, here),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, named, here)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, named, here)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
