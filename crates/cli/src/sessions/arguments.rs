//! The arguments of `qodercli sessions`.

use clap::{Args, Subcommand};

use crate::command_line::arguments::OutputFormat;

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List sessions, newest first, with their state and since when.
    List {
        /// List the sessions of all projects.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the timeline of a session, with decisions, durations and cost.
    Show(ShowArguments),
    /// Delete a session with all its files.
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
    /// Copy what is readable of a damaged session to a new one.
    Repair {
        /// The session.
        id: String,
    },
    /// Delete sessions older than `general.sessionRetention`. See docs/sessions.md.
    Prune {
        /// Only print what would be deleted.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Follow a session that another process drives: past messages, then new ones as they arrive.
    Watch(WatchArguments),
    /// Send a message to a session that another process drives.
    Send {
        /// The session's ID, or its first characters.
        #[arg(value_name = "SESSION")]
        id: String,
        /// Message. Default: read from stdin.
        text: Option<String>,
        /// Resume the session here when no process drives it.
        #[arg(long)]
        resume: bool,
    },
    /// Interrupt the turn of a session that another process drives. Queued messages stay queued.
    Interrupt {
        /// The session's ID, or its first characters.
        #[arg(value_name = "SESSION")]
        id: String,
    },
    /// Rewind a session to one of its messages: files, conversation, or both. See docs/checkpoints.md.
    Rewind(RewindArguments),
}

/// What to follow.
#[derive(Debug, Args)]
pub struct WatchArguments {
    /// The session's ID, or its first characters.
    #[arg(value_name = "SESSION")]
    pub id: String,
    /// Begin after this record number; the first record is 1.
    #[arg(long, value_name = "N")]
    pub after: Option<u64>,
    /// Wait until a process drives the session.
    #[arg(long)]
    pub follow: bool,
    /// text or stream-json.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,
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
