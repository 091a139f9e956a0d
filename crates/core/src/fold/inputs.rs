//! Inputs in the fold: those of the user wait for their turns, and texts of the operator for the next prompt. The same id again
//! is the same input again.

use qoder_types::record::{InputAdmitted, InputOrigin};

use crate::state::State;

impl State {
    pub(crate) fn apply_input(&mut self, input: &InputAdmitted) {
        if self.input_ids.insert(input.input_id.clone()) {
            match input.origin {
                InputOrigin::User | InputOrigin::Shell => self.inputs.push_back(input.clone()),
                InputOrigin::System => self.system_inputs.push_back(input.clone()),
            }
        }
    }
}
