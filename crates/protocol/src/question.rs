//! A call that waits for a decision, what an answerer is shown of it, and the answer. Every front shows the same text and
//! fields, because all of them are made here.

use qoder_types::record::Answered;
use qoder_types::{Actor, AskKind, Decision, DecisionLayer, ExternalResult, PermissionUpdate};
use serde_json::{Value, json};

use crate::control::CanUseTool;

/// The longest part of an input that a title repeats, in characters.
const LONGEST_TITLE: usize = 120;

/// A call that waits for a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The call; answers name it.
    pub tool_use_id: String,
    /// The tool.
    pub tool_name: String,
    /// What is wanted: permission, or the result of a call that runs outside the runtime.
    pub kind: AskKind,
    /// Its input.
    pub input: Value,
    /// Why it is asked.
    pub decision: Decision,
    /// Changes that would make the question unnecessary the next time.
    pub suggestions: Vec<PermissionUpdate>,
    /// The agent that made the call, when it is not the main one.
    pub agent_id: Option<String>,
    /// Where a command would run, where the process that asks is the one that would run it.
    pub place: Option<CallPlace>,
}

/// Where a command would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// Its working directory.
    pub directory: String,
    /// True when the sandbox confines it.
    pub sandboxed: bool,
}

impl Question {
    /// What answers name.
    #[must_use]
    pub fn action(&self) -> ActionId {
        ActionId { agent_id: self.agent_id.clone(), tool_use_id: self.tool_use_id.clone() }
    }

    /// One line that a person can be asked with.
    #[must_use]
    pub fn title(&self) -> String {
        let telling = ["command", "file_path", "notebook_path", "url", "query", "pattern", "path", "prompt"];
        let about = telling.iter().find_map(|key| self.input.get(key)?.as_str());
        let about: Option<String> =
            about.map(|text| text.lines().next().unwrap_or_default().chars().take(LONGEST_TITLE).collect());
        match about {
            Some(about) => format!("{}: {about}", self.tool_name),
            None => self.tool_name.clone(),
        }
    }

    /// What the call is for: in the model's words where its input has some, else why it is asked.
    #[must_use]
    pub fn description(&self) -> &str {
        self.input.get("description").and_then(Value::as_str).unwrap_or(&self.decision.reason)
    }

    /// The file that the call is about.
    #[must_use]
    pub fn blocked_path(&self) -> Option<&str> {
        ["file_path", "notebook_path", "path"].iter().find_map(|key| self.input.get(key)?.as_str())
    }

    /// The layer that asks, in the documented words.
    #[must_use]
    pub fn reason_type(&self) -> &'static str {
        decision_reason_type(self.decision.layer)
    }

    /// The plan, when the call leaves plan mode.
    #[must_use]
    pub fn plan(&self) -> Option<Value> {
        let plan = || self.input.get("plan").and_then(Value::as_str).unwrap_or_default();
        (self.tool_name == "ExitPlanMode").then(|| json!({ "plan": plan() }))
    }

    /// The question as it travels.
    #[must_use]
    pub fn to_request(&self) -> CanUseTool {
        CanUseTool {
            tool_name: self.tool_name.clone(),
            input: self.input.clone(),
            tool_use_id: self.tool_use_id.clone(),
            permission_suggestions: self.suggestions.clone(),
            blocked_path: self.blocked_path().map(str::to_owned),
            decision_reason: self.decision.reason.clone(),
            decision_reason_type: self.reason_type().to_owned(),
            title: self.title(),
            display_name: self.tool_name.clone(),
            description: self.description().to_owned(),
            agent_id: self.agent_id.clone(),
            classifier_approvable: false,
            exit_plan_mode: self.plan(),
        }
    }
}

/// Names an open question: calls of agents that work side by side may have the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ActionId {
    /// The agent that made the call, when it is not the main one.
    pub agent_id: Option<String>,
    /// The call.
    pub tool_use_id: String,
}

impl ActionId {
    /// A call of the main conversation.
    #[must_use]
    pub fn main(tool_use_id: impl Into<String>) -> Self {
        Self { agent_id: None, tool_use_id: tool_use_id.into() }
    }
}

/// An answer to a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// True to let the call run.
    pub allow: bool,
    /// For a denial: what the model reads.
    pub message: Option<String>,
    /// The input to use in place of the model's.
    pub updated_input: Option<Value>,
    /// Changes of permissions that come with the answer.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// For a denial: stop the turn as well.
    pub interrupt: bool,
    /// The result of a call that runs outside the runtime; such a call is neither allowed nor denied.
    pub result: Option<ExternalResult>,
    /// Who answers.
    pub by: Actor,
}

impl Answer {
    /// The result of a call that ran outside the runtime.
    #[must_use]
    pub fn of_result(result: ExternalResult, by: Actor) -> Self {
        Self { result: Some(result), by, ..Self::default() }
    }

    /// What it says, in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (&self.result, self.allow) {
            (Some(_), _) => "result",
            (None, true) => "allow",
            (None, false) => "deny",
        }
    }

    /// The record of it; `updates` are its changes of permissions that can be made.
    #[must_use]
    pub fn into_record(self, tool_use_id: impl Into<String>, updates: Vec<PermissionUpdate>) -> Answered {
        Answered {
            tool_use_id: tool_use_id.into(),
            allow: self.allow,
            message: self.message,
            updated_input: self.updated_input.filter(|_| self.allow),
            updated_permissions: updates,
            interrupt: self.interrupt,
            result: self.result,
            by: self.by,
        }
    }

    /// A denial by the host in these words.
    #[must_use]
    pub fn denial(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::default() }
    }

    /// The denial when no one answers.
    #[must_use]
    pub fn nobody() -> Self {
        Self { message: Some("nobody answered".to_owned()), by: Actor::Nobody, ..Self::default() }
    }

    /// Reads the answer of a permission callback. The second part names what could not be read among its changes of
    /// permissions. Anything but a clear `allow` is a denial.
    #[must_use]
    pub fn read(answer: &Value) -> (Self, Vec<String>) {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let by =
            text("decisionClassification").map_or(Actor::Host, |word| Actor::HostClassified(word.to_owned()));
        match text("behavior") {
            Some("allow") => {
                let (updated_permissions, problems) = updates(answer.get("updatedPermissions"));
                let updated_input = answer.get("updatedInput").filter(|input| input.is_object()).cloned();
                (Self { allow: true, updated_input, updated_permissions, by, ..Self::default() }, problems)
            }
            Some("deny") => {
                let interrupt = answer.get("interrupt").and_then(Value::as_bool).unwrap_or(false);
                (
                    Self { message: text("message").map(str::to_owned), interrupt, by, ..Self::default() },
                    Vec::new(),
                )
            }
            Some(other) => {
                let problem =
                    format!("the permission callback answered `{other}`; accepted are allow and deny");
                (Self::denial(problem), Vec::new())
            }
            None => (Self::denial("the permission callback answered without a `behavior`"), Vec::new()),
        }
    }

    /// A callback that hands the input back unchanged changes nothing.
    #[must_use]
    pub fn keep_original(mut self, original: &Value) -> Self {
        if self.updated_input.as_ref() == Some(original) {
            self.updated_input = None;
        }
        self
    }
}

fn updates(list: Option<&Value>) -> (Vec<PermissionUpdate>, Vec<String>) {
    let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (mut read, mut problems) = (Vec::new(), Vec::new());
    for entry in entries {
        match serde_json::from_value(entry.clone()) {
            Ok(update) => read.push(update),
            Err(error) => problems
                .push(format!("a change of permissions cannot be read ({error}) and is left out: {entry}")),
        }
    }
    (read, problems)
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// This answer was the first and counts.
    Answered(Answer),
    /// The question was taken back: its turn was interrupted, or the session ended.
    Withdrawn,
}

/// The layer that decided, in the documented words.
#[must_use]
pub fn decision_reason_type(layer: DecisionLayer) -> &'static str {
    match layer {
        DecisionLayer::Rule => "rule",
        DecisionLayer::BuiltIn | DecisionLayer::Person => "other",
        DecisionLayer::SafetyCheck => "safetyCheck",
        DecisionLayer::Mode => "mode",
        DecisionLayer::Unattended => "unattended",
        DecisionLayer::Classifier => "classifier",
        DecisionLayer::Sandbox => "sandbox",
        DecisionLayer::Hook => "hook",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_allowance_allows() {
        assert!(Answer::read(&json!({ "behavior": "allow" })).0.allow);
        for answer in
            [json!({}), json!({ "behavior": "Allow" }), json!({ "behavior": true }), json!(null), json!([])]
        {
            let (read, _) = Answer::read(&answer);
            assert!(!read.allow && read.message.is_some(), "{answer}");
        }
    }

    #[test]
    fn changes_that_cannot_be_read_are_named_and_left_out() {
        let rule = json!({ "type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{ "toolName": "Read", "ruleContent": null }] });
        let (read, problems) = Answer::read(
            &json!({ "behavior": "allow", "updatedPermissions": [rule, { "type": "addMagic" }] }),
        );
        assert_eq!(read.updated_permissions.len(), 1);
        assert!(problems.len() == 1 && problems.first().unwrap().contains("addMagic"), "{problems:?}");
    }

    #[test]
    fn an_input_that_comes_back_unchanged_is_no_change() {
        let (original, other) = (json!({ "content": "long" }), json!({ "content": "l" }));
        let with =
            |input: &Value| Answer { allow: true, updated_input: Some(input.clone()), ..Answer::default() };
        assert_eq!(with(&original).keep_original(&original).updated_input, None);
        assert_eq!(with(&other).keep_original(&original).updated_input, Some(other.clone()));
    }
}
