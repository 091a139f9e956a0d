//! What was decided is what runs. Between a decision and the start of its call the session may have moved, a link may have
//! appeared or a rule may have been written: the call is judged once more right before it starts, and whatever the new
//! ruling does not cover is not run.

use qoder_types::{Behavior, CallOutcome, Decision, DecisionLayer};

use crate::driver::Driver;
use crate::error::DriveError;
use qoder_hooks::may_be_answered_by_hook;

/// What a second look at a decided call came to.
enum Look {
    Holds,
    Denied(Decision),
    Outdated(String),
}

impl Driver<'_> {
    /// True when the call may start now. Otherwise it has its outcome.
    pub(in crate::driver) fn may_start(&mut self, id: &str) -> Result<bool, DriveError> {
        let Some(call) = self.session.state.call(id) else { return Ok(false) };
        let name = call.name.clone();
        let (word, outcome) = match call.started {
            Some(_) => ("does not go on", CallOutcome::Unknown),
            None => ("was not run", CallOutcome::NotRun),
        };
        match self.look_again(id) {
            Look::Holds => return Ok(true),
            Look::Denied(decision) => {
                self.record_decision(id, &name, decision)?;
                self.refuse(&[id.to_owned()])?;
            }
            Look::Outdated(reason) => {
                let text = format!(
                    "{name} {word}: what was decided about it does not hold any more ({reason}). Send the call \
                     again if it is still needed."
                );
                self.append_result(id, &text, outcome)?;
            }
        }
        Ok(false)
    }

    fn look_again(&self, id: &str) -> Look {
        let state = &self.session.state;
        let Some((call, decided)) = state.call(id).and_then(|call| Some((call, call.decision.as_ref()?)))
        else {
            return Look::Outdated("there is no decision".to_owned());
        };
        let ruling = match self.judge_with_hooks(call) {
            Ok((_, _, ruling)) => ruling,
            Err(problem) => return Look::Outdated(problem),
        };
        // The policy of a tool is about no place: what it asks about was allowed here just now.
        let is_of_policy = ruling.decision.layer == DecisionLayer::Rule && ruling.decision.rule.is_none();
        let moved = call.decided_in != state.cwd && !is_of_policy;
        let same = decided.reason.starts_with(&ruling.decision.reason);
        match ruling.decision.behavior {
            Behavior::Allow => Look::Holds,
            // A person answered this very question, about this place.
            Behavior::Ask if !moved && same && decided.layer == DecisionLayer::Person => Look::Holds,
            // So did a hook, which may answer for the mode alone.
            Behavior::Ask
                if !moved
                    && same
                    && decided.layer == DecisionLayer::Hook
                    && may_be_answered_by_hook(&ruling.decision) =>
            {
                Look::Holds
            }
            // The judge of auto mode has allowed it, and it is not asked twice.
            Behavior::Ask if !moved && ruling.classifiable && decided.layer == DecisionLayer::Classifier => {
                Look::Holds
            }
            Behavior::Ask => Look::Outdated(ruling.decision.reason),
            Behavior::Deny if !moved && ruling.classifiable && decided.layer == DecisionLayer::Classifier => {
                Look::Holds
            }
            Behavior::Deny => Look::Denied(ruling.decision),
        }
    }
}
