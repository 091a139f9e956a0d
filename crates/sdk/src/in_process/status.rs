//! How the servers of a session are doing, told when it changes: to the callback, and as a message on the stream. It is
//! looked at before each turn, when all servers have been tried, and after each order that concerns one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_runtime::engine::Engine;
use qoder_runtime::session::new_id;
use serde_json::{Value, json};

use crate::mcp::{McpServerStatus, OnMcpStatusChange};
use crate::session::MessageSender;
use crate::{Message, QoderAgentOptions};

/// Tells how servers are doing.
pub(super) struct Status {
    engine: Arc<Engine>,
    session_id: String,
    messages: MessageSender,
    hear: Option<OnMcpStatusChange>,
    told: Mutex<Vec<Value>>,
}

impl Status {
    pub(super) fn new(
        engine: &Arc<Engine>,
        session_id: &str,
        options: &QoderAgentOptions,
        messages: &MessageSender,
    ) -> Self {
        Self {
            engine: Arc::clone(engine),
            session_id: session_id.to_owned(),
            messages: messages.clone(),
            hear: options.on_mcp_status_change.clone(),
            told: Mutex::default(),
        }
    }

    /// Tells of servers that are doing otherwise than when they were last told of.
    pub(super) fn tell(&self) {
        let rows = self.engine.toolbox.servers().rows();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let changed: Vec<Value> = rows.iter().filter(|row| !told.contains(row)).cloned().collect();
        if changed.is_empty() {
            return;
        }
        *told = rows;
        drop(told);
        if let Some(hear) = &self.hear {
            let read = |row: &Value| serde_json::from_value(row.clone()).ok();
            let rows: Vec<McpServerStatus> = changed.iter().filter_map(read).collect();
            // A listener that panics must not end the session.
            let _ = catch_unwind(AssertUnwindSafe(|| hear(rows)));
        }
        let message = Message::from_value(json!({
            "type": "system", "subtype": "mcp_status_change", "servers": changed,
            "uuid": new_id(), "session_id": self.session_id,
        }));
        self.messages.send(Ok(message));
    }
}
