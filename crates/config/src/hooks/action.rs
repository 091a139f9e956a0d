//! What a hook does when it is called: a function of the front, a program, a request, a question to a model, or a task for
//! an agent. An entry of a file that cannot be used is one that always fails, so that its failure counts.

use std::path::PathBuf;

use super::HookFunction;
use crate::sources::Origin;

/// What a hook does.
#[derive(Clone)]
pub enum Action {
    /// Calls a function of the front.
    Function(HookFunction),
    /// Runs a program.
    Command(CommandHook),
    /// Posts the event.
    Http(HttpHook),
    /// Asks a model once.
    Prompt(PromptHook),
    /// Gives an agent the task to find out.
    Agent(AgentHook),
    /// Always fails, for this reason.
    Broken(String),
}

/// The shell of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// bash.
    Bash,
    /// PowerShell (`pwsh`).
    PowerShell,
}

impl CommandHook {
    /// The texts in which it may name a script.
    pub(super) fn texts(&self) -> Vec<&str> {
        let args = self.args.iter().flatten().map(String::as_str);
        std::iter::once(self.command.as_str()).chain(args).collect()
    }
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHook {
    /// The text for the shell, or the program's path when there are `args`.
    pub command: String,
    /// Literal arguments; no shell is used with them.
    pub args: Option<Vec<String>>,
    /// Which shell.
    pub shell: Shell,
    /// More variables.
    pub env: Vec<(String, String)>,
    /// The folders of the plugin that brought it.
    pub plugin: Option<PluginFolders>,
}

/// The folders of a plugin that its programs get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFolders {
    /// `QODER_PLUGIN_ROOT`.
    pub root: PathBuf,
    /// `QODER_PLUGIN_DATA`.
    pub data: PathBuf,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHook {
    /// Where to.
    pub url: String,
    /// Headers; `${NAME}` stands for a variable that `allowed_variables` names.
    pub headers: Vec<(String, String)>,
    /// The variables that headers may hold.
    pub allowed_variables: Vec<String>,
}

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptHook {
    /// The question; the event follows it.
    pub prompt: String,
    /// Another model than the session's.
    pub model: Option<String>,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHook {
    /// The task; `$ARGUMENTS` stands for the event.
    pub prompt: String,
    /// Its tools; `None` is those that only read.
    pub tools: Option<Vec<String>>,
    /// Model calls it may make.
    pub max_turns: u64,
    /// Another model than the session's.
    pub model: Option<String>,
}

/// Whether the caller waits for a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Background {
    /// It is waited for.
    #[default]
    No,
    /// It is not; what it says is context of the next turn.
    Yes,
    /// It is not; the exit code 2 wakes the model.
    Rewake {
        /// What the model reads in front of the program's own words.
        message: Option<String>,
        /// What the person reads.
        summary: Option<String>,
    },
}

/// Where a hook was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPlace {
    /// Whose file it is.
    pub origin: Origin,
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: Option<u64>,
}

impl std::fmt::Display for HookPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(out, ":{line}"))
    }
}

/// What hooks of files may have besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traits {
    /// The call that it is for, such as `Bash(git *)`.
    pub condition: Option<String>,
    /// Whether it is waited for.
    pub background: Background,
    /// True when it runs once in a session.
    pub once: bool,
    /// What the person reads while it runs.
    pub status_message: Option<String>,
    /// Where it was written; `None` for a function of the front.
    pub place: Option<HookPlace>,
}

impl Action {
    /// The word for it in files and lists.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Function(_) => "function",
            Self::Command(_) => "command",
            Self::Http(_) => "http",
            Self::Prompt(_) => "prompt",
            Self::Agent(_) => "agent",
            Self::Broken(_) => "broken",
        }
    }

    /// What runs, in full: a person who vouches for it has to see all of it.
    #[must_use]
    pub fn display_text(&self) -> String {
        match self {
            Self::Function(_) => "a function of the program that embeds this one".to_owned(),
            Self::Command(hook) => match &hook.args {
                Some(args) => {
                    let words = std::iter::once(&hook.command).chain(args);
                    words.map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" ")
                }
                None => hook.command.clone(),
            },
            Self::Http(hook) => format!("POST {}", hook.url),
            Self::Prompt(PromptHook { prompt, .. }) | Self::Agent(AgentHook { prompt, .. }) => prompt.clone(),
            Self::Broken(problem) => format!("always fails: {problem}"),
        }
    }
}
