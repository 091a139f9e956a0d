//! What the front needs of the machine that it runs on, and of the program that started it: sessions, settings, programs. The
//! program implements it; the front itself touches no file and starts no process.

use std::sync::Arc;
use std::time::Duration;

use qoder_protocol::{BoxFuture, EventStream, SessionClient};
use qoder_types::{Actor, PermissionMode};
use serde_json::Value;

use super::settings::UiSettings;
use crate::composer::ImageContent;
use crate::questions::{SettingsFiles, TrustFacts};

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// A new one, as the command line asked for it.
    New,
    /// The one that the command line names.
    Given,
    /// One that exists, by its id.
    Resume(String),
    /// A copy of one that exists.
    Fork(String),
    /// One that another process drives, or a server.
    Attach(String),
    /// One that the person chooses among earlier ones.
    Choose,
}

/// Where a session is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driven {
    /// In this process: it ends with the front.
    Here,
    /// By another process on this machine.
    Elsewhere,
    /// On a server.
    Server,
}

/// A session that was opened.
pub struct Opened {
    /// The session.
    pub client: Arc<dyn SessionClient>,
    /// Its events: those on record first.
    pub events: Box<dyn EventStream>,
    /// Where it is driven.
    pub driven: Driven,
    /// The folder that it works in.
    pub folder: String,
    /// The model that answers, and whether it is the built-in one.
    pub model: String,
    /// True when no language model answers.
    pub offline: bool,
    /// The permission mode.
    pub mode: PermissionMode,
    /// What a person should know about how it was opened.
    pub notices: Vec<String>,
}

/// Why a session cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenFailure {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The session, when another process drives it and can be joined.
    pub driven_elsewhere: Option<String>,
}

/// Why something on the machine could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MachineError(pub String);

impl MachineError {
    /// For this reason.
    pub fn new(problem: impl std::fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

/// A session that can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Its first prompt.
    pub first_prompt: String,
    /// The branch it worked on.
    pub branch: Option<String>,
    /// The folder it works in.
    pub folder: String,
    /// How long ago it was used.
    pub age: Duration,
    /// What it is doing, when it is not idle.
    pub doing: Option<String>,
}

/// Where a key was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The provider that it is for.
    pub provider: String,
    /// The keychain or a file, in words.
    pub place: String,
}

/// The machine and the program around the front.
pub trait Machine: Send + Sync {
    /// Opens a session.
    fn open(&self, what: Open) -> BoxFuture<'_, Result<Opened, OpenFailure>>;

    /// Who answers at this terminal.
    fn person(&self) -> Actor;

    /// Where rules can be kept.
    fn settings_files(&self) -> SettingsFiles;

    /// What trusting the folder would enable, when the person has not decided about it and there is something to decide.
    fn trust_question(&self) -> Option<TrustFacts>;

    /// Trusts the folder from now on; answers with the settings that count then.
    fn trust(&self) -> BoxFuture<'_, Result<UiSettings, MachineError>>;

    /// Remembers that the folder is not to be trusted as it is.
    fn refuse_trust(&self);

    /// True when the mode that asks nothing was allowed at the start.
    fn allows_bypass(&self) -> bool;

    /// True when a model judges calls in auto mode.
    fn has_judge(&self) -> bool;

    /// Sessions of this folder, newest first.
    fn sessions(&self) -> BoxFuture<'_, Vec<SessionRow>>;

    /// What is on record of a session of this folder. None when it cannot be read.
    fn transcript(&self, session_id: &str) -> Option<Box<dyn EventStream>>;

    /// Paths below a folder that no ignore file leaves out; those of directories end in `/`.
    fn paths(&self, folder: String) -> BoxFuture<'_, Vec<String>>;

    /// Earlier prompts, those of this project last, newest last.
    fn history(&self) -> BoxFuture<'_, Vec<String>>;

    /// Keeps a prompt, unless it holds a secret.
    fn keep_history(&self, text: String) -> BoxFuture<'_, ()>;

    /// The text of `keybindings.json`.
    fn key_bindings(&self) -> Option<String>;

    /// Changes a setting of the user; answers with the file.
    fn change_setting(&self, key: String, value: Value) -> BoxFuture<'_, Result<String, MachineError>>;

    /// Effective settings, one a line.
    fn settings_text(&self) -> BoxFuture<'_, String>;

    /// What would run for a server of the folder, and the mark of just that.
    fn waiting_server(&self, name: String) -> BoxFuture<'_, Result<(Vec<String>, String), MachineError>>;

    /// Lets a server of the folder run, if it still is what has this mark.
    fn approve_server(&self, name: String, mark: String) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Writes a file that does not exist; answers with its full path.
    fn write_new(&self, path: String, text: String) -> BoxFuture<'_, Result<String, MachineError>>;

    /// Removes a file of the user's own.
    fn remove_file(&self, path: String) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Writes a draft of the memory file of this folder; answers with its path.
    fn init_memory_file(&self) -> BoxFuture<'_, Result<String, MachineError>>;

    /// An image of the clipboard.
    fn clipboard_image(&self) -> BoxFuture<'_, Result<ImageContent, MachineError>>;

    /// The text of the clipboard.
    fn clipboard_text(&self) -> BoxFuture<'_, Result<String, MachineError>>;

    /// Puts text into the clipboard by a program; an error when there is no such program.
    fn copy(&self, text: String) -> BoxFuture<'_, Result<(), MachineError>>;

    /// The image in a file.
    fn image_file(&self, path: String) -> BoxFuture<'_, Result<ImageContent, MachineError>>;

    /// Opens an address in a browser.
    fn open_address(&self, address: String) -> BoxFuture<'_, Result<(), MachineError>>;

    /// Lets the person edit a text; the editor has the terminal meanwhile. Blocks.
    fn edit_text(&self, text: &str, name: &str) -> Result<String, MachineError>;

    /// Lets the person edit a file; the editor has the terminal meanwhile. Blocks.
    fn edit_file(&self, path: &str) -> Result<(), MachineError>;

    /// The branch of a folder.
    fn branch(&self, folder: String) -> BoxFuture<'_, Option<String>>;

    /// The first line that the user's status line command prints for this.
    fn status_line(&self, facts: Value) -> BoxFuture<'_, Option<String>>;

    /// Stores a key for a provider.
    fn login(&self, provider: String, key: String) -> BoxFuture<'_, Result<StoredKey, MachineError>>;

    /// Removes the stored keys; answers with how many there were.
    fn logout(&self) -> BoxFuture<'_, Result<usize, MachineError>>;

    /// The terminal is about to be taken: if this process dies without giving it back, its settings are to be restored and
    /// these bytes written to it.
    fn hold_terminal(&self, restore: &[u8]);

    /// The terminal was given back, or is taken again.
    fn set_terminal_taken(&self, is_taken: bool);

    /// The alternate screen is shown, or no longer.
    fn set_terminal_overlay(&self, is_shown: bool);
}
