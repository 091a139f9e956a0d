//! The command line: flags of a run, and the subcommands. Lists may be repeated or comma-separated; camelCase spellings
//! of the sibling CLI are accepted beside our own.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

const AFTER_HELP: &str = "\
Commands (each has its own --help):
  qodercli sessions list|show|delete|export|repair  the sessions on this machine
  qodercli config [KEY]                             effective settings and where they come from
  qodercli permissions list|check|explain           the rules in force; try a case; why a past call ran or did not
  qodercli permissions pending|answer               calls that wait for somebody, and answering them
  qodercli sandbox status                           what the sandbox for commands enforces on this machine
  qodercli trust [DIR]                              trust a folder: its settings, AGENTS.md and rules are used

Examples:
  qodercli -p \"what does this repository do\"
  git diff | qodercli -p \"review this change\"
  qodercli -p \"fix the failing test\" --permission-mode acceptEdits --allowed-tools 'Bash(cargo test:*)'
  qodercli -p \"build it and fix what fails\" --permission-mode acceptEdits --sandbox
  qodercli -p \"go on\" --continue --output-format stream-json

What runs without permission: reading in the working directory, and commands that are known to only read there. The rest
needs a rule, a mode or the sandbox; with -p there is nobody to ask, so what would ask is denied (see docs/permissions.md).

Without a key the embedded `offline` model answers. For a real one set ANTHROPIC_API_KEY (and ANTHROPIC_BASE_URL),
OPENAI_API_KEY (and OPENAI_BASE_URL), or `providers` in the settings; see docs/models.md.
Signals: SIGINT (Ctrl+C) ends the turn, a second one the program; SIGUSR2 moves the running command to the background.
Exit codes: 0 ok, 1 error, 41 authentication, 42 bad input, 44 sandbox, 52 configuration, 53 turn limit,
54 a call waits for an answer, 55 session, 130 interrupted, 141 output closed.";

const PERMISSIONS_HELP: &str = "\
Examples:
  qodercli permissions list
  echo '{\"tool\": \"Bash\", \"input\": {\"command\": \"git push\"}}' | qodercli permissions check
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

/// How the answer is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The answer alone.
    #[default]
    Text,
    /// One JSON object: the result.
    Json,
    /// One JSON object a line: every message.
    StreamJson,
}

/// How input arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// One prompt, as text.
    #[default]
    Text,
    /// One JSON message a line.
    StreamJson,
}

/// An open, self-hosted coding agent: gives a model tools, rules and your prompt, and keeps a log that survives a kill.
#[derive(Debug, Parser)]
#[command(name = "qodercli", version, after_help = AFTER_HELP, disable_version_flag = true)]
pub struct Arguments {
    /// The prompt. Piped input is added to it; `-p` without a prompt reads it from stdin.
    pub prompt: Option<String>,

    /// Print the answer and exit.
    #[arg(short, long)]
    pub print: bool,

    /// Print the version.
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    pub version: Option<bool>,

    /// How the answer is printed.
    #[arg(short, long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub output_format: Option<OutputFormat>,

    /// How input arrives: text, or one JSON message a line.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub input_format: InputFormat,

    /// Add pieces of replies while they are written (stream-json).
    #[arg(long, help_heading = "Output")]
    pub include_partial_messages: bool,

    /// Echo prompts on the stream, with their ids.
    #[arg(long, help_heading = "Output")]
    pub replay_user_messages: bool,

    /// Say more on stderr: tool calls, retries, warnings.
    #[arg(long, help_heading = "Output")]
    pub verbose: bool,

    /// Write a log of what the program does to stderr.
    #[arg(short, long, help_heading = "Output")]
    pub debug: bool,

    /// Model: a tier (auto, ultimate, performance, efficient, lite), an id, provider/id, offline, scripted:FILE or
    /// replay:FILE.
    #[arg(short, long, help_heading = "Model")]
    pub model: Option<String>,

    /// Asked when the main model fails.
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub fallback_model: Option<String>,

    /// List the models of the configured provider and exit.
    #[arg(long, help_heading = "Model")]
    pub list_models: bool,

    /// Endpoint to use, whatever the settings say.
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub base_url: Option<String>,

    /// Protocol of --base-url: anthropic, openai or openai-responses.
    #[arg(long, value_name = "STYLE", help_heading = "Model")]
    pub api_style: Option<String>,

    /// Environment variable that holds the key for --base-url. Keys themselves never go on the command line.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub api_key_env: Option<String>,

    /// How hard to think: low, medium, high, xhigh or max.
    #[arg(long, visible_alias = "reasoning-effort", value_name = "LEVEL", help_heading = "Model")]
    pub effort: Option<String>,

    /// Thinking: adaptive or disabled.
    #[arg(long, value_name = "HOW", help_heading = "Model")]
    pub thinking: Option<String>,

    /// Most tokens to think with.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_thinking_tokens: Option<u32>,

    /// Most tokens of one reply.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_output_tokens: Option<u32>,

    /// Context window in tokens.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub context_window: Option<u64>,

    /// Record all model traffic to a file, for --model replay:FILE.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub record: Option<PathBuf>,

    /// Replace the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub system_prompt: Option<String>,

    /// Replace the system prompt by a file's content.
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt", help_heading = "Prompt")]
    pub system_prompt_file: Option<PathBuf>,

    /// Add to the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub append_system_prompt: Option<String>,

    /// Model calls per turn; 0 is unlimited.
    #[arg(long, value_name = "N", help_heading = "Prompt")]
    pub max_turns: Option<u64>,

    /// What happens to calls that no rule decides: default, acceptEdits, plan, dontAsk, auto or bypassPermissions.
    ///
    /// default asks about everything but reading, acceptEdits also lets files of the workspace be edited, plan only reads,
    /// dontAsk denies what default would ask, auto accepts edits and denies the rest or lets a model judge it,
    /// bypassPermissions runs everything but what rules stop and what is never automatic.
    #[arg(long, value_name = "MODE", help_heading = "Permissions")]
    pub permission_mode: Option<String>,

    /// Run everything that no rule denies (same as --permission-mode bypassPermissions).
    #[arg(long, visible_alias = "yolo", conflicts_with = "permission_mode", help_heading = "Permissions")]
    pub dangerously_skip_permissions: bool,

    /// Rules that allow: Edit, 'Bash(npm test:*)', 'Edit(src/**)', 'WebFetch(domain:example.com)'. Comma-separated.
    #[arg(long, alias = "allowedTools", value_name = "RULES", help_heading = "Permissions")]
    pub allowed_tools: Vec<String>,

    /// Rules that deny, such as 'Bash(git push:*)' or 'Read(.env)'. They win over everything.
    #[arg(long, alias = "disallowedTools", value_name = "RULES", help_heading = "Permissions")]
    pub disallowed_tools: Vec<String>,

    /// The built-in tools that the model sees: a list such as Read,Grep; "" for none, default for all.
    #[arg(long, value_name = "NAMES", help_heading = "Permissions")]
    pub tools: Option<Vec<String>>,

    /// Another directory to work in, besides the working directory.
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub add_dir: Vec<PathBuf>,

    /// Trust the folder for this run: use its settings, AGENTS.md and rules.
    #[arg(long, help_heading = "Permissions")]
    pub trust: bool,

    /// Confine commands: by default they write only in the workspace, reach no network, and need no permission.
    #[arg(long, help_heading = "Permissions")]
    pub sandbox: bool,

    /// Working directory.
    #[arg(short = 'w', long, value_name = "DIR", help_heading = "Settings")]
    pub cwd: Option<PathBuf>,

    /// User configuration directory (same as QODER_CONFIG_DIR).
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    pub config_dir: Option<PathBuf>,

    /// A settings file, or JSON, above all other layers.
    #[arg(long, value_name = "FILE|JSON", help_heading = "Settings")]
    pub settings: Option<String>,

    /// Settings files to read: user,project,local; "" for none.
    #[arg(long, value_name = "LIST", help_heading = "Settings")]
    pub setting_sources: Option<String>,

    /// Use this session id (a UUID).
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub session_id: Option<String>,

    /// Go on with a session. Without a prompt its unfinished turn is continued.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Session")]
    pub resume: Option<String>,

    /// Go on with the newest session of this directory.
    #[arg(short, long, conflicts_with = "resume", help_heading = "Session")]
    pub r#continue: bool,

    /// Work on a copy of the session, under a new id.
    #[arg(long, help_heading = "Session")]
    pub fork_session: bool,

    /// Keep nothing on disk.
    #[arg(long, help_heading = "Session")]
    pub no_session_persistence: bool,

    /// List the sessions of this directory and exit.
    #[arg(long, help_heading = "Session")]
    pub list_sessions: bool,
}

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
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Another working directory.
        #[arg(short = 'w', long)]
        cwd: Option<PathBuf>,
        /// A settings file or JSON above all other layers.
        #[arg(long)]
        settings: Option<String>,
        /// Treat the folder as trusted.
        #[arg(long)]
        trust: bool,
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
    /// Trust a folder: its settings, AGENTS.md and rules are used from now on.
    Trust {
        /// The folder; the current one without it.
        folder: Option<PathBuf>,
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
    /// Tell why a past call ran or did not: what decided, the rule with file and line, who answered.
    Explain {
        /// The session's id.
        session: String,
        /// The call's id, as in `permission_denials` of a result or in the session's log.
        tool_use_id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The rules in force here, with the file and line each was written in.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Another working directory.
        #[arg(short = 'w', long)]
        cwd: Option<PathBuf>,
        /// A settings file or JSON above all other layers.
        #[arg(long)]
        settings: Option<String>,
        /// Treat the folder as trusted.
        #[arg(long)]
        trust: bool,
    },
    /// Calls of a session that wait for an answer (after exit code 54), and what `answer --always` would keep.
    Pending {
        /// The session.
        session: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer a call that waits; the first answer counts. `qodercli -p --resume SESSION` then goes on.
    Answer {
        /// The session's id.
        session: String,
        /// The call's id, as `pending` shows it.
        tool_use_id: String,
        /// allow or deny.
        #[arg(value_parser = ["allow", "deny"])]
        answer: String,
        /// With allow: also keep what `pending` suggests, so that it is not asked again.
        #[arg(long)]
        always: bool,
        /// With deny: what the model is told.
        #[arg(long)]
        message: Option<String>,
        /// With allow: the input to use in place of the model's, as JSON. It is judged again.
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
        /// Who answers; the user's name without it.
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
    },
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List sessions, newest first.
    List {
        /// Of all projects.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session.
    Show {
        /// The session.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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
}
