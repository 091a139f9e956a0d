//! What a plugin makes active, for people who decide about it: hooks with their full commands, servers with their full
//! command lines. Nothing is cut, and nothing in it is obeyed by a terminal.

use qoder_config::extensions::{Loaded, PluginSet};
use qoder_config::plugins::Plugin;
use qoder_config::servers::Described;
use qoder_config::settings::read_plain;
use qoder_config::sources::{Origin, Problem};
use serde_json::{Value, json};

use crate::mcp::get::{described_as, plain};

/// The servers of one plugin.
fn servers<'a>(plugin: &Plugin, found: &'a PluginSet) -> Vec<&'a Described> {
    let start = format!("plugin_{}_", plugin.name);
    found.servers.iter().filter(|one| one.name.starts_with(&start)).collect()
}

/// The hooks of one plugin as they are written: event, matcher, entry.
fn hooks(plugin: &Plugin) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for file in &plugin.parts.hooks {
        // A file that cannot be read is among the problems.
        let Ok(Some(layer)) = read_plain(file) else { continue };
        let events = layer.value.get("hooks").and_then(Value::as_object);
        for (event, groups) in events.into_iter().flatten() {
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or("").to_owned();
                for entry in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                    all.push((event.clone(), matcher.clone(), entry.clone()));
                }
            }
        }
    }
    all
}

/// What becomes active, line by line.
pub fn active(plugin: &Plugin, loaded: &Loaded, found: &PluginSet) -> Vec<String> {
    let version = plugin.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let mut lines =
        vec![format!("{}{}: {}", plugin.name, plain(&json!(version)), counts(plugin, loaded, found))];
    if let Some(description) = &plugin.description {
        lines.push(format!("  {}", plain(&json!(description))));
    }
    for (event, matcher, entry) in hooks(plugin) {
        let on = if matcher.is_empty() { String::new() } else { format!(" on {}", plain(&json!(matcher))) };
        lines.push(format!("  hook {}{on}: {}", plain(&json!(event)), plain(&entry)));
    }
    for one in servers(plugin, found) {
        lines.push(format!("  MCP server {}", plain(&json!(one.name))));
        for (field, value) in described_as(one).0.as_object().into_iter().flatten() {
            lines.push(format!("    {field}: {}", plain(value)));
        }
    }
    lines.extend(plugin.notes.iter().map(|note| format!("  note: {note}")));
    lines
}

/// What a plugin brings, in numbers.
fn numbers(plugin: &Plugin, loaded: &Loaded, found: &PluginSet) -> Vec<(&'static str, usize)> {
    let mut numbers = loaded.brought_by(plugin);
    numbers.push(("MCP servers", servers(plugin, found).len()));
    numbers
}

fn counts(plugin: &Plugin, loaded: &Loaded, found: &PluginSet) -> String {
    let all = numbers(plugin, loaded, found);
    let some: Vec<String> = all
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(what, number)| format!("{what}: {number}"))
        .collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

/// A plugin for programs.
pub fn row(plugin: &Plugin, loaded: &Loaded, found: &PluginSet) -> Value {
    let mut row = plugin.row();
    let own = |problem: &&Problem| problem.origin == Origin::Plugin(plugin.name.clone());
    let numbers = numbers(plugin, loaded, found);
    let parts = numbers.into_iter().map(|(what, number)| (key(what).to_owned(), json!(number)));
    row["description"] = json!(plugin.description);
    row["parts"] = Value::Object(parts.collect());
    row["notes"] = json!(plugin.notes);
    row["errors"] = loaded.problems.iter().filter(own).map(|problem| json!(problem.to_string())).collect();
    row
}

fn key(what: &'static str) -> &'static str {
    if what == "MCP servers" { "mcpServers" } else { what }
}
