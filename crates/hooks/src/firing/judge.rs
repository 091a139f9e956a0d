//! Hooks that are agents: what they need to run agents, the task they give one, and what is made of its answer.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_core::ports::ToolContext;
use serde_json::{Value, json};

use qoder_config::hooks::AgentHook;

/// A task for an agent that judges an event.
pub struct JudgeTask {
    /// The task, with the event in it.
    pub prompt: String,
    /// Its tools; `None` is those that only read.
    pub tools: Option<Vec<String>>,
    /// Model calls it may make.
    pub max_turns: u64,
    /// Another model than the session's.
    pub model: Option<String>,
    /// What a child of the session is given.
    pub context: ToolContext,
}

/// Why an agent gave no judgement, in the words of what went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JudgeError(String);

impl JudgeError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "hook_agent_failed"
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "Check the hook's prompt, tools and model."
    }
}

impl From<String> for JudgeError {
    fn from(problem: String) -> Self {
        Self(problem)
    }
}

/// Runs agents for hooks.
pub trait Judge: Send + Sync {
    /// Lets an agent work on a task; it answers with `{ok, reason?}`. Dropping the future ends it.
    fn judge(self: Arc<Self>, task: JudgeTask) -> BoxFuture<'static, Result<Value, JudgeError>>;
}

/// The task of a hook about an event.
pub(crate) fn task(hook: &AgentHook, event: &Value, context: &ToolContext) -> JudgeTask {
    let event = event.to_string();
    let prompt = match hook.prompt.contains("$ARGUMENTS") {
        true => hook.prompt.replace("$ARGUMENTS", &event),
        false => format!("{}\n\n{event}", hook.prompt),
    };
    let cwd = serde_json::from_str::<Value>(&event).ok();
    let cwd = cwd.and_then(|event| event.get("cwd").and_then(Value::as_str).map(PathBuf::from));
    let context = ToolContext { cwd: cwd.unwrap_or_else(|| context.cwd.clone()), ..context.clone() };
    JudgeTask {
        prompt,
        tools: hook.tools.clone(),
        max_turns: hook.max_turns,
        model: hook.model.clone(),
        context,
    }
}

/// The output of a hook that a model's `{ok, reason}` stands for.
pub(crate) fn output(answer: &Value) -> Result<Value, String> {
    let reason = match answer.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) => Some(reason.as_str()),
        Some(_) => return Err("the reason of the model's answer is no text".to_owned()),
    };
    match answer.get("ok") {
        Some(Value::Bool(true)) => Ok(json!({})),
        Some(Value::Bool(false)) => {
            Ok(json!({ "decision": "block", "reason": reason.unwrap_or("the model of a hook said no") }))
        }
        Some(_) | None => Err("the model's answer has no `ok` that is true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_counts() {
        assert_eq!(output(&json!({"ok": true})), Ok(json!({})));
        assert_eq!(
            output(&json!({"ok": false, "reason": "no tests"})),
            Ok(json!({"decision": "block", "reason": "no tests"}))
        );
        for bad in [json!({}), json!({"ok": "yes"}), json!([]), json!({"ok": true, "reason": 1})] {
            assert!(output(&bad).is_err(), "{bad}");
        }
    }
}
