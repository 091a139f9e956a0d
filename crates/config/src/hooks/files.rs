//! Reads hooks out of files: the `hooks` object of settings, of a plugin's `hooks.json` or of an agent's head. What cannot
//! be used is a problem with its line, and the rest counts. A broken entry before a call does not vanish: it becomes a
//! hook that always fails, because what it would have denied must not pass.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::action::{Action, HookPlace, PluginFolders, Traits};
use super::entry::{self, Entry};
use super::{Hook, HookEvent, OnFailure};
use crate::agents::AgentDefinition;
use crate::plugins::Plugin;
use crate::settings::{Layer, read_plain};
use crate::sources::{Origin, Problem};

/// The most hooks of one file.
const MOST_HOOKS: usize = 500;

/// Where an object with hooks was found.
#[derive(Debug, Clone)]
pub struct HookSource {
    /// Whose file it is.
    pub origin: Origin,
    /// The file.
    pub file: PathBuf,
    /// Lines by JSON pointer, counted from the object itself; a place without a line takes that of what holds it.
    pub lines: BTreeMap<String, u32>,
    /// The folders of the plugin that brought the file.
    pub plugin: Option<PluginFolders>,
}

impl HookSource {
    /// The `hooks` of a layer of settings.
    #[must_use]
    pub fn of_layer(layer: &Layer) -> Self {
        let origin = match layer.source {
            qoder_types::RuleSource::UserSettings => Origin::User,
            qoder_types::RuleSource::ProjectSettings | qoder_types::RuleSource::LocalSettings => {
                Origin::Project
            }
            qoder_types::RuleSource::FlagSettings
            | qoder_types::RuleSource::CliArg
            | qoder_types::RuleSource::Command
            | qoder_types::RuleSource::Session => Origin::Flag,
        };
        let below = |(pointer, line): (&String, &u32)| {
            let rest = pointer.strip_prefix("/hooks").filter(|rest| rest.is_empty() || rest.starts_with('/'));
            rest.map(|rest| (rest.to_owned(), *line))
        };
        Self {
            origin,
            file: PathBuf::from(layer.name()),
            lines: layer.lines.iter().filter_map(below).collect(),
            plugin: None,
        }
    }

    fn line(&self, pointer: &str) -> Option<u64> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.lines.get(pointer) {
                return Some(u64::from(*line));
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }

    pub(super) fn place(&self, pointer: &str) -> HookPlace {
        HookPlace { origin: self.origin.clone(), file: self.file.clone(), line: self.line(pointer) }
    }

    fn problem(&self, pointer: &str, text: String) -> Problem {
        Problem { path: self.file.clone(), line: self.line(pointer), text, origin: self.origin.clone() }
    }
}

/// Reads an object of events such as `{"PreToolUse": [...]}`.
#[must_use]
pub fn read(object: &Value, source: &HookSource) -> (Vec<Hook>, Vec<Problem>) {
    let mut reader = Reader { source, hooks: Vec::new(), problems: Vec::new(), is_full: false };
    match object {
        Value::Null => {}
        Value::Object(events) => {
            for (name, groups) in events {
                reader.event(name, groups);
            }
        }
        _ => reader.complain("", "`hooks` is an object with the names of events".to_owned()),
    }
    (reader.hooks, reader.problems)
}

/// Reads the files of hooks that a plugin has, each an object with `hooks`.
#[must_use]
pub fn of_plugin(plugin: &Plugin) -> (Vec<Hook>, Vec<Problem>) {
    let (mut hooks, mut problems) = (Vec::new(), Vec::new());
    let origin = Origin::Plugin(plugin.name.clone());
    for file in &plugin.parts.hooks {
        let layer = match read_plain(file) {
            Ok(Some(layer)) => layer,
            Ok(None) => continue,
            Err(error) => {
                let (path, text) = (file.clone(), error.to_string());
                problems.push(Problem { path, line: None, text, origin: origin.clone() });
                continue;
            }
        };
        let folders = PluginFolders { root: plugin.root.clone(), data: plugin.data.clone() };
        let source =
            HookSource { origin: origin.clone(), plugin: Some(folders), ..HookSource::of_layer(&layer) };
        let (read, mut wrong) = read(layer.value.get("hooks").unwrap_or(&Value::Null), &source);
        if layer.value.get("hooks").is_none() {
            wrong.push(source.problem("", "has no `hooks`; the events stand inside of it".to_owned()));
        }
        hooks.extend(read);
        problems.extend(wrong);
    }
    (hooks, problems)
}

/// Reads the hooks that an agent brings. What they say about the end of a turn is about the agent's own.
#[must_use]
pub fn of_agent(definition: &AgentDefinition) -> (Vec<Hook>, Vec<Problem>) {
    let mut value = definition.hooks.clone().unwrap_or_default();
    if let Some(events) = value.as_object_mut()
        && let Some(Value::Array(mut stop)) = events.remove(HookEvent::Stop.as_str())
    {
        match events.get_mut(HookEvent::SubagentStop.as_str()).and_then(Value::as_array_mut) {
            Some(own) => own.append(&mut stop),
            None => drop(events.insert(HookEvent::SubagentStop.as_str().to_owned(), Value::Array(stop))),
        }
    }
    read(&value, &source_of(definition))
}

/// Reads the hooks of the agent that the main conversation runs as: the end of its turns is that of the session's.
#[must_use]
pub fn of_main_agent(definition: &AgentDefinition) -> (Vec<Hook>, Vec<Problem>) {
    read(definition.hooks.as_ref().unwrap_or(&Value::Null), &source_of(definition))
}

fn source_of(definition: &AgentDefinition) -> HookSource {
    HookSource {
        origin: definition.origin.clone(),
        file: definition.path.clone().unwrap_or_default(),
        lines: BTreeMap::new(),
        plugin: None,
    }
}

/// The report for hooks whose event does not exist.
pub fn unknown_event(name: &str) -> String {
    let near = HookEvent::ALL.iter().find(|event| event.as_str().eq_ignore_ascii_case(name));
    let hint = near.map(|event| format!("; did you mean `{}`?", event.as_str())).unwrap_or_default();
    format!("there is no hook event `{name}`; its hooks never run{hint}")
}

struct Reader<'a> {
    source: &'a HookSource,
    hooks: Vec<Hook>,
    problems: Vec<Problem>,
    /// That there are too many was reported.
    is_full: bool,
}

/// The group that an entry belongs to.
struct Group<'a> {
    event: HookEvent,
    matcher: Option<String>,
    is_async: bool,
    fields: &'a Map<String, Value>,
}

impl Reader<'_> {
    fn complain(&mut self, pointer: &str, text: String) {
        self.problems.push(self.source.problem(pointer, text));
    }

    fn event(&mut self, name: &str, groups: &Value) {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let Some(event) = HookEvent::parse(name) else { return self.complain(&pointer, unknown_event(name)) };
        let Value::Array(groups) = groups else {
            return self.broken(event, None, &pointer, &Map::new(), format!("`{name}` is a list of groups"));
        };
        for (index, group) in groups.iter().enumerate() {
            self.group(event, group, &format!("{pointer}/{index}"));
        }
    }

    fn group(&mut self, event: HookEvent, group: &Value, pointer: &str) {
        let Value::Object(fields) = group else {
            let text = "a group is an object with `matcher` and `hooks`".to_owned();
            return self.broken(event, None, pointer, &Map::new(), text);
        };
        for field in fields.keys().filter(|field| !["matcher", "hooks", "async"].contains(&field.as_str())) {
            self.complain(
                pointer,
                format!("unknown field `{field}` of a group; known are matcher, hooks, async"),
            );
        }
        let matcher = match fields.get("matcher") {
            None | Some(Value::Null) => None,
            Some(Value::String(matcher)) => Some(matcher.clone()),
            Some(_) => {
                return self.broken(event, None, pointer, &Map::new(), "`matcher` is a text".to_owned());
            }
        };
        let is_async = match fields.get("async") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_async)) => *is_async,
            Some(_) => {
                return self.broken(
                    event,
                    matcher,
                    pointer,
                    &Map::new(),
                    "`async` is true or false".to_owned(),
                );
            }
        };
        let Some(Value::Array(entries)) = fields.get("hooks") else {
            let text = "a group has `hooks`, a list".to_owned();
            return self.broken(event, matcher, pointer, &Map::new(), text);
        };
        let none = Map::new();
        for (index, value) in entries.iter().enumerate() {
            let pointer = format!("{pointer}/hooks/{index}");
            let fields = value.as_object().unwrap_or(&none);
            self.entry(&Group { event, matcher: matcher.clone(), is_async, fields }, value, &pointer);
        }
    }

    fn entry(&mut self, group: &Group<'_>, value: &Value, pointer: &str) {
        if self.hooks.len() >= MOST_HOOKS {
            let text = format!("only the first {MOST_HOOKS} hooks of a file count");
            if !std::mem::replace(&mut self.is_full, true) {
                self.complain(pointer, text);
            }
            return;
        }
        if !value.is_object() {
            let text = "a hook is an object with a `type`".to_owned();
            return self.broken(group.event, group.matcher.clone(), pointer, group.fields, text);
        }
        let mut notes = Vec::new();
        let read = entry::read(group.event, group.is_async, group.fields, self.source, &mut notes);
        for note in notes {
            self.complain(pointer, note);
        }
        match read {
            Ok(Entry { action, name, timeout, on_failure, mut traits }) => {
                traits.place = Some(self.source.place(pointer));
                self.hooks.push(Hook {
                    event: group.event.as_str().to_owned(),
                    matcher: group.matcher.clone(),
                    name,
                    timeout,
                    on_failure,
                    action,
                    traits,
                });
            }
            Err(text) => self.broken(group.event, group.matcher.clone(), pointer, group.fields, text),
        }
    }

    /// Something that cannot be used. Where a hook decides about calls, it fails from now on whenever it would have run.
    fn broken(
        &mut self,
        event: HookEvent,
        matcher: Option<String>,
        pointer: &str,
        fields: &Map<String, Value>,
        text: String,
    ) {
        let word = fields.get("onFailure").and_then(Value::as_str);
        let on_failure = word.and_then(OnFailure::parse);
        let effect = match on_failure.unwrap_or_else(|| event.on_failure()) {
            OnFailure::Continue => {
                return self
                    .complain(pointer, format!("{text}; this hook for {} never runs", event.as_str()));
            }
            OnFailure::Ask => "asks about every call that it would have seen",
            OnFailure::Block => "denies what it would have seen",
        };
        let name = event.as_str();
        self.complain(pointer, format!("{text}; until that is repaired, this hook for {name} {effect}"));
        let place = self.source.place(pointer);
        self.hooks.push(Hook {
            event: name.to_owned(),
            matcher,
            name: place.to_string(),
            timeout: super::DEFAULT_TIMEOUT,
            on_failure,
            action: Action::Broken(text),
            traits: Traits { place: Some(place), ..Traits::default() },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source() -> HookSource {
        let lines = BTreeMap::from([(String::new(), 2), ("/PreToolUse/0/hooks/1".to_owned(), 7)]);
        HookSource { origin: Origin::User, file: PathBuf::from("settings.json"), lines, plugin: None }
    }

    #[test]
    fn unknown_events_and_fields_are_warnings_and_the_rest_loads() {
        let (hooks, problems) = read(
            &json!({
                "pretooluse": [],
                "Stop": [{"hooks": [{"type": "command", "command": "x", "colour": 1}], "extra": true}],
            }),
            &source(),
        );
        assert_eq!(hooks.len(), 1);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("did you mean `PreToolUse`?")), "{texts:?}");
        assert!(texts.iter().all(|text| text.starts_with("settings.json:2: ")), "{texts:?}");
    }

    #[test]
    fn a_broken_entry_before_a_call_becomes_a_hook_that_always_fails() {
        let entries = json!([
            {"type": "command", "command": "ok"}, {"type": "command"}, {"type": "magic"}, 7,
            {"type": "command", "command": "x", "timeout": -1, "onFailure": "deny"},
        ]);
        let (hooks, problems) =
            read(&json!({"PreToolUse": [{"hooks": entries}], "Stop": [{"hooks": [{}]}]}), &source());
        let broken: Vec<&Hook> =
            hooks.iter().filter(|hook| matches!(hook.action, Action::Broken(_))).collect();
        assert_eq!((hooks.len(), broken.len(), problems.len()), (5, 4, 5), "{problems:?}");
        assert_eq!(problems[0].line, Some(7));
        assert!(problems[0].text.contains("asks about every call"), "{}", problems[0].text);
        assert_eq!(broken[3].on_failure, Some(OnFailure::Block));
    }

    #[test]
    fn a_broken_group_before_a_call_fails_for_everything() {
        for groups in
            [json!({}), json!([1]), json!([{"matcher": 1, "hooks": []}]), json!([{"matcher": "Bash"}])]
        {
            let (hooks, problems) = read(&json!({ "PreToolUse": groups }), &source());
            assert_eq!((hooks.len(), problems.len()), (1, 1), "{groups}");
            let (hooks, problems) = read(&json!({ "Stop": groups }), &source());
            assert_eq!((hooks.len(), problems.len()), (0, 1), "{groups}");
        }
    }
}
