//! The host of a program that answers questions: messages go out as lines, and what the gate leaves open goes out as a
//! `can_use_tool` request. No answer, an error and an answer that cannot be read are all denials.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::driver::decision_reason_type;
use qoder_runtime::events::{Answer, Event, Host, PermissionQuestion};
use qoder_types::PermissionUpdate;
use qoder_types::control::{CanUseTool, RuntimeRequest};
use serde_json::{Value, json};

use super::channel::Channel;
use crate::host::{JsonLines, tell};

/// A host that asks the program that started us.
pub struct AskingHost {
    lines: Arc<JsonLines>,
    channel: Arc<Channel>,
    asks: bool,
}

impl AskingHost {
    /// Puts questions when `asks`; otherwise what would ask is treated as nobody being there.
    pub fn new(lines: Arc<JsonLines>, channel: Arc<Channel>, asks: bool) -> Self {
        Self { lines, channel, asks }
    }
}

impl Host for AskingHost {
    fn wants_partial(&self) -> bool {
        self.lines.wants_partial()
    }

    fn wants_tool_output(&self) -> bool {
        self.lines.wants_tool_output()
    }

    fn wants_session_state(&self) -> bool {
        self.lines.wants_session_state()
    }

    fn wants_hook_events(&self) -> bool {
        self.lines.wants_hook_events()
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        self.lines.emit(event)
    }

    fn answers(&self) -> bool {
        self.asks && self.channel.is_open()
    }

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        let mut request = request(&question);
        let (sent, cut) = self.lines.bounded(std::mem::take(&mut request.input));
        request.input = sent.clone();
        let asked = self.channel.request(RuntimeRequest::CanUseTool(Box::new(request)));
        async move {
            let answer = match asked.await {
                Ok(answer) => read(&answer),
                Err(problem) => denial(problem),
            };
            Some(keep_original(answer, &question.input, cut.then_some(&sent)))
        }
        .boxed()
    }
}

/// A callback that hands the input back unchanged changes nothing; neither does one that hands back what had to be cut
/// to fit into a line.
fn keep_original(mut answer: Answer, original: &Value, sent: Option<&Value>) -> Answer {
    let same = |input: &Value| input == original || Some(input) == sent;
    if answer.updated_input.as_ref().is_some_and(same) {
        answer.updated_input = None;
    }
    answer
}

fn request(question: &PermissionQuestion) -> CanUseTool {
    let (decision, input) = (&question.decision, &question.input);
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let leaves_plan = question.tool_name == "ExitPlanMode";
    CanUseTool {
        tool_name: question.tool_name.clone(),
        input: input.clone(),
        tool_use_id: question.tool_use_id.clone(),
        permission_suggestions: question.suggestions.clone(),
        blocked_path: blocked_path(input).map(str::to_owned),
        decision_reason: decision.reason.clone(),
        decision_reason_type: decision_reason_type(decision.layer).to_owned(),
        title: title(question),
        display_name: question.tool_name.clone(),
        description: text("description").unwrap_or(&decision.reason).to_owned(),
        agent_id: question.agent_id.clone(),
        classifier_approvable: false,
        exit_plan_mode: leaves_plan.then(|| json!({ "plan": text("plan").unwrap_or_default() })),
    }
}

fn blocked_path(input: &Value) -> Option<&str> {
    ["file_path", "notebook_path", "path"].iter().find_map(|key| input.get(key)?.as_str())
}

/// One line that a person can be asked with.
fn title(question: &PermissionQuestion) -> String {
    let telling = ["command", "file_path", "notebook_path", "url", "query", "pattern", "path", "prompt"];
    let about = telling.iter().find_map(|key| question.input.get(key)?.as_str());
    let about: Option<String> =
        about.map(|text| text.lines().next().unwrap_or_default().chars().take(120).collect());
    match about {
        Some(about) => format!("{}: {about}", question.tool_name),
        None => question.tool_name.clone(),
    }
}

fn denial(message: String) -> Answer {
    Answer { message: Some(message), by: "host".to_owned(), ..Answer::default() }
}

fn read(answer: &Value) -> Answer {
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    let by = match text("decisionClassification") {
        Some(word) => format!("host ({word})"),
        None => "host".to_owned(),
    };
    match text("behavior") {
        Some("allow") => Answer {
            allow: true,
            updated_input: answer.get("updatedInput").filter(|input| input.is_object()).cloned(),
            updated_permissions: updates(answer.get("updatedPermissions")),
            by,
            ..Answer::default()
        },
        Some("deny") => Answer {
            message: text("message").map(str::to_owned),
            interrupt: answer.get("interrupt").and_then(Value::as_bool).unwrap_or(false),
            by,
            ..Answer::default()
        },
        Some(other) => {
            denial(format!("the permission callback answered `{other}`; accepted are allow and deny"))
        }
        None => denial("the permission callback answered without a `behavior`".to_owned()),
    }
}

/// The changes that can be read; the others are named on stderr and left out.
fn updates(list: Option<&Value>) -> Vec<PermissionUpdate> {
    let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = |entry: &Value| match serde_json::from_value(entry.clone()) {
        Ok(update) => Some(update),
        Err(error) => {
            tell(&format!(
                "warning: a change of permissions cannot be read ({error}) and is left out: {entry}"
            ));
            None
        }
    };
    entries.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_allowance_allows() {
        assert!(read(&json!({ "behavior": "allow" })).allow);
        for answer in
            [json!({}), json!({ "behavior": "Allow" }), json!({ "behavior": true }), json!(null), json!([])]
        {
            let read = read(&answer);
            assert!(!read.allow && read.message.is_some(), "{answer}");
        }
    }

    #[test]
    fn an_input_that_comes_back_unchanged_is_no_change() {
        let (original, cut) = (json!({ "content": "long" }), json!({ "content": "l[…]" }));
        let with =
            |input: &Value| Answer { allow: true, updated_input: Some(input.clone()), ..Answer::default() };
        assert_eq!(keep_original(with(&original), &original, None).updated_input, None);
        assert_eq!(keep_original(with(&cut), &original, Some(&cut)).updated_input, None);
        assert_eq!(keep_original(with(&cut), &original, None).updated_input, Some(cut.clone()));
    }
}
