//! Background tasks between the tools, the log, the host and the model. Each start and each end is recorded first;
//! then the host reads of it, and the model before its next reply.

mod agents;
mod parked_agents;
pub(super) mod waiting;

use std::path::Path;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{LogStoreError, Receipt, ToolProgress};
use qoder_core::state::TaskState;
use qoder_protocol::messages::{StreamMessage, SystemMessage, TaskUsage};
use qoder_types::record::{RecordBody, UserOrigin};
use qoder_types::{Message, TaskStatus};
use serde_json::json;

use crate::driver::Driver;
use crate::error::DriveError;
use crate::session::new_id;
use qoder_config::hooks::HookEvent;

/// How many last lines of a task's output a notice holds.
const NOTICE_LINES: usize = 20;
/// In how many characters.
const NOTICE_CHARACTERS: usize = 2_000;
/// How many last lines of an agent's answer a notice holds.
const ANSWER_LINES: usize = 2_000;
/// In how many characters.
const ANSWER_CHARACTERS: usize = 30_000;

/// What the host reads of a task.
enum News {
    Started(String),
    Progress { task_id: String, usage: TaskUsage, last_line: Option<String>, last_tool: Option<String> },
    Ended(String),
}

impl Driver<'_> {
    /// Puts on record and announces what became of background tasks, also of those that an earlier turn started.
    pub fn forward_task_events(&mut self) -> Result<(), DriveError> {
        let mut news: Vec<News> =
            std::mem::take(&mut self.session.lost_tasks).into_iter().map(News::Ended).collect();
        // A host that is gone must not keep ends from the log: everything is recorded before anything is reported.
        while let Some(progress) = self.session.task_events.next() {
            match progress {
                ToolProgress::TaskStarted { start, receipt } => {
                    let task_id = start.task_id.clone();
                    // An agent that continues is on record.
                    if !self.session.state.tasks.contains_key(&task_id) {
                        self.session.append(RecordBody::TaskStarted(start))?;
                    }
                    confirm_when_durable(self.session.barrier(), receipt)?;
                    self.fire_task_hooks(HookEvent::TaskCreated, &task_id);
                    news.push(News::Started(task_id));
                }
                ToolProgress::TaskProgress {
                    task_id,
                    duration_ms,
                    last_line,
                    total_tokens,
                    tool_uses,
                    last_tool,
                } => {
                    let usage = TaskUsage { total_tokens, tool_uses, duration_ms };
                    news.push(News::Progress { task_id, usage, last_line, last_tool });
                }
                ToolProgress::TaskParked(parked) => self.park_agent(parked)?,
                ToolProgress::TaskEnded(end) => {
                    let task_id = end.task_id.clone();
                    // One whose end an earlier process put on record only owed its call the result.
                    if self.session.state.tasks.get(&task_id).is_some_and(|task| task.end.is_none()) {
                        self.session.append(RecordBody::TaskEnded(end))?;
                    }
                    self.fire_task_hooks(HookEvent::TaskCompleted, &task_id);
                    news.push(News::Ended(task_id));
                }
                ToolProgress::Output(_) => {}
            }
        }
        news.iter().try_for_each(|news| self.emit_task_news(news))
    }

    /// Stops what still runs, with its end on record and announced. For the end of a session.
    pub async fn end_tasks(&mut self) -> Result<(), DriveError> {
        self.engine.shared.shutdown().await;
        let told = self.forward_task_events();
        // What could not be killed has an unknown end.
        self.session.lost_tasks =
            self.session.state.running_tasks().map(|task| task.start.task_id.clone()).collect();
        self.session.end_lost_tasks()?;
        let told = told.and_then(|()| self.forward_task_events());
        self.session.sync()?;
        told
    }

    /// Calls hooks about a task, in the words of the stream.
    fn fire_task_hooks(&self, event: HookEvent, task_id: &str) {
        let Some(TaskState { start, end, .. }) = self.session.state.tasks.get(task_id) else { return };
        let fields = || {
            let mut fields = json!({
                "task_id": task_id, "task_type": start.task_type, "description": start.description,
                "tool_use_id": start.tool_use_id,
            });
            if let Some(end) = end {
                fields["status"] = json!(end.status.on_the_stream());
                fields["summary"] = json!(end.summary);
            }
            fields
        };
        self.aside(self.occasion(event, "", fields));
    }

    /// Reports the end of a task that is on record to the host.
    pub(in crate::driver) fn report_task_end(&self, task_id: &str) -> Result<(), DriveError> {
        self.emit_task_news(&News::Ended(task_id.to_owned()))
    }

    fn emit_task_news(&self, news: &News) -> Result<(), DriveError> {
        let (News::Started(task_id) | News::Progress { task_id, .. } | News::Ended(task_id)) = news;
        let Some(TaskState { start, end, .. }) = self.session.state.tasks.get(task_id) else { return Ok(()) };
        let message = match (news, end) {
            (News::Started(_), _) => self.projector().task_started(start),
            (News::Progress { usage, last_line, last_tool, .. }, _) => {
                let clean = |line: &String| self.session.redactor().text(line).into_owned();
                StreamMessage::System(SystemMessage::TaskProgress {
                    task_id: task_id.clone(),
                    tool_use_id: start.tool_use_id.clone(),
                    description: start.description.clone(),
                    usage: *usage,
                    last_tool_name: last_tool.clone(),
                    summary: last_line.as_ref().map(clean),
                    uuid: new_id(),
                    session_id: self.session.id.clone(),
                })
            }
            (News::Ended(_), Some(end)) => self.projector().task_ended(start, end),
            (News::Ended(_), None) => return Ok(()),
        };
        self.emit(&message)
    }

    /// Those tasks whose end was not reported to the model yet.
    pub(in crate::driver) fn untold(&self, mut ids: Vec<String>) -> Vec<String> {
        ids.retain(|id| self.session.state.tasks.get(id).is_some_and(|task| !task.told));
        ids
    }

    /// Reports to the model how tasks ended. The entry names them, so that no process reports it again.
    pub(in crate::driver) fn append_task_notices(&mut self, ids: &[String]) -> Result<(), DriveError> {
        let tasks = ids.iter().filter_map(|id| self.session.state.tasks.get(id));
        let text: Vec<String> = tasks.map(notice).collect();
        let mut entry = self.session.user_entry(UserOrigin::Notice, Message::user(text.join("\n\n")));
        entry.tasks = ids.to_vec();
        self.session.append(RecordBody::User(Box::new(entry)))?;
        Ok(())
    }
}

/// Confirms a receipt once everything before it is durable; at once where it is.
fn confirm_when_durable(
    mut barrier: BoxFuture<'static, Result<(), LogStoreError>>,
    receipt: Receipt,
) -> Result<(), LogStoreError> {
    match (&mut barrier).now_or_never() {
        Some(durable) => durable.map(|()| receipt.confirm()),
        None => {
            // Dropped unconfirmed, the receipt says that the start will never be on record.
            tokio::spawn(barrier.map(move |durable| durable.map(|()| receipt.confirm())));
            Ok(())
        }
    }
}

fn notice(task: &TaskState) -> String {
    let start = &task.start;
    let ending = match task.end.as_ref().map(|end| (end.status, end.exit_code)) {
        Some((TaskStatus::Completed, _)) => "completed".to_owned(),
        Some((TaskStatus::Failed, Some(code))) => format!("failed with exit code {code}"),
        Some((TaskStatus::Failed, None)) => "failed".to_owned(),
        Some((TaskStatus::Stopped, _)) => "was stopped".to_owned(),
        Some((TaskStatus::Unknown, _)) | None => {
            "has an unknown outcome: the program ended while it ran, and it is not running any more. It may have \
             finished completely, in part or not at all"
                .to_owned()
        }
    };
    let (what, lines, characters) = if start.is_agent() {
        (format!("Agent {} as task", start.command), ANSWER_LINES, ANSWER_CHARACTERS)
    } else {
        ("Background task".to_owned(), NOTICE_LINES, NOTICE_CHARACTERS)
    };
    let mut text = format!("[{what} {} ({}) {ending}.", start.task_id, start.description);
    let lines = qoder_tools::last_lines(Path::new(&start.output_file), lines, characters);
    if lines.is_empty() {
        text.push_str(&format!(" There is nothing in its output file {}.]", start.output_file));
    } else {
        text.push_str(&format!(" Its output is in {}; the last lines:]\n{lines}", start.output_file));
    }
    text
}
