//! The arguments of `qodercli sessions`.

use clap::{Args, Subcommand};

use crate::command_line::arguments::OutputFormat;

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
