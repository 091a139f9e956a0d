//! The session's part in checkpoints: saying which message is being worked on, and going back to one. Subagents say
//! nothing: what they change belongs to the message of the session that started them.

use std::sync::PoisonError;

use qoder_core::ports::KeepBefore;
use qoder_types::record::RecordBody;

use super::Driver;
use crate::checkpoints::{Checkpoints, RewindError, RewindReport, RewindRequest, rewind};
use crate::error::DriveError;
use crate::events::Event;

impl Driver<'_> {
    /// Keeps files before a call changes them. A session that leaves no trace keeps none.
    pub(super) fn keep_before(&self, tool_use_id: &str) -> Option<KeepBefore> {
        let checkpoints = self.engine.common.checkpoints.as_ref().filter(|_| self.session.folder().is_some());
        checkpoints.map(|checkpoints| checkpoints.keeper(tool_use_id, &self.kept))
    }

    /// Puts on record which files calls have kept. A process that dies before leaves them in the index alone, which is
    /// what going back reads.
    pub(super) fn record_kept(&mut self) -> Result<(), DriveError> {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if !kept.is_empty() {
            self.session
                .append_all(kept.into_iter().map(|kept| RecordBody::FileKept(Box::new(kept))).collect())?;
        }
        Ok(())
    }

    /// Puts on record with the checkpoints which message the turn is about. When that fails, file tools will refuse to
    /// change anything; the person reads of it before.
    pub(super) fn mark_message(&self) -> Result<(), DriveError> {
        let state = &self.session.state;
        let (Some(checkpoints), Some(side), Some(message), Some(_), None) = (
            &self.engine.common.checkpoints,
            self.session.folder(),
            &state.last_prompt_id,
            &state.turn,
            &self.engine.agent,
        ) else {
            return Ok(());
        };
        let Err(error) = checkpoints.message(side, message) else { return Ok(()) };
        let text = format!("{error}. {}; files cannot be changed meanwhile", error.hint());
        self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)
    }

    /// Goes back to a message. What was kept earlier counts, also when nothing is kept at the moment.
    ///
    /// # Errors
    /// When it cannot be done.
    pub fn rewind(
        &mut self,
        request: &RewindRequest,
        idle: &Checkpoints,
    ) -> Result<RewindReport, RewindError> {
        // A summary that is being made is of the conversation as it was.
        if self.session.state.is_unfinished() || self.promoting {
            return Err(RewindError::Busy);
        }
        let checkpoints = self.engine.common.checkpoints.as_deref().unwrap_or(idle);
        rewind(self.session, request, checkpoints)
    }
}
