//! What MCP servers mean for a session that is driven: questions to a person that wait, and tools that changed under an
//! allowance which was given for what they were.

use qoder_core::ports::Spent;
use qoder_types::record::{ElicitationAnswered, Elicited, PermissionsChanged, RecordBody};
use qoder_types::{Actor, Behavior, PermissionUpdate, RuleValue, ToolDefinition, UpdateDestination};
use serde_json::{Map, Value};

use super::Driver;
use crate::engine::server_requests::{OpenedQuestion, event_of};
use crate::error::DriveError;
use crate::events::Event;
use crate::events::emit_state;
use qoder_hooks::{Fired, Occasion};
use qoder_protocol::SessionState;

impl Driver<'_> {
    /// A server wants input of a person: on record before the question is sent.
    pub(crate) fn open_elicitation(
        &mut self,
        question: Elicited,
        input: &Map<String, Value>,
    ) -> Result<OpenedQuestion, DriveError> {
        self.session.append(RecordBody::Elicited(Box::new(question)))?;
        emit_state(&*self.engine.outlet, &self.session.id, SessionState::RequiresAction)?;
        self.notify_of_question("elicitation_dialog", input);
        Ok(self.opened(input))
    }

    /// The question has its answer, or is no longer wanted.
    pub(crate) fn close_elicitation(
        &mut self,
        elicitation_id: String,
        action: &str,
        by: Actor,
        input: &Map<String, Value>,
    ) -> Result<OpenedQuestion, DriveError> {
        let answer = ElicitationAnswered { elicitation_id, action: action.to_owned(), by };
        self.session.append(RecordBody::ElicitationAnswered(answer))?;
        if self.session.state.elicitations.is_empty() {
            let runs = self.session.state.turn.is_some();
            let state = if runs { SessionState::Running } else { SessionState::Idle };
            emit_state(&*self.engine.outlet, &self.session.id, state)?;
        }
        let kind = if input.is_empty() { "elicitation_complete" } else { "elicitation_response" };
        self.notify_of_question(kind, input);
        Ok(self.opened(input))
    }

    fn notify_of_question(&self, kind: &str, input: &Map<String, Value>) {
        let server = input.get("mcp_server_name").and_then(Value::as_str).unwrap_or_default();
        let message = match kind {
            "elicitation_dialog" => format!("The server {server} wants input"),
            _ => "A question of a server is closed".to_owned(),
        };
        self.notification(kind, "MCP server", &message, &Value::Object(input.clone()));
    }

    fn opened(&self, input: &Map<String, Value>) -> OpenedQuestion {
        let server = input.get("mcp_server_name").and_then(Value::as_str);
        let occasion: Option<Occasion> =
            server.and_then(|server| self.occasion(event_of(input), server, || Value::Object(input.clone())));
        OpenedQuestion { firing: self.firing(event_of(input)), occasion, cancelled: self.stopping.wanted() }
    }

    /// Hooks that only observe ran beside the session.
    pub(crate) fn record_hooks(&mut self, fired: Fired, spent: &Spent) -> Result<(), DriveError> {
        self.record_spent(spent)?;
        self.session.hook_context.extend(fired.joined.context);
        self.session.append(RecordBody::Hooked(Box::new(fired.record)))?;
        Ok(())
    }

    /// Questions that an earlier process left open went with their servers.
    pub(super) fn report_lost_elicitations(&mut self) -> Result<(), DriveError> {
        for id in std::mem::take(&mut self.session.lost_elicitations) {
            let text = format!(
                "the question {id} of an MCP server was cancelled: its connection ended with the program"
            );
            self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)?;
        }
        Ok(())
    }

    /// "Do not ask again" was said about a tool as it was. One that its server has changed since is asked about again.
    pub(super) fn ask_again_about_changed(&mut self) -> Result<(), DriveError> {
        let Some(epoch) = &self.session.state.epoch else { return Ok(()) };
        let of_servers = |tool: &&ToolDefinition| tool.name.starts_with("mcp__");
        let allowed = allowed_tools(self.session.state.permissions.updates());
        if allowed.is_empty() {
            return Ok(());
        }
        let is_changed = |tool: &&ToolDefinition| {
            let now = self.engine.toolbox.get(&tool.name);
            now.is_some_and(|now| now.definition() != *tool)
        };
        let before = epoch.tools.iter().filter(of_servers);
        let changed: Vec<&str> = before.filter(is_changed).map(|tool| tool.name.as_str()).collect();
        let gone = allowed.into_iter().filter(|(rule, _)| changed.contains(&rule.tool_name.as_str()));
        let updates: Vec<PermissionUpdate> = gone
            .map(|(rule, destination)| PermissionUpdate::RemoveRules {
                rules: vec![rule],
                behavior: Behavior::Allow,
                destination,
            })
            .collect();
        if updates.is_empty() {
            return Ok(());
        }
        let changed = PermissionsChanged { updates: updates.clone(), by: Actor::ChangedTool };
        self.session.append(RecordBody::PermissionsChanged(changed))?;
        self.took_updates(&updates)
    }
}

/// Allowances of tools of servers that the session was given and still has, with the place where each is kept.
fn allowed_tools(updates: &[PermissionUpdate]) -> Vec<(RuleValue, UpdateDestination)> {
    let mut allowed: Vec<(RuleValue, UpdateDestination)> = Vec::new();
    for update in updates {
        match update {
            PermissionUpdate::AddRules { rules, behavior: Behavior::Allow, destination } => {
                let of_servers = rules.iter().filter(|rule| rule.tool_name.starts_with("mcp__"));
                allowed.extend(of_servers.map(|rule| (rule.clone(), *destination)));
            }
            PermissionUpdate::ReplaceRules { rules, behavior: Behavior::Allow, destination } => {
                allowed.retain(|(_, place)| place != destination);
                let of_servers = rules.iter().filter(|rule| rule.tool_name.starts_with("mcp__"));
                allowed.extend(of_servers.map(|rule| (rule.clone(), *destination)));
            }
            PermissionUpdate::RemoveRules { rules, behavior: Behavior::Allow, destination } => {
                allowed.retain(|(rule, place)| place != destination || !rules.contains(rule));
            }
            PermissionUpdate::AddRules { .. }
            | PermissionUpdate::ReplaceRules { .. }
            | PermissionUpdate::RemoveRules { .. }
            | PermissionUpdate::SetMode { .. }
            | PermissionUpdate::AddDirectories { .. }
            | PermissionUpdate::RemoveDirectories { .. } => {}
        }
    }
    allowed
}
