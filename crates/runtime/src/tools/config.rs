//! The Config tool: shows and changes settings. Reading shows what is in force with secrets taken out; writing changes
//! one file, and since it touches what decides about everything else, a person is asked each time.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_tools::{parse_input, tool_definition};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::permissions::PermissionUpdates;
use qoder_config::settings::{Change, KNOWN_KEYS, Settings, change, check_change, is_known_key};

/// The name the model calls.
pub(crate) const NAME: &str = "Config";

/// Shows and changes the settings of this program.
///
/// Use it when the person asks about a setting or wants one changed, never by yourself.
///
/// - `list` shows every setting in force, `get` one of them or a whole group.
/// - `set` writes one value into a settings file. The person is asked each time. It counts from the next start; the
///   running session keeps what it started with.
/// - Keys are dotted, such as `model.name` or `general.defaultPermissionMode`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ConfigInput {
    /// What to do.
    action: ConfigAction,
    /// The setting, for `get` and `set`.
    key: Option<String>,
    /// The new value, for `set`. `null` removes the setting.
    #[serde(default, deserialize_with = "also_null")]
    value: Option<Value>,
    /// The file to change: `user` for all projects, `project` shared with others, `local` for this project and person.
    /// `local` when left out.
    scope: Option<ConfigScope>,
}

/// A value that is given, also when it is null: `None` only for a field that is left out.
fn also_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ConfigAction {
    Get,
    Set,
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ConfigScope {
    User,
    Project,
    Local,
}

/// See [`ConfigInput`].
#[derive(Debug, Clone)]
pub(crate) struct ConfigTool {
    effective: Value,
    user: PathBuf,
    project: PathBuf,
    local: PathBuf,
    trusted: bool,
}

impl ConfigTool {
    /// Shows the settings in force; `updates` knows the files to change.
    pub(crate) fn new(settings: &Settings, updates: PermissionUpdates) -> Self {
        Self {
            effective: without_secrets(&settings.effective),
            user: updates.user,
            project: updates.project,
            local: updates.local,
            trusted: updates.trusted,
        }
    }

    fn answer(&self, input: ConfigInput) -> ToolOutcome {
        match (input.action, input.key.as_deref().map(str::trim).filter(|key| !key.is_empty())) {
            (ConfigAction::List, _) => {
                let mut values = Map::new();
                flatten(&self.effective, "", &mut values);
                let text: Vec<String> =
                    values.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                let text = if text.is_empty() {
                    "Nothing is set; every default is in force.".to_owned()
                } else {
                    text.join("\n")
                };
                ToolOutcome::completed(text, json!({"success": true, "values": values}))
            }
            (ConfigAction::Get | ConfigAction::Set, None) => {
                ToolOutcome::failed("Invalid input for Config: field `key` is needed for `get` and `set`.")
            }
            (ConfigAction::Get, Some(key)) => self.get(key),
            (ConfigAction::Set, Some(key)) => {
                self.set(key, input.value, input.scope.unwrap_or(ConfigScope::Local))
            }
        }
    }

    fn get(&self, key: &str) -> ToolOutcome {
        let pointer = format!("/{}", key.replace('.', "/"));
        let default = || {
            let known = KNOWN_KEYS.iter().find(|known| known.path == key)?;
            Some(serde_json::from_str(known.default).unwrap_or(Value::Null))
        };
        match self.effective.pointer(&pointer).cloned().or_else(default) {
            Some(value) => {
                ToolOutcome::completed(format!("{key} = {value}"), json!({"success": true, "value": value}))
            }
            None => unknown(key),
        }
    }

    fn set(&self, key: &str, value: Option<Value>, scope: ConfigScope) -> ToolOutcome {
        if !is_known_key(key) {
            return unknown(key);
        }
        let Some(value) = value else {
            return ToolOutcome::failed(
                "Invalid input for Config: field `value` is needed for `set`; null removes the setting.",
            );
        };
        let file = match scope {
            ConfigScope::User => &self.user,
            ConfigScope::Project | ConfigScope::Local if !self.trusted => {
                return ToolOutcome::failed(
                    "The folder is not trusted, so its settings are neither read nor written. Use scope `user`, or ask the \
                     person to run `qodercli trust`.",
                );
            }
            ConfigScope::Project => &self.project,
            ConfigScope::Local => &self.local,
        };
        if let Err(problem) = check_change(key, &value, scope != ConfigScope::User) {
            return ToolOutcome::failed(format!("{key} cannot be set so: {problem}."));
        }
        let made = if value.is_null() { Change::Remove } else { Change::Set(value.clone()) };
        match change(file, key, &made) {
            Ok(()) => {
                let value = shown(key.rsplit('.').next().unwrap_or(key), &value);
                ToolOutcome::completed(
                    done(key, &value, file),
                    json!({"success": true, "value": value, "file": file}),
                )
            }
            Err(error) => ToolOutcome::failed(format!("{error}.")),
        }
    }
}

fn done(key: &str, value: &Value, file: &Path) -> String {
    let what = if value.is_null() { "is removed from".to_owned() } else { format!("is set to {value} in") };
    format!("{key} {what} {}. It counts from the next start.", file.display())
}

fn unknown(key: &str) -> ToolOutcome {
    ToolOutcome::failed(format!(
        "There is no setting `{key}`. `list` shows those that are set; docs/settings.md has all."
    ))
}

fn looks_only(input: &Value) -> bool {
    matches!(input.get("action").and_then(Value::as_str), Some("get" | "list"))
}

/// What a call with this input would touch: nothing when it only looks, and a person's settings otherwise.
pub(crate) fn accesses(input: &Value) -> Vec<Access> {
    if looks_only(input) { vec![Access::Internal] } else { vec![Access::Person] }
}

impl Tool for ConfigTool {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        tool_definition::<ConfigInput>(&CELL, NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: true, open_world_hint: false }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    fn is_read_only(&self, input: &Value) -> bool {
        looks_only(input)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        accesses(input)
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let tool = self.clone();
        Box::pin(async move {
            match parse_input::<ConfigInput>(NAME, input) {
                Ok(input) => tool.answer(input),
                Err(refusal) => *refusal,
            }
        })
    }
}

fn flatten(value: &Value, prefix: &str, rows: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(below, &path, rows);
            }
        }
        other => {
            rows.insert(prefix.to_owned(), other.clone());
        }
    }
}

/// The settings with the values of keys, tokens and the like taken out.
fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, below)| (name.clone(), shown(name, below))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_secrets).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A value as it may be shown under its name. A secret is a text or a list of them; a number is at most a count of tokens.
fn shown(name: &str, value: &Value) -> Value {
    match value {
        Value::String(_) | Value::Array(_) if qoder_config::settings::holds_secret(name) => {
            Value::from("***")
        }
        other => without_secrets(other),
    }
}
