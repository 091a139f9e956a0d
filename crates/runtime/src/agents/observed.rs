//! Telemetry of agents: what a child does stands below the call that started it.

use qoder_core::ports::ToolContext;

use super::AgentTool;
use crate::session::Session;
use crate::session::redact::cleaning;

impl AgentTool {
    /// Lets telemetry watch a child, when it is on.
    pub(super) fn observe(&self, session: &mut Session, name: &str, context: &ToolContext) {
        let Some(telemetry) = &self.common.telemetry else { return };
        let clean = cleaning(self.common.redactor.clone());
        let parent = (context.session_id.as_str(), context.tool_use_id.as_str());
        session.observe(telemetry.agent((&session.id, name), parent, clean));
    }
}
