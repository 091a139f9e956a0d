//! Which session a run is of.

use qoder_runtime::sessions::SessionChoice;

use crate::command_line::arguments::Arguments;
use crate::exit::Fault;

/// Which session the flags name.
pub fn session_choice(arguments: &Arguments) -> Result<SessionChoice, Fault> {
    let choice = SessionChoice {
        session_id: arguments.session_id.clone(),
        resume: arguments.resume.clone(),
        continue_newest: arguments.r#continue,
        fork: arguments.fork_session,
        forget: arguments.no_session_persistence,
        resume_at: arguments.resume_session_at.clone(),
        drops_turn: arguments.resume_drops_turn.clone(),
    };
    match choice.complaint() {
        Some(bad) => Err(Fault::input(bad.message, bad.hint)),
        None => Ok(choice),
    }
}
