//! Definitions of a session that runs: files of skills and agents that changed count from the next turn on, unless a hook
//! objects, and a hook at the start of a session may have everything read again.

use serde_json::json;

use crate::driver::Driver;
use crate::error::DriveError;
use qoder_config::hooks::HookEvent;
use qoder_config::sources::Kind;

/// Changed files that hooks are asked about at one time.
const MOST_TOLD: usize = 50;

impl Driver<'_> {
    /// Takes over skills and agents whose files changed, unless a hook objects.
    pub(in crate::driver) async fn refresh_definitions(&mut self) -> Result<(), DriveError> {
        let changed = self.engine.common.extensions.changed();
        if changed.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::new();
        for (kind, file) in changed.iter().take(MOST_TOLD) {
            let (source, file) = (kind.folder(), file.to_string_lossy());
            let fields = || json!({ "source": source, "file_path": file });
            let occasion = self.occasion(HookEvent::ConfigChange, source, fields);
            if self.is_blocked(occasion).await? && !kept.contains(kind) {
                kept.push(*kind);
            }
        }
        for kind in &kept {
            self.warn(&format!("a hook rejected the change of the {}", kind.folder()))?;
        }
        let is_wanted = |kind: Kind| changed.iter().any(|(one, _)| *one == kind) && !kept.contains(&kind);
        if is_wanted(Kind::Skills) || is_wanted(Kind::Agents) {
            self.read_definitions(&kept)?;
        }
        Ok(())
    }

    /// Reads all definitions again; those of the kinds in `kept` stay what they were.
    pub(in crate::driver) fn read_definitions(&mut self, kept: &[Kind]) -> Result<(), DriveError> {
        match self.engine.common.extensions.read_again(kept) {
            Ok(problems) => problems.iter().try_for_each(|problem| self.warn(&problem.to_string())),
            Err(problem) => self.warn(&format!("{problem}; skills and agents stay as they were")),
        }
    }
}
