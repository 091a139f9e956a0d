//! The model of a turn: a command may name one in its head, and the turn that it begins runs with that in place of the
//! session's. The name is in the records, so a process that resumes the turn uses the same model.

use qoder_types::record::{ModelFailed, RecordBody};
use qoder_types::{ModelFailure, ModelFailureClass};

use crate::driver::Driver;
use crate::error::DriveError;

impl Driver<'_> {
    /// The model that a command names, when a turn can run with it; none where a front chooses the model. The error is
    /// for the person.
    pub(in crate::driver) fn usable_model(&self, name: Option<&str>) -> Result<Option<String>, String> {
        match (name, &self.engine.turn_models) {
            (Some(name), Some(find)) => find(name).map(|_| Some(name.to_owned())),
            (Some(_) | None, _) => Ok(None),
        }
    }

    /// Lets the turn that is open run with the model that its command names, and any other with the session's. One that
    /// an earlier process has found and this one cannot is a failed call: the person asked for that model.
    pub(in crate::driver) fn follow_turn_model(&mut self) -> Result<(), DriveError> {
        let Some(find) = &self.engine.turn_models else { return Ok(()) };
        let model = &self.engine.model;
        let turn = self.session.state.turn.as_ref();
        let wanted = turn.and_then(|turn| turn.model.clone());
        if model.name_for_turn() == wanted {
            return Ok(());
        }
        let Some(name) = wanted else {
            model.switch_for_turn(None);
            return Ok(());
        };
        match find(&name) {
            Ok(found) => model.switch_for_turn(Some((name, found))),
            Err(_) if turn.is_some_and(|turn| turn.failure.is_some()) => {}
            Err(message) => {
                let class = ModelFailureClass::Configuration;
                let failure = ModelFailure { class, message, status: None, retry_after_ms: None };
                let failed = ModelFailed { model: name, compaction: false, failure };
                self.session.append(RecordBody::ModelFailed(failed))?;
            }
        }
        Ok(())
    }
}
