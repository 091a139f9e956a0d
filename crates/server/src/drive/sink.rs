//! What a seat hears of its session while it is driven: pieces of replies, for those who watch, and servers that cannot be
//! reached.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_runtime::events::{Event, Sink, Wants};
use serde_json::{Value, json};

use super::shared::Shared;
use crate::fanout::Hub;
use crate::model::event::NewEvent;
use crate::model::toolset::Toolset;

/// Hears a session.
pub(super) struct SeatSink {
    pub(super) key: i64,
    pub(super) hub: Arc<Hub>,
    pub(super) shared: Arc<Shared>,
    /// The names of servers, as the runtime has them and as the agent does.
    servers: Vec<(String, String)>,
    /// Servers whose failure was reported.
    reported: Mutex<BTreeSet<String>>,
}

impl SeatSink {
    pub(super) fn new(key: i64, hub: Arc<Hub>, shared: Arc<Shared>, toolset: &Toolset) -> Self {
        let servers =
            toolset.servers.iter().map(|server| (server.alias.clone(), server.server.clone())).collect();
        Self { key, hub, shared, servers, reported: Mutex::default() }
    }

    /// Reports a server that cannot be used, once until it works again.
    fn server(&self, row: &Value) {
        let (Some(alias), Some(status)) = (row["name"].as_str(), row["status"].as_str()) else { return };
        let Some((_, name)) = self.servers.iter().find(|(known, _)| known == alias) else { return };
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = match status {
            "failed" => "mcp_connection_failed_error",
            "needs-auth" => "mcp_authentication_failed_error",
            "connected" => {
                reported.remove(alias);
                return;
            }
            _ => return,
        };
        if reported.insert(alias.to_owned()) {
            let message = row["error"].as_str().unwrap_or("the server cannot be reached");
            let error = json!({ "type": kind, "message": message, "mcp_server_name": name,
                "retry_status": { "type": "retrying" } });
            self.shared.report(NewEvent::new("session.error", &json!({ "error": error })));
        }
    }
}

impl Sink for SeatSink {
    fn wants(&self) -> Wants {
        // A turn asks its model for pieces from the start or never, and another node may want them a moment later.
        Wants { partial: self.hub.has_others() || self.hub.wants_deltas(self.key), ..Wants::default() }
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Partial { event, parent_tool_use_id: None } if self.hub.wants_deltas(self.key) => {
                let frames = self.shared.preview(event);
                self.hub.preview(self.key, &frames);
            }
            Event::Message(StreamMessage::System(SystemMessage::McpStatusChange { servers, .. })) => {
                servers.iter().for_each(|row| self.server(row));
            }
            Event::Message(_)
            | Event::Partial { .. }
            | Event::ToolOutput { .. }
            | Event::Warning(_)
            | Event::Asked(_)
            | Event::Resolved { .. } => {}
        }
        Ok(())
    }
}
