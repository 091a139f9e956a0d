//! The agents whose calls wait for an answer, as a driver knows them: by the call that started each. Such a call is not run
//! again until something it waits for is answered.

use std::collections::BTreeMap;

use qoder_types::ParkedCall;

/// Calls whose agents wait, and what for.
#[derive(Default)]
pub(in crate::driver) struct WaitingAgents(BTreeMap<String, Vec<ParkedCall>>);

impl WaitingAgents {
    /// The agent of this call waits for these.
    pub(in crate::driver) fn park(&mut self, call: String, waits_for: Vec<ParkedCall>) {
        self.0.insert(call, waits_for);
    }

    /// True while the agent of this call waits.
    pub(in crate::driver) fn waits(&self, call: &str) -> bool {
        self.0.contains_key(call)
    }

    /// Everything that is waited for.
    pub(in crate::driver) fn calls(&self) -> impl Iterator<Item = &ParkedCall> {
        self.0.values().flatten()
    }

    /// A call of this agent is answered: those that wait for it may run again.
    pub(in crate::driver) fn answered(&mut self, agent_id: &str) {
        self.0.retain(|_, calls| !calls.iter().any(|call| call.agent_id == agent_id));
    }

    /// All may run again.
    pub(in crate::driver) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use qoder_types::AskKind;

    use super::*;

    fn call(agent: &str) -> ParkedCall {
        ParkedCall {
            agent_id: agent.to_owned(),
            tool_use_id: "call".to_owned(),
            tool_name: "Bash".to_owned(),
            kind: AskKind::Permission,
            reason: String::new(),
        }
    }

    #[test]
    fn an_answer_frees_those_that_wait_for_its_agent() {
        let mut waiting = WaitingAgents::default();
        waiting.park("one".to_owned(), vec![call("a"), call("b")]);
        waiting.park("other".to_owned(), vec![call("c")]);
        assert!(waiting.waits("one") && waiting.waits("other") && !waiting.waits("third"));
        assert_eq!(waiting.calls().count(), 3);
        waiting.answered("b");
        assert!(!waiting.waits("one") && waiting.waits("other"));
        waiting.clear();
        assert_eq!(waiting.calls().count(), 0);
    }
}
