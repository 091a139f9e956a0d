//! The tools of a session on this machine: those of the runtime, under the names and with the inputs that the server gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_core::ports::Cancelled;
use qoder_runtime::config::settings::holds_secret;
use qoder_runtime::setup::{Options, Setup, WorkerTools};
use qoder_types::workspace::Isolation;
use qoder_types::{CallOutcome, PermissionMode, ToolResultContent};
use serde_json::{Value, json};

use crate::exit::Fault;

/// The tools that a worker runs.
pub const TOOLS: [&str; 6] = ["bash", "read", "write", "edit", "glob", "grep"];
const OWN_NAMES: [&str; 6] = ["Bash", "Read", "Write", "Edit", "Glob", "Grep"];
/// Variables of the worker's own environment that commands have, too.
const KEPT_VARIABLES: [&str; 7] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR"];

/// Values shorter than this could be any word.
const SHORTEST_SECRET: usize = 8;

/// Where a session works, and what its commands are given.
#[derive(Debug, Clone)]
pub struct SessionPlace {
    /// The session.
    pub id: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The worker's own folder.
    pub own: PathBuf,
    /// Variables of its commands.
    pub variables: BTreeMap<String, String>,
    /// False when commands have the rights of this user.
    pub is_confined: bool,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Blocks, as the server takes them.
    pub content: Vec<Value>,
    /// True when it failed.
    pub is_error: bool,
    /// True when it was stopped.
    pub is_interrupted: bool,
}

impl CallResult {
    /// A failure in words.
    pub fn failed(text: &str) -> Self {
        Self { content: vec![text_block(text)], is_error: true, is_interrupted: false }
    }
}

/// The tools of one session.
pub struct SessionTools {
    host: WorkerTools,
    folder: PathBuf,
}

impl SessionTools {
    /// The tools of a session.
    pub fn open(place: &SessionPlace, environment: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let setup = prepare(place, environment)?;
        let outputs = place.own.join("outputs").join(&place.id);
        let host = WorkerTools::open(&setup, place.id.clone(), outputs)?;
        Ok(Self { host, folder: setup.cwd })
    }

    /// Runs a call to its end, or until `cancelled` completes.
    pub async fn run(&self, call: &str, name: &str, input: &Value, cancelled: Cancelled) -> CallResult {
        if name == "bash" && input["restart"] == true {
            self.host.restart();
            if input["command"].is_null() {
                let content = vec![text_block("The shell was started anew.")];
                return CallResult { content, is_error: false, is_interrupted: false };
            }
        }
        let (tool, input) = match translated(name, input, &self.folder) {
            Ok(translated) => translated,
            Err(problem) => return CallResult::failed(&problem),
        };
        let outcome = self.host.run(call, tool, &input, cancelled).await;
        let content = match outcome.content {
            ToolResultContent::Text(text) if text.is_empty() => vec![text_block("(no output)")],
            ToolResultContent::Text(text) => vec![text_block(&text)],
            ToolResultContent::Blocks(blocks) => {
                blocks.iter().filter_map(|block| serde_json::to_value(block).ok()).collect()
            }
        };
        CallResult {
            content,
            is_error: outcome.outcome != CallOutcome::Completed,
            is_interrupted: outcome.outcome == CallOutcome::Interrupted,
        }
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The runtime for a session: nothing of this machine's settings reaches it, and tools touch the session's folder alone.
pub fn prepare(place: &SessionPlace, environment: &BTreeMap<String, String>) -> Result<Setup, Fault> {
    let mut own = environment.clone();
    let config = place.own.join("config").to_string_lossy().into_owned();
    own.insert("QODER_CONFIG_DIR".to_owned(), config);
    let hidden = environment.keys().filter(|name| !KEPT_VARIABLES.contains(&name.as_str()));
    let mut changed: BTreeMap<String, Option<String>> = hidden.map(|name| (name.clone(), None)).collect();
    changed.insert("HOME".to_owned(), Some(place.folder.to_string_lossy().into_owned()));
    let given = place.variables.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    changed.extend(given);
    let secrets =
        place.variables.iter().filter(|(name, value)| holds_secret(name) && value.len() >= SHORTEST_SECRET);
    let names: Vec<String> = OWN_NAMES.map(str::to_owned).to_vec();
    let mode = if place.is_confined { PermissionMode::DontAsk } else { PermissionMode::BypassPermissions };
    let settings =
        json!({ "sandbox": { "network": { "allowedDomains": ["*"], "allowLocalBinding": true } } });
    Ok(Setup::prepare(Options {
        cwd: place.folder.clone(),
        environment: own,
        command_environment: changed,
        secrets: secrets.map(|(_, value)| value.clone()).collect(),
        // No model is ever asked.
        model: Some("offline".to_owned()),
        permission_mode: Some(mode),
        allowed_tools: names.clone(),
        tools: Some(names),
        only_own_agents: true,
        skills: Some(Vec::new()),
        settings: Some(settings.to_string()),
        setting_sources: Some(Vec::new()),
        strict_mcp_config: true,
        no_commands: true,
        isolation: place.is_confined.then(|| Isolation::new(vec![place.folder.clone()])),
        sandbox: place.is_confined,
        ..Options::default()
    })?)
}

/// The runtime's tool and its input.
fn translated(name: &str, input: &Value, folder: &Path) -> Result<(&'static str, Value), String> {
    let place = TOOLS.iter().position(|known| *known == name);
    let tool =
        place.map(|place| OWN_NAMES[place]).ok_or_else(|| format!("There is no tool named {name}."))?;
    let absolute = |key: &str| {
        let path = input.get(key).and_then(Value::as_str)?;
        Some(folder.join(path).to_string_lossy().into_owned())
    };
    let mut own = json!({});
    let mut take = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            own[key] = value;
        }
    };
    let given = |key: &str| input.get(key).cloned();
    match name {
        "bash" => {
            take("command", given("command"));
            take("timeout", given("timeout_ms"));
        }
        "read" => {
            take("file_path", absolute("file_path").map(Value::from));
            if let Some([first, last]) = input["view_range"].as_array().map(Vec::as_slice) {
                let (Some(first), Some(last)) = (first.as_i64(), last.as_i64()) else {
                    return Err("`view_range` must be two whole numbers.".to_owned());
                };
                if first < 1 || (last != -1 && last < first) {
                    return Err(format!("`view_range` is {first} to {last}; lines count from 1."));
                }
                take("offset", Some(json!(first)));
                take("limit", (last != -1).then(|| json!(last - first + 1)));
            }
        }
        "write" => {
            take("file_path", absolute("file_path").map(Value::from));
            take("content", given("content"));
        }
        "edit" => {
            take("file_path", absolute("file_path").map(Value::from));
            take("old_string", given("old_string"));
            take("new_string", given("new_string"));
            take("replace_all", given("replace_all"));
        }
        _ => {
            take("pattern", given("pattern"));
            take("path", absolute("path").map(Value::from));
            take("output_mode", (name == "grep").then(|| json!("content")));
        }
    }
    Ok((tool, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_the_server_become_those_of_the_runtime() {
        let folder = Path::new("/w");
        for (name, input, tool, own) in [
            (
                "bash",
                json!({ "command": "ls", "timeout_ms": 5 }),
                "Bash",
                json!({ "command": "ls", "timeout": 5 }),
            ),
            (
                "read",
                json!({ "file_path": "a/b", "view_range": [2, 4] }),
                "Read",
                json!({ "file_path": "/w/a/b", "offset": 2, "limit": 3 }),
            ),
            (
                "read",
                json!({ "file_path": "/x", "view_range": [2, -1] }),
                "Read",
                json!({ "file_path": "/x", "offset": 2 }),
            ),
            (
                "grep",
                json!({ "pattern": "x", "path": null }),
                "Grep",
                json!({ "pattern": "x", "output_mode": "content" }),
            ),
        ] {
            assert_eq!(translated(name, &input, folder), Ok((tool, own)), "{name}");
        }
        assert!(translated("read", &json!({ "file_path": "a", "view_range": [3, 2] }), folder).is_err());
        assert!(translated("Bash", &json!({}), folder).is_err(), "names are those of the server");
    }
}
