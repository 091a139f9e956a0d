//! Watches one session: its records become a timeline, and the timeline becomes spans and measurements with the names of
//! the GenAI conventions. A turn is a span, and what happens in it are spans below; an agent's turn stands below the call
//! that started it. Texts of the conversation are sent only when the environment asks for them, without secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_core::timeline::{
    Compaction, Happening, HooksRan, ModelCall, Question, SideCall, Span, ToolCall, Tracker, TurnEnd,
    TurnStart, What,
};
use qoder_types::{CallOutcome, HookOutcome, Purpose, Record, RecordBody, Usage};
use serde_json::json;

use crate::attributes::{
    Attribute, Attributes, behavior, failure, hook_outcome, layer, outcome, purpose, text_of, verdict,
};
use crate::metrics::{Instrument, Measurement};
use crate::spans::{FinishedSpan, SpanKind, new_span_id, new_trace_id};
use crate::{Inner, Running, SpanContext};

/// Takes secrets out of a text.
pub type Clean = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Characters of a text that is sent.
const MOST_TEXT: usize = 32 * 1024;
/// Characters of a message about an error.
const MOST_MESSAGE: usize = 1024;
/// Calls of one turn whose spans agents can find.
const MOST_CALLS: usize = 10_000;

/// What a record without a word about it gets as its provider.
const UNKNOWN: &str = "_OTHER";

/// A model call, as far as spans and measurements are alike for all kinds of them.
struct Call<'a> {
    provider: &'a str,
    requested: &'a str,
    /// Empty without an answer.
    answered: &'a str,
    usage: &'a Usage,
    cost_usd: f64,
}

/// Watches one session.
pub struct SessionObserver {
    shared: Arc<Inner>,
    tracker: Tracker,
    session_id: String,
    /// The session of the person, also for agents.
    conversation: String,
    agent_type: Option<String>,
    /// The call of another session below which its turns stand.
    above: Option<SpanContext>,
    turn: Option<(SpanContext, Option<[u8; 8]>)>,
    prompt: Option<String>,
    /// The provider and the model that the turn asked last.
    asked: Option<(String, String)>,
    clean: Clean,
}

impl SessionObserver {
    pub(crate) fn new(shared: Arc<Inner>, session_id: &str, clean: Clean) -> Self {
        Self {
            shared,
            tracker: Tracker::default(),
            session_id: session_id.to_owned(),
            conversation: session_id.to_owned(),
            agent_type: None,
            above: None,
            turn: None,
            prompt: None,
            asked: None,
            clean,
        }
    }

    pub(crate) fn of_agent(mut self, agent_type: &str, parent: &str, tool_use_id: &str) -> Self {
        let above = self.shared.with_running(|running| {
            let running = running.get_mut(parent)?;
            let context = SpanContext { span: span_of(running, tool_use_id), ..running.turn };
            Some((context, running.conversation.clone()))
        });
        self.above = above.as_ref().map(|(context, _)| *context);
        self.conversation = above.map_or_else(|| parent.to_owned(), |(_, conversation)| conversation);
        self.agent_type = Some(agent_type.to_owned());
        self
    }

    /// The session continues a turn that an earlier process began.
    #[must_use]
    pub fn going_on(mut self, turns: u64, prompt: &str, timestamp: &str) -> Self {
        for happening in self.tracker.go_on(turns, prompt, timestamp) {
            self.take(happening);
        }
        self
    }

    /// A record was written.
    pub fn see(&mut self, record: &Record) {
        if let RecordBody::Decided(decided) = &record.body {
            let attributes = Attributes::default()
                .with("qoder.decision.behavior", behavior(decided.decision.behavior))
                .with("qoder.decision.layer", layer(decided.decision.layer))
                .with("gen_ai.tool.name", decided.tool_name.as_str());
            self.measure(Instrument::Decisions, 1.0, attributes);
        }
        for happening in self.tracker.see(record) {
            self.take(happening);
        }
    }

    fn take(&mut self, happening: Happening) {
        match happening {
            Happening::TurnBegan(start) => self.begin(&start),
            Happening::Span(span) => self.span(&span),
            Happening::TurnEnded(end) => self.end(&end),
        }
    }

    fn begin(&mut self, start: &TurnStart) {
        let above = self.above.map(|above| (above.trace, above.span, above.sampled));
        let parent =
            self.shared.configuration.parent.map(|parent| (parent.trace, parent.span, parent.sampled));
        let sampler = self.shared.configuration.sampler;
        let (context, parent) = match (above, parent) {
            // An agent is in the trace of its session, kept or not.
            (Some((trace, span, sampled)), _) => {
                (SpanContext { trace, span: new_span_id(), sampled }, Some(span))
            }
            (None, Some((trace, span, sampled))) => {
                let sampled = if sampler.parent_decides { sampled } else { is_kept(&trace, sampler.share) };
                (SpanContext { trace, span: new_span_id(), sampled }, Some(span))
            }
            (None, None) => {
                let trace = new_trace_id();
                (SpanContext { trace, span: new_span_id(), sampled: is_kept(&trace, sampler.share) }, None)
            }
        };
        self.turn = Some((context, parent));
        self.prompt = self.content(&start.prompt);
        let conversation = self.conversation.clone();
        let running = Running { turn: context, calls: BTreeMap::new(), conversation };
        self.shared.with_running(|all| all.insert(self.session_id.clone(), running));
    }

    fn end(&mut self, end: &TurnEnd) {
        let Some((context, parent)) = self.turn.take() else { return };
        self.shared.with_running(|running| running.remove(&self.session_id));
        let agent = self.agent_type.as_deref();
        let subtype = end
            .subtype
            .map_or_else(|| "unfinished".to_owned(), |subtype| text_of(serde_json::to_value(subtype)));
        let counted = Attributes::default().with("qoder.turn.subtype", subtype.clone());
        self.measure(Instrument::Turns, 1.0, counted);
        let output = end.result.as_deref().and_then(|text| self.content(text));
        let output = output.map(|text| answered(&text, if end.is_error { "error" } else { "stop" }));
        let asked = self.asked.take();
        let (provider, model) = asked
            .as_ref()
            .map_or((UNKNOWN, None), |(provider, model)| (provider.as_str(), Some(model.as_str())));
        let attributes = self
            .common("invoke_agent")
            .with("gen_ai.provider.name", provider)
            .maybe("gen_ai.request.model", model)
            .with("gen_ai.agent.name", agent.unwrap_or("qodercli"))
            .maybe("gen_ai.agent.id", agent.map(|_| self.session_id.as_str()))
            .with("gen_ai.usage.input_tokens", end.usage.total_input())
            .with("gen_ai.usage.output_tokens", end.usage.output_tokens)
            .with("qoder.turn.number", end.number)
            .with("qoder.turn.model_calls", end.model_calls)
            .maybe(
                "qoder.turn.terminal_reason",
                end.terminal_reason.map(|why| text_of(serde_json::to_value(why))),
            )
            .with("qoder.cost.usd", end.cost_usd)
            .maybe("gen_ai.input.messages", self.prompt.take().map(|text| asked_for(&text)))
            .maybe("gen_ai.output.messages", output);
        let error = end.is_error.then(|| (subtype, self.message(&end.errors.join("; "))));
        self.finish(FinishedSpan {
            context,
            parent,
            name: format!("invoke_agent {}", agent.unwrap_or("qodercli")),
            kind: SpanKind::Internal,
            began_ms: end.began_ms,
            ended_ms: end.ended_ms,
            attributes,
            error,
        });
    }

    fn span(&mut self, span: &Span) {
        match &span.what {
            What::Model(call) => self.model(call, span),
            What::Tool(call) => self.tool(call, span),
            What::Hooks(hooks) => self.hooks(hooks, span),
            What::Question(question) => self.question(question, span),
            What::Task(task) => {
                let attributes = Attributes::default()
                    .with("qoder.task.id", task.task_id.as_str())
                    .maybe("qoder.task.status", task.status.map(qoder_types::TaskStatus::as_str))
                    .maybe("gen_ai.tool.call.id", span.tool_use_id.as_deref());
                self.below("background_task".to_owned(), SpanKind::Internal, span, attributes, None);
            }
            What::Compaction(compaction) => self.compaction(compaction, span),
            What::SideCall(call) => self.side_call(call, span),
            What::Mark(_) => {}
        }
    }

    fn common(&self, operation: &'static str) -> Attributes {
        Attributes::default()
            .with("gen_ai.operation.name", operation)
            .with("gen_ai.conversation.id", self.conversation.as_str())
    }

    fn chat(&self, call: &Call<'_>) -> Attributes {
        let attributes = self
            .common("chat")
            .with("gen_ai.provider.name", call.provider)
            .with("gen_ai.request.model", call.requested);
        if call.answered.is_empty() {
            // A call without an answer has no known usage.
            return attributes;
        }
        let usage = call.usage;
        attributes
            .with("gen_ai.response.model", call.answered)
            .with("gen_ai.usage.input_tokens", usage.total_input())
            .with("gen_ai.usage.output_tokens", usage.output_tokens)
            .with("gen_ai.usage.cache_read.input_tokens", usage.cache_read_input_tokens)
            .with("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation_input_tokens)
            .with("qoder.cost.usd", call.cost_usd)
    }

    fn model(&mut self, call: &ModelCall, span: &Span) {
        let requested = call.requested_model.as_str();
        let asked = Call {
            provider: call.provider.as_deref().unwrap_or(UNKNOWN),
            requested,
            answered: &call.model,
            usage: &call.usage,
            cost_usd: call.cost_usd,
        };
        self.asked = Some((asked.provider.to_owned(), requested.to_owned()));
        let reasons = call.stop_reason.as_ref().map(|reason| vec![text_of(serde_json::to_value(reason))]);
        let output = self.content(&call.text).filter(|text| !text.is_empty());
        let why = reasons.as_ref().and_then(|reasons| reasons.first().cloned()).unwrap_or_default();
        let attributes = self
            .chat(&asked)
            .maybe("gen_ai.response.id", (!call.response_id.is_empty()).then_some(call.response_id.as_str()))
            .maybe("gen_ai.response.finish_reasons", reasons.map(Attribute::Texts))
            .maybe("gen_ai.output.messages", output.map(|text| answered(&text, &why)));
        let error = match (&call.failure, call.model.is_empty()) {
            (Some(failed), _) => Some((failure(failed), self.message(&failed.message))),
            (None, true) => Some(("interrupted".to_owned(), String::new())),
            (None, false) => None,
        };
        self.measure_call(&asked, span, error.as_ref());
        self.below(format!("chat {requested}"), SpanKind::Client, span, attributes, error);
    }

    fn compaction(&mut self, compaction: &Compaction, span: &Span) {
        let model = compaction.model.as_str();
        let asked = Call {
            provider: compaction.provider.as_deref().unwrap_or(UNKNOWN),
            requested: model,
            answered: model,
            usage: &compaction.usage,
            cost_usd: compaction.cost_usd,
        };
        let attributes = self
            .chat(&asked)
            .with("qoder.purpose", "compact")
            .with("qoder.compaction.tokens_before", compaction.pre_tokens);
        self.measure_call(&asked, span, None);
        self.below(format!("chat {model}"), SpanKind::Client, span, attributes, None);
    }

    fn side_call(&mut self, call: &SideCall, span: &Span) {
        // An agent has reported all of it by itself.
        if call.purpose == Purpose::Subagent {
            return;
        }
        let model = call.model.as_str();
        let asked = Call {
            provider: call.provider.as_deref().unwrap_or(UNKNOWN),
            requested: model,
            answered: model,
            usage: &call.usage,
            cost_usd: call.cost_usd,
        };
        let attributes = self
            .chat(&asked)
            .with("qoder.purpose", purpose(call.purpose))
            .maybe("gen_ai.tool.call.id", span.tool_use_id.as_deref());
        self.measure_call(&asked, span, None);
        self.below(format!("chat {model}"), SpanKind::Client, span, attributes, None);
    }

    fn tool(&mut self, call: &ToolCall, span: &Span) {
        let ended = call.outcome.map_or("unfinished", outcome);
        let decision = call.decision.as_ref();
        // What ran, also when it is not what the model asked for.
        let arguments = self.content(&call.ran_input.as_ref().unwrap_or(&call.input).to_string());
        let result = self.content(&call.result);
        let attributes = self
            .common("execute_tool")
            .with("gen_ai.tool.name", call.name.as_str())
            .with("gen_ai.tool.type", "function")
            .maybe("gen_ai.tool.call.id", span.tool_use_id.as_deref())
            .with("qoder.tool.outcome", ended)
            .maybe("qoder.decision.behavior", decision.map(|decision| behavior(decision.behavior)))
            .maybe("qoder.decision.layer", decision.map(|decision| layer(decision.layer)))
            .maybe("gen_ai.tool.call.arguments", arguments)
            .maybe("gen_ai.tool.call.result", result);
        let measured = Attributes::default()
            .with("gen_ai.tool.name", call.name.as_str())
            .with("qoder.tool.outcome", ended);
        self.measure(Instrument::ToolDuration, seconds(call.ran_ms.unwrap_or(0)), measured);
        let good = call.outcome == Some(CallOutcome::Completed);
        let error = (!good).then(|| (ended.to_owned(), String::new()));
        self.below(format!("execute_tool {}", call.name), SpanKind::Internal, span, attributes, error);
    }

    fn hooks(&mut self, hooks: &HooksRan, span: &Span) {
        for run in &hooks.runs {
            let lasted = i64::try_from(run.duration_ms).unwrap_or(i64::MAX);
            let own = Span { began_ms: span.ended_ms.saturating_sub(lasted), ..span.clone() };
            let attributes = Attributes::default()
                .with("gen_ai.conversation.id", self.conversation.as_str())
                .with("qoder.hook.event", hooks.event.as_str())
                .with("qoder.hook.name", run.hook.as_str())
                .with("qoder.hook.outcome", hook_outcome(run.outcome))
                .maybe("qoder.hook.verdict", hooks.verdict.map(verdict))
                .maybe("gen_ai.tool.call.id", span.tool_use_id.as_deref());
            let failed = match run.outcome {
                HookOutcome::Error | HookOutcome::Timeout => true,
                // A hook in the background has not ended yet.
                HookOutcome::Success | HookOutcome::Background => false,
            };
            let text = run.problem.as_deref().unwrap_or_default();
            let error = failed.then(|| (hook_outcome(run.outcome).to_owned(), self.message(text)));
            self.below(format!("hook {}", hooks.event), SpanKind::Internal, &own, attributes, error);
        }
    }

    fn question(&mut self, question: &Question, span: &Span) {
        let attributes = Attributes::default()
            .with("gen_ai.conversation.id", self.conversation.as_str())
            .maybe("qoder.question.answer", question.answer.as_deref())
            .maybe("gen_ai.tool.call.id", span.tool_use_id.as_deref());
        self.below(format!("question {}", question.of), SpanKind::Internal, span, attributes, None);
    }

    /// A span below the turn. Calls have the id that agents know already.
    fn below(
        &mut self,
        name: String,
        kind: SpanKind,
        span: &Span,
        attributes: Attributes,
        error: Option<(String, String)>,
    ) {
        let known = match (&span.what, &span.tool_use_id) {
            (What::Tool(_), Some(id)) => self.shared.with_running(|running| {
                running.get_mut(&self.session_id).and_then(|running| running.calls.remove(id))
            }),
            _ => None,
        };
        let span_id = known.unwrap_or_else(new_span_id);
        let (context, parent) = match self.turn {
            Some((turn, _)) => (SpanContext { span: span_id, ..turn }, Some(turn.span)),
            // A task may end between two turns.
            None => {
                let trace = new_trace_id();
                let sampled = is_kept(&trace, self.shared.configuration.sampler.share);
                (SpanContext { trace, span: span_id, sampled }, None)
            }
        };
        let (began_ms, ended_ms) = (span.began_ms, span.ended_ms);
        self.finish(FinishedSpan { context, parent, name, kind, began_ms, ended_ms, attributes, error });
    }

    fn finish(&self, span: FinishedSpan) {
        if span.context.sampled {
            self.shared.span(span.fields());
        }
    }

    fn measure(&self, instrument: Instrument, value: f64, attributes: Attributes) {
        self.shared.measure(Measurement { instrument, value, attributes });
    }

    fn measure_call(&self, call: &Call<'_>, span: &Span, error: Option<&(String, String)>) {
        let attributes = Attributes::default()
            .with("gen_ai.operation.name", "chat")
            .with("gen_ai.provider.name", call.provider)
            .with("gen_ai.request.model", call.requested)
            .maybe("gen_ai.response.model", (!call.answered.is_empty()).then_some(call.answered));
        let timed = attributes.clone().maybe("error.type", error.map(|(word, _)| word.as_str()));
        self.measure(Instrument::OperationDuration, seconds(span.duration_ms()), timed);
        let counts = [("input", call.usage.total_input()), ("output", call.usage.output_tokens)];
        // A provider that counts nothing says so by zeros, which are no measurement.
        if error.is_some() || counts.iter().all(|(_, tokens)| *tokens == 0) {
            return;
        }
        for (kind, tokens) in counts {
            let attributes = attributes.clone().with("gen_ai.token.type", kind);
            // Counts of tokens are far below what a number can hold exactly.
            self.measure(Instrument::TokenUsage, tokens as f64, attributes);
        }
        if call.cost_usd > 0.0 {
            let attributes = Attributes::default().with("gen_ai.request.model", call.requested);
            self.measure(Instrument::Cost, call.cost_usd, attributes);
        }
    }

    /// A text of the conversation, when such may be sent.
    fn content(&self, text: &str) -> Option<String> {
        self.shared.configuration.content.then(|| shortened(&(self.clean)(text), MOST_TEXT))
    }

    /// A message about an error, without what might be secret.
    fn message(&self, text: &str) -> String {
        shortened(&(self.clean)(text), MOST_MESSAGE)
    }
}

impl Drop for SessionObserver {
    fn drop(&mut self) {
        for happening in self.tracker.finish() {
            self.take(happening);
        }
    }
}

/// The span of a call that runs; made here on first use.
fn span_of(running: &mut Running, tool_use_id: &str) -> [u8; 8] {
    if running.calls.len() >= MOST_CALLS {
        return running.turn.span;
    }
    *running.calls.entry(tool_use_id.to_owned()).or_insert_with(new_span_id)
}

/// A prompt as the conventions write it.
fn asked_for(text: &str) -> String {
    json!([{ "role": "user", "parts": [{ "type": "text", "content": text }] }]).to_string()
}

/// An answer as the conventions write it, with why it ended.
fn answered(text: &str, finish_reason: &str) -> String {
    let parts = json!([{ "type": "text", "content": text }]);
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason }]).to_string()
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}

/// True for the share of traces that is kept; the same trace is kept everywhere.
fn is_kept(trace: &[u8; 16], share: f64) -> bool {
    let mut low = [0; 8];
    low.copy_from_slice(&trace[8..]);
    let place = u64::from_be_bytes(low) >> 11;
    // 53 bits are what a number holds exactly.
    (place as f64) < share * (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_traces_is_kept() {
        let traces: Vec<[u8; 16]> = (0..2_000).map(|_| new_trace_id()).collect();
        let kept = |share: f64| traces.iter().filter(|trace| is_kept(trace, share)).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, traces.len()));
        let half = kept(0.5);
        assert!((600..1_400).contains(&half), "{half}");
    }
}
