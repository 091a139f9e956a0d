//! What a session is doing, as subscribers get it.

use qoder_protocol::messages::{StreamMessage, SystemMessage};

use crate::error::DriveError;
use crate::events::{Event, Outlet};
use crate::session::new_id;

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// A turn runs.
    Running,
    /// Nothing is owed.
    Idle,
    /// A question has to be answered before the turn continues.
    RequiresAction,
}

impl SessionState {
    /// The documented word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::RequiresAction => "requires_action",
        }
    }
}

/// Reports what the session is doing to those who want to know.
pub(crate) fn tell_state(
    outlet: &dyn Outlet,
    session_id: &str,
    state: SessionState,
) -> Result<(), DriveError> {
    if !outlet.wants().session_state {
        return Ok(());
    }
    let message = StreamMessage::System(SystemMessage::SessionStateChanged {
        state: state.as_str().to_owned(),
        uuid: new_id(),
        session_id: session_id.to_owned(),
    });
    outlet.emit(Event::Message(&message)).map_err(DriveError::Output)
}
