//! The drive of a session: turn after turn until nothing more can come or a front closes it, then its end.

use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::State;
use qoder_types::record::TurnEnded;

use super::live::Live;
use super::stop::Stopper;
use crate::error::DriveError;
use crate::events::Hub;

/// What a session came to.
pub struct Finished {
    /// The session.
    pub session_id: String,
    /// Its state at the end.
    pub state: State,
    /// The end of its last turn, if one ended.
    pub last: Option<TurnEnded>,
    pub(super) error: Mutex<Option<DriveError>>,
}

impl Finished {
    /// Why it could not continue, in words; unless that was taken already.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ToString::to_string)
    }

    /// Why it could not continue, if that is why it ended. The first to ask gets it.
    pub fn take_error(&self) -> Option<DriveError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Drives a session to its end. `repeats` says that its last turn is only announced once more.
pub(super) async fn drive(mut live: Live, stop: Stopper, hub: Arc<Hub>, repeats: bool) -> Finished {
    let mut last = None;
    let driven =
        if repeats { repeat(&mut live, &mut last) } else { turns(&mut live, &stop, &mut last).await };
    let ended = live.end().await;
    let error = driven.and(ended).and_then(|()| hub.end().map_err(DriveError::Output));
    let error = error.and_then(|()| live.driver().waiting_in_background()).err();
    let session = live.into_session();
    if !session.location().outlives_process() {
        // Often the folder does not exist; one that cannot be removed is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(session.outputs());
    }
    Finished { session_id: session.id.clone(), state: session.state, last, error: Mutex::new(error) }
}

fn repeat(live: &mut Live, last: &mut Option<TurnEnded>) -> Result<(), DriveError> {
    last.clone_from(&live.session().state.last_turn);
    live.driver().emit_result()
}

async fn turns(live: &mut Live, stop: &Stopper, last: &mut Option<TurnEnded>) -> Result<(), DriveError> {
    let closed = stop.closed();
    loop {
        let interrupt = stop.rest();
        let unfinished = live.session().state.is_unfinished();
        let ready = tokio::select! {
            biased;
            () = closed.clone() => return Ok(()),
            // A turn that is only waiting for servers meets the interrupt at once.
            () = interrupt.cancelled(), if unfinished => true,
            ready = live.ready() => ready?,
        };
        if !ready {
            return Ok(());
        }
        stop.begin();
        let ended = live.turn(interrupt).await?;
        *last = ended.or(last.take());
    }
}
