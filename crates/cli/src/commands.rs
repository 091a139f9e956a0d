//! The subcommands, parsed when the first word names one: sessions, settings, the sandbox, permissions, agents, MCP
//! servers, plugins and trust.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::command_line::place::PlaceArguments;
use crate::listings::agents::AgentsAction;
use crate::listings::definitions::DefinitionsAction;
use crate::listings::sandbox::SandboxAction;
use crate::permissions::arguments::{PERMISSIONS_HELP, PermissionsAction};
use crate::sessions::arguments::SessionsAction;

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
    /// Manage the sessions on this machine.
    Sessions {
        #[command(subcommand)]
        action: SessionsAction,
    },
    /// Print effective settings and the file that each came from.
    Config {
        /// Key, such as `model.name`. Default: all keys.
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
    /// List the hooks that run around the steps of a turn. See docs/hooks.md.
    Hooks {
        #[command(subcommand)]
        action: crate::listings::hooks::HooksAction,
    },
    /// List agents, where they are defined, and which definitions are shadowed.
    ///
    /// They come with the program, from `agents/*.md` of your configuration and of a trusted project, and from plugins.
    /// docs/subagents.md has the rest.
    Agents {
        #[command(subcommand)]
        action: AgentsAction,
    },
    /// List the models of the configured providers, and test one.
    #[command(after_help = crate::listings::models::HELP)]
    Models {
        #[command(subcommand)]
        action: crate::listings::models::ModelsAction,
    },
    /// MCP servers: add them, print their status, approve those of a folder, sign in.
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
    /// List skills: instructions that the model loads when it needs them. See docs/skills.md.
    Skills {
        #[command(subcommand)]
        action: DefinitionsAction,
    },
    /// List commands: prompts that are called with `/name`. See docs/commands.md.
    Commands {
        #[command(subcommand)]
        action: DefinitionsAction,
    },
    /// Serve the cloud agents API over HTTP: agents, sessions, events and approvals, kept in one folder.
    #[cfg(feature = "server")]
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::ServeArguments>),
    /// Run the tools of sessions in a self-hosted environment on this machine.
    ///
    /// The key of the environment is in QODER_ENVIRONMENT_KEY, else in QODER_ACCESS_TOKEN: a token with the scope
    /// `environment:ID`. docs/server.md has the rest.
    #[cfg(feature = "server")]
    #[command(after_help = crate::work::HELP)]
    Work(Box<crate::work::WorkArguments>),
    /// Attach the interactive terminal to a session that another process or a server drives.
    ///
    /// For a session on a server, set QODER_ACCESS_TOKEN to a token.
    Attach {
        /// The session's ID or its first characters, or its address on a server: http://HOST:PORT/v1/sessions/ID.
        #[arg(value_name = "ID_OR_URL")]
        session: String,
        /// Print labelled lines without cursor movement, for screen readers.
        #[arg(long)]
        screen_reader: bool,
    },
    /// Write a draft of AGENTS.md, based on the build files of the folder.
    Init {
        /// Folder. Default: the current one.
        folder: Option<PathBuf>,
    },
    /// Store an API key, read from stdin, in the keychain or in a file that only you can read.
    ///
    /// An environment variable overrides a stored key.
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
    /// Run tools for a server, over pipes.
    #[cfg(feature = "server")]
    #[command(hide = true)]
    ToolHost,
    /// Print the man page.
    #[command(hide = true)]
    Man,
    /// Trust a folder, and print its hooks: its settings, AGENTS.md, rules and hooks take effect.
    Trust {
        /// Folder. Default: the current one.
        folder: Option<PathBuf>,
    },
}
