//! What is asked in each probe, and what its reply shows. Prompts are plain enough for a small model, and calls of tools
//! are worded so that the offline model makes them too.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use qoder_core::ports::{Model, Thinking};
use qoder_types::{ContentBlock, ImageSource, ModelFailure, ModelFailureClass, ToolDefinition};
use serde_json::json;

use crate::resolve::ListedModel;

use super::budget::Budget;
use super::conversation::{Answer, Conversation};
use super::{Probe, Verdict, one_line};

/// Input tokens of a short probe, system prompt and tools included.
const SHORT: u32 = 400;
/// The least budget for reasoning that every provider takes, and room for the answer.
const REASONING: u32 = 1_024;
const REASONED_REPLY: u32 = REASONING + 176;
/// The long prompt, in tokens, and the least of it that shows anything.
const LONG: u32 = 4_000;
const LEAST_LONG: u32 = 1_000;
/// A red square of 16 by 16 points, as PNG.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";

/// How a probe ended, and why.
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) detail: String,
    pub(super) failure: Option<ModelFailureClass>,
}

fn outcome(verdict: Verdict, detail: impl Into<String>) -> Outcome {
    Outcome { verdict, detail: detail.into(), failure: None }
}

/// A probe that was not tried.
pub(super) fn skipped(why: &str) -> Outcome {
    outcome(Verdict::Skipped, why)
}

/// A probe whose request failed.
pub(super) fn failed(failure: &ModelFailure) -> Outcome {
    Outcome { verdict: Verdict::Fails, detail: one_line(failure), failure: Some(failure.class) }
}

/// A probe that the server did not answer in time.
pub(super) fn unanswered(limit: Duration) -> Outcome {
    Outcome {
        verdict: Verdict::Fails,
        detail: format!("no answer within {} s", limit.as_secs()),
        failure: Some(ModelFailureClass::Timeout),
    }
}

/// What the list of models shows.
pub(super) fn listed(models: &[ListedModel], wanted: &str) -> Outcome {
    let count = models.len();
    match models.iter().any(|model| model.id == wanted) {
        true => outcome(Verdict::Works, format!("{count} models, `{wanted}` among them")),
        false => outcome(Verdict::Partly, format!("{count} models, `{wanted}` not among them")),
    }
}

/// The probes of one model, and what is left to spend on them.
pub(super) struct Probes {
    model: Arc<dyn Model>,
    budget: Budget,
    /// The answer of the text probe: two others only look at it.
    text: Option<Answer>,
}

enum Stop {
    Unaffordable,
    Failed(ModelFailure),
}

impl Probes {
    pub(super) fn new(model: Arc<dyn Model>, budget: Budget) -> Self {
        Self { model, budget, text: None }
    }

    /// What was spent so far.
    pub(super) fn spent(&self) -> f64 {
        self.budget.spent()
    }

    /// Tries one thing.
    pub(super) async fn run(&mut self, probe: Probe) -> Outcome {
        let ended = match probe {
            Probe::List => Ok(skipped("the list was read before")),
            Probe::Text => self.text().await,
            Probe::Stream => Ok(self.stream()),
            Probe::Usage => Ok(self.usage()),
            Probe::ToolCall => self.tool_call().await,
            Probe::ParallelCalls => self.parallel_calls().await,
            Probe::Image => self.image().await,
            Probe::Reasoning => self.reasoning().await,
            Probe::LongInput => self.long_input().await,
        };
        match ended {
            Ok(outcome) => outcome,
            Err(Stop::Failed(failure)) => failed(&failure),
            Err(Stop::Unaffordable) => {
                skipped("it could cost more than is left of the budget; raise --max-cost")
            }
        }
    }

    async fn ask(&mut self, conversation: &mut Conversation, input: u32) -> Result<Answer, Stop> {
        let most = self.budget.reply_tokens(input).ok_or(Stop::Unaffordable)?;
        self.ask_at_most(conversation, most).await
    }

    async fn ask_at_most(&mut self, conversation: &mut Conversation, most: u32) -> Result<Answer, Stop> {
        let answer = conversation.ask(most).await.map_err(Stop::Failed)?;
        let usage = answer.reply.usage;
        let input = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
        self.budget.spend(answer.reply.cost_usd, input, usage.output_tokens);
        Ok(answer)
    }

    async fn text(&mut self) -> Result<Outcome, Stop> {
        let mut conversation = Conversation::new(&self.model);
        conversation.push_user(vec![ContentBlock::text("Count from one to ten in words.")]);
        let answer = self.ask(&mut conversation, SHORT).await?;
        let said = answer.text();
        let outcome = match (said.trim().is_empty(), answer.has_reasoning()) {
            (false, _) => outcome(Verdict::Works, quoted(&said)),
            (true, true) => outcome(Verdict::Partly, "the reply is reasoning alone"),
            (true, false) => outcome(Verdict::Partly, "the reply is empty"),
        };
        self.text = Some(answer);
        Ok(outcome)
    }

    fn stream(&self) -> Outcome {
        match self.text.as_ref().map(|answer| answer.pieces) {
            None => skipped("no text was answered"),
            Some(0 | 1) => outcome(Verdict::Partly, "the reply came in one piece"),
            Some(pieces) => outcome(Verdict::Works, format!("{pieces} pieces")),
        }
    }

    fn usage(&self) -> Outcome {
        let Some(answer) = &self.text else { return skipped("no text was answered") };
        let usage = answer.reply.usage;
        let input = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
        let counts = format!("{input} in, {} out", usage.output_tokens);
        match (input, usage.output_tokens) {
            (0, 0) => outcome(Verdict::Fails, "the server counts no tokens; the cost of sessions is unknown"),
            (0, _) | (_, 0) => outcome(Verdict::Partly, counts),
            (_, _) => outcome(Verdict::Works, counts),
        }
    }

    async fn tool_call(&mut self) -> Result<Outcome, Stop> {
        let mut conversation = Conversation::new(&self.model).with_tools(vec![add()]);
        let prompt = "Call add with {\"a\": 17, \"b\": 25}";
        conversation.push_user(vec![ContentBlock::text(prompt)]);
        let answer = self.ask(&mut conversation, SHORT).await?;
        let detail = match answer.calls().as_slice() {
            [] => return Ok(outcome(Verdict::Partly, format!("no call: {}", quoted(&answer.text())))),
            [(_, "add", input), ..] if input.is_object() => format!("add({input})"),
            [(_, "add", input), ..] => {
                return Ok(outcome(Verdict::Partly, format!("the arguments are not an object: {input}")));
            }
            [(_, name, _), ..] => {
                return Ok(outcome(Verdict::Partly, format!("it called `{name}`, which is no tool")));
            }
        };
        conversation.answer_calls(&answer, "42");
        let last = self.ask(&mut conversation, SHORT).await?;
        Ok(outcome(Verdict::Works, format!("{detail}, then {}", quoted(&last.text()))))
    }

    async fn parallel_calls(&mut self) -> Result<Outcome, Stop> {
        let mut conversation = Conversation::new(&self.model).with_tools(vec![add()]);
        let prompt =
            "Call add twice in this one reply: with {\"a\": 1, \"b\": 2} and with {\"a\": 3, \"b\": 4}";
        conversation.push_user(vec![ContentBlock::text(prompt)]);
        let answer = self.ask(&mut conversation, SHORT).await?;
        let count = answer.calls().len();
        if count == 0 {
            return Ok(outcome(Verdict::Partly, format!("no call: {}", quoted(&answer.text()))));
        }
        conversation.answer_calls(&answer, "7");
        self.ask(&mut conversation, SHORT).await?;
        Ok(match count {
            1 => outcome(Verdict::Partly, "one call in the reply"),
            _ => outcome(Verdict::Works, format!("{count} calls in one reply")),
        })
    }

    async fn image(&mut self) -> Result<Outcome, Stop> {
        let mut conversation = Conversation::new(&self.model);
        let source = ImageSource::Base64 { media_type: "image/png".to_owned(), data: RED.to_owned() };
        conversation.push_user(vec![
            ContentBlock::Image { source },
            ContentBlock::text("What color is this picture? Answer with one word."),
        ]);
        let answer = self.ask(&mut conversation, SHORT).await?;
        let said = answer.text();
        Ok(match (said.to_lowercase().contains("red"), answer.notices.is_empty()) {
            (_, false) => outcome(Verdict::Fails, "refused; sessions send a text in place of pictures"),
            (true, true) => outcome(Verdict::Works, quoted(&said)),
            (false, true) => outcome(Verdict::Partly, format!("accepted, but not seen: {}", quoted(&said))),
        })
    }

    async fn reasoning(&mut self) -> Result<Outcome, Stop> {
        if !self.budget.allows(SHORT, REASONED_REPLY) {
            return Err(Stop::Unaffordable);
        }
        let mut conversation =
            Conversation::new(&self.model).with_thinking(Thinking::Budget(REASONING), "low");
        conversation
            .push_user(vec![ContentBlock::text("What is 17 * 3? Think first, then give the number.")]);
        let answer = self.ask_at_most(&mut conversation, REASONED_REPLY).await?;
        if !answer.has_reasoning() {
            return Ok(outcome(Verdict::Partly, "accepted; the reply shows no reasoning"));
        }
        if !self.budget.allows(SHORT + REASONED_REPLY, REASONED_REPLY) {
            return Ok(outcome(Verdict::Works, "shown; sending it back was not tried"));
        }
        conversation.push_user(vec![ContentBlock::text("And plus one? Give the number.")]);
        self.ask_at_most(&mut conversation, REASONED_REPLY).await?;
        Ok(outcome(Verdict::Works, "shown, and accepted when it is sent back"))
    }

    async fn long_input(&mut self) -> Result<Outcome, Stop> {
        let window = u32::try_from(self.model.facts().context_window / 2).unwrap_or(u32::MAX);
        let tokens = self.budget.input_tokens(LONG).min(window);
        if tokens < LEAST_LONG {
            return Err(Stop::Unaffordable);
        }
        let mut text = String::from("The code is 4416.\n");
        // A line has about twelve tokens.
        for line in 0..tokens / 12 {
            let _ = writeln!(text, "Line {line}: nothing is noted here.");
        }
        text.push_str("What is the code plus one? Answer with the number alone.");
        let mut conversation = Conversation::new(&self.model);
        conversation.push_user(vec![ContentBlock::text(text)]);
        let most = self.budget.reply_tokens(tokens + SHORT).ok_or(Stop::Unaffordable)?;
        let said = self.ask_at_most(&mut conversation, most).await?.text();
        Ok(match said.contains("4417") {
            true => outcome(Verdict::Works, format!("about {tokens} tokens")),
            false => outcome(Verdict::Partly, format!("about {tokens} tokens accepted: {}", quoted(&said))),
        })
    }
}

fn add() -> ToolDefinition {
    ToolDefinition {
        name: "add".to_owned(),
        description: "Adds two numbers.".into(),
        input_schema: json!({
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"]
        })
        .into(),
    }
}

/// The beginning of a text, in one line and in quotes.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("\"{}…\"", &line[..end]),
        None => format!("\"{line}\""),
    }
}
