//! MCP servers: how each is doing, its tools with what they declare about themselves, and what can be done.

use serde_json::Value;

use super::{Panel, PanelRow};
use crate::cells::plural;
use crate::text::one_line;

/// What a tool declares about itself, as it declared it; nothing that it did not say.
pub(crate) fn badges(annotations: &Value) -> String {
    let set = |name: &str| annotations[name].as_bool() == Some(true);
    [("readOnly", "[read-only]"), ("destructive", "[destructive]"), ("openWorld", "[open-world]")]
        .into_iter()
        .filter(|(name, _)| set(name))
        .map(|(_, badge)| badge)
        .collect::<Vec<_>>()
        .join(" ")
}

/// All servers.
pub(crate) fn servers_panel(servers: &[Value]) -> Panel {
    let mut panel = Panel::new("MCP servers", "no servers; `qodercli mcp add` describes one");
    for server in servers {
        let name = text(server, "name");
        let count = server["tools"].as_array().map_or(0, Vec::len);
        let mut about = text(server, "status");
        if count > 0 {
            about = format!("{about} · {}", plural(count as u64, "tool"));
        }
        if let Some(error) = server["error"].as_str() {
            about = format!("{about} · {}", one_line(error));
        }
        let mut row = PanelRow::new(one_line(&name), about);
        let status = text(server, "status");
        if status == "needs-auth" {
            row = row.offering("Sign in", format!("/mcp auth {name}"));
        }
        row = row.offering("Show its tools", format!("/mcp show {name}"));
        let waits = server["error"].as_str().is_some_and(|error| error.starts_with("needs approval"));
        if waits {
            row.offers.insert(0, ("Approve it".to_owned(), format!("/mcp approve {name}")));
        }
        row.offers.extend(offers(&name, &status));
        panel.rows.push(row);
    }
    panel
}

/// What a server that waits for approval would run.
pub(crate) fn approve_panel(name: &str, lines: &[String], mark: &str) -> Panel {
    let mut panel = Panel::new(format!("Approve MCP server {}? It can run programs.", one_line(name)), "");
    panel.rows = lines.iter().map(|line| PanelRow::new(one_line(line), "")).collect();
    let words = "exactly as it is described; any change asks again";
    panel.rows.push(PanelRow::new("approve it", words).offering("", format!("/mcp approve {name} {mark}")));
    panel
}

/// What can be done with a server in this state.
fn offers(name: &str, status: &str) -> Vec<(String, String)> {
    let line = |words: &str, verb: &str| (words.to_owned(), format!("/mcp {verb} {name}"));
    let mut offers = Vec::new();
    if status == "disabled" {
        offers.push(line("Enable it", "enable"));
    } else {
        offers.push(line("Reconnect it", "reconnect"));
        offers.push(line("Disable it", "disable"));
    }
    if status == "failed" {
        offers.push(line("Sign in", "auth"));
    }
    offers.push(line("Forget its sign-in", "clear"));
    offers
}

/// One server with its tools.
pub(crate) fn server_panel(server: &Value) -> Panel {
    let name = one_line(&text(server, "name"));
    let mut panel =
        Panel::new(format!("MCP server {name}: {}", text(server, "status")), "it offers no tools");
    for tool in server["tools"].as_array().into_iter().flatten() {
        let badges = badges(&tool["annotations"]);
        let description = tool["description"].as_str().unwrap_or_default();
        let first = one_line(description.lines().next().unwrap_or_default());
        let about = if badges.is_empty() { first } else { format!("{badges} {first}") };
        panel.rows.push(PanelRow::new(one_line(&text(tool, "name")), about));
    }
    panel
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn badges_are_exactly_what_is_declared() {
        assert_eq!(badges(&json!({ "readOnly": true, "openWorld": true })), "[read-only] [open-world]");
        assert_eq!(badges(&json!({ "readOnly": false, "destructive": true })), "[destructive]");
        assert_eq!(badges(&Value::Null), "");
    }

    #[test]
    fn a_server_offers_what_its_state_allows() {
        let panel = servers_panel(&[
            json!({ "name": "a", "status": "connected", "tools": [{ "name": "t" }] }),
            json!({ "name": "b", "status": "needs-auth" }),
        ]);
        let words =
            |row: usize| panel.rows[row].offers.iter().map(|(words, _)| words.clone()).collect::<Vec<_>>();
        assert_eq!(panel.rows[0].about, "connected · 1 tool");
        assert_eq!(words(1)[0], "Sign in");
        assert!(!words(0).contains(&"Sign in".to_owned()) && words(1).contains(&"Sign in".to_owned()));
    }
}
