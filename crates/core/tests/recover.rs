//! What a process says first about a session that another one left: the ends of what went with that process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use qoder_core::State;
use qoder_core::recover::recover;
use qoder_types::record::{AssistantEntry, Elicited, RecordBody, ToolStarted, UserEntry, UserOrigin};
use qoder_types::{AGENT_TASK, AgentAccount, Record, ReplayClass, TaskStarted, TaskStatus, Usage};
use serde_json::json;

fn apply(state: &mut State, body: RecordBody) {
    state.apply(&Record { seq: state.last_seq + 1, timestamp: String::new(), body });
}

fn task(id: &str, call: &str, kind: &str) -> RecordBody {
    RecordBody::TaskStarted(TaskStarted {
        task_id: id.to_owned(),
        tool_use_id: call.to_owned(),
        description: format!("does {id}"),
        task_type: kind.to_owned(),
        output_file: String::new(),
        command: "Explore".to_owned(),
    })
}

fn elicited(id: &str) -> RecordBody {
    RecordBody::Elicited(Box::new(Elicited {
        elicitation_id: id.to_owned(),
        server_name: "s".to_owned(),
        message: "m".to_owned(),
        requested_schema: None,
    }))
}

/// A turn with a call of the agent tool that has started.
fn with_agent_call(state: &mut State, call: &str) {
    let prompt = json!({ "uuid": "u", "parentUuid": null, "origin": UserOrigin::Prompt,
        "message": { "role": "user", "content": "go" } });
    let entry: UserEntry = serde_json::from_str(&prompt.to_string()).unwrap();
    apply(state, RecordBody::User(Box::new(entry)));
    let content = json!([{ "type": "tool_use", "id": call, "name": "Agent", "input": {} }]);
    let message = json!({ "content": content, "model": "m", "usage": {}, "stop_reason": "tool_use" });
    let reply = json!({ "uuid": "a", "parentUuid": "u", "message": message });
    let entry: AssistantEntry = serde_json::from_str(&reply.to_string()).unwrap();
    apply(state, RecordBody::Assistant(Box::new(entry)));
    let (tool_use_id, tool_name) = (call.to_owned(), "Agent".to_owned());
    let started = ToolStarted { tool_use_id, tool_name, replay: ReplayClass::Resumable };
    apply(state, RecordBody::ToolStarted(started));
}

fn account(id: &str, calls: u64) -> AgentAccount {
    AgentAccount {
        agent_id: id.to_owned(),
        agent_type: "Explore".to_owned(),
        tool_use_id: "t".to_owned(),
        status: TaskStatus::Unknown,
        num_turns: calls,
        tool_uses: 0,
        duration_ms: 0,
        duration_api_ms: 0,
        usage: Usage::default(),
        total_cost_usd: 0.5,
        model_usage: BTreeMap::new(),
        subagents: Vec::new(),
    }
}

#[test]
fn tasks_end_unknown_and_questions_are_cancelled_in_this_order() {
    let mut state = State::default();
    apply(&mut state, elicited("q"));
    apply(&mut state, task("b", "t1", "local_bash"));
    apply(&mut state, task("a", "t2", AGENT_TASK));
    let agents = BTreeMap::from([("a".to_owned(), account("a", 3))]);
    let said = recover(&state, &agents);
    let [
        RecordBody::TaskEnded(agent),
        RecordBody::TaskEnded(command),
        RecordBody::ElicitationAnswered(answer),
    ] = said.as_slice()
    else {
        panic!("{said:?}")
    };
    assert_eq!((agent.task_id.as_str(), agent.status), ("a", TaskStatus::Unknown));
    assert!(agent.summary.ends_with("after 3 model calls"), "{}", agent.summary);
    assert_eq!(agent.account.as_deref(), agents.get("a"));
    assert_eq!((command.task_id.as_str(), command.status), ("b", TaskStatus::Unknown));
    assert!(command.account.is_none() && command.summary.contains("outcome unknown"), "{command:?}");
    assert_eq!((answer.elicitation_id.as_str(), answer.action.as_str()), ("q", "cancel"));

    said.into_iter().for_each(|body| apply(&mut state, body));
    assert!(recover(&state, &agents).is_empty(), "it is said once");
}

#[test]
fn an_agent_whose_call_is_resumed_is_not_lost() {
    let mut state = State::default();
    with_agent_call(&mut state, "t1");
    apply(&mut state, task("resumed", "t1", AGENT_TASK));
    apply(&mut state, task("lost", "t2", AGENT_TASK));
    let said = recover(&state, &BTreeMap::new());
    let [RecordBody::TaskEnded(end)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(end.task_id, "lost");
    assert!(recover(&State::default(), &BTreeMap::new()).is_empty());
}
