//! The TodoWrite tool: the model's own list of what is to be done, shown to the person.
//!
//! The list is replaced as a whole and lives in the result; it touches nothing outside the session.

use std::collections::HashSet;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::call::declared::{BuiltIn, Facts};

/// The name the model calls.
const NAME: &str = "TodoWrite";

/// Keeps a list of the steps of a larger task, so that nothing is forgotten and the person sees how far you are.
///
/// Use it when a task has three or more steps, when the person names several things, or when new work turns up on the
/// way. Do not use it for a single simple step or for questions.
///
/// - Every call replaces the whole list: send all items, also those that did not change.
/// - Mark an item `in_progress` before you start it, one at a time, and `completed` as soon as it is really done.
/// - Leave an item open when tests fail or something is missing, and add an item for what stands in the way.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TodoWriteInput {
    /// The complete list, in the order in which it is to be done.
    todos: Vec<TodoItem>,
}

/// One item of the list.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct TodoItem {
    /// Identifies the item; filled in when it is left out.
    #[serde(default)]
    id: Option<TodoId>,
    /// What is to be done, as an instruction.
    content: String,
    /// How far it is.
    status: TodoStatus,
    /// How urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<TodoPriority>,
    /// What is being done while the item is in progress, as in "Running the tests".
    #[serde(default, rename = "activeForm", skip_serializing_if = "Option::is_none")]
    active_form: Option<String>,
}

/// Models write numbers as well as texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum TodoId {
    Text(String),
    Number(u64),
}

impl TodoId {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoPriority {
    Low,
    Medium,
    High,
}

/// See [`TodoWriteInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct TodoWriteTool;

impl BuiltIn for TodoWriteTool {
    const NAME: &'static str = NAME;
    const FACTS: Facts =
        Facts { read_only: false, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = TodoWriteInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    async fn run(self: Arc<Self>, input: TodoWriteInput, _: ToolContext) -> ToolOutcome {
        write_list(input.todos)
    }
}

fn write_list(mut todos: Vec<TodoItem>) -> ToolOutcome {
    if let Some(position) = todos.iter().position(|item| item.content.trim().is_empty()) {
        return ToolOutcome::failed(format!(
            "Invalid input for {NAME}: field `todos[{position}].content` is empty."
        ));
    }
    fill_in_ids(&mut todos);
    let count = |status| todos.iter().filter(|item| item.status == status).count();
    let (running, pending) = (count(TodoStatus::InProgress), count(TodoStatus::Pending));
    let advice = match (running, pending) {
        (0, 0) => "Nothing is left to do.",
        (0, _) => "Mark the next item in progress before you start it.",
        _ => "Go on with the item in progress.",
    };
    let text = format!(
        "The list has {} items: {} completed, {running} in progress, {pending} pending. {advice}",
        todos.len(),
        count(TodoStatus::Completed),
    );
    ToolOutcome::completed(text, json!({ "success": true, "todos": todos }))
}

/// Numbers the items without an id, and those whose id occurred before, so that every id is unique and stable.
fn fill_in_ids(todos: &mut [TodoItem]) {
    let mut taken = HashSet::new();
    for item in todos.iter_mut() {
        let id = item.id.take().map(TodoId::into_text);
        item.id = id.filter(|id| !id.is_empty() && taken.insert(id.clone())).map(TodoId::Text);
    }
    let mut number = 0_usize;
    for item in todos.iter_mut().filter(|item| item.id.is_none()) {
        let id = loop {
            number += 1;
            let candidate = number.to_string();
            if taken.insert(candidate.clone()) {
                break candidate;
            }
        };
        item.id = Some(TodoId::Text(id));
    }
}
