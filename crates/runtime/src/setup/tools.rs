//! From settings to the built-in tools: their limits, the search provider, the hosts they may reach, and the tools that
//! need the runtime itself.

use std::sync::Arc;

use qoder_core::ports::Tool;
use qoder_tools::ToolSettings;
use serde_json::Value;

use super::Setup;
use crate::gate::Gate;

/// The built-in tools of a session but those that start other sessions.
pub(super) fn built_in(setup: &Setup, gate: &Arc<Gate>) -> Vec<Arc<dyn Tool>> {
    let number = |path: &str| setup.settings.get(path).and_then(Value::as_u64);
    let defaults = ToolSettings::default();
    let settings = ToolSettings {
        bash_default_timeout_ms: number("tools.shell.timeoutMs").unwrap_or(defaults.bash_default_timeout_ms),
        bash_inactivity_seconds: number("tools.shell.inactivityTimeout")
            .unwrap_or(defaults.bash_inactivity_seconds),
        respect_gitignore: setup.settings.flag("context.fileFiltering.respectGitIgnore", true),
        ..defaults
    };
    let _ = gate;
    qoder_tools::built_in(&settings)
}
