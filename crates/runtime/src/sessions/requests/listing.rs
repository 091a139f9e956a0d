//! What a session has, as lists: agents, hooks, memory files, tools, rules. And small changes that fronts offer beside them.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use qoder_config::agents::Listed;
use qoder_config::hooks::Hook;
use qoder_files::open_regular;
use qoder_policy::Rule;
use qoder_protocol::RequestError;
use qoder_types::record::InputAdmitted;
use qoder_types::{Behavior, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::{Done, RequestContext};
use crate::callbacks::Callbacks;
use crate::session::new_id;

/// How much of a task's output is shown.
const SHOWN_OUTPUT: u64 = 64 * 1024;
/// The efforts that there are.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

impl RequestContext {
    pub(super) fn agent_definitions(&self) -> Vec<Value> {
        self.engine.common.extensions.current().agents.all().map(Listed::to_wire).collect()
    }

    pub(super) fn hooks(&self) -> Vec<Value> {
        self.setup().settings_hooks().list().0.iter().map(Hook::to_wire).collect()
    }

    /// Memory files that the model has, in the order in which it got them; rules for certain files come when one is used.
    pub(super) async fn memory_files(&self) -> Result<Vec<Value>, RequestError> {
        let mut files: Vec<Value> = self
            .setup()
            .memory_pieces()
            .into_iter()
            .map(|piece| {
                json!({
                    "path": piece.path, "owner": piece.owner.as_str(), "reason": piece.reason.as_str(),
                    "isWhole": piece.is_whole, "bytes": piece.text.len(),
                })
            })
            .collect();
        let later = self.session.run(|driver| Ok(driver.session().state.memory.clone())).await?;
        for path in later.iter().filter(|path| !path.starts_with("skill:")) {
            if !files.iter().any(|row| row["path"] == json!(path)) {
                files.push(json!({ "path": path, "reason": "used_file" }));
            }
        }
        Ok(files)
    }

    pub(super) fn tools(&self) -> Vec<Value> {
        let row = |name: String| {
            let tool = self.engine.toolbox.get(&name);
            let description = tool.as_ref().map(|tool| tool.definition().description.clone());
            let hints = tool
                .as_ref()
                .filter(|_| !name.starts_with("mcp__"))
                .map(|tool| annotations(tool.annotations()));
            json!({ "name": name, "description": description, "annotations": hints })
        };
        self.engine.toolbox.names().into_iter().map(row).collect()
    }

    /// The end of what a task has printed so far.
    pub(super) async fn task_output(&self, task_id: String) -> Result<String, RequestError> {
        let id = task_id.clone();
        let file = self.session.run(move |driver| {
            let task = driver.session().state.tasks.get(&id);
            Ok(task.map(|task| task.start.output_file.clone()))
        });
        let Some(file) = file.await? else {
            return Err(RequestError::Refused(format!("task_output: there is no task `{task_id}`")));
        };
        let bytes = read_end(Path::new(&file), SHOWN_OUTPUT)
            .map_err(|error| RequestError::Refused(format!("task_output: {file} cannot be read: {error}")))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The rules in force: those of settings and flags, and those that came with answers in this session.
    pub(super) async fn permission_rules(&self) -> Result<Value, RequestError> {
        let started = self.setup().rules_with(self.servers());
        let own = self.session.run(move |driver| {
            let permissions = &driver.session().state.permissions;
            Ok((started.with_updates(permissions.updates(), permissions.turn_rules()), permissions.mode))
        });
        let (rules, mode) = own.await?;
        let lists =
            [(Behavior::Deny, &rules.deny), (Behavior::Ask, &rules.ask), (Behavior::Allow, &rules.allow)];
        let rows: Vec<Value> = lists
            .iter()
            .flat_map(|(behavior, rules)| rules.iter().map(move |rule| rule_row(*behavior, rule)))
            .collect();
        let setup = self.setup();
        let mode = mode.unwrap_or_else(|| setup.mode());
        Ok(json!({ "mode": mode.as_str(), "trusted": setup.config.trust.is_trusted(), "rules": rows }))
    }

    pub(super) fn set_effort(&self, effort: Option<String>) -> Result<Done, RequestError> {
        if let Some(word) = effort.as_deref().filter(|word| !EFFORTS.contains(word)) {
            let accepted = EFFORTS.join(", ");
            return Err(RequestError::Refused(format!(
                "set_effort: `{word}` is not a level; accepted are {accepted}"
            )));
        }
        *self.engine.style.effort.write().unwrap_or_else(PoisonError::into_inner) = effort;
        Ok(Done {})
    }

    pub(super) async fn set_title(&self, title: String) -> Result<Done, RequestError> {
        if title.trim().is_empty() {
            return Err(RequestError::refused("set_session_title: `title` is empty"));
        }
        let kept = self.session.run(move |driver| {
            let line = json!({ "type": "custom-title", "customTitle": title.trim(), "sessionId": driver.session().id });
            Ok(driver.session.note(&line))
        });
        kept.await?.map_err(|error| RequestError::Refused(format!("set_session_title: {error}")))?;
        Ok(Done {})
    }

    /// Servers as settings and files describe them now, in place of those that the session has.
    pub(super) async fn reload_servers(&self) -> Result<Value, RequestError> {
        let wrong = |error: crate::setup::SetupError| {
            RequestError::Refused(format!("mcp_reload: {error}. {}", error.hint()))
        };
        let after = Arc::new(self.setup().with_flag_settings(&json!({})).map_err(wrong)?);
        let mut described = Callbacks::default();
        let warnings = after.bring_servers(&self.callbacks.server_flags, &mut described).map_err(wrong)?;
        let replaced = self.servers().replace(described.servers, described.refused_servers).await;
        self.engine.gate.replace_rules(after.rules_with(self.servers()));
        self.go_on_with(after);
        let mut answer = serde_json::to_value(replaced).map_err(RequestError::refused)?;
        answer["warnings"] = json!(warnings);
        answer["mcpServers"] = json!(self.servers().rows());
        Ok(answer)
    }

    pub(super) async fn run_command(
        &self,
        command: String,
        uuid: Option<String>,
    ) -> Result<Done, RequestError> {
        if command.trim().is_empty() {
            return Err(RequestError::refused("run_command: `command` is empty"));
        }
        let input = InputAdmitted::shell(uuid.unwrap_or_else(new_id), command);
        self.session.run(move |driver| driver.admit_once(input)).await.map(|_| Done {})
    }
}

/// The last bytes of a file.
fn read_end(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = open_regular(path, None)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn rule_row(behavior: Behavior, rule: &Rule) -> Value {
    json!({ "behavior": behavior, "rule": rule.text, "origin": rule.origin })
}

/// Only what is declared.
fn annotations(hints: ToolAnnotations) -> Value {
    let pairs = [
        ("readOnly", hints.read_only_hint),
        ("destructive", hints.destructive_hint),
        ("openWorld", hints.open_world_hint),
    ];
    let set: Map<String, Value> = pairs
        .into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(name, _)| (name.to_owned(), json!(true)))
        .collect();
    Value::Object(set)
}
