//! Reporting what a session is doing to those who want to know.

use qoder_protocol::SessionState;
use qoder_protocol::messages::{StreamMessage, SystemMessage};

use crate::error::DriveError;
use crate::events::{Event, Outlet};
use crate::session::new_id;

/// Reports what the session is doing to those who want to know.
pub(crate) fn emit_state(
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
