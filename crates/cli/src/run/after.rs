//! What is done after the answer is printed.

use std::path::PathBuf;

use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::sessions::retention::{self, Retention};
use qoder_runtime::setup::Setup;
use qoder_runtime::telemetry::Telemetry;

use crate::screen;

/// What is done after the answer is printed.
pub struct AfterRun {
    retention: Option<Retention>,
    config_root: PathBuf,
    telemetry: Option<Telemetry>,
}

impl AfterRun {
    /// What a run with this setup leaves to be done.
    pub fn of(setup: &Setup, choice: &SessionChoice) -> Self {
        // A run that keeps nothing leaves everything else alone as well.
        let retention = (!choice.forget).then(|| retention::configured(&setup.config.settings));
        Self {
            retention,
            config_root: setup.config.config_root.clone(),
            telemetry: setup.telemetry().cloned(),
        }
    }

    /// Does it.
    pub fn finish(self) {
        if let Some(problem) = self.telemetry.and_then(|telemetry| telemetry.flush()) {
            screen::print_note(&format!("warning: telemetry: {problem}"));
        }
        // Only what was deleted is reported; what could not be is tried again.
        if let Some(text) = self.retention.and_then(|retention| retention.after_run(&self.config_root)) {
            screen::print_note(&text);
        }
    }
}
