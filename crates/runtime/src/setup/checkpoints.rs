//! Which checkpoints a setup asks for: none, unless the settings, the front or the SDK that started the program want them.

use std::sync::Arc;

use serde_json::Value;

use super::Setup;
use crate::checkpoints::{Checkpoints, ENABLED, MOST_BYTES};

/// The bound without a setting: 1 GiB.
const DEFAULT_MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// Variables with which SDKs switch checkpoints on.
const VARIABLES: [&str; 2] =
    ["QODER_ENABLE_SDK_FILE_CHECKPOINTING", "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"];

impl Setup {
    /// Checkpoints with the bound of the settings, whether they are asked for or not.
    #[must_use]
    pub fn checkpoints(&self) -> Checkpoints {
        let most = self.config.settings.get(MOST_BYTES).and_then(Value::as_u64).unwrap_or(DEFAULT_MOST_BYTES);
        Checkpoints::new(&self.config.config_root, most)
    }

    /// The checkpoints that are asked for, if they are.
    pub(super) fn wanted_checkpoints(&self) -> Option<Arc<Checkpoints>> {
        let by_default = self.options.checkpoints_by_default;
        let wanted = self.demands_checkpoints() || self.config.settings.flag(ENABLED, by_default);
        // A tool host changes files without asking this process.
        (wanted && self.options.tool_host.is_none()).then(|| Arc::new(self.checkpoints()))
    }

    /// True when an SDK asks for checkpoints; that is an order and not a preference.
    pub(crate) fn demands_checkpoints(&self) -> bool {
        VARIABLES.iter().any(|name| {
            let value = self.options.environment.get(*name).map(|value| value.trim().to_ascii_lowercase());
            matches!(value.as_deref(), Some("true" | "1"))
        })
    }
}
