//! Servers that the definition of an agent wants and that it does not get. It works without them, and a warning says so,
//! because an agent without its tools looks like one that cannot do its task.

use serde_json::Value;

use super::AgentTool;
use crate::events::Event;
use crate::mcp::McpServers;
use qoder_config::agents::AgentDefinition;

impl AgentTool {
    /// Warns about the servers that an agent has to do without; `own` are those that it alone has.
    pub(super) fn warn_of_missing_servers(
        &self,
        agent: &str,
        definition: Option<&AgentDefinition>,
        own: Option<&McpServers>,
    ) {
        let Some(wanted) = definition.and_then(|definition| definition.mcp_servers.as_ref()) else { return };
        let own = own.map(McpServers::rows).unwrap_or_default();
        let rows: Vec<Value> = own.into_iter().chain(self.servers.rows()).collect();
        for server in wanted {
            let name = server.name();
            let row = rows.iter().find(|row| row["name"] == name);
            if let Some(why) = missing(row) {
                let text = format!("the agent {agent} works without the server `{name}`: {why}");
                // The next event notices a host that is gone.
                let _ = self.outlet.emit(Event::Warning(&self.common.redactor.text(&text)));
            }
        }
    }
}

/// Why a server is not there; one that still connects may come.
fn missing(row: Option<&Value>) -> Option<String> {
    let Some(row) = row else { return Some("the session has no such server".to_owned()) };
    let status = row["status"].as_str().unwrap_or_default();
    if matches!(status, "connected" | "connecting" | "pending") {
        return None;
    }
    Some(match row["error"].as_str() {
        Some(error) => format!("{status} ({error})"),
        None => status.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_server_that_does_not_come_is_missing() {
        for status in ["connected", "connecting", "pending"] {
            assert_eq!(missing(Some(&json!({ "status": status }))), None);
        }
        assert!(missing(None).unwrap().contains("no such server"));
        let failed = json!({ "status": "failed", "error": "it fell over" });
        assert_eq!(missing(Some(&failed)).unwrap(), "failed (it fell over)");
        assert_eq!(missing(Some(&json!({ "status": "disabled" }))).unwrap(), "disabled");
    }
}
