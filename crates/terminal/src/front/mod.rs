//! What a front starts with, and what it comes to.

mod machine;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use machine::{Driven, Machine, MachineError, Open, OpenFailure, Opened, SessionRow, StoredKey};
pub(crate) use settings::TerminalTraits;
pub use settings::{LineModeReason, NotificationMethod, UiSettings};

/// Everything that a front starts with.
pub struct Front {
    /// The machine and the program around it.
    pub machine: Arc<dyn Machine>,
    /// Its settings.
    pub settings: UiSettings,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// The session to open.
    pub open: Open,
    /// What is asked first.
    pub first_prompt: Option<String>,
    /// Why the front is a sequence of lines, when it is.
    pub line_mode: Option<LineModeReason>,
}

/// How a front ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The person left.
    Quit,
    /// This signal ended it; the program should end by the same.
    Signal(&'static str),
    /// It could not continue.
    Failed(String),
}

/// What a front came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The last session.
    pub session_id: Option<String>,
    /// How it ended.
    pub ended: Ended,
}

/// The last lines: how to continue. `is_over` says that the session itself ended, and not only this front.
pub(crate) fn farewell(session_id: &str, driven: Driven, is_over: bool, waits: bool) -> String {
    let continued = match (driven, is_over) {
        (Driven::Here, _) => format!("qodercli --resume {session_id}"),
        (Driven::Elsewhere, true) => {
            format!("The process that drove the session has ended.\nqodercli --resume {session_id}")
        }
        (Driven::Elsewhere, false) => {
            format!("The session continues in its own process.\nqodercli attach {session_id}")
        }
        (Driven::Server, true) => format!("The session {session_id} has ended on its server."),
        (Driven::Server, false) => format!("The session {session_id} continues on its server."),
    };
    if waits {
        format!("{continued}\nA call waits for an answer: qodercli permissions pending {session_id}")
    } else {
        continued
    }
}

/// What is said about a session when it is opened: that no language model answers, or that it is driven elsewhere.
pub(crate) fn opening_words(opened: &Opened) -> Option<&'static str> {
    match opened.driven {
        Driven::Here if opened.offline => Some(
            "The built-in offline model answers, which is not a language model: it can call tools and explain itself. Type `help` \
             to see what it does. /login stores a key for a real one.",
        ),
        Driven::Here => None,
        Driven::Elsewhere => Some("Another process drives this session; what you type goes to it."),
        Driven::Server => Some("This session runs on a server."),
    }
}
