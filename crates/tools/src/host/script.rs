//! Scripts that the caller runs in an environment by itself, beside the calls of a session.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_core::permissions::SessionPermissions;
use qoder_core::ports::{CommandEnvironment, Outputs, Spent, ToolContext};
use qoder_types::{CallOutcome, PermissionMode};
use serde_json::json;

use super::error::HostError;
use super::message::{Context, ToHost};
use super::pending::CallEnd;
use super::tool_host::ToolHost;
use crate::{SessionShared, ToolSettings};

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptResult {
    /// As a shell reports it.
    pub exit_code: i64,
    /// What it printed, errors last.
    pub output: String,
}

impl ToolHost {
    /// Runs a script in the environment. A host that has run no call yet gives it this much time.
    ///
    /// # Errors
    /// When the host cannot be started, or ends.
    pub async fn run_script(
        &self,
        script: &str,
        cwd: &Path,
        patience: Duration,
    ) -> Result<ScriptResult, HostError> {
        let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.configure(&ToolSettings {
            bash_default_timeout_ms: milliseconds,
            bash_max_timeout_ms: milliseconds,
            bash_inactivity_seconds: 0,
            ..ToolSettings::default()
        });
        let link = self.link().await?;
        let call = link.number();
        let end = link.pending.enter(call, context(cwd, self.outputs()), false);
        let sent = Context {
            session_id: String::new(),
            tool_use_id: String::new(),
            cwd: cwd.to_path_buf(),
            roots: vec![cwd.to_path_buf()],
            outputs: self.outputs().to_path_buf(),
            hides: false,
        };
        let input = json!({ "command": script });
        link.sender.send(&ToHost::Call { call, tool: "Bash".to_owned(), input, context: Box::new(sent) });
        match end.await {
            Ok(CallEnd::Result(outcome, _)) => {
                let field = |name: &str| outcome.structured[name].as_str().unwrap_or_default();
                let failed = if outcome.outcome == CallOutcome::Completed { 0 } else { 1 };
                let exit_code = outcome.structured["exitCode"].as_i64();
                let printed = [field("stdout"), field("stderr")].concat();
                let output = if exit_code.is_some() { printed } else { outcome.content.to_text() };
                Ok(ScriptResult { exit_code: exit_code.unwrap_or(failed), output })
            }
            Ok(CallEnd::Gone { problem, printed }) => {
                let printed = printed.trim();
                Err(HostError::Gone(if printed.is_empty() {
                    problem
                } else {
                    format!("{problem}; {printed}")
                }))
            }
            Err(_) => Err(HostError::Gone("it was closed".to_owned())),
        }
    }
}

fn context(cwd: &Path, outputs: &Path) -> ToolContext {
    ToolContext {
        session_id: String::new(),
        tool_use_id: String::new(),
        cwd: cwd.to_path_buf(),
        roots: vec![cwd.to_path_buf()].into(),
        outputs: Outputs { directory: outputs.to_path_buf(), ..Outputs::default() },
        observed: Arc::new(|_| None),
        keep_before: None,
        hidden: None,
        cancelled: std::future::pending().boxed().shared(),
        progress: Arc::new(drop),
        environment: Arc::new(CommandEnvironment::default()),
        side_model: None,
        spent: Spent::default(),
        permissions: SessionPermissions::default(),
        mode: PermissionMode::Default,
        mode_after_plan: PermissionMode::Default,
        worktree: None,
        shared: SessionShared::new(),
    }
}
