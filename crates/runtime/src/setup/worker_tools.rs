//! Tools without a conversation: calls that come from elsewhere run here, after the gate has let them pass. Nothing is recorded; that
//! is for the program that brings the calls.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use qoder_core::permissions::SessionPermissions;
use qoder_core::ports::{Cancelled, Outputs, Spent, ToolContext, ToolOutcome};
use qoder_types::{Behavior, Observation};
use serde_json::Value;

use super::{Setup, SetupError};
use crate::callbacks::Callbacks;
use crate::engine::Engine;
use crate::permissions::CallInPlace;

/// The tools of one session that is elsewhere.
pub struct WorkerTools {
    engine: Engine,
    id: String,
    root: PathBuf,
    outputs: Outputs,
    permissions: SessionPermissions,
    state: Mutex<WorkerState>,
}

/// What calls leave for later ones.
struct WorkerState {
    cwd: PathBuf,
    seen: HashMap<String, Observation>,
}

impl WorkerTools {
    /// The tools of a setup, for the session `id`. Calls begin in its working directory; outputs that are too long for a model
    /// are kept in `outputs`.
    pub fn open(setup: &Setup, id: String, outputs: PathBuf) -> Result<Self, SetupError> {
        let engine = setup.engine(Callbacks::default())?;
        let redactor = engine.common.redactor.clone();
        let root = setup.cwd.clone();
        let state = WorkerState { cwd: root.clone(), seen: HashMap::new() };
        Ok(Self {
            engine,
            id,
            root,
            outputs: Outputs { directory: outputs, redactor },
            permissions: SessionPermissions::default(),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, WorkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls begin in the root again.
    pub fn restart(&self) {
        self.state().cwd.clone_from(&self.root);
    }

    /// Runs a call to its end, or until `cancelled` completes. One that the gate does not allow fails: no one is asked.
    pub async fn run(&self, call: &str, tool: &str, input: &Value, cancelled: Cancelled) -> ToolOutcome {
        let Some(tool) = self.engine.toolbox.get(tool) else {
            return ToolOutcome::failed(format!("There is no tool named {tool}."));
        };
        let input = match self.engine.toolbox.check(&*tool, input) {
            Ok(input) => input,
            Err(error) => return ToolOutcome::failed(error.to_string()),
        };
        let cwd = self.state().cwd.clone();
        let name = &tool.definition().name;
        let confinement = self.engine.confinement(name, &input);
        let place = CallInPlace { cwd: &cwd, permissions: &self.permissions, confinement };
        match self.engine.gate.decide(&*tool, &input, &place) {
            Ok(ruling) if ruling.decision.behavior == Behavior::Allow => {}
            Ok(ruling) => {
                return ToolOutcome::failed(format!("The call was denied: {}.", ruling.decision.reason));
            }
            Err(error) => return ToolOutcome::failed(error.to_string()),
        }
        let running = AssertUnwindSafe(tool.run(input, self.context(call, cwd, cancelled))).catch_unwind();
        let outcome = running.await.unwrap_or_else(|_| {
            ToolOutcome::failed("internal error: the tool failed, and its effect is unknown. This is a bug; please report it.")
        });
        let mut state = self.state();
        for seen in &outcome.observations {
            state.seen.insert(seen.path.clone(), seen.clone());
        }
        if let Some(cwd) = &outcome.new_cwd {
            state.cwd.clone_from(cwd);
        }
        drop(state);
        outcome
    }

    fn context(&self, call: &str, cwd: PathBuf, cancelled: Cancelled) -> ToolContext {
        let seen = self.state().seen.clone();
        let observed = move |path: &Path| seen.get(path.to_string_lossy().as_ref()).cloned();
        ToolContext {
            session_id: self.id.clone(),
            tool_use_id: call.to_owned(),
            cwd,
            roots: self.engine.gate.policy(&self.permissions).workspace().roots.as_slice().into(),
            outputs: self.outputs.clone(),
            observed: Arc::new(observed),
            keep_before: None,
            hidden: self.engine.gate.hidden(&self.permissions),
            cancelled,
            progress: Arc::new(|_| ()),
            environment: Arc::clone(&self.engine.common.environment),
            side_model: None,
            spent: Spent::default(),
            mode: self.engine.gate.mode(&self.permissions),
            mode_after_plan: self.engine.gate.mode_before_plan(&self.permissions),
            permissions: self.permissions.clone(),
            worktree: None,
            // Without what a session shares there are no background commands: who brought the call waits for its result.
            shared: Arc::new(()),
        }
    }
}
