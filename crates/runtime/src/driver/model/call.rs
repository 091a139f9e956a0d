//! Asking the model: the request is recorded before it is sent, pieces go to the host as they come, and only the
//! complete reply is recorded.

use std::sync::PoisonError;
use std::time::Duration;

use futures::StreamExt;
use qoder_core::ports::{Model, ModelEvent, ModelRequest};
use qoder_core::render;
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_types::record::{
    AssistantEntry, AssistantMessage, ModelFailed, ModelNoticed, ModelRequested, RecordBody,
};
use qoder_types::{ModelFailure, ModelFailureClass, ModelReply, Role};

use crate::VERSION;
use crate::driver::Driver;
use crate::driver::pieces::Pieces;
use crate::error::DriveError;
use crate::events::Event;
use crate::session::new_id;

/// How long a host may take to handle credentials that are not accepted.
const AUTH_PATIENCE: Duration = Duration::from_secs(10);

/// What a model call came to.
pub(in crate::driver) enum Called {
    /// A complete reply.
    Reply(Box<ModelReply>),
    /// A failure for good.
    Failed(ModelFailure),
    /// A person interrupted.
    Interrupted,
}

impl Driver<'_> {
    pub(in crate::driver) async fn call_model(&mut self) -> Result<(), DriveError> {
        if self.stopping.is_wanted() {
            return self.interrupt_turn();
        }
        let request = render::request(&self.session.state, &self.options);
        let facts = self.engine.model.facts();
        let model = facts.name;
        let epoch = self.session.state.epoch.as_ref().map_or(0, |epoch| epoch.number);
        self.session.append(RecordBody::ModelRequested(ModelRequested {
            model: model.clone(),
            provider: Some(facts.provider),
            messages: request.messages.len() as u64,
            epoch,
        }))?;
        self.session.barrier().await?;
        match self.ask(request).await? {
            Called::Reply(reply) => self.take_reply(*reply),
            Called::Failed(failure) => {
                self.report_auth_expired(&failure).await;
                self.session.append(RecordBody::ModelFailed(ModelFailed {
                    model,
                    compaction: false,
                    failure,
                }))?;
                Ok(())
            }
            Called::Interrupted => self.interrupt_turn(),
        }
    }

    /// Reports to the host once per session that its credentials are not accepted. A slow listener does not hold the turn up.
    async fn report_auth_expired(&mut self, failure: &ModelFailure) {
        if failure.class != ModelFailureClass::Authentication {
            return;
        }
        let told = self.engine.auth_expired.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = told {
            // Whether the host answered in time changes nothing here.
            let message = self.session.redactor().text(&failure.message).into_owned();
            drop(tokio::time::timeout(AUTH_PATIENCE, tell(message)).await);
        }
    }

    /// Sends a request and waits for its end, passing on what happens meanwhile.
    pub(in crate::driver) async fn ask(&mut self, request: ModelRequest) -> Result<Called, DriveError> {
        // The connection of the last reply goes back to its pool first.
        tokio::task::yield_now().await;
        let mut stream = self.engine.model.stream(request);
        let mut pieces = Pieces::new(self.session.redactor(), self.session.state.call_ids.taken());
        let mut cancelled = self.stopping.wanted();
        loop {
            self.keep_pace().await?;
            let event = tokio::select! {
                biased;
                () = &mut cancelled => return Ok(Called::Interrupted),
                event = stream.next() => event,
                () = self.session.task_events.arrival() => {
                    self.forward_task_events()?;
                    continue;
                }
                arrival = self.arrivals.next() => {
                    self.take_now(arrival).await?;
                    continue;
                }
            };
            match event {
                Some(Ok(ModelEvent::Partial(event))) => {
                    for event in pieces.redacted(event) {
                        let partial = Event::Partial { event: &event, parent_tool_use_id: None };
                        self.engine.outlet.emit(partial).map_err(DriveError::Output)?;
                    }
                }
                Some(Ok(ModelEvent::Retry { attempt, max_retries, delay_ms, failure })) => {
                    self.emit_retry(attempt, max_retries, delay_ms, &failure)?;
                }
                Some(Ok(ModelEvent::Fallback { from, to, failure })) => {
                    let text = format!("{from} failed ({}); asking {to} instead", failure.message);
                    let text = self.session.redactor().text(&text).into_owned();
                    self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)?;
                }
                Some(Ok(ModelEvent::Notice(notice))) => {
                    let text = self.session.redactor().text(&notice.text).into_owned();
                    self.session.append(RecordBody::ModelNoticed(Box::new(ModelNoticed {
                        model: self.engine.model.facts().name,
                        message: notice.text,
                        place: notice.place,
                        compat: notice.compat,
                    })))?;
                    self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output)?;
                }
                Some(Ok(ModelEvent::Reply(mut reply))) => {
                    pieces.name_calls(&mut reply.content);
                    return Ok(Called::Reply(reply));
                }
                Some(Err(failure)) => return Ok(Called::Failed(failure)),
                None => {
                    return Ok(Called::Failed(ModelFailure {
                        class: ModelFailureClass::MalformedStream,
                        message: "The response stream ended before the message was complete.".to_owned(),
                        status: None,
                        retry_after_ms: None,
                    }));
                }
            }
        }
    }

    fn emit_retry(
        &self,
        attempt: u32,
        max_retries: u32,
        retry_delay_ms: u64,
        failure: &ModelFailure,
    ) -> Result<(), DriveError> {
        self.emit(&StreamMessage::System(SystemMessage::ApiRetry {
            attempt,
            max_retries,
            retry_delay_ms,
            error_status: failure.status,
            error: self.session.redactor().text(&failure.message).into_owned(),
            uuid: new_id(),
            session_id: self.session.id.clone(),
        }))
    }

    fn take_reply(&mut self, reply: ModelReply) -> Result<(), DriveError> {
        self.engine.common.spending.add(&reply.usage, reply.cost_usd);
        let limits = &self.limits;
        let entry = AssistantEntry {
            uuid: new_id(),
            parent_uuid: self.session.state.leaf.clone(),
            is_sidechain: self.session.is_of_agent(),
            cwd: self.session.state.cwd.clone(),
            version: VERSION.to_owned(),
            message: AssistantMessage {
                id: reply.id,
                kind: "message".to_owned(),
                role: Role::Assistant,
                model: reply.model,
                content: reply.content,
                stop_reason: Some(reply.stop_reason),
                stop_sequence: None,
                usage: reply.usage,
            },
            request_id: reply.request_id,
            provider: Some(reply.provider),
            duration_api_ms: reply.duration_api_ms,
            cost_usd: reply.cost_usd,
            context_window: limits.context_window,
            max_output_tokens: limits.max_output_tokens,
        };
        let record = self.session.append(RecordBody::Assistant(Box::new(entry)))?;
        self.emit_record(&record)
    }
}
