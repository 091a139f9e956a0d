//! Sign-ins to servers: a server that wanted credentials and is connected now has got them, by whatever way, and hooks
//! that notify a person are called.

use std::sync::PoisonError;

use serde_json::{Value, json};

use crate::driver::DriverLink;
use crate::engine::server_requests::SigningIn;

/// Takes what servers are doing now.
pub(super) fn follow(waiting: &SigningIn, session: &DriverLink, rows: &[Value]) {
    for row in rows {
        let (Some(name), Some(status)) = (row["name"].as_str(), row["status"].as_str()) else { continue };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if status == "needs-auth" {
            waiting.insert(name.to_owned());
        } else if status == "connected" && waiting.remove(name) {
            let name = name.to_owned();
            session.send(move |driver| {
                let text = format!("Signed in to the MCP server {name}");
                driver.notification("auth_success", "Signed in", &text, &json!({ "mcp_server_name": name }));
                Ok(())
            });
        }
    }
}
