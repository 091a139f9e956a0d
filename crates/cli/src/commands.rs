//! The subcommands, parsed when the first word names one: sessions, settings, the sandbox, permissions, agents, MCP
//! servers, plugins and trust.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use qoder_runtime::setup::{Options, Setup};

use crate::exit::Fault;
use crate::screen::{hide_secrets, tell};

const PERMISSIONS_HELP: &str = "\
Examples:
  qodercli permissions list
  echo '{\"tool\": \"Bash\", \"input\": {\"command\": \"git push\"}}' | qodercli permissions check
  qodercli permissions explain
  qodercli permissions pending SESSION
  qodercli permissions answer SESSION CALL allow --always && qodercli -p --resume SESSION

Calls wait for an answer when the setting permissions.unattended is \"park\"; otherwise what would ask is denied.";

const CHECK_HELP: &str = "\
A case:
  {\"tool\": \"Bash\", \"input\": {\"command\": \"npm test\"},
   \"rules\": {\"allow\": [\"Bash(npm test:*)\"], \"ask\": [], \"deny\": [\"Read(.env)\"]},
   \"mode\": \"default\", \"trusted\": true, \"cwd\": \"/p\", \"project_root\": \"/p\", \"home\": \"/home/u\",
   \"additional_directories\": []}

Its answer:
  {\"decision\": \"allow\", \"reason\": {\"type\": \"rule\", \"rule\": \"Bash(npm test:*)\", \"message\": \"…\", …}}

Exit code 42 when the case cannot be read; the decision is then deny.";

/// Subcommands, parsed when the first word names one.
#[derive(Debug, Parser)]
#[command(name = "qodercli", version)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

/// What a subcommand does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The sessions on this machine.
    Sessions {
        #[command(subcommand)]
        action: SessionsAction,
    },
    /// Effective settings and the file each came from.
    Config {
        /// A key such as model.name; all without it.
        key: Option<String>,
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// The sandbox for commands: what it enforces on this machine.
    ///
    /// `--sandbox`, or `sandbox.enabled` in your settings, switches it on for a run; docs/sandbox.md has the rest.
    Sandbox {
        #[command(subcommand)]
        action: SandboxAction,
    },
    /// What may run: the rules in force, why a call ran or did not, and calls that wait for an answer.
    ///
    /// Every call of a tool is allowed, asked about or denied: by deny rules first, then ask rules, allow rules, what is
    /// known to only read, and the mode. docs/permissions.md explains rules and modes.
    #[command(after_help = PERMISSIONS_HELP)]
    Permissions {
        #[command(subcommand)]
        action: PermissionsAction,
    },
    /// Hooks: what runs around the steps of a turn, and who wrote it. docs/hooks.md has the rest.
    Hooks {
        #[command(subcommand)]
        action: crate::hooks::HooksAction,
    },
    /// List agents, where they are defined, and which definitions are shadowed.
    ///
    /// They come with the program, from `agents/*.md` of your configuration and of a trusted project, and from plugins.
    /// docs/subagents.md has the rest.
    Agents {
        #[command(subcommand)]
        action: AgentsAction,
    },
    /// Models: list what the configured providers offer, and try one for real.
    #[command(after_help = crate::models::HELP)]
    Models {
        #[command(subcommand)]
        action: crate::models::ModelsAction,
    },
    /// MCP servers: describe them, see how they are doing, approve those of a folder, sign in.
    ///
    /// Their tools are offered to the model as `mcp__server__tool` and pass the same permissions as all others. docs/mcp.md
    /// has the rest.
    #[command(after_help = crate::mcp::HELP)]
    Mcp {
        #[command(subcommand)]
        action: crate::mcp::McpAction,
    },
    /// Plugins: folders that bring commands, agents, skills, hooks and MCP servers.
    ///
    /// An installed plugin is a copy in your configuration, approved as it is: one whose files change is not used until you
    /// approve it again. docs/plugins.md has the rest.
    #[command(after_help = crate::plugins::HELP)]
    Plugins {
        #[command(subcommand)]
        action: crate::plugins::PluginsAction,
    },
    /// Skills: instructions for a kind of work that the model loads when it needs them. docs/skills.md explains them.
    Skills {
        #[command(subcommand)]
        action: DefinitionsAction,
    },
    /// Commands: prompts that are called for with `/name`. docs/commands.md explains them.
    Commands {
        #[command(subcommand)]
        action: DefinitionsAction,
    },
    /// Serve the cloud agents API over HTTP: agents, sessions, events and approvals, kept in one folder.
    #[cfg(feature = "server")]
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::ServeArguments>),
    /// Show a session that another process drives, in the interactive terminal: read along, send messages, answer.
    Attach {
        /// The session's ID, or its first characters.
        session: String,
        /// Print lines with labels and move no cursor, for screen readers.
        #[arg(long)]
        screen_reader: bool,
    },
    /// Write a draft of AGENTS.md, from what the build files of the folder say.
    Init {
        /// The folder; the current one without it.
        folder: Option<PathBuf>,
    },
    /// Store an API key, which is read from stdin: in the keychain, else in a file that only you can read.
    ///
    /// A variable of the environment counts before a stored key.
    Login {
        /// anthropic, openai, qoder, or a provider of your settings that has `apiKeyEnv`.
        provider: String,
    },
    /// Remove stored API keys.
    Logout,
    /// Print completions for a shell: bash, elvish, fish, powershell or zsh.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page.
    #[command(hide = true)]
    Man,
    /// Trust a folder: its settings, AGENTS.md, rules and hooks are used from now on. Shows the hooks it has.
    Trust {
        /// The folder; the current one without it.
        folder: Option<PathBuf>,
    },
}

/// Where to look, for commands that list what is in force.
#[derive(Debug, Args)]
pub struct PlaceArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Another working directory.
    #[arg(short = 'w', long)]
    pub cwd: Option<PathBuf>,
    /// A settings file or JSON above all other layers.
    #[arg(long)]
    pub settings: Option<String>,
    /// Treat the folder as trusted.
    #[arg(long)]
    pub trust: bool,
}

impl PlaceArguments {
    /// What a session there would begin with. Prints its warnings.
    pub fn prepare(self, environment: BTreeMap<String, String>) -> Result<Setup, Fault> {
        self.prepare_with(Options { environment, ..Options::default() })
    }

    /// The same with further options.
    pub fn prepare_with(self, options: Options) -> Result<Setup, Fault> {
        let Self { json: _, cwd, settings, trust } = self;
        let cwd = cwd.unwrap_or_default();
        let mut options = options;
        if let Some(warning) = crate::keys::add_to(&mut options.environment) {
            tell(&format!("warning: {warning}"));
        }
        let setup = Setup::prepare(Options { cwd, settings, trust, ..options })?;
        hide_secrets(&setup);
        for warning in &setup.warnings {
            tell(&format!("warning: {warning}"));
        }
        Ok(setup)
    }
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List the agents, those that others of the same name hide included.
    List {
        #[command(flatten)]
        place: PlaceArguments,
        /// Agents as `--agents` of a run has them.
        #[arg(long, value_name = "JSON")]
        agents: Option<String>,
    },
}

/// What to do with the sandbox.
#[derive(Debug, Subcommand)]
pub enum SandboxAction {
    /// Start a confined process that tries what must fail, and tell what happened.
    ///
    /// Exit code 0 when everything the settings ask for is enforced here, else 44.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Another working directory.
        #[arg(short = 'w', long)]
        cwd: Option<PathBuf>,
        /// A settings file or JSON above all other layers.
        #[arg(long)]
        settings: Option<String>,
    },
}

/// What to do about permissions.
#[derive(Debug, Subcommand)]
pub enum PermissionsAction {
    /// Try a case from stdin without running anything: one JSON object in, one line with `decision` and `reason` out.
    ///
    /// No settings are read: the case says everything, and all but `tool` may be left out.
    #[command(after_help = CHECK_HELP)]
    Check {
        /// Read one case a line and answer one line each.
        #[arg(long)]
        batch: bool,
        /// Accepted for scripts; the answer is always JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print why a past call ran or did not: what decided, the rule with file and line, who answered or changed it.
    ///
    /// Without IDs: the last denied call of the newest session here.
    Explain {
        /// The session's ID, or its first characters; the newest of this directory without it.
        session: Option<String>,
        /// The call's ID, or its first characters, as `sessions show` prints it; the last denial without it.
        #[arg(value_name = "CALL")]
        tool_use_id: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The rules in force here, with the file and line each was written in.
    List(PlaceArguments),
    /// Calls of a session that wait for an answer (after exit code 54), and what `answer --always` would keep.
    Pending {
        /// The session.
        session: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer a call that waits; the first answer counts. Then continue with `qodercli -p --resume SESSION`.
    Answer(AnswerArguments),
}

/// An answer to a call that waits.
#[derive(Debug, clap::Args)]
pub struct AnswerArguments {
    /// The session's ID, or its first characters.
    pub session: String,
    /// The call's ID, or its first characters, as `pending` prints it.
    #[arg(value_name = "CALL")]
    pub tool_use_id: String,
    /// allow or deny; result for a call that runs outside the runtime.
    #[arg(value_parser = ["allow", "deny", "result"])]
    pub answer: String,
    /// The agent that made the call, or the first characters of its ID; needed when several agents wait with such a call.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// With allow: also keep what `pending` suggests, so that it is not asked again.
    #[arg(long)]
    pub always: bool,
    /// With deny: what the model reads.
    #[arg(long)]
    pub message: Option<String>,
    /// With allow: the input to use in place of the model's, as JSON. It is judged again.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// With result: what the model reads.
    #[arg(long, value_name = "TEXT")]
    pub content: Option<String>,
    /// With result: the call failed.
    #[arg(long, requires = "content")]
    pub is_error: bool,
    /// Who answers; the user's name without it.
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// What to do with skills or commands.
#[derive(Debug, Subcommand)]
pub enum DefinitionsAction {
    /// Those that a session here would have, where they come from, and what cannot be used.
    List(PlaceArguments),
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List sessions, newest first, with what each is doing and since when.
    List {
        /// Of all projects.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session: its timeline, with what was decided, how long it took and what it cost.
    Show(ShowArguments),
    /// Delete a session and everything kept for it.
    Delete {
        /// The session.
        id: String,
    },
    /// Write a session as Markdown or JSON lines to stdout.
    Export {
        /// The session.
        id: String,
        /// markdown or jsonl.
        #[arg(long, default_value = "markdown", value_parser = ["markdown", "jsonl"])]
        format: String,
    },
    /// Save what is readable of a damaged session as a new one.
    Repair {
        /// The session.
        id: String,
    },
    /// Delete sessions that are older than general.sessionRetention says. docs/sessions.md explains it.
    Prune {
        /// Only say what would go.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Follow a session that another process drives: its messages from the start, then as they come.
    Watch(WatchArguments),
    /// Send a message to a session that another process drives.
    Send {
        /// The session's ID, or its first characters.
        #[arg(value_name = "SESSION")]
        id: String,
        /// The message; read from stdin without it.
        text: Option<String>,
        /// Resume the session here when no process drives it.
        #[arg(long)]
        resume: bool,
    },
    /// Stop the turn of a session that another process drives. Messages that wait keep their place.
    Interrupt {
        /// The session's ID, or its first characters.
        #[arg(value_name = "SESSION")]
        id: String,
    },
    /// Take a session back to one of its messages: files, conversation, or both. docs/checkpoints.md explains it.
    Rewind(RewindArguments),
}

/// What to follow.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The session's ID, or its first characters.
    #[arg(value_name = "SESSION")]
    pub id: String,
    /// Begin after this record; the first is 1.
    #[arg(long, value_name = "N")]
    pub after: Option<u64>,
    /// Wait for a process when none drives the session.
    #[arg(long)]
    pub follow: bool,
    /// text or stream-json.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<crate::arguments::OutputFormat>,
}

/// What to show of a session.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The session's ID, or its first characters; the newest of this directory without it.
    #[arg(value_name = "SESSION")]
    pub id: Option<String>,
    /// Print JSON: the same as data.
    #[arg(long)]
    pub json: bool,
    /// Only this turn; the first is 1.
    #[arg(long, value_name = "N")]
    pub turn: Option<u64>,
    /// Whole texts, inputs and results.
    #[arg(long)]
    pub full: bool,
}

/// Where to go back to.
#[derive(Debug, Args)]
pub struct RewindArguments {
    /// The session.
    pub id: String,
    /// The user's message to go back to; without it, all of them are listed.
    #[arg(long, value_name = "MESSAGE")]
    pub to: Option<String>,
    /// both, conversation or files.
    #[arg(long, default_value = "both", value_parser = ["both", "conversation", "files"])]
    pub scope: String,
    /// Only say what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
