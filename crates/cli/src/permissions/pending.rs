//! Calls of a session and its agents that wait for an answer: which there are, and which one an answer is for.

use std::collections::{BTreeMap, HashSet};

use qoder_core::state::Call;
use qoder_runtime::layout::SessionPaths;
use qoder_types::AskKind;
use qoder_types::record::Asked;
use serde_json::{Value, json};

use super::{explain, in_words};
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_note, print_row};
use crate::sessions::{KeptAgent, kept_agents, locate, read};

/// A call that waits.
pub struct WaitingCall {
    /// The agent that made it, when it is not the main one.
    pub agent: Option<KeptAgent>,
    call: Call,
    /// The question.
    pub asked: Asked,
}

/// The call that an answer is for.
pub struct Target {
    /// The agent that made it, when it is not the main one.
    pub agent: Option<KeptAgent>,
    /// The call.
    pub tool_use_id: String,
    /// What it waits for; none when it does not wait.
    pub kind: Option<AskKind>,
}

impl Target {
    /// The files with the log of the call; `session` are those of the main session.
    pub fn paths<'a>(&'a self, session: &'a SessionPaths) -> &'a SessionPaths {
        self.agent.as_ref().map_or(session, |agent| &agent.paths)
    }
}

/// Prints the calls that wait.
pub fn run(environment: &BTreeMap<String, String>, session: &str, as_json: bool) -> Result<Exit, Fault> {
    let (session, paths) = locate(environment, session)?;
    let waiting = waiting_calls(&paths)?;
    if as_json {
        print_json(&Value::Array(waiting.iter().map(row).collect()))?;
        return Ok(Exit::Success);
    }
    if waiting.is_empty() {
        print_note(&format!("no call of session {session} waits for an answer"));
    }
    for WaitingCall { agent, call, asked } in &waiting {
        let by = agent.as_ref().map(|agent| format!("  (--agent {})", agent.key.id())).unwrap_or_default();
        print_row(&format!("{}  {} {}{by}", call.id, call.name, call.input))?;
        print_row(&format!("    {}", asked.decision.reason))?;
        for update in &asked.suggestions {
            print_row(&format!("    --always would keep: {}", in_words(update)))?;
        }
    }
    Ok(Exit::Success)
}

fn row(waiting: &WaitingCall) -> Value {
    let WaitingCall { agent, call, asked } = waiting;
    let mut row = json!({"toolUseId": call.id, "tool": call.name, "input": call.input, "kind": asked.kind,
        "reason": asked.decision.reason, "suggestions": asked.suggestions});
    if let Some(agent) = agent {
        row["agentId"] = json!(agent.key.id());
        row["agent"] = json!(agent.agent_type);
    }
    row
}

/// The calls of a session and its agents that wait. Agents whose end is on record do not count.
fn waiting_calls(paths: &SessionPaths) -> Result<Vec<WaitingCall>, Fault> {
    let (mut waiting, mut ended) = (Vec::new(), HashSet::new());
    let agents = kept_agents(paths)?.into_iter().map(Some);
    for agent in std::iter::once(None).chain(agents) {
        if agent.as_ref().is_some_and(|agent| ended.contains(agent.key.id())) {
            continue;
        }
        let state = read(agent.as_ref().map_or(paths, |agent| &agent.paths), |_| {})?;
        let over = state.tasks.values().filter(|task| task.end.is_some());
        ended.extend(over.map(|task| task.start.task_id.clone()));
        let asked = state.open_calls().filter_map(|call| Some((call.clone(), call.waiting_ask()?.clone())));
        waiting.extend(asked.map(|(call, asked)| WaitingCall { agent: agent.clone(), call, asked }));
    }
    Ok(waiting)
}

/// The call that is meant by its ID or the beginning of it. Without an agent the main conversation is meant, or the only agent
/// that waits with such a call.
pub fn find(paths: &SessionPaths, given: &str, agent: Option<&str>) -> Result<Target, Fault> {
    let tool_use_id = explain::full_id(paths, given)?;
    let mut waiting = waiting_calls(paths)?;
    waiting.retain(|waiting| waiting.call.id == tool_use_id);
    if let Some(given) = agent {
        let mut named = kept_agents(paths)?;
        named.retain(|agent| agent.key.id().starts_with(given));
        let [agent] = named.as_slice() else {
            let problem = if named.is_empty() { "is not an agent" } else { "names several agents" };
            let hint = "`qodercli permissions pending SESSION` prints the agents that wait";
            return Err(Fault::input(format!("`--agent {given}` {problem} of this session"), hint));
        };
        let is_of = |one: &&WaitingCall| one.agent.as_ref().is_some_and(|one| one.key == agent.key);
        let kind = waiting.iter().find(is_of).map(|one| one.asked.kind);
        return Ok(Target { agent: Some(agent.clone()), tool_use_id, kind });
    }
    let is_main = waiting.first().is_some_and(|one| one.agent.is_none());
    match waiting.len() {
        0 => Ok(Target { agent: None, tool_use_id, kind: None }),
        more if more > 1 && !is_main => Err(Fault::input(
            format!("{more} agents wait with a call `{tool_use_id}`"),
            "name one with `--agent`; `qodercli permissions pending SESSION` prints them",
        )),
        _ => {
            let one = waiting.swap_remove(0);
            Ok(Target { agent: one.agent, tool_use_id, kind: Some(one.asked.kind) })
        }
    }
}
