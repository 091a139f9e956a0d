//! The flags of a run. Lists may be repeated or comma-separated; camelCase spellings of the sibling CLI are accepted
//! beside our own. What only programs use, that start this one and speak its protocol, is in `ProtocolArguments`.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

const AFTER_HELP: &str = "\
Commands (each has its own --help):
  qodercli sessions list|show|export|delete|prune   the sessions on this machine
  qodercli attach ID                                the interactive terminal on a session that another process drives
  qodercli config [KEY]                             effective settings and where they come from
  qodercli permissions list|check|explain           the rules in force; try a case; why a past call ran or did not
  qodercli permissions pending|answer               pending calls, and how to answer them
  qodercli sandbox status                           what the sandbox for commands enforces on this machine
  qodercli agents list                              agents, where they come from, and which definitions are shadowed
  qodercli hooks list                               hooks: what runs around the steps of a turn, with file and line
  qodercli skills list                              skills that a session here has
  qodercli commands list                            /commands that a session here has
  qodercli models list|check [NAME]                 models of the configured providers; try one for real
  qodercli mcp add|list|get|remove|approve|auth     MCP servers: add them, print their status, sign in
  qodercli plugins list|install|enable|validate     plugins: commands, agents, skills, hooks and servers in one folder
  qodercli serve                                    serve the cloud agents API over HTTP
  qodercli trust [DIR]                              trust a folder: its settings, AGENTS.md and rules are used
  qodercli init [DIR]                               write a draft of AGENTS.md
  qodercli login PROVIDER, logout                   store an API key, remove stored ones
  qodercli completions SHELL                        completions for bash, zsh, fish and others

Examples:
  qodercli                                          the interactive terminal; see docs/terminal.md
  qodercli \"look around\"                            the same, with a first prompt
  qodercli -p \"what does this repository do\"
  git diff | qodercli -p \"review this change\"
  qodercli -p \"fix the failing test\" --permission-mode acceptEdits --allowed-tools 'Bash(cargo test:*)'
  qodercli -p \"build it and fix what fails\" --permission-mode acceptEdits --sandbox
  qodercli -p \"now the tests\" --continue --output-format stream-json

What runs without permission: reading in the working directory, and commands that are known to only read there. The rest
needs a rule, a mode or the sandbox. On a terminal you are asked; elsewhere what would ask is denied (see docs/permissions.md).

Without a key the embedded `offline` model answers. For a real one set ANTHROPIC_API_KEY (and ANTHROPIC_BASE_URL),
OPENAI_API_KEY (and OPENAI_BASE_URL), or `providers` in the settings; see docs/models.md.
Signals: SIGINT (Ctrl+C) ends the turn, a second one the program; SIGUSR2 moves the running command to the background.
Exit codes: 0 ok, 1 error, 41 authentication, 42 bad input, 44 sandbox, 52 configuration, 53 turn limit,
54 a call waits for an answer, 55 session, 130 interrupted, 141 output closed.";

/// Output format.
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
    #[arg(short, long, overrides_with = "print")]
    pub print: bool,

    /// Print the version.
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    pub version: Option<bool>,

    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub output_format: Option<OutputFormat>,

    /// Input format.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub input_format: InputFormat,

    /// Add pieces of replies while they are written (stream-json).
    #[arg(long, help_heading = "Output")]
    pub include_partial_messages: bool,

    /// Echo prompts on the stream, with their ids.
    #[arg(long, help_heading = "Output")]
    pub replay_user_messages: bool,

    /// Print tool calls, retries and warnings to stderr.
    #[arg(long, overrides_with = "verbose", help_heading = "Output")]
    pub verbose: bool,

    /// Print labelled lines without cursor movement (also QODER_SCREEN_READER=1).
    #[arg(long, help_heading = "Output")]
    pub screen_reader: bool,

    /// Print a debug log to stderr.
    #[arg(short, long, help_heading = "Output")]
    pub debug: bool,

    /// Model: a tier (auto, ultimate, performance, efficient, lite), an id, provider/id, offline, scripted:FILE or
    /// replay:FILE.
    #[arg(short, long, help_heading = "Model")]
    pub model: Option<String>,

    /// Model to use when the main model fails.
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub fallback_model: Option<String>,

    /// List the models of the configured provider and exit.
    #[arg(long, help_heading = "Model")]
    pub list_models: bool,

    /// Endpoint to use in place of the configured one.
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub base_url: Option<String>,

    /// Protocol of --base-url: anthropic, openai or openai-responses.
    #[arg(long, value_name = "STYLE", help_heading = "Model")]
    pub api_style: Option<String>,

    /// Environment variable that holds the key for --base-url. Never pass a key itself on the command line.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub api_key_env: Option<String>,

    /// Reasoning effort: low, medium, high, xhigh or max.
    #[arg(long, visible_alias = "reasoning-effort", value_name = "LEVEL", help_heading = "Model")]
    pub effort: Option<String>,

    /// Thinking: adaptive or disabled.
    #[arg(long, value_name = "HOW", help_heading = "Model")]
    pub thinking: Option<String>,

    /// Maximum thinking tokens.
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_thinking_tokens: Option<u32>,

    /// Maximum output tokens of one reply.
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

    /// Replace the system prompt with the content of a file.
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt", help_heading = "Prompt")]
    pub system_prompt_file: Option<PathBuf>,

    /// Add to the system prompt.
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub append_system_prompt: Option<String>,

    /// Run the main conversation as this agent, with its prompt, model and tools. `qodercli agents list` lists agents.
    #[arg(long, value_name = "NAME", help_heading = "Prompt")]
    pub agent: Option<String>,

    /// Agents of this session, as JSON: {"name": {"description": "…", "prompt": "…", "tools": […]}}.
    #[arg(long, value_name = "JSON", help_heading = "Prompt")]
    pub agents: Option<String>,

    /// Maximum model calls per turn; 0 is unlimited.
    #[arg(long, value_name = "N", help_heading = "Prompt")]
    pub max_turns: Option<u64>,

    /// Maximum cost of this run in dollars, agents included. Checked before each model call.
    #[arg(long, value_name = "USD", help_heading = "Prompt")]
    pub max_budget_usd: Option<String>,

    /// Maximum tokens of one turn, agents included; cached input is not counted.
    #[arg(long, value_name = "N", help_heading = "Prompt")]
    pub task_budget: Option<String>,

    /// JSON Schema of an object that the answer must match; the result has the answer as `structured_output`.
    #[arg(long, value_name = "SCHEMA", help_heading = "Output")]
    pub json_schema: Option<String>,

    /// Mode for calls that no rule decides: default, acceptEdits, plan, dontAsk, auto or bypassPermissions.
    ///
    /// default asks about everything but reading, acceptEdits also lets files of the workspace be edited, plan only reads,
    /// dontAsk denies what default would ask, auto accepts edits and denies the rest or lets a model judge it,
    /// bypassPermissions runs everything but what rules stop and what is never automatic.
    #[arg(long, value_name = "MODE", help_heading = "Permissions")]
    pub permission_mode: Option<String>,

    /// Run everything that no rule denies (same as --permission-mode bypassPermissions).
    #[arg(
        long,
        visible_alias = "yolo",
        overrides_with = "dangerously_skip_permissions",
        help_heading = "Permissions"
    )]
    pub dangerously_skip_permissions: bool,

    /// Allow rules: Edit, 'Bash(npm test:*)', 'Edit(src/**)', 'WebFetch(domain:example.com)'. Comma-separated.
    #[arg(long, alias = "allowedTools", value_name = "RULES", help_heading = "Permissions")]
    pub allowed_tools: Vec<String>,

    /// Deny rules, such as 'Bash(git push:*)' or 'Read(.env)'. They override everything else.
    #[arg(long, alias = "disallowedTools", value_name = "RULES", help_heading = "Permissions")]
    pub disallowed_tools: Vec<String>,

    /// The built-in tools that the model sees: a list such as Read,Grep; "" for none, default for all.
    #[arg(long, value_name = "NAMES", help_heading = "Permissions")]
    pub tools: Option<Vec<String>>,

    /// Additional working directory. May be repeated.
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub add_dir: Vec<PathBuf>,

    /// Trust the folder for this run: use its settings, AGENTS.md, rules and agents.
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

    /// Settings file, or JSON, that overrides all other layers.
    #[arg(long, value_name = "FILE|JSON", help_heading = "Settings")]
    pub settings: Option<String>,

    /// Settings files to read: user,project,local; "" for none.
    #[arg(long, value_name = "LIST", help_heading = "Settings")]
    pub setting_sources: Option<String>,

    /// Folder of a plugin to load for this run. Overrides an installed plugin of the same name. May be repeated.
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    pub plugin_dir: Vec<PathBuf>,

    /// Use this session ID (a UUID).
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub session_id: Option<String>,

    /// Resume a session. Without a prompt, resume its unfinished turn.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Session")]
    pub resume: Option<String>,

    /// Resume the newest session of this directory.
    #[arg(short, long, conflicts_with = "resume", help_heading = "Session")]
    pub r#continue: bool,

    /// With --resume: resume from this entry, and leave out what came after it.
    #[arg(long, value_name = "UUID", help_heading = "Session")]
    pub resume_session_at: Option<String>,

    /// With --resume-session-at: fail unless everything left out belongs to the turn of this prompt.
    #[arg(long, value_name = "UUID", help_heading = "Session")]
    pub resume_drops_turn: Option<String>,

    /// Work on a copy of the session, under a new ID.
    #[arg(long, help_heading = "Session")]
    pub fork_session: bool,

    /// Do not write the session to disk.
    #[arg(long, help_heading = "Session")]
    pub no_session_persistence: bool,

    /// List the sessions of this directory and exit.
    #[arg(long, help_heading = "Session")]
    pub list_sessions: bool,

    /// What programs use that start this one.
    #[command(flatten)]
    pub protocol: ProtocolArguments,
}

/// Flags for programs that start this one and speak its protocol; people rarely need them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Programs")]
pub struct ProtocolArguments {
    /// Where permission questions go: `stdio` sends them to the program that started this one.
    #[arg(long, value_name = "HOW")]
    pub permission_prompt_tool: Option<String>,

    /// MCP servers: JSON, or a file with `mcpServers`. May be repeated.
    #[arg(long, value_name = "JSON|FILE")]
    pub mcp_config: Vec<String>,

    /// Use only the servers of --mcp-config.
    #[arg(long)]
    pub strict_mcp_config: bool,

    /// Use only these MCP servers, separated by commas. Does not apply to servers of the host program.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub allowed_mcp_server_names: Vec<String>,

    /// Copy every line of the session's log to the stream, for a store elsewhere.
    #[arg(long)]
    pub session_mirror: bool,

    /// Add hook events to the stream.
    #[arg(long)]
    pub include_hook_events: bool,

    /// Accepted for SDKs: permits bypassPermissions.
    #[arg(long)]
    pub allow_dangerously_skip_permissions: bool,

    /// Accepted for SDKs: there are no built-in skills.
    #[arg(long)]
    pub disable_builtin_skills: bool,

    /// Beta features to request from Anthropic providers, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub betas: Vec<String>,

    /// Accepted for SDKs: summarized or omitted. Thinking is shown as the provider sends it.
    #[arg(long, value_name = "HOW")]
    pub thinking_display: Option<String>,
}
