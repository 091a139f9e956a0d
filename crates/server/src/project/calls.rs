//! The calls of a reply on their way to events: which event stands for each, what was evaluated, and which of them wait.

use qoder_types::record::AskKind;
use qoder_types::{Behavior, Decision, DecisionLayer};
use serde_json::{Value, json};

use super::bodies::{input_object, result_blocks};
use crate::model::admission::ActionKind;
use crate::model::event::NewEvent;
use crate::model::ids::EventId;
use crate::model::tools::Policy;
use crate::model::toolset::{AGENT, Called};
use crate::store::NewAction;

/// A call of the last reply.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    /// What its name stands for.
    pub(super) called: Called,
    /// The event that stands for it.
    pub(super) event: EventId,
    /// True once that event was made.
    pub(super) is_shown: bool,
    /// True while it waits for an answer.
    pub(super) waits: bool,
    /// True once it is decided whether it runs.
    pub(super) is_decided: bool,
    /// True once it has a result.
    pub(super) has_result: bool,
    /// True once it started an agent; the events of that agent's thread stand for it then.
    pub(super) has_started: bool,
    /// True once it was asked whether it runs, or for its result.
    pub(super) is_asked: bool,
    /// True once it is decided that it does not run.
    pub(super) is_denied: bool,
    /// True once a client or a worker brought its result; the event that did stands for it.
    pub(super) is_brought: bool,
}

/// What was said about a call, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evaluated {
    Allow,
    Ask,
    Deny,
}

impl Evaluated {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Call {
    /// The event that stands for the call, once it is known what was evaluated.
    pub(super) fn render(&mut self, evaluated: Evaluated, decision: Option<&Decision>) -> Option<NewEvent> {
        if std::mem::replace(&mut self.is_shown, true) {
            return None;
        }
        let input = input_object(&self.input);
        let (kind, mut body) = match &self.called {
            Called::External { name } => {
                return Some(NewEvent::with_id(
                    self.event,
                    "agent.custom_tool_use",
                    &json!({ "name": name, "input": input }),
                ));
            }
            Called::Agent => ("agent.tool_use", json!({ "name": AGENT, "input": input })),
            Called::Outside { name, .. } => ("agent.tool_use", json!({ "name": name, "input": input })),
            Called::BuiltIn { name, spelling, .. } => {
                let mut body = json!({ "name": name, "input": input });
                if let Some(spelling) = spelling {
                    body["spelling"] = json!(spelling);
                }
                ("agent.tool_use", body)
            }
            Called::Server { server, tool, .. } => {
                ("agent.mcp_tool_use", json!({ "mcp_server_name": server, "name": tool, "input": input }))
            }
        };
        body["evaluated_permission"] = json!(evaluated.as_str());
        if let Some(evaluation) = evaluation(self.policy(), evaluated, decision) {
            body["evaluation"] = evaluation;
        }
        Some(NewEvent::with_id(self.event, kind, &body))
    }

    fn policy(&self) -> Option<Policy> {
        match &self.called {
            Called::BuiltIn { policy, .. } | Called::Server { policy, .. } => *policy,
            Called::Outside { policy, .. } => Some(*policy),
            Called::Agent => Some(Policy::AlwaysAllow),
            Called::External { .. } => None,
        }
    }

    /// The event that stands for a call which no one decided about, because its input makes no sense or its turn was stopped.
    pub(super) fn render_undecided(&mut self) -> Option<NewEvent> {
        let evaluated = match self.policy() {
            // A worker runs what it reads to be allowed.
            _ if matches!(self.called, Called::Outside { .. }) => Evaluated::Deny,
            None | Some(Policy::AlwaysDeny) => Evaluated::Deny,
            Some(Policy::AlwaysAllow | Policy::AlwaysAsk | Policy::Auto) => Evaluated::Allow,
        };
        self.render(evaluated, None)
    }

    /// What was evaluated about a call that waits. One that a worker runs waits although it is allowed.
    pub(super) fn evaluated_ask(&self, decision: &Decision) -> Evaluated {
        match self.called {
            Called::Outside { .. } => evaluated(decision),
            Called::Agent | Called::BuiltIn { .. } | Called::Server { .. } | Called::External { .. } => {
                Evaluated::Ask
            }
        }
    }

    /// The action that waits for an answer to the call.
    pub(super) fn action(&self, kind: AskKind, evaluated: Evaluated) -> NewAction {
        let kind = match (kind, &self.called, evaluated) {
            (AskKind::Permission, _, _) => ActionKind::Ask,
            (AskKind::External, Called::Outside { .. }, Evaluated::Ask) => ActionKind::Gated,
            (AskKind::External, Called::Outside { .. }, Evaluated::Allow | Evaluated::Deny) => {
                ActionKind::Worker
            }
            (AskKind::External, _, _) => ActionKind::Custom,
        };
        NewAction { event: self.event, call_id: self.id.clone(), kind: kind.as_str(), thread: None }
    }

    /// The event of its result. A client's own event is the result of what it ran. A call that a worker may have begun and that was
    /// stopped gets the event that a worker would send, so that no worker runs it later.
    pub(super) fn result(
        &self,
        content: &qoder_types::ToolResultContent,
        is_error: bool,
    ) -> Option<NewEvent> {
        let (kind, key) = match &self.called {
            Called::Agent | Called::BuiltIn { .. } => ("agent.tool_result", "tool_use_id"),
            Called::Server { .. } => ("agent.mcp_tool_result", "mcp_tool_use_id"),
            Called::External { .. } => return None,
            Called::Outside { .. } if self.is_brought => return None,
            Called::Outside { .. } if self.is_asked && !self.is_denied => ("user.tool_result", "tool_use_id"),
            Called::Outside { .. } => ("agent.tool_result", "tool_use_id"),
        };
        let body = json!({ key: self.event, "content": result_blocks(content), "is_error": is_error });
        Some(NewEvent::new(kind, &body))
    }
}

/// The policy that was resolved. Absent when the call was refused before any policy applied.
fn evaluation(policy: Option<Policy>, evaluated: Evaluated, decision: Option<&Decision>) -> Option<Value> {
    let judged = |word: &str, code: Option<&str>| {
        let mut permission = json!({ "type": word });
        if let Some(code) = code {
            permission["reason_code"] = json!(code);
        }
        Some(json!({ "type": "auto", "evaluated_permission": permission }))
    };
    let by_classifier = decision.is_some_and(|decision| decision.layer == DecisionLayer::Classifier);
    match (policy?, evaluated) {
        (Policy::Auto, Evaluated::Allow) => judged("allow", None),
        (Policy::Auto, Evaluated::Ask) => judged("ask", Some("indeterminate")),
        (Policy::Auto, Evaluated::Deny) if by_classifier => judged("deny", Some("high_risk")),
        (_, Evaluated::Deny) => None,
        (Policy::AlwaysAllow, Evaluated::Allow) => Some(json!({ "type": "always_allow" })),
        (Policy::AlwaysAllow | Policy::AlwaysAsk | Policy::AlwaysDeny, Evaluated::Allow | Evaluated::Ask) => {
            Some(json!({ "type": "always_ask" }))
        }
    }
}

/// What a decision comes to.
pub(super) fn evaluated(decision: &Decision) -> Evaluated {
    match decision.behavior {
        Behavior::Allow => Evaluated::Allow,
        Behavior::Ask => Evaluated::Ask,
        Behavior::Deny => Evaluated::Deny,
    }
}
