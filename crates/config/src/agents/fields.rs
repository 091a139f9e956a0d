//! How a definition is written: the fields of a file's head and of JSON, read into types. The first value that cannot be
//! used is named with its field and with what is accepted; nothing is guessed.

use std::path::Path;
use std::time::Duration;

use qoder_types::PermissionMode;
use serde_json::{Map, Value};

use super::values::{
    MINUTES_ACCEPTED, MOST_ENTRIES, TEMPERATURES_ACCEPTED, minutes, servers, shown, split, temperature,
};
use super::{AgentDefinition, Isolation, MemoryScope, ServerReference};
use crate::sources::Origin;
use qoder_types::tool::TOOL_NAMES;

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
const COLORS: [&str; 8] = ["red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"];
/// The events that hooks of an agent may name.
const EVENTS: [&str; 7] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "Notification",
];

/// What every way of writing knows, besides what is read from elsewhere in a file.
const COMMON: [&str; 17] = [
    "description",
    "tools",
    "disallowedTools",
    "model",
    "effort",
    "permissionMode",
    "maxTurns",
    "timeoutMins",
    "temperature",
    "skills",
    "mcpServers",
    "hooks",
    "memory",
    "background",
    "isolation",
    "initialPrompt",
    "color",
];
/// What `--agents` takes.
const FLAG: [&str; 12] = [
    "description",
    "prompt",
    "tools",
    "disallowedTools",
    "mcpServers",
    "model",
    "effort",
    "color",
    "maxTurns",
    "initialPrompt",
    "skills",
    "permissionMode",
];
/// What a plugin's agents do not get: it could start programs or loosen what the person decided.
const NOT_OF_PLUGINS: [&str; 3] = ["hooks", "mcpServers", "permissionMode"];

/// Where fields were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// In the head of a file: lists may be texts with commas, and what is not known is passed over.
    File,
    /// By an SDK, in the handshake.
    Sdk,
    /// In `--agents`, which takes nothing it does not know.
    Flag,
}

/// A value that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The field.
    pub(super) field: String,
    /// What is wrong and what is accepted.
    pub(super) text: String,
}

fn wrong<T>(field: &str, text: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { field: field.to_owned(), text: text.into() })
}

/// The fields of a definition as written.
pub(super) struct Fields<'a> {
    pub(super) object: &'a Map<String, Value>,
    pub(super) writing: Writing,
    pub(super) origin: Origin,
    pub(super) path: Option<&'a Path>,
}

impl Fields<'_> {
    /// The definition. `body` is the prompt of a file; JSON has it in a field.
    pub(super) fn definition(&self, body: Option<&str>) -> Result<AgentDefinition, Wrong> {
        let mut notes = self.unknown()?;
        let prompt = match body {
            Some(body) if body.trim().is_empty() => {
                return wrong("prompt", "there is no text below the head; it is the agent's prompt");
            }
            Some(body) => body.trim().to_owned(),
            None => self.required("prompt")?,
        };
        self.check_kind()?;
        let (effort, thinking_tokens) = self.effort()?;
        let definition = AgentDefinition {
            tools: self.tools()?,
            disallowed_tools: self.texts("disallowedTools")?.unwrap_or_default(),
            model: self.text("model")?,
            effort,
            thinking_tokens,
            permission_mode: self.mode()?,
            max_turns: self.turns()?,
            timeout: self.minutes()?,
            temperature: self.temperature()?,
            skills: self.skills()?,
            mcp_servers: self.servers()?,
            hooks: self.hooks()?,
            background: self.flag("background")?,
            isolation: self.word("isolation", &["worktree"])?.map(|_| Isolation::Worktree),
            memory: self.memory()?,
            initial_prompt: self.text("initialPrompt")?,
            color: self.word("color", &COLORS)?.map(str::to_owned),
            path: self.path.map(Path::to_path_buf),
            ..AgentDefinition::new(self.required("description")?, prompt, self.origin.clone())
        };
        notes.extend(unknown_tools(&definition));
        Ok(self.of_plugin(AgentDefinition { notes, ..definition }))
    }

    /// Takes away what a plugin may not bring.
    fn of_plugin(&self, definition: AgentDefinition) -> AgentDefinition {
        let Origin::Plugin(_) = &self.origin else { return definition };
        let lost = NOT_OF_PLUGINS.into_iter().filter(|field| self.value(field).is_some());
        let note = |field: &str| format!("`{field}` has no effect in agents of plugins");
        let notes = definition.notes.iter().cloned().chain(lost.map(note)).collect();
        AgentDefinition { hooks: None, mcp_servers: None, permission_mode: None, notes, ..definition }
    }

    /// The fields that mean nothing here.
    fn unknown(&self) -> Result<Vec<String>, Wrong> {
        let is_known = |key: &str| match self.writing {
            Writing::File => COMMON.contains(&key) || matches!(key, "name" | "kind"),
            Writing::Sdk => COMMON.contains(&key) || matches!(key, "prompt" | "kind"),
            Writing::Flag => FLAG.contains(&key),
        };
        let unknown = self.object.keys().filter(|key| !is_known(key));
        if self.writing == Writing::Flag
            && let Some(key) = unknown.clone().next()
        {
            return wrong(key, format!("there is no such key here; accepted are {}", FLAG.join(", ")));
        }
        // However many there are, a few of them say it.
        Ok(unknown.take(20).map(|key| format!("`{key}` is not known and has no effect")).collect())
    }

    /// An agent on another machine is rejected, because one that runs here in its place would be a surprise.
    fn check_kind(&self) -> Result<(), Wrong> {
        match self.word("kind", &["local", "remote"])? {
            Some("remote") => wrong("kind", "remote agents are not supported; accepted is local"),
            Some(_) | None => Ok(()),
        }
    }

    fn value(&self, field: &str) -> Option<&Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    fn text(&self, field: &str) -> Result<Option<String>, Wrong> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(other) => wrong(field, format!("is {}; accepted is a text", shown(other))),
        }
    }

    fn required(&self, field: &str) -> Result<String, Wrong> {
        match self.text(field)? {
            Some(text) => Ok(text),
            None if self.object.contains_key(field) => wrong(field, "is empty"),
            None => wrong(field, format!("`{field}` is missing")),
        }
    }

    fn word<'w>(&self, field: &str, words: &[&'w str]) -> Result<Option<&'w str>, Wrong> {
        let Some(value) = self.value(field) else { return Ok(None) };
        match words.iter().find(|word| value.as_str() == Some(word)) {
            Some(word) => Ok(Some(word)),
            None => wrong(field, format!("is {}; accepted is {}", shown(value), words.join(", "))),
        }
    }

    fn memory(&self) -> Result<Option<MemoryScope>, Wrong> {
        let word = self.word("memory", &MemoryScope::ALL.map(MemoryScope::as_str))?;
        Ok(word.and_then(|word| MemoryScope::ALL.into_iter().find(|scope| scope.as_str() == word)))
    }

    fn flag(&self, field: &str) -> Result<bool, Wrong> {
        match self.value(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => wrong(field, format!("is {}; accepted is true or false", shown(other))),
        }
    }

    /// A list of texts; in a file also one text with commas.
    fn texts(&self, field: &str) -> Result<Option<Vec<String>>, Wrong> {
        let accepted = match self.writing {
            Writing::File => "a list, or names separated by commas",
            Writing::Sdk | Writing::Flag => "a list of names",
        };
        let entries: Vec<String> = match self.value(field) {
            None => return Ok(None),
            Some(Value::String(text)) if self.writing == Writing::File => split(text),
            Some(Value::Array(items)) => {
                if let Some(bad) =
                    items.iter().find(|item| item.as_str().is_none_or(|text| text.trim().is_empty()))
                {
                    return wrong(field, format!("has {} in it; accepted is {accepted}", shown(bad)));
                }
                items.iter().filter_map(Value::as_str).map(|text| text.trim().to_owned()).collect()
            }
            Some(other) => return wrong(field, format!("is {}; accepted is {accepted}", shown(other))),
        };
        if entries.len() > MOST_ENTRIES {
            return wrong(field, format!("has more than {MOST_ENTRIES} entries"));
        }
        Ok(Some(entries))
    }

    /// `*` is every tool. An empty field of a file could mean none or all, so it means nothing.
    fn tools(&self) -> Result<Option<Vec<String>>, Wrong> {
        let is_empty = match self.object.get("tools") {
            Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            _ => false,
        };
        if self.writing == Writing::File && is_empty {
            return wrong("tools", "is empty; write [] for no tools, or leave it out for all");
        }
        let tools = self.texts("tools")?;
        if let Some(entry) = tools.iter().flatten().find(|entry| is_torn(entry)) {
            return wrong(
                "tools",
                format!("`{entry}` is no tool; accepted are names, mcp__server__*, Agent(name)"),
            );
        }
        Ok(tools)
    }

    /// A word, or the maximum thinking tokens.
    fn effort(&self) -> Result<(Option<String>, Option<u32>), Wrong> {
        let accepted = || format!("accepted are {} and whole numbers above 0", EFFORTS.join(", "));
        match self.value("effort") {
            None => Ok((None, None)),
            Some(Value::String(word)) if EFFORTS.contains(&word.as_str()) => Ok((Some(word.clone()), None)),
            Some(other) => match other.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number) if number > 0 => Ok((None, Some(number))),
                Some(_) | None => wrong("effort", format!("is {}; {}", shown(other), accepted())),
            },
        }
    }

    fn mode(&self) -> Result<Option<PermissionMode>, Wrong> {
        let Some(value) = self.value("permissionMode") else { return Ok(None) };
        match value.as_str().and_then(PermissionMode::parse) {
            Some(mode) => Ok(Some(mode)),
            None => wrong(
                "permissionMode",
                format!("is {}; accepted are {}", shown(value), PermissionMode::ACCEPTED),
            ),
        }
    }

    fn turns(&self) -> Result<Option<u64>, Wrong> {
        match self.value("maxTurns") {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|turns| (1..=u64::from(u32::MAX)).contains(turns)) {
                Some(turns) => Ok(Some(turns)),
                None => wrong("maxTurns", format!("is {}; accepted are whole numbers above 0", shown(value))),
            },
        }
    }

    fn minutes(&self) -> Result<Option<Duration>, Wrong> {
        let Some(value) = self.value("timeoutMins") else { return Ok(None) };
        match minutes(value) {
            Some(time) => Ok(Some(time)),
            None => wrong("timeoutMins", format!("is {}; {MINUTES_ACCEPTED}", shown(value))),
        }
    }

    fn temperature(&self) -> Result<Option<f64>, Wrong> {
        let Some(value) = self.value("temperature") else { return Ok(None) };
        match temperature(value) {
            Some(number) => Ok(Some(number)),
            None => wrong("temperature", format!("is {}; {TEMPERATURES_ACCEPTED}", shown(value))),
        }
    }

    fn skills(&self) -> Result<Vec<String>, Wrong> {
        let skills = self.texts("skills")?.unwrap_or_default();
        // No path can be made of a skill's name.
        let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ':' | '.');
        let is_name =
            |name: &String| name.chars().all(fits) && !name.starts_with('.') && !name.contains("..");
        match skills.iter().find(|name| !is_name(name)) {
            Some(name) => wrong(
                "skills",
                format!("`{name}` is no name of a skill; accepted are `skill` and `plugin:skill`"),
            ),
            None => Ok(skills),
        }
    }

    fn servers(&self) -> Result<Option<Vec<ServerReference>>, Wrong> {
        let Some(value) = self.value("mcpServers") else { return Ok(None) };
        let names = if self.writing == Writing::File { value.as_str().map(split) } else { None };
        let value = names.map_or_else(|| value.clone(), Value::from);
        let servers = servers(&value).or_else(|text| wrong("mcpServers", text))?;
        let of_program = |server: &ServerReference| match server {
            ServerReference::Name(_) => false,
            ServerReference::Inline { config, .. } => {
                config.get("type").and_then(Value::as_str) == Some("sdk")
            }
        };
        if self.writing == Writing::File && servers.iter().any(of_program) {
            return wrong(
                "mcpServers",
                "a server of type sdk lives in the program that started us; a file cannot bring one",
            );
        }
        Ok(Some(servers))
    }

    /// As in settings: lists by event. Their entries are read where all hooks are read.
    fn hooks(&self) -> Result<Option<Value>, Wrong> {
        let Some(value) = self.value("hooks") else { return Ok(None) };
        let Some(events) = value.as_object() else {
            return wrong(
                "hooks",
                format!("is {}; accepted are lists by event, as in settings", shown(value)),
            );
        };
        if let Some(event) = events.keys().find(|event| !EVENTS.contains(&event.as_str())) {
            return wrong(
                "hooks",
                format!("`{event}` is no event of an agent; accepted are {}", EVENTS.join(", ")),
            );
        }
        if let Some((event, _)) = events.iter().find(|(_, matchers)| !matchers.is_array()) {
            return wrong("hooks", format!("`{event}` has to be a list"));
        }
        Ok(Some(value.clone()))
    }
}

/// Names of built-in tools that do not exist are worth a word: the agent would miss them.
fn unknown_tools(definition: &AgentDefinition) -> Vec<String> {
    let is_known = |entry: &str| {
        let bare = entry.split('(').next().unwrap_or_default().trim_end();
        TOOL_NAMES.contains(&bare) || entry.starts_with("mcp__") || entry.ends_with('*')
    };
    let lists = [
        ("tools", definition.tools.as_deref()),
        ("disallowedTools", Some(definition.disallowed_tools.as_slice())),
    ];
    let entries = lists
        .into_iter()
        .flat_map(|(field, list)| list.into_iter().flatten().map(move |entry| (field, entry)));
    entries
        .filter(|(_, entry)| !is_known(entry))
        .take(20)
        .map(|(field, entry)| format!("`{entry}` of `{field}` is no known tool"))
        .collect()
}

/// True when an entry's parentheses do not fit, or stand where nothing reads them.
fn is_torn(entry: &str) -> bool {
    let has = entry.contains(['(', ')']);
    has && super::targets(entry).is_none()
}
