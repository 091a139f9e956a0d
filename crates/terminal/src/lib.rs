//! The interactive terminal: `qodercli` without `-p`. It sees a session through [`qoder_protocol::SessionClient`] alone, so
//! that it attaches to one in its own process, to one that another process drives, and to one on a server in the same way.

mod cells;
mod commands;
mod composer;
mod front;
mod input;
mod line_mode;
mod markdown;
mod panels;
mod popup;
mod questions;
mod screen;
mod state;
mod text;
mod theme;
mod view;

pub use composer::ImageContent;
pub use front::{
    Driven, Ended, Front, LineModeReason, Machine, MachineError, NotificationMethod, Open, OpenFailure,
    Opened, Outcome, SessionRow, StoredKey, UiSettings,
};
pub use questions::{SettingsFiles, TrustFacts};

/// What a subscription of a front wants.
pub const WANTS: qoder_protocol::Wants = qoder_protocol::Wants {
    partial: true,
    tool_output: true,
    session_state: true,
    hook_events: false,
    answers: true,
    paced: true,
};

/// Runs the front to its end, on this thread.
///
/// # Errors
/// When no runtime can be started, or the terminal cannot be taken.
pub fn run(front: Front) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match front.line_mode {
            Some(reason) => Ok(line_mode::run(front, reason).await),
            None => view::run(front).await,
        }
    });
    // A blocking read of the terminal must not hold the exit up.
    runtime.shutdown_background();
    outcome
}
