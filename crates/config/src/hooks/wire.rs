//! A hook as lists for programs have it.

use serde_json::{Value, json};

use super::{Background, Hook, HookEvent, OnFailure};

impl Hook {
    /// What runs, when, and who wrote it.
    #[must_use]
    pub fn to_wire(&self) -> Value {
        let place = self.traits.place.as_ref();
        let default = HookEvent::parse(&self.event).map(HookEvent::on_failure);
        let background = match &self.traits.background {
            Background::No => "no",
            Background::Yes => "async",
            Background::Rewake { .. } => "asyncRewake",
        };
        json!({
            "event": self.event, "matcher": self.matcher, "if": self.traits.condition, "name": self.name,
            "type": self.action.kind(), "runs": self.action.display_text(), "timeout": self.timeout.as_secs_f64(),
            "onFailure": self.on_failure.or(default).map(OnFailure::as_str), "background": background,
            "once": self.traits.once, "origin": place.map(|place| place.origin.as_str()),
            "file": place.map(|place| place.file.display().to_string()), "line": place.and_then(|place| place.line),
        })
    }
}
