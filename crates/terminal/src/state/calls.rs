//! Calls of tools and what becomes of them: made, asked about, denied, running, done. Calls in a row that only look at files
//! share a cell while nothing else happens.

use std::sync::Arc;
use std::time::Instant;

use qoder_protocol::{ActionId, Question, Resolution};
use qoder_types::Actor;
use serde_json::Value;

use super::cell::{Call, CallProgress, CallResult, CellBody, Level};
use super::partial::Kind;
use super::{Conversation, Denial, MOST_DENIALS, TodoItem, TodoProgress};

impl Conversation {
    /// A call of the main conversation was made.
    pub(super) fn add_call(&mut self, index: usize, (id, tool, input): (&str, &str, &Value), now: Instant) {
        let place = self.take_block(index, Kind::Call);
        if tool == "TodoWrite" {
            // The list is shown by itself.
            self.cells.retain(|cell| Some(cell.id) != place);
            self.set_todo(input);
            return;
        }
        let since = self.is_caught_up.then_some(now);
        let call = Call::new(id, tool, input.clone(), since);
        if call.only_looks() && self.join_group(&call) {
            self.cells.retain(|cell| Some(cell.id) != place);
            return;
        }
        match place.and_then(|place| self.cell_mut(place)) {
            Some(cell) => cell.body = CellBody::Calls(vec![call]),
            None => {
                self.push(CellBody::Calls(vec![call]), false);
            }
        }
    }

    /// Adds a call to the cell before it, when that only looks at files too and nothing is between them.
    fn join_group(&mut self, call: &Call) -> bool {
        // The cell in which this call was being written is behind the group.
        let written = |body: &CellBody| match body {
            CellBody::Calls(calls) => calls.iter().all(|call| matches!(call.progress, CallProgress::Written)),
            CellBody::Prompt(_)
            | CellBody::Reply { .. }
            | CellBody::Thinking { .. }
            | CellBody::CommandOutput(_)
            | CellBody::Notice(_)
            | CellBody::End(_)
            | CellBody::Todo(_)
            | CellBody::Rule(_) => false,
        };
        let Some(cell) = self.cells.iter_mut().rev().find(|cell| !written(&cell.body)) else { return false };
        match &mut cell.body {
            CellBody::Calls(calls) if !cell.is_finished && calls.iter().all(Call::only_looks) => {
                calls.push(call.clone());
                true
            }
            CellBody::Calls(_)
            | CellBody::Prompt(_)
            | CellBody::Reply { .. }
            | CellBody::Thinking { .. }
            | CellBody::CommandOutput(_)
            | CellBody::Notice(_)
            | CellBody::End(_)
            | CellBody::Todo(_)
            | CellBody::Rule(_) => false,
        }
    }

    /// Groups whose calls are all done end when something else begins.
    pub(super) fn close_groups(&mut self) {
        for cell in self.cells.iter_mut().rev().take(16) {
            if let CellBody::Calls(calls) = &cell.body
                && calls.iter().all(Call::is_done)
            {
                cell.is_finished = true;
            }
        }
    }

    pub(super) fn call_mut(&mut self, tool_use_id: &str) -> Option<&mut Call> {
        self.cells.iter_mut().rev().find_map(|cell| match &mut cell.body {
            CellBody::Calls(calls) => calls.iter_mut().find(|call| call.id == tool_use_id),
            CellBody::Prompt(_)
            | CellBody::Reply { .. }
            | CellBody::Thinking { .. }
            | CellBody::CommandOutput(_)
            | CellBody::Notice(_)
            | CellBody::End(_)
            | CellBody::Todo(_)
            | CellBody::Rule(_) => None,
        })
    }

    /// A call has its result. One that only looks waits for others of its kind.
    pub(super) fn finish_call(&mut self, tool_use_id: &str, result: CallResult) {
        let Some(call) = self.call_mut(tool_use_id) else { return };
        call.progress = CallProgress::Done(Box::new(result));
        let alone = !call.only_looks();
        let id = call.id.clone();
        if alone {
            for cell in self.cells.iter_mut().rev() {
                if matches!(&cell.body, CellBody::Calls(calls) if calls.iter().any(|call| call.id == id)) {
                    cell.is_finished = true;
                    break;
                }
            }
        }
    }

    pub(super) fn fold_output(&mut self, tool_use_id: &str, text: &str) {
        if let Some(call) = self.call_mut(tool_use_id) {
            call.tail.push(text);
        }
    }

    pub(super) fn fold_asked(&mut self, question: &Arc<Question>) {
        let action = question.action();
        if !self.questions.iter().any(|open| open.action() == action) {
            self.questions.push(Arc::clone(question));
        }
    }

    pub(super) fn fold_resolved(&mut self, action: &ActionId, resolution: &Resolution, now: Instant) {
        // The time that a person took is not the call's.
        if let Some(call) = self.call_mut(&action.tool_use_id).filter(|call| call.since.is_some()) {
            call.since = Some(now);
        }
        // A call is shown as it runs, not as it was asked for.
        if let Resolution::Answered(answer) = resolution
            && let Some(input) = answer.updated_input.as_ref().filter(|_| answer.allow)
            && let Some(call) = self.call_mut(&action.tool_use_id)
        {
            call.input.clone_from(input);
        }
        let before = self.questions.len();
        self.questions.retain(|open| open.action() != *action);
        if before == self.questions.len() {
            return;
        }
        let own = self.own_answers.remove(action);
        if let Resolution::Answered(answer) = resolution
            && !self.is_known(&answer.by, own.as_ref())
        {
            let by = answer.by.to_string();
            if let Some(call) = self.call_mut(&action.tool_use_id) {
                call.answered_by = Some(by.clone());
            }
            let word = if answer.allow { "allowed" } else { "denied" };
            self.notice(Level::Info, format!("The question was answered by {by}: {word}."));
        }
    }

    /// This front answers a question, as this person: it says so itself.
    pub(crate) fn answered_here(&mut self, action: ActionId, by: Actor) {
        self.own_answers.insert(action, by);
    }

    /// True when nothing needs to be said about who answered: this front did, no one did, or it is history.
    fn is_known(&self, by: &Actor, own: Option<&Actor>) -> bool {
        let is_history = !self.is_caught_up || self.holds_all;
        match by {
            Actor::Nobody | Actor::Interrupt => true,
            Actor::Person { place: qoder_types::Place::Terminal, .. } if is_history => true,
            // Another process takes a person at this terminal for one at another terminal.
            by => own.is_some_and(|own| own == by || Actor::claimed(&own.to_string()) == *by),
        }
    }

    /// A call was denied without a person's word, or by one.
    pub(super) fn deny_call(&mut self, tool: &str, tool_use_id: &str, reason: &str) {
        if let Some(call) = self.call_mut(tool_use_id) {
            call.denial = Some(reason.to_owned());
        }
        if self.denials.len() == MOST_DENIALS {
            self.denials.pop_front();
        }
        self.denials.push_back(Denial {
            tool: tool.to_owned(),
            tool_use_id: tool_use_id.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn set_todo(&mut self, input: &Value) {
        let items = input["todos"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
        self.todo = items
            .iter()
            .map(|item| TodoItem {
                text: text(item, "content"),
                active: text(item, "activeForm"),
                progress: match item["status"].as_str() {
                    Some("in_progress") => TodoProgress::Active,
                    Some("completed" | "done") => TodoProgress::Done,
                    Some(_) | None => TodoProgress::Open,
                },
            })
            .collect();
        self.todo_changed = true;
    }

    /// The list of steps at the end of a turn that changed it.
    pub(super) fn settle_todo(&mut self) {
        if std::mem::take(&mut self.todo_changed) && !self.todo.is_empty() {
            self.push(CellBody::Todo(self.todo.clone()), true);
            if self.todo.iter().all(|item| item.progress == TodoProgress::Done) {
                self.todo.clear();
            }
        }
    }
}
