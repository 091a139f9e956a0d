//! What an agent is made of: what it is for, its prompt, and which of the session's tools it has. A definition can
//! only give less than the session has; permissions are the session's own. How definitions are written and where they
//! come from is in the files beside this one.

mod built_in;
mod error;
mod fields;
mod files;
mod list;
mod overrides;
mod values;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use qoder_types::PermissionMode;
use qoder_types::server::ToolPolicies;
use serde_json::{Map, Value};

use crate::sources::Origin;
use fields::{Fields, Writing};

pub use error::AgentError;
pub use files::read_place;
pub use list::{AgentList, Listed, Standing};
pub use overrides::apply as apply_overrides;

/// The tool that starts agents, as the model calls it.
pub const NAME: &str = "Agent";
/// The agent that is meant when none is named.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// What that agent is for.
pub const DESCRIPTION: &str =
    "Works on one task by itself, with most tools of the session, and returns its final answer.";

/// An agent as it is defined, by whatever source.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it has, as they were written; all that agents may have without it.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have.
    pub disallowed_tools: Vec<String>,
    /// Its model; `inherit` is the session's.
    pub model: Option<String>,
    /// How hard it thinks: `low`, `medium`, `high`, `xhigh` or `max`.
    pub effort: Option<String>,
    /// The most tokens it thinks with: an `effort` that was written as a number.
    pub thinking_tokens: Option<u32>,
    /// The mode it was given; [`AgentDefinition::mode`] says what becomes of it.
    pub permission_mode: Option<PermissionMode>,
    /// Model calls it may make.
    pub max_turns: Option<u64>,
    /// How long it may work.
    pub timeout: Option<Duration>,
    /// How much the model may vary its words.
    pub temperature: Option<f64>,
    /// Skills to begin with.
    pub skills: Vec<String>,
    /// The servers it has; all of the session's without it.
    pub mcp_servers: Option<Vec<ServerReference>>,
    /// Hooks of its own, as in settings; `path` is the file they were written in.
    pub hooks: Option<Value>,
    /// True when it works in the background unless the call says otherwise.
    pub background: bool,
    /// Where it works, when that is not the session's folder.
    pub isolation: Option<Isolation>,
    /// Where it keeps what stays from one task to the next.
    pub memory: Option<MemoryScope>,
    /// What the program that defines it has decided about its tools, in place of what it decided about the session's.
    pub policies: Option<ToolPolicies>,
    /// The first prompt when it is the main agent.
    pub initial_prompt: Option<String>,
    /// How hosts may paint it.
    pub color: Option<String>,
    /// Who defined it.
    pub origin: Origin,
    /// The file it was defined in.
    pub path: Option<PathBuf>,
    /// What was written and has no effect, for people.
    pub notes: Vec<String>,
}

/// A place of its own to work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A fresh worktree of the repository.
    Worktree,
}

/// Whose memory an agent keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    /// The person's, for all projects.
    User,
    /// The project's, shared with it.
    Project,
    /// The project's, on this machine.
    Local,
}

impl MemoryScope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    /// The word for it in definitions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// A server that an agent has.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerReference {
    /// One of the session's.
    Name(String),
    /// One of its own. The description has been checked.
    Inline {
        /// Its name.
        name: String,
        /// Its description.
        config: Value,
    },
}

impl ServerReference {
    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) | Self::Inline { name, .. } => name,
        }
    }
}

impl AgentDefinition {
    /// An agent with a purpose and a prompt, and nothing special.
    #[must_use]
    pub fn new(description: impl Into<String>, prompt: impl Into<String>, origin: Origin) -> Self {
        Self {
            description: description.into(),
            prompt: prompt.into(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            effort: None,
            thinking_tokens: None,
            permission_mode: None,
            max_turns: None,
            timeout: None,
            temperature: None,
            skills: Vec::new(),
            mcp_servers: None,
            hooks: None,
            background: false,
            isolation: None,
            memory: None,
            policies: None,
            initial_prompt: None,
            color: None,
            origin,
            path: None,
            notes: Vec::new(),
        }
    }

    /// Reads what an SDK sends.
    ///
    /// # Errors
    /// When it cannot be used; the text begins with `agents.NAME.field`.
    pub fn from_sdk(name: &str, value: &Value) -> Result<Self, AgentError> {
        Self::from_json(name, value, Writing::Sdk)
    }

    /// Reads what `--agents` holds: an object of definitions by name.
    ///
    /// # Errors
    /// When one cannot be used, or has a key that this flag does not take; the text begins with `agents.NAME.field`.
    pub fn from_flag(text: &str) -> Result<Vec<(String, Self)>, AgentError> {
        let all: Map<String, Value> = serde_json::from_str(text).map_err(AgentError::NotJson)?;
        let read = |(name, value): (&String, &Value)| {
            Self::from_json(name, value, Writing::Flag).map(|definition| (name.clone(), definition))
        };
        all.iter().map(read).collect()
    }

    fn from_json(name: &str, value: &Value, writing: Writing) -> Result<Self, AgentError> {
        if let Some(problem) = name_problem(name) {
            return Err(AgentError::Name { name: name.to_owned(), problem });
        }
        let Some(object) = value.as_object() else {
            return Err(AgentError::NotObject { name: name.to_owned() });
        };
        let read = Fields { object, writing, origin: Origin::Flag, path: None }.definition(None);
        read.map_err(|wrong| AgentError::Field {
            name: name.to_owned(),
            field: wrong.field,
            problem: wrong.text,
        })
    }

    /// The model it asks for, when it is not the session's.
    #[must_use]
    pub fn other_model(&self) -> Option<&str> {
        self.model.as_deref().filter(|name| !name.trim().is_empty() && *name != "inherit")
    }

    /// True when it has the tool of this name, as far as the definition goes.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let named = |entry: &String| covers(entry, name) || (name == NAME && targets(entry).is_some());
        let of_its_servers = || match (server_of(name), &self.mcp_servers) {
            (Some(server), Some(servers)) => servers.iter().any(|one| one.name() == server),
            (None, _) | (_, None) => true,
        };
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(named))
            && !self.disallowed_tools.iter().any(|entry| covers(entry, name))
            && of_its_servers()
    }

    /// True when it may start the agent of this name: never, unless its `tools` list the Agent tool by name.
    #[must_use]
    pub fn may_delegate(&self, name: &str) -> bool {
        let listed = |entry: &String| entry == NAME || targets(entry).is_some();
        self.tools.iter().flatten().any(listed) && self.has(NAME) && self.reaches(name)
    }

    /// True when nothing in its lists keeps it from starting the agent of this name, provided that it has the tool.
    pub fn reaches(&self, name: &str) -> bool {
        let limits: Vec<Vec<&str>> = self.tools.iter().flatten().filter_map(|entry| targets(entry)).collect();
        let whole = self.tools.as_ref().is_none_or(|tools| tools.iter().any(|entry| covers(entry, NAME)));
        let refused = self.disallowed_tools.iter().filter_map(|entry| targets(entry)).flatten();
        (whole || limits.iter().flatten().any(|target| *target == name))
            && !refused.into_iter().any(|target| target == name)
    }

    /// The mode it works in when another session started it: its own where that is stricter than every other. The user who
    /// chose the session's mode by running the program may give an agent one that asks less than `default`; no file may,
    /// and what skips all checks is the session's alone.
    #[must_use]
    pub fn mode(&self, session: PermissionMode) -> PermissionMode {
        match self.permission_mode {
            Some(mode @ (PermissionMode::Plan | PermissionMode::DontAsk)) => mode,
            Some(mode @ (PermissionMode::AcceptEdits | PermissionMode::Auto))
                if self.origin == Origin::Flag && session == PermissionMode::Default =>
            {
                mode
            }
            Some(
                PermissionMode::Default
                | PermissionMode::AcceptEdits
                | PermissionMode::Auto
                | PermissionMode::BypassPermissions,
            )
            | None => session,
        }
    }
}

/// Why an agent cannot have this name; `None` when it can. Names stand in rules such as `Agent(name)` and in lists with
/// commas, and are shown in terminals.
fn name_problem(name: &str) -> Option<String> {
    const LONGEST: usize = 64;
    let accepted = "use letters, digits, spaces, `-`, `_`, `.` and `:`";
    if name.trim().is_empty() {
        return Some("the name is empty".to_owned());
    }
    if name.chars().count() > LONGEST {
        return Some(format!("the name is longer than {LONGEST} characters"));
    }
    let bad = |letter: &char| !(letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_' | '.' | ':'));
    if let Some(letter) = name.chars().find(bad) {
        return Some(format!("the name has the character {letter:?}; {accepted}"));
    }
    let first = name.chars().next().is_some_and(char::is_alphanumeric);
    (!first || name.ends_with(' ')).then(|| {
        format!("the name has to begin with a letter or a digit and cannot end with a space; {accepted}")
    })
}

/// True when an entry of a list of tools names the tool: exactly, with its whole server, or with a star at the end.
pub fn covers(entry: &str, name: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => {
            entry == name || server_of(name).is_some_and(|server| entry.strip_prefix("mcp__") == Some(server))
        }
    }
}

/// The server of a tool's name. The name of a server has no `__`; that of a tool may.
fn server_of(name: &str) -> Option<&str> {
    name.strip_prefix("mcp__")?.split_once("__").map(|(server, _)| server)
}

/// The agents of an entry such as `Agent(Explore, Plan)`.
fn targets(entry: &str) -> Option<Vec<&str>> {
    let inner = entry.strip_prefix(NAME)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    Some(inner.split(',').map(str::trim).filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(more: &Value) -> AgentDefinition {
        let mut value = json!({ "description": "d", "prompt": "p" });
        for (key, field) in more.as_object().unwrap() {
            value[key] = field.clone();
        }
        AgentDefinition::from_sdk("a", &value).unwrap()
    }

    #[test]
    fn tools_are_given_and_taken_by_name() {
        let agent = definition(
            &json!({ "tools": ["Read", "mcp__kb__*", "mcp__calc"], "disallowedTools": ["mcp__kb__drop"] }),
        );
        for (name, has) in [
            ("Read", true),
            ("Bash", false),
            ("mcp__kb__find", true),
            ("mcp__kb__drop", false),
            ("mcp__calc__add", true),
            ("mcp__calc__add__twice", true),
            ("mcp__calculator__add", false),
        ] {
            assert_eq!(agent.has(name), has, "{name}");
        }
        assert!(definition(&json!({})).has("Bash"));
        assert!(definition(&json!({ "tools": ["*"] })).has("mcp__kb__find"));
        assert!(definition(&json!({ "tools": ["mcp__*"] })).has("mcp__kb__find"));
        assert!(!definition(&json!({ "tools": ["mcp__*"] })).has("Read"));
        assert!(!definition(&json!({ "tools": [] })).has("Read"));
        assert!(!definition(&json!({ "disallowedTools": ["mcp__*"] })).has("mcp__kb__find"));
    }

    #[test]
    fn servers_limit_the_tools_of_servers_alone() {
        let agent = definition(&json!({ "mcpServers": ["kb", { "own": { "command": "x" } }] }));
        for (name, has) in
            [("Read", true), ("mcp__kb__find", true), ("mcp__own__do", true), ("mcp__other__do", false)]
        {
            assert_eq!(agent.has(name), has, "{name}");
        }
        assert!(!definition(&json!({ "mcpServers": [] })).has("mcp__kb__find"));
    }

    #[test]
    fn delegation_needs_the_agent_tool_by_name() {
        for (more, explore, plan) in [
            (json!({}), false, false),
            (json!({ "tools": ["*"] }), false, false),
            (json!({ "tools": ["Read"] }), false, false),
            (json!({ "tools": ["Agent"] }), true, true),
            (json!({ "tools": ["Agent(Explore, Plan)"] }), true, true),
            (json!({ "tools": ["Read", "Agent(Explore)"] }), true, false),
            (json!({ "tools": ["Agent"], "disallowedTools": ["Agent(Plan)"] }), true, false),
            (json!({ "tools": ["Agent"], "disallowedTools": ["Agent"] }), false, false),
            (json!({ "tools": ["Agent()"] }), false, false),
        ] {
            let agent = definition(&more);
            assert_eq!(
                (agent.may_delegate("Explore"), agent.may_delegate("Plan")),
                (explore, plan),
                "{more}"
            );
        }
        assert!(definition(&json!({ "tools": ["Agent(Explore)"] })).has("Agent"));
    }

    #[test]
    fn a_mode_that_asks_less_is_for_the_program_to_give_and_only_above_default() {
        use PermissionMode::{AcceptEdits, Auto, Default, DontAsk, Plan};
        for (word, session, of_program, of_file) in [
            ("plan", AcceptEdits, Plan, Plan),
            ("dontAsk", Default, DontAsk, DontAsk),
            ("acceptEdits", Default, AcceptEdits, Default),
            ("auto", Default, Auto, Default),
            ("acceptEdits", Plan, Plan, Plan),
            ("acceptEdits", DontAsk, DontAsk, DontAsk),
            ("default", AcceptEdits, AcceptEdits, AcceptEdits),
            ("bypassPermissions", Default, Default, Default),
        ] {
            let mut agent = definition(&json!({ "permissionMode": word }));
            agent.origin = Origin::Flag;
            assert_eq!(agent.mode(session), of_program, "{word} in {session:?}");
            agent.origin = Origin::User;
            assert_eq!(agent.mode(session), of_file, "{word} in {session:?}");
        }
    }

    #[test]
    fn names_are_checked() {
        for name in ["", " ", "a,b", "a(b)", "a/b", "a\u{1b}b", "-a", "a ", "a\n", &"a".repeat(65)] {
            assert!(name_problem(name).is_some(), "{name:?}");
        }
        for name in ["a", "order-support", "plugin:agent", "Code Reviewer", "prüfer_2", "v1.2"] {
            assert_eq!(name_problem(name), None, "{name}");
        }
    }
}
