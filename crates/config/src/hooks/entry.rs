//! Reads one entry of a file of hooks: its type, what the type needs, and what it may have besides. Unknown fields
//! are notes; values that make no sense are errors.

use std::time::Duration;

use serde_json::{Map, Value};

use super::action::{Action, AgentHook, Background, CommandHook, HttpHook, PromptHook, Shell, Traits};
use super::condition;
use super::files::HookSource;
use super::{HookEvent, OnFailure};
use crate::sources::kind_of;

/// The longest time that a hook may be given, in seconds.
const LONGEST_TIME: f64 = 24.0 * 3600.0;
/// The longest summary of a rewaking hook, in characters.
const LONGEST_SUMMARY: usize = 300;
/// Headers that say how a request is sent.
const OWN_HEADERS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];
/// How much of a command stands for a name.
const NAME_CHARACTERS: usize = 80;

/// Fields of every type.
const COMMON: [&str; 8] = ["type", "timeout", "if", "async", "once", "statusMessage", "name", "onFailure"];

/// An entry that can be used.
pub(super) struct Entry {
    pub(super) action: Action,
    pub(super) name: String,
    pub(super) timeout: Duration,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) traits: Traits,
}

/// Reads an entry of a group; `notes` are about fields that are left out.
pub(super) fn read(
    event: HookEvent,
    is_async: bool,
    fields: &Map<String, Value>,
    source: &HookSource,
    notes: &mut Vec<String>,
) -> Result<Entry, String> {
    let reader = Fields(fields);
    let word = reader.text("type")?.ok_or("a hook has a `type`: command, http, prompt or agent")?;
    let (action, seconds, own): (Action, u64, &[&str]) = match word {
        "command" => (
            command(&reader, source)?,
            600,
            &["command", "shell", "args", "env", "asyncRewake", "rewakeMessage", "rewakeSummary"],
        ),
        "http" => (http(&reader)?, 600, &["url", "headers", "allowedEnvVars"]),
        "prompt" => (
            Action::Prompt(PromptHook {
                prompt: reader.needed("prompt")?.to_owned(),
                model: reader.text("model")?.map(str::to_owned),
            }),
            30,
            &["prompt", "model"],
        ),
        "agent" => (agent(&reader)?, 60, &["prompt", "tools", "maxTurns", "model"]),
        other => {
            return Err(format!(
                "the type `{other}` is not known; known are command, http, prompt and agent"
            ));
        }
    };
    for field in
        fields.keys().filter(|field| !COMMON.contains(&field.as_str()) && !own.contains(&field.as_str()))
    {
        notes.push(format!("unknown field `{field}` of a hook of type {word}"));
    }
    let timeout = match reader.number("timeout")? {
        None => Duration::from_secs(seconds),
        Some(number) if number > 0.0 && number <= LONGEST_TIME => Duration::from_secs_f64(number),
        Some(number) => {
            return Err(format!("`timeout` is {number}; it is a number of seconds, at most a day"));
        }
    };
    let on_failure =
        match reader.text("onFailure")? {
            None => None,
            Some(word) => Some(OnFailure::parse(word).ok_or_else(|| {
                format!("onFailure `{word}` is not known; accepted are allow, ask and deny")
            })?),
        };
    let name = match reader.text("name")? {
        Some(name) => name.to_owned(),
        None => {
            action.display_text().lines().next().unwrap_or_default().chars().take(NAME_CHARACTERS).collect()
        }
    };
    let traits = traits(event, is_async, &reader)?;
    Ok(Entry { action, name, timeout, on_failure, traits })
}

fn traits(event: HookEvent, is_async: bool, reader: &Fields<'_>) -> Result<Traits, String> {
    let condition = reader.text("if")?.map(str::to_owned);
    if let Some(text) = &condition {
        if !event.is_of_tool() {
            return Err(format!("`if` is about calls, and {} is not", event.as_str()));
        }
        condition::check(text)?;
    }
    let summary = reader.text("rewakeSummary")?.map(str::to_owned);
    if summary.as_ref().is_some_and(|text| text.chars().count() > LONGEST_SUMMARY) {
        return Err(format!("`rewakeSummary` is longer than {LONGEST_SUMMARY} characters"));
    }
    let message = reader.text("rewakeMessage")?.map(str::to_owned);
    let background = match (reader.flag("asyncRewake")?, is_async || reader.flag("async")?) {
        (true, _) => Background::Rewake { message, summary },
        (false, true) => Background::Yes,
        (false, false) => Background::No,
    };
    Ok(Traits {
        condition,
        background,
        once: reader.flag("once")?,
        status_message: reader.text("statusMessage")?.map(str::to_owned),
        place: None,
    })
}

fn command(reader: &Fields<'_>, source: &HookSource) -> Result<Action, String> {
    let shell = match reader.text("shell")? {
        None | Some("bash") => Shell::Bash,
        Some("powershell") => Shell::PowerShell,
        Some(other) => {
            return Err(format!("the shell `{other}` is not known; known are bash and powershell"));
        }
    };
    Ok(Action::Command(CommandHook {
        command: reader.needed("command")?.to_owned(),
        args: reader.texts("args")?,
        shell,
        env: reader.pairs("env")?,
        plugin: source.plugin.clone(),
    }))
}

fn http(reader: &Fields<'_>) -> Result<Action, String> {
    let url = reader.needed("url")?;
    if !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(format!("`url` is `{url}`; it begins with http:// or https://"));
    }
    let headers = reader.pairs("headers")?;
    let own = headers.iter().find(|(name, _)| OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)));
    if let Some((name, _)) = own {
        return Err(format!("`headers` holds `{name}`, which follows from the request"));
    }
    Ok(Action::Http(HttpHook {
        url: url.to_owned(),
        headers,
        allowed_variables: reader.texts("allowedEnvVars")?.unwrap_or_default(),
    }))
}

fn agent(reader: &Fields<'_>) -> Result<Action, String> {
    let max_turns = match reader.0.get("maxTurns") {
        None | Some(Value::Null) => 50,
        Some(value) => value.as_u64().filter(|turns| *turns > 0).ok_or("`maxTurns` is a number from 1")?,
    };
    Ok(Action::Agent(AgentHook {
        prompt: reader.needed("prompt")?.to_owned(),
        tools: reader.texts("tools")?,
        max_turns,
        model: reader.text("model")?.map(str::to_owned),
    }))
}

/// The fields of an entry.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{name}` is {} and not a text", kind_of(other))),
        }
    }

    fn needed(&self, name: &str) -> Result<&'a str, String> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| format!("a hook of this type has a `{name}`"))
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("`{name}` is {} and not true or false", kind_of(other))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(other) => Err(format!("`{name}` is {} and not a number", kind_of(other))),
        }
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("`{name}` is a list of texts");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
                items.iter().map(text).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(wrong()),
        }
    }

    fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("`{name}` is an object of texts");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(pairs)) => {
                let pair = |(key, value): (&String, &Value)| {
                    value.as_str().map(|value| (key.clone(), value.to_owned())).ok_or_else(wrong)
                };
                pairs.iter().map(pair).collect()
            }
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Origin;
    use serde_json::json;

    fn read_entry(event: HookEvent, value: &Value) -> Result<Entry, String> {
        let source = HookSource {
            origin: Origin::User,
            file: "x".into(),
            lines: std::collections::BTreeMap::new(),
            plugin: None,
        };
        read(event, false, value.as_object().unwrap(), &source, &mut Vec::new())
    }

    #[test]
    fn the_default_times_are_600_600_30_and_60_seconds() {
        for (value, seconds) in [
            (json!({"type": "command", "command": "x"}), 600),
            (json!({"type": "http", "url": "http://x"}), 600),
            (json!({"type": "prompt", "prompt": "x"}), 30),
            (json!({"type": "agent", "prompt": "x"}), 60),
        ] {
            assert_eq!(read_entry(HookEvent::Stop, &value).unwrap().timeout.as_secs(), seconds);
        }
        let own = json!({"type": "agent", "prompt": "x", "timeout": 0.5});
        assert_eq!(read_entry(HookEvent::Stop, &own).unwrap().timeout.as_millis(), 500);
    }

    #[test]
    fn values_that_make_no_sense_are_errors() {
        for value in [
            json!({"command": "x"}),
            json!({"type": "command", "command": " "}),
            json!({"type": "command", "command": "x", "shell": "fish"}),
            json!({"type": "command", "command": "x", "args": "a"}),
            json!({"type": "command", "command": "x", "env": {"A": 1}}),
            json!({"type": "command", "command": "x", "onFailure": "maybe"}),
            json!({"type": "command", "command": "x", "rewakeSummary": "x".repeat(301)}),
            json!({"type": "command", "command": "x", "if": "Bash(a"}),
            json!({"type": "http", "url": "ftp://x"}),
            json!({"type": "http", "url": "http://x", "headers": {"Content-Length": "5"}}),
            json!({"type": "agent", "prompt": "x", "maxTurns": 0}),
        ] {
            assert!(read_entry(HookEvent::PreToolUse, &value).is_err(), "{value}");
        }
        assert!(
            read_entry(HookEvent::Stop, &json!({"type": "command", "command": "x", "if": "Bash"})).is_err()
        );
    }

    #[test]
    fn async_and_rewake_are_told_apart() {
        let entry = |value: Value| read_entry(HookEvent::Stop, &value).unwrap().traits.background;
        assert_eq!(entry(json!({"type": "command", "command": "x", "async": true})), Background::Yes);
        let rewake = json!({"type": "command", "command": "x", "async": true, "asyncRewake": true, "rewakeMessage": "m"});
        assert_eq!(entry(rewake), Background::Rewake { message: Some("m".to_owned()), summary: None });
    }
}
