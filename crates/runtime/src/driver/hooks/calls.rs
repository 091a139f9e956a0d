//! Hooks around calls: before the gate judges one, before a question about one, and after one has run. Their verdict
//! is on record before anything follows from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::ports::{Access, Cancelled, Spent, Tool, ToolContext, ToolOutcome};
use qoder_core::redact::Secrets;
use qoder_protocol::Answer;
use qoder_types::record::{AskKind, Asked, RecordBody};
use qoder_types::{
    Actor, CallOutcome, ContentBlock, Decision, HookVerdict, Hooked, PermissionUpdate, ToolResultContent,
};
use serde_json::{Map, Value, json};

use crate::driver::Driver;
use crate::driver::hooks::{PARTING_TIME, Waited};
use crate::error::DriveError;
use crate::events::Event;
use qoder_config::hooks::HookEvent;
use qoder_hooks::{Fired, Firing, Occasion, failure_of, may_be_answered_by_hook};

/// What follows from the hooks of one call.
pub(in crate::driver) enum AfterHooks {
    /// The gate decides.
    Continue,
    /// The turn was interrupted or a hook ended it.
    Stop,
}

/// What the hooks of a question came to.
pub(in crate::driver) enum Question {
    /// It has no answer yet.
    Open,
    /// A hook answered; the answer is on record.
    Answered,
    /// The turn was interrupted.
    Interrupted,
}

/// What hooks answered to a question.
pub(in crate::driver) enum ByHooks {
    /// Nothing that counts; with the failure that kept a hook from answering.
    Open(Option<String>),
    /// This, with the record of what they said.
    Answer(Box<Hooked>, Box<Answer>),
    /// A person interrupted.
    Interrupted,
}

/// The field with the arguments of a tool that is called by name.
const ARGUMENTS: &str = "arguments";

/// A call as hooks get it.
pub(in crate::driver) struct CallForHooks {
    pub(in crate::driver) tool: String,
    pub(in crate::driver) input: Value,
    by_name: bool,
}

impl CallForHooks {
    /// The input that hooks gave back, in the shape of the call that it is for.
    pub(in crate::driver) fn taken_back(&self, updated: Value, input: &Value) -> Value {
        if !self.by_name {
            return updated;
        }
        let mut input = input.clone();
        input[ARGUMENTS] = updated;
        input
    }
}

/// Calls the hooks after a call, beside other calls that still run.
pub(in crate::driver) struct AfterCall {
    firing: Firing,
    base: [Option<Occasion>; 2],
    tool: String,
    input: Value,
    id: String,
    cancelled: Cancelled,
}

/// A file that a call is about to change.
pub(in crate::driver) struct FileChange {
    path: PathBuf,
    /// True when it was there before.
    existed: bool,
}

impl Driver<'_> {
    /// Asks the hooks before a call, once. Its input fits the schema.
    pub(in crate::driver) async fn before_call(
        &mut self,
        id: &str,
        tool: &str,
        input: &Value,
    ) -> Result<AfterHooks, DriveError> {
        let Some(call) = self.session.state.call(id).filter(|call| call.hooked.is_none()) else {
            return Ok(AfterHooks::Continue);
        };
        let is_asked = call.asked.is_some();
        let call = self.call_for_hooks(tool, input);
        let fields = || {
            let fields = json!({ "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id });
            with_server(&call.tool, fields)
        };
        let occasion = self.occasion(HookEvent::PreToolUse, &call.tool, fields);
        let occasion = occasion.map(|occasion| Occasion { tool_use_id: Some(id.to_owned()), ..occasion });
        match self.wait_for_hooks(occasion).await? {
            Waited::Nobody => Ok(AfterHooks::Continue),
            Waited::Fired(mut fired) => {
                // A hook of this process meets a call that an earlier one has asked about.
                if is_asked && fired.record.updated_input.take().is_some() {
                    let text =
                        "the input that a hook wants to change is left as it is: the user was asked about it";
                    self.engine.outlet.emit(Event::Warning(text)).map_err(DriveError::Output)?;
                }
                if let Some(updated) = fired.record.updated_input.take() {
                    fired.record.updated_input = Some(call.taken_back(updated, input));
                }
                let stops = fired.record.stop.is_some();
                self.session.append(RecordBody::Hooked(Box::new(fired.record)))?;
                Ok(if stops { AfterHooks::Stop } else { AfterHooks::Continue })
            }
            Waited::Interrupted => {
                self.interrupt_turn()?;
                Ok(AfterHooks::Stop)
            }
        }
    }

    /// Asks the hooks of a question before the question reaches an answerer, once.
    pub(in crate::driver) async fn ask_hooks(
        &mut self,
        id: &str,
        tool: &str,
        input: &Value,
        decision: &Decision,
        suggestions: &[PermissionUpdate],
    ) -> Result<Question, DriveError> {
        if self.session.state.call(id).is_none_or(|call| call.question_hooked.is_some()) {
            return Ok(Question::Open);
        }
        let asked = Asked {
            tool_use_id: id.to_owned(),
            tool_name: tool.to_owned(),
            kind: AskKind::Permission,
            decision: decision.clone(),
            suggestions: suggestions.to_vec(),
        };
        match self.answer_of_hooks(&asked, input).await? {
            ByHooks::Open(_) => Ok(Question::Open),
            ByHooks::Answer(record, answer) => {
                let bodies = vec![RecordBody::Hooked(record), RecordBody::Asked(Box::new(asked))];
                self.record_answer(id, *answer, bodies)?;
                Ok(Question::Answered)
            }
            ByHooks::Interrupted => {
                self.interrupt_turn()?;
                Ok(Question::Interrupted)
            }
        }
    }

    /// What hooks answer to a question. What they said without answering it is on record.
    pub(in crate::driver) async fn answer_of_hooks(
        &mut self,
        asked: &Asked,
        input: &Value,
    ) -> Result<ByHooks, DriveError> {
        let Asked { tool_use_id: id, tool_name: tool, decision, suggestions, .. } = asked;
        let call = self.call_for_hooks(tool, input);
        let fields = || {
            json!({
                "tool_name": call.tool, "tool_input": call.input, "tool_use_id": id,
                "permission_suggestions": suggestions,
            })
        };
        let occasion = self.occasion(HookEvent::PermissionRequest, &call.tool, fields);
        let occasion = occasion.map(|occasion| Occasion { tool_use_id: Some(id.to_owned()), ..occasion });
        let Fired { joined, mut record } = match self.wait_for_hooks(occasion).await? {
            Waited::Nobody => return Ok(ByHooks::Open(None)),
            Waited::Fired(fired) => *fired,
            Waited::Interrupted => return Ok(ByHooks::Interrupted),
        };
        // The input of a question comes with the answer, which is judged as a whole.
        record.updated_input = None;
        let allow = match joined.verdict {
            Some(HookVerdict::Deny) => false,
            Some(HookVerdict::Allow) if may_be_answered_by_hook(decision) => true,
            Some(HookVerdict::Allow | HookVerdict::Ask | HookVerdict::Defer) | None => {
                if record.verdict.take() == Some(HookVerdict::Allow) {
                    record.reason = Some("this question is a person's to answer".to_owned());
                }
                let failure = failure_of(&record);
                self.session.append(RecordBody::Hooked(Box::new(record)))?;
                return Ok(ByHooks::Open(failure));
            }
        };
        let answer = Answer {
            allow,
            message: joined.reason.map(|reason| self.session.redactor().text(&reason).into_owned()),
            updated_input: joined.updated_input.map(|updated| call.taken_back(updated, input)),
            updated_permissions: self.without_modes(joined.updated_permissions)?,
            interrupt: joined.interrupt,
            result: None,
            by: Actor::Hook(joined.by.unwrap_or_default()),
        };
        Ok(ByHooks::Answer(Box::new(record), Box::new(answer)))
    }

    /// A call as hooks get it: one that reaches the tool of a server by name is a call of that tool, so that no
    /// hook about that tool is passed by.
    pub(in crate::driver) fn call_for_hooks(&self, tool: &str, input: &Value) -> CallForHooks {
        let accesses = self.engine.toolbox.get(tool).map(|tool| tool.accesses(input)).unwrap_or_default();
        match accesses.as_slice() {
            [Access::As(name)] => {
                let input = input.get(ARGUMENTS).cloned().unwrap_or_else(|| json!({}));
                CallForHooks { tool: name.clone(), input, by_name: true }
            }
            _ => CallForHooks { tool: tool.to_owned(), input: input.clone(), by_name: false },
        }
    }

    /// A change of the mode is a person's alone.
    fn without_modes(&self, mut updates: Vec<PermissionUpdate>) -> Result<Vec<PermissionUpdate>, DriveError> {
        let all = updates.len();
        updates.retain(|update| !matches!(update, PermissionUpdate::SetMode { .. }));
        if updates.len() < all {
            let text =
                "a hook wants to change the permission mode; that is left out, because only a person may";
            self.engine.outlet.emit(Event::Warning(text)).map_err(DriveError::Output)?;
        }
        Ok(updates)
    }

    /// What has to be done after a call has run, when hooks want to know.
    pub(in crate::driver) fn after_call(
        &self,
        id: &str,
        tool: &str,
        input: &Value,
        spent: &Spent,
    ) -> Option<AfterCall> {
        let CallForHooks { tool, input, .. } = self.call_for_hooks(tool, input);
        let base = [HookEvent::PostToolUse, HookEvent::PostToolUseFailure]
            .map(|event| self.occasion(event, &tool, || Value::Null));
        base.iter().any(Option::is_some).then(|| AfterCall {
            firing: self.firing_of_call(spent),
            base,
            tool,
            input,
            id: id.to_owned(),
            cancelled: self.stopping.wanted(),
        })
    }

    /// Calls hooks on account of a call.
    fn firing_of_call(&self, spent: &Spent) -> Firing {
        let mut firing = self.firing(HookEvent::PostToolUse);
        firing.spent = Arc::clone(spent);
        if let Some(context) = &mut firing.context {
            *context = Arc::new(ToolContext { spent: Arc::clone(spent), ..(**context).clone() });
        }
        firing
    }

    /// Puts what hooks said about a result into it; answers with their record.
    pub(in crate::driver) fn revise(&self, outcome: &mut ToolOutcome, fired: Fired) -> RecordBody {
        let Fired { joined, record } = fired;
        let blocked = joined.verdict == Some(HookVerdict::Deny);
        if let Some(text) = joined.updated_output {
            let (text, _) = qoder_tools::bounded_text(text, &self.session.kept_outputs(), "hook");
            outcome.content = ToolResultContent::Text(text);
        } else if blocked {
            // The call has had its effect; the model must not think that it did not happen.
            outcome.content =
                ToolResultContent::Text("The call was made. Its result is held back.".to_owned());
        }
        if blocked {
            let reason = joined.reason.unwrap_or_else(|| "no reason given".to_owned());
            add_text(&mut outcome.content, format!("[A hook objects to this result: {reason}]"));
        }
        if let Some(context) = joined.context {
            add_text(&mut outcome.content, context);
        }
        RecordBody::Hooked(Box::new(record))
    }

    /// What the hooks before a call want the model to know with its result.
    pub(in crate::driver) fn add_call_context(&self, id: &str, content: &mut ToolResultContent) {
        let call = self.session.state.call(id).and_then(|call| call.hooked.as_ref());
        if let Some(context) = call.and_then(|hooked| hooked.additional_context.clone()) {
            add_text(content, context);
        }
    }

    /// Notices what a call has changed, for hooks that observe it.
    pub(in crate::driver) fn notice_changes(&mut self, outcome: &ToolOutcome, files: Vec<FileChange>) {
        if outcome.outcome != CallOutcome::Completed {
            return;
        }
        if let Some(new) = &outcome.new_cwd {
            let (old, new) = (&self.session.state.cwd, new.to_string_lossy());
            let fields = || json!({ "old_cwd": old, "new_cwd": new });
            let changed = *old != new;
            let occasion = changed.then(|| self.occasion(HookEvent::CwdChanged, "", fields)).flatten();
            self.noticed.extend(occasion);
        }
        // Fewer pictures may come than were asked for.
        for FileChange { path, existed } in files.into_iter().filter(|file| file.path.exists()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let event = if existed { "change" } else { "add" };
            let fields = || json!({ "file_path": path.to_string_lossy(), "event": event });
            let occasion = self.occasion(HookEvent::FileChanged, &name, fields);
            self.noticed.extend(occasion);
            let remembered = &mut self.session.remembered;
            remembered.watched.is_known(&path);
            if let Some(workspace) = &mut remembered.workspace {
                workspace.is_known(&path);
            }
        }
    }

    /// The files that a call would change, when a hook wants to know.
    pub(in crate::driver) fn file_changes(&self, tool: &dyn Tool, input: &Value) -> Vec<FileChange> {
        let name = tool.definition().name.as_str();
        if !matches!(name, "Write" | "Edit" | "NotebookEdit" | "ImageGen")
            || !self.engine.hooks.listens(HookEvent::FileChanged.as_str())
        {
            return Vec::new();
        }
        let cwd = Path::new(&self.session.state.cwd);
        let edited = tool.accesses(input).into_iter().filter_map(|access| match access {
            Access::Edit(path) => Some(cwd.join(path)),
            _ => None,
        });
        edited.map(|path| FileChange { existed: path.exists(), path }).collect()
    }
}

impl AfterCall {
    /// Calls the hooks after a call has run. An interrupt withdraws them; for a call that was itself interrupted they get a
    /// little time.
    pub(in crate::driver) async fn fire(
        self,
        outcome: &ToolOutcome,
        elapsed_ms: u64,
    ) -> std::io::Result<Option<Fired>> {
        let [success, failure] = self.base;
        let (occasion, fields) = match outcome.outcome {
            CallOutcome::Completed => {
                let mut response = outcome.structured.clone();
                self.firing.redactor.json(&mut response, Secrets::All);
                (success, json!({ "tool_response": response }))
            }
            CallOutcome::Failed | CallOutcome::Interrupted => {
                let error = outcome.content.to_text();
                let interrupted = outcome.outcome == CallOutcome::Interrupted;
                let error = self.firing.redactor.text(&error).into_owned();
                let kind = if interrupted { "interrupt" } else { "tool_error" };
                (failure, json!({ "error": error, "error_type": kind, "is_interrupt": interrupted }))
            }
            CallOutcome::Denied | CallOutcome::NotRun | CallOutcome::Unknown => return Ok(None),
        };
        let Some(mut occasion) = occasion else { return Ok(None) };
        let more = json!({
            "tool_name": self.tool, "tool_input": self.input, "tool_use_id": self.id, "duration_ms": elapsed_ms,
        });
        for fields in [more, fields] {
            let Value::Object(fields) = fields else { continue };
            Map::extend(&mut occasion.input, fields);
        }
        occasion.tool_use_id = Some(self.id);
        if outcome.outcome == CallOutcome::Interrupted {
            occasion.at_most = Some(PARTING_TIME);
            return self.firing.fire(occasion).await;
        }
        tokio::select! {
            biased;
            () = self.cancelled => Ok(None),
            fired = self.firing.fire(occasion) => fired,
        }
    }
}

/// The fields of a call, with where the tool of a server comes from.
fn with_server(tool: &str, mut fields: Value) -> Value {
    if let Some((server, name)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        fields["mcp_context"] = json!({ "server_name": server, "tool_name": name });
        fields["original_request_name"] = json!(name);
    }
    fields
}

fn add_text(content: &mut ToolResultContent, text: String) {
    let mut blocks = match std::mem::replace(content, ToolResultContent::Text(String::new())) {
        ToolResultContent::Text(first) if first.trim().is_empty() => Vec::new(),
        ToolResultContent::Text(first) => vec![ContentBlock::Text { text: first }],
        ToolResultContent::Blocks(blocks) => blocks,
    };
    blocks.push(ContentBlock::Text { text });
    *content = ToolResultContent::Blocks(blocks);
}
