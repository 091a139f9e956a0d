//! Replacing older messages by a summary. The old messages stay in the log; the summary starts a new epoch.

use qoder_core::ports::Model;
use qoder_core::render;
use qoder_types::content::join_text;
use qoder_types::record::{
    CompactMetadata, ModelFailed, ModelRequested, RecordBody, SystemEntry, UserOrigin,
};
use qoder_types::{ModelFailure, ModelFailureClass, ModelReply};
use serde_json::json;

use crate::driver::Driver;
use crate::driver::model::call::Called;
use crate::error::DriveError;
use crate::session::new_id;
use qoder_config::hooks::HookEvent;

/// How often a summary request that is itself too long is halved.
const MOST_SHRINKS: u32 = 4;

impl Driver<'_> {
    /// Makes room because the conversation is too long.
    pub(in crate::driver) async fn compact(&mut self) -> Result<(), DriveError> {
        match self.summarised("auto", None).await? {
            // The record of the objection keeps the turn from trying again.
            None | Some(Called::Reply(_)) => {}
            Some(Called::Failed(failure)) => {
                let model = self.engine.model.facts().name;
                let failure = ModelFailure {
                    message: format!(
                        "The conversation is too long and could not be summarised: {}",
                        failure.message
                    ),
                    ..failure
                };
                self.session.append(RecordBody::ModelFailed(ModelFailed {
                    model,
                    compaction: true,
                    failure,
                }))?;
            }
            Some(Called::Interrupted) => self.interrupt_turn()?,
        }
        self.emit_status(None)
    }

    /// Replaces the conversation by a summary. `instructions` say what it is to keep. This function reports its start to hosts;
    /// the caller reports its end, when what came of it is on record. `None`: a hook objects.
    pub(in crate::driver) async fn summarised(
        &mut self,
        trigger: &'static str,
        instructions: Option<&str>,
    ) -> Result<Option<Called>, DriveError> {
        self.emit_status(Some("compacting"))?;
        let fields = || json!({ "trigger": trigger, "custom_instructions": instructions });
        let occasion = self.occasion(HookEvent::PreCompact, trigger, fields);
        if self.is_blocked(occasion).await? {
            return Ok(None);
        }
        let state = &self.session.state;
        let facts = self.engine.model.facts();
        let requested = ModelRequested {
            model: facts.name,
            provider: Some(facts.provider),
            messages: state.prompt.len() as u64,
            epoch: state.epoch.as_ref().map_or(0, |epoch| epoch.number),
        };
        self.session.append(RecordBody::ModelRequested(requested))?;
        let outcome = self.summarise(instructions).await?;
        if let Called::Reply(reply) = &outcome {
            self.take_summary(reply, trigger)?;
            let fields =
                || json!({ "trigger": trigger, "compact_summary": join_text(&reply.content).trim() });
            let occasion = self.occasion(HookEvent::PostCompact, trigger, fields);
            self.observe(occasion).await?;
            // The context that hooks gave the model at the start is gone with the rest.
            let again = self.engine.agent.is_none().then(|| self.session_start("compact")).flatten();
            self.observe(again).await?;
            self.report_instructions("compact").await?;
        }
        Ok(Some(outcome))
    }

    async fn summarise(&mut self, instructions: Option<&str>) -> Result<Called, DriveError> {
        let mut shrink = 0;
        loop {
            let request =
                render::compaction_request(&self.session.state, &self.options, shrink, instructions);
            let called = self.ask(request).await?;
            match &called {
                Called::Failed(failure)
                    if failure.class == ModelFailureClass::ContextTooLong && shrink < MOST_SHRINKS =>
                {
                    shrink += 1;
                }
                Called::Reply(reply) if join_text(&reply.content).trim().is_empty() => {
                    return Ok(Called::Failed(ModelFailure {
                        class: ModelFailureClass::MalformedStream,
                        message: "the model returned an empty summary".to_owned(),
                        status: None,
                        retry_after_ms: None,
                    }));
                }
                Called::Reply(_) | Called::Failed(_) | Called::Interrupted => return Ok(called),
            }
        }
    }

    fn take_summary(&mut self, reply: &ModelReply, trigger: &str) -> Result<(), DriveError> {
        self.engine.common.spending.add(&reply.usage, reply.cost_usd);
        let state = &self.session.state;
        let pre_tokens = state.context.tokens();
        let boundary = SystemEntry {
            uuid: new_id(),
            parent_uuid: None,
            logical_parent_uuid: state.leaf.clone(),
            is_sidechain: self.session.is_of_agent(),
            subtype: "compact_boundary".to_owned(),
            content: "Conversation compacted".to_owned(),
            compact_metadata: Some(CompactMetadata { trigger: trigger.to_owned(), pre_tokens }),
            usage: reply.usage,
            model: reply.model.clone(),
            provider: Some(reply.provider.clone()),
            cost_usd: reply.cost_usd,
            duration_api_ms: reply.duration_api_ms,
        };
        let text = join_text(&reply.content);
        let message = render::summary_message(text.trim(), &state.last_prompt, state.turn.is_some());
        let mut summary = self.session.user_entry(UserOrigin::Summary, message);
        summary.parent_uuid = None;
        let bodies = vec![RecordBody::System(Box::new(boundary)), RecordBody::User(Box::new(summary))];
        let records = self.session.append_all(bodies)?;
        records.iter().try_for_each(|record| self.emit_record(record))
    }
}
