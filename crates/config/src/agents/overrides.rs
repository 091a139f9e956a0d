//! `agents.overrides` of the settings: changes of agents that exist, and switching them off. It defines none. A value
//! that cannot be used stops the start, as everywhere in settings; an unknown name is a warning.

use std::path::PathBuf;

use qoder_types::RuleSource;
use serde_json::{Map, Value};

use super::list::{AgentList, Standing};
use super::values::{MINUTES_ACCEPTED, TEMPERATURES_ACCEPTED, minutes, servers, shown, temperature};
use super::{AgentDefinition, GENERAL_PURPOSE, ServerReference};
use crate::settings::{Layer, Settings, SettingsError};
use crate::sources::{Origin, Problem};

/// The setting.
const KEY: &str = "agents.overrides";

/// Applies what the settings say about agents.
pub fn apply(
    list: &mut AgentList,
    settings: &Settings,
    problems: &mut Vec<Problem>,
) -> Result<(), SettingsError> {
    let Some(Value::Object(overrides)) = settings.get(KEY) else { return Ok(()) };
    for (name, wanted) in overrides {
        let change = Change { settings, name };
        // Loading has refused anything else.
        let Value::Object(wanted) = wanted else { continue };
        let known = list.names().join(", ");
        let Some(one) = list.winner(name) else {
            problems.push(
                change.problem(&[], &format!("there is no agent `{name}` to change; there are: {known}")),
            );
            continue;
        };
        if !change.enabled(wanted)? {
            one.standing = Standing::Disabled;
        }
        change.all(wanted, &mut one.definition, problems)?;
    }
    Ok(())
}

/// What is changed of one agent.
struct Change<'a> {
    settings: &'a Settings,
    name: &'a str,
}

impl Change<'_> {
    fn all(
        &self,
        wanted: &Map<String, Value>,
        definition: &mut AgentDefinition,
        problems: &mut Vec<Problem>,
    ) -> Result<(), SettingsError> {
        for (key, value) in wanted {
            match key.as_str() {
                "enabled" => {}
                "tools" => definition.tools = Some(self.tools(value)?),
                "mcpServers" => definition.mcp_servers = Some(self.servers(value, problems)?),
                "runConfig" => self.run(self.object(&["runConfig"], value)?, definition, problems)?,
                "modelConfig" => self.model(self.object(&["modelConfig"], value)?, definition, problems)?,
                other => problems.push(self.unknown(&[other])),
            }
        }
        Ok(())
    }

    /// The agent that is meant when none is named has to be there; a rule keeps it from running.
    fn enabled(&self, wanted: &Map<String, Value>) -> Result<bool, SettingsError> {
        match wanted.get("enabled") {
            None | Some(Value::Bool(true)) => Ok(true),
            Some(Value::Bool(false)) if self.name == GENERAL_PURPOSE => Err(self.wrong(
                &["enabled"],
                format!("is false; this agent cannot be switched off here, deny `Agent({GENERAL_PURPOSE})` instead"),
            )),
            Some(Value::Bool(false)) => Ok(false),
            Some(other) => {
                Err(self.wrong(&["enabled"], format!("is {}; accepted is true or false", shown(other))))
            }
        }
    }

    fn tools(&self, value: &Value) -> Result<Vec<String>, SettingsError> {
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        texts.ok_or_else(|| {
            self.wrong(&["tools"], format!("is {}; accepted is a list of names", shown(value)))
        })
    }

    /// A project's settings name servers; they describe none here, because no approval covers this place.
    fn servers(
        &self,
        value: &Value,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<ServerReference>, SettingsError> {
        let mut all = servers(value).map_err(|text| self.wrong(&["mcpServers"], text))?;
        let pointer = self.pointer(&["mcpServers"]);
        let of_project = |layer: &&Layer| {
            matches!(layer.source, RuleSource::ProjectSettings | RuleSource::LocalSettings)
                && layer.value.pointer(&pointer).is_some()
        };
        let is_inline = |server: &ServerReference| matches!(server, ServerReference::Inline { .. });
        if self.settings.layers.iter().any(|layer| of_project(&layer)) && all.iter().any(is_inline) {
            all.retain(|server| !is_inline(server));
            let text = "a project's settings cannot describe servers here; they are left out, describe them in .mcp.json";
            problems.push(self.problem(&["mcpServers"], text));
        }
        Ok(all)
    }

    fn run(
        &self,
        wanted: &Map<String, Value>,
        definition: &mut AgentDefinition,
        problems: &mut Vec<Problem>,
    ) -> Result<(), SettingsError> {
        for (key, value) in wanted {
            let path = ["runConfig", key];
            match key.as_str() {
                "maxTurns" => {
                    let turns = value.as_u64().filter(|turns| *turns > 0);
                    definition.max_turns = Some(turns.ok_or_else(|| {
                        self.wrong(&path, format!("is {}; accepted are whole numbers above 0", shown(value)))
                    })?);
                }
                "maxTimeMinutes" => {
                    definition.timeout = Some(minutes(value).ok_or_else(|| {
                        self.wrong(&path, format!("is {}; {MINUTES_ACCEPTED}", shown(value)))
                    })?);
                }
                _ => problems.push(self.unknown(&path)),
            }
        }
        Ok(())
    }

    fn model(
        &self,
        wanted: &Map<String, Value>,
        definition: &mut AgentDefinition,
        problems: &mut Vec<Problem>,
    ) -> Result<(), SettingsError> {
        for (key, value) in wanted {
            let path = ["modelConfig", key];
            match key.as_str() {
                "model" => {
                    let name = value.as_str().filter(|name| !name.trim().is_empty());
                    let name = name.ok_or_else(|| {
                        self.wrong(&path, format!("is {}; accepted is the name of a model", shown(value)))
                    })?;
                    definition.model = Some(name.to_owned());
                }
                "generateContentConfig" => {
                    for (key, value) in self.object(&path, value)? {
                        let path = ["modelConfig", "generateContentConfig", key];
                        if key != "temperature" {
                            problems.push(self.unknown(&path));
                            continue;
                        }
                        definition.temperature = Some(temperature(value).ok_or_else(|| {
                            self.wrong(&path, format!("is {}; {TEMPERATURES_ACCEPTED}", shown(value)))
                        })?);
                    }
                }
                _ => problems.push(self.unknown(&path)),
            }
        }
        Ok(())
    }

    fn object<'v>(&self, path: &[&str], value: &'v Value) -> Result<&'v Map<String, Value>, SettingsError> {
        value
            .as_object()
            .ok_or_else(|| self.wrong(path, format!("is {}; accepted is an object", shown(value))))
    }

    /// The place of a value, as JSON pointer. The name of an agent may have dots.
    fn pointer(&self, path: &[&str]) -> String {
        let escaped = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let below: String = path.iter().map(|name| escaped(name)).collect();
        format!("/agents/overrides{}{below}", escaped(self.name))
    }

    /// The highest layer that has the value.
    fn layer(&self, path: &[&str]) -> Option<&Layer> {
        let pointer = self.pointer(path);
        self.settings.layers.iter().rev().find(|layer| layer.value.pointer(&pointer).is_some())
    }

    fn shown(&self, path: &[&str]) -> String {
        [&[KEY, self.name], path].concat().join(".")
    }

    fn wrong(&self, path: &[&str], problem: String) -> SettingsError {
        let members = [&[KEY, self.name], path].concat();
        let place = self.layer(path).map(|layer| format!("{}{}", layer.name(), layer.lines_at(&members)));
        let place = place.unwrap_or_else(|| "settings".to_owned());
        SettingsError::Value { place, key: self.shown(path), problem }
    }

    fn unknown(&self, path: &[&str]) -> Problem {
        self.problem(path, "is not known and has no effect")
    }

    fn problem(&self, path: &[&str], text: &str) -> Problem {
        let layer = self.layer(path);
        let origin = match layer.map(|layer| layer.source) {
            Some(RuleSource::UserSettings) => Origin::User,
            Some(RuleSource::ProjectSettings | RuleSource::LocalSettings) => Origin::Project,
            Some(
                RuleSource::FlagSettings | RuleSource::CliArg | RuleSource::Command | RuleSource::Session,
            )
            | None => Origin::Flag,
        };
        let line = layer.and_then(|layer| layer.lines.get(&self.pointer(path)).copied());
        Problem {
            path: layer.map_or_else(|| PathBuf::from("settings"), |layer| layer.name().into()),
            line: line.map(u64::from),
            text: format!("`{}`: {text}", self.shown(path)),
            origin,
        }
    }
}
