//! Built-in commands: answered with `local_command_output` and a result, without a turn of the model. What they change is
//! a record like everything else.

use std::fmt::Write;

use qoder_core::next::{EndReason, turn_end};
use qoder_core::ports::Model;
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_types::Actor;
use qoder_types::record::{
    Cut, InputAdmitted, InputWithdrawn, ModelFailed, RecordBody, TurnEnded, TurnSubtype,
};
use serde_json::Value;

use crate::driver::ContextUsage;
use crate::driver::Driver;
use crate::driver::model::call::Called;
use crate::engine::command_rows;
use crate::error::DriveError;
use crate::session::new_id;
use qoder_config::agents::NAME as AGENT_TOOL;
use qoder_config::commands::Local;

/// What a built-in command came to.
enum Answer {
    Text(String),
    Failed(String),
    Interrupted,
}

impl Driver<'_> {
    /// Runs a built-in command; its turn is over with it.
    pub(in crate::driver) async fn run_local(
        &mut self,
        input: InputAdmitted,
        mut bodies: Vec<RecordBody>,
        local: Local,
        rest: &str,
    ) -> Result<TurnEnded, DriveError> {
        self.clock.restart();
        self.learn_commands().await;
        self.ensure_epoch()?;
        self.emit_init()?;
        // It is done once: a process that dies now has nothing to repeat.
        bodies.push(RecordBody::InputWithdrawn(InputWithdrawn {
            input_id: input.input_id,
            by: Actor::Command(format!("/{}", local.name())),
        }));
        self.session.append_all(bodies)?;
        let before = self.session.state.totals.clone();
        let answer = match local {
            Local::Agents => Answer::Text(self.agents()),
            Local::Help => Answer::Text(self.help()),
            Local::Cost => Answer::Text(self.cost()),
            Local::Context => Answer::Text(ContextUsage::of(self).to_text()),
            Local::Clear => self.clear().await?,
            Local::Compact => self.compact_by_person(rest).await?,
        };
        let reason = match &answer {
            Answer::Text(_) | Answer::Failed(_) => EndReason::Completed,
            Answer::Interrupted => EndReason::AbortedStreaming,
        };
        let duration = self.clock.elapsed_ms();
        let mut end = turn_end(&self.session.state, &self.limits, &reason, duration);
        for (model, totals) in &self.session.state.totals {
            let mut usage = totals.usage();
            if let Some(before) = before.get(model) {
                let before = before.usage();
                usage.input_tokens -= before.input_tokens;
                usage.output_tokens -= before.output_tokens;
                usage.cache_read_input_tokens -= before.cache_read_input_tokens;
                usage.cache_creation_input_tokens -= before.cache_creation_input_tokens;
            }
            end.usage.add(&usage);
        }
        match answer {
            Answer::Text(text) => {
                self.emit_output(&text)?;
                end.result = Some(text);
            }
            Answer::Failed(problem) => {
                end.subtype = TurnSubtype::ErrorDuringExecution;
                (end.is_error, end.result, end.errors) = (true, None, vec![problem]);
            }
            Answer::Interrupted => {}
        }
        self.session.append(RecordBody::TurnEnded(Box::new(end.clone())))?;
        self.session.sync()?;
        self.emit_result()?;
        Ok(end)
    }

    pub(super) fn emit_output(&self, content: &str) -> Result<(), DriveError> {
        self.emit(&StreamMessage::System(SystemMessage::LocalCommandOutput {
            content: content.to_owned(),
            uuid: new_id(),
            session_id: self.session.id.clone(),
        }))
    }

    fn help(&self) -> String {
        let mut text = "The commands:".to_owned();
        for row in command_rows::rows(self.engine) {
            let hint =
                if row.argument_hint.is_empty() { String::new() } else { format!(" {}", row.argument_hint) };
            // Writing into a string cannot fail.
            let _ = write!(text, "\n/{}{hint}: {} ({})", row.name, row.description, row.source);
        }
        text
    }

    fn agents(&self) -> String {
        let mut text = "The agents:".to_owned();
        for row in self.engine.common.extensions.current().agents.rows() {
            let field = |name: &str| row.get(name).and_then(Value::as_str);
            let model = field("model").map(|model| format!(" [{model}]")).unwrap_or_default();
            let (name, about) = (field("name").unwrap_or_default(), field("description").unwrap_or_default());
            let about = about.lines().next().unwrap_or_default();
            // Writing into a string cannot fail.
            let _ = write!(text, "\n{name}{model}: {about}");
        }
        if self.engine.toolbox.get(AGENT_TOOL).is_none() {
            text.push_str("\nThe session has no Agent tool, so none of them can be started.");
        }
        text
    }

    fn cost(&self) -> String {
        let state = &self.session.state;
        let mut text = format!("The session has cost ${:.4} so far.", state.total_cost_usd);
        for (model, totals) in &state.totals {
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "\n{model}: {} tokens in, {} out, {} read from and {} written to the cache, ${:.4}",
                totals.input_tokens,
                totals.output_tokens,
                totals.cache_read_input_tokens,
                totals.cache_creation_input_tokens,
                totals.cost_usd
            );
        }
        text
    }

    /// Begins a new conversation. The log keeps the old one; a record says that it counts no more.
    async fn clear(&mut self) -> Result<Answer, DriveError> {
        self.report_session_end("clear").await?;
        let cut = Cut { at: None, messages: 0, results: Vec::new(), by: Actor::Command("/clear".to_owned()) };
        let record = self.session.append(RecordBody::Cut(Box::new(cut)))?;
        self.emit_record(&record)?;
        self.session.hook_context.clear();
        let again = self.session_start("clear");
        self.observe(again).await?;
        Ok(Answer::Text("A new conversation begins; nothing of the old one reaches the model.".to_owned()))
    }

    async fn compact_by_person(&mut self, wish: &str) -> Result<Answer, DriveError> {
        if self.session.state.context.replies == 0 {
            return Ok(Answer::Text("There is nothing to summarise yet.".to_owned()));
        }
        if self.engine.common.spending.exhausted().is_some() {
            return Ok(Answer::Failed("The budget of the session is used up; no model is asked.".to_owned()));
        }
        let before = self.session.state.context.tokens();
        let called = self.summarised("manual", Some(wish).filter(|wish| !wish.is_empty())).await?;
        self.emit_status(None)?;
        Ok(match called {
            None => Answer::Failed("A hook objects to a summary of the conversation.".to_owned()),
            Some(Called::Reply(_)) => {
                let after = self.session.state.context.tokens();
                Answer::Text(format!(
                    "The conversation was replaced by a summary: about {before} tokens before, {after} now."
                ))
            }
            Some(Called::Failed(failure)) => {
                let problem = format!("The conversation could not be summarised: {}", failure.message);
                let model = self.engine.model.facts().name;
                let failed = ModelFailed { model, compaction: true, failure };
                self.session.append(RecordBody::ModelFailed(failed))?;
                Answer::Failed(problem)
            }
            Some(Called::Interrupted) => Answer::Interrupted,
        })
    }
}
