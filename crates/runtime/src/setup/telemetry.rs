//! Telemetry of the sessions of a setup: whether the environment wants it, and what it may see. No settings file has a
//! say in where it goes.

use std::collections::BTreeMap;

use super::Setup;
use crate::session::Session;
use crate::session::redact::cleaning;
use crate::telemetry::{SECRET_VARIABLES, Telemetry};

/// What the environment asks for. An unusable value is reported, and the session continues without telemetry.
pub(super) fn wanted(
    environment: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Option<Telemetry> {
    Telemetry::from_environment(environment).unwrap_or_else(|problem| {
        warnings.push(format!("telemetry is off: {problem}"));
        None
    })
}

impl Setup {
    /// The telemetry of this setup, when it is on.
    #[must_use]
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }

    /// Lets telemetry watch a session, when it is on.
    pub fn observe(&self, session: &mut Session) {
        if let Some(telemetry) = &self.telemetry {
            session.observe(telemetry.session(&session.id, cleaning(self.redactor())));
        }
    }

    /// Variables with keys of the collector; commands have no business with them.
    pub(super) fn hidden_by_telemetry(&self) -> Vec<String> {
        let names = SECRET_VARIABLES.iter().filter(|_| self.telemetry.is_some());
        names.map(|name| (*name).to_owned()).collect()
    }
}
