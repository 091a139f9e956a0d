//! Outcomes: what a session works towards. When its turn ends, a grader compares the work with a rubric; the session revises it until
//! the rubric is satisfied or the iterations are used up. What a row keeps of one says what any node has to do next.

use qoder_types::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::event::NewEvent;
use crate::model::fields::Fields;
use crate::model::files::GivenFiles;
use crate::model::ids::{EventId, OutcomeId};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_DESCRIPTION: usize = 64 * 1024;
const LONGEST_RUBRIC: usize = 256 * 1024;
const DEFAULT_ITERATIONS: u64 = 3;
const MOST_ITERATIONS: u64 = 20;

/// How an outcome is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeResult {
    /// The session works.
    Running,
    /// The grader reads the work.
    Evaluating,
    /// The rubric is satisfied.
    Satisfied,
    /// It is not, and there is no further iteration.
    MaxIterationsReached,
    /// The work could not be graded against the rubric.
    Failed,
    /// A client stopped it.
    Interrupted,
}

/// What a grader says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rubric is satisfied.
    Satisfied(String),
    /// Something is missing.
    NeedsRevision(String),
    /// The rubric does not apply to the work, or the grader could not read it.
    Failed(String),
}

impl Verdict {
    /// Reads the grader's answer.
    #[must_use]
    pub fn parse(answer: &str) -> Option<Self> {
        let (from, to) = answer.find('{').zip(answer.rfind('}'))?;
        let value: Value = serde_json::from_str(answer.get(from..=to)?).ok()?;
        let explanation = value["explanation"].as_str().unwrap_or_default().to_owned();
        match value["result"].as_str()? {
            "satisfied" => Some(Self::Satisfied(explanation)),
            "needs_revision" => Some(Self::NeedsRevision(explanation)),
            "failed" => Some(Self::Failed(explanation)),
            _ => None,
        }
    }
}

/// What rows keep of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The outcome.
    pub id: OutcomeId,
    /// What is to be achieved.
    pub description: String,
    /// What the work is compared with; empty once it is over.
    pub rubric: String,
    /// The most evaluations.
    pub max_iterations: u64,
    /// The present iteration, from 0.
    pub iteration: u64,
    /// How it is doing.
    pub result: OutcomeResult,
    /// What the grader last said.
    pub explanation: Option<String>,
    /// When it was over, in microseconds.
    pub completed_at: Option<i64>,
    /// The event with which the present evaluation began.
    pub start: Option<EventId>,
    /// The next message about it to the session, until that is on record.
    pub prompt: Option<String>,
}

impl Outcome {
    /// Reads the fields of `user.define_outcome`; answers with what is stored of the event, too.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn read(fields: Fields<'_>, files: &GivenFiles) -> Result<(Self, Value), Problem> {
        // Older clients have one text for what is wanted, and no rubric.
        let older = ["outcome", "content"].into_iter().find(|key| fields.get(key).is_some());
        let key = older.filter(|_| fields.get("description").is_none()).unwrap_or("description");
        let description = fields.text(key, 1..=LONGEST_DESCRIPTION)?.to_owned();
        let rubric = match fields.get("rubric") {
            Some(rubric) => read_rubric(rubric, files)?,
            None if key != "description" => description.clone(),
            None => return Err(Problem::field("rubric", "is required")),
        };
        let max_iterations =
            fields.number("max_iterations", 1..=MOST_ITERATIONS)?.unwrap_or(DEFAULT_ITERATIONS);
        let id = OutcomeId::random();
        let shown =
            fields.get("rubric").cloned().unwrap_or_else(|| json!({ "type": "text", "content": rubric }));
        let body = json!({
            "description": description, "rubric": shown, "max_iterations": max_iterations, "outcome_id": id,
        });
        let outcome = Self {
            id,
            description,
            rubric,
            max_iterations,
            iteration: 0,
            result: OutcomeResult::Running,
            explanation: None,
            completed_at: None,
            start: None,
            prompt: None,
        };
        Ok((outcome, body))
    }

    /// The first message about it to the session.
    #[must_use]
    pub fn task(&self) -> Message {
        let rubric = &self.rubric;
        Message::user(format!(
            "Work towards this outcome:\n\n{}\n\nYour work is graded against this rubric when you end your turn:\n\n{rubric}",
            self.description
        ))
    }

    /// True until it is over and the session has read about it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.completed_at.is_none() || self.prompt.is_some()
    }

    fn span(&self) -> Value {
        json!({ "outcome_id": self.id, "iteration": self.iteration })
    }

    /// An evaluation begins; the event that reports it.
    pub fn evaluate(&mut self) -> NewEvent {
        let event = NewEvent::new("span.outcome_evaluation_start", &self.span());
        self.start = Some(event.id);
        self.result = OutcomeResult::Evaluating;
        event
    }

    /// Reports that the evaluation continues.
    #[must_use]
    pub fn ongoing(&self) -> NewEvent {
        NewEvent::new("span.outcome_evaluation_ongoing", &self.span())
    }

    fn ended(&self, result: &str, explanation: &str, usage: &Value) -> NewEvent {
        let mut body = self.span();
        body["outcome_evaluation_start_id"] = json!(self.start);
        body["result"] = json!(result);
        body["explanation"] = json!(explanation);
        body["usage"] = usage.clone();
        NewEvent::new("span.outcome_evaluation_end", &body)
    }

    fn complete(&mut self, result: OutcomeResult, now: Time) {
        self.result = result;
        self.completed_at = Some(now.0);
        self.rubric.clear();
    }

    /// The evaluation ends; the event that reports it. The next message to the session is in `prompt`.
    pub fn judge(&mut self, verdict: Verdict, usage: &Value, now: Time) -> NewEvent {
        let is_last = self.iteration + 1 >= self.max_iterations;
        let (word, explanation) = match &verdict {
            Verdict::Satisfied(explanation) => ("satisfied", explanation),
            Verdict::NeedsRevision(explanation) if is_last => ("max_iterations_reached", explanation),
            Verdict::NeedsRevision(explanation) => ("needs_revision", explanation),
            Verdict::Failed(explanation) => ("failed", explanation),
        };
        let event = self.ended(word, explanation, usage);
        self.explanation = Some(explanation.clone());
        self.start = None;
        match verdict {
            Verdict::Satisfied(_) => self.complete(OutcomeResult::Satisfied, now),
            Verdict::Failed(_) => self.complete(OutcomeResult::Failed, now),
            Verdict::NeedsRevision(explanation) if is_last => {
                self.complete(OutcomeResult::MaxIterationsReached, now);
                self.prompt = Some(format!(
                    "The outcome is not reached, and there is no further iteration. The grader says:\n\n{explanation}\n\n\
                     Say in a few words what is done and what is missing. Do no further work on it."
                ));
            }
            Verdict::NeedsRevision(explanation) => {
                self.iteration += 1;
                self.result = OutcomeResult::Running;
                self.prompt = Some(format!(
                    "The work does not satisfy the rubric yet. The grader says:\n\n{explanation}\n\nRevise the work."
                ));
            }
        }
        event
    }

    /// A client stops it; the event that reports the end of an evaluation that had begun.
    pub fn interrupt(&mut self, now: Time) -> Option<NewEvent> {
        if self.completed_at.is_some() {
            self.prompt = None;
            return None;
        }
        let event = self.start.is_some().then(|| self.ended("interrupted", "", &json!({})));
        self.start = None;
        self.prompt = None;
        self.complete(OutcomeResult::Interrupted, now);
        event
    }

    /// Identifies the next message to the session, so that it counts once.
    #[must_use]
    pub fn prompt_id(&self) -> String {
        format!("{}:{}", self.id, if self.completed_at.is_some() { u64::MAX } else { self.iteration })
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "type": "outcome_evaluation", "outcome_id": self.id, "description": self.description,
            "result": self.result, "iteration": self.iteration, "explanation": self.explanation,
            "completed_at": self.completed_at.map(Time),
        })
    }
}

fn read_rubric(value: &Value, files: &GivenFiles) -> Result<String, Problem> {
    let inside = |problem: Problem| problem.inside("rubric");
    let fields = Fields::of(value, "rubric")?;
    let kind = fields.word("type", &["text", "file"]).map_err(inside)?;
    match kind {
        Some("file") => {
            let id = fields.text("file_id", 1..=256).map_err(inside)?;
            let file = files.get(id).ok_or_else(|| {
                Problem::field("rubric.file_id", format!("is `{id}`, and there is no such file"))
            })?;
            let text = String::from_utf8(file.content.clone()).ok();
            text.filter(|text| (1..=LONGEST_RUBRIC).contains(&text.len())).ok_or_else(|| {
                Problem::field(
                    "rubric.file_id",
                    format!("is `{id}`, which is not a text of 1 to {LONGEST_RUBRIC} bytes"),
                )
            })
        }
        Some(_) => fields.text("content", 1..=LONGEST_RUBRIC).map(str::to_owned).map_err(inside),
        None => Err(Problem::field("rubric.type", "is required")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(max_iterations: u64) -> Outcome {
        let event = json!({ "description": "a report", "max_iterations": max_iterations,
            "rubric": { "type": "text", "content": "It has a title." } });
        Outcome::read(Fields::of_item(&event).unwrap(), &GivenFiles::new()).unwrap().0
    }

    fn result(event: &NewEvent) -> Value {
        serde_json::from_str::<Value>(&event.body).unwrap()["result"].clone()
    }

    #[test]
    fn work_is_revised_until_it_is_satisfied() {
        let mut outcome = outcome(3);
        let start = outcome.evaluate();
        let end = outcome.judge(Verdict::NeedsRevision("no title".to_owned()), &json!({}), Time(5));
        let body: Value = serde_json::from_str(&end.body).unwrap();
        assert_eq!((&body["iteration"], &body["outcome_evaluation_start_id"]), (&json!(0), &json!(start.id)));
        assert_eq!((outcome.iteration, outcome.result), (1, OutcomeResult::Running));
        assert!(outcome.prompt.take().unwrap().contains("no title"));
        outcome.evaluate();
        let end = outcome.judge(Verdict::Satisfied("fine".to_owned()), &json!({}), Time(7));
        assert_eq!(
            (result(&end), outcome.is_active(), outcome.completed_at),
            (json!("satisfied"), false, Some(7))
        );
        let kept: Outcome = serde_json::from_str(&serde_json::to_string(&outcome).unwrap()).unwrap();
        assert_eq!(kept, outcome);
    }

    #[test]
    fn the_last_iteration_ends_with_a_word_about_it() {
        let mut outcome = outcome(1);
        outcome.evaluate();
        let end = outcome.judge(Verdict::NeedsRevision("no title".to_owned()), &json!({}), Time(5));
        assert_eq!(
            (result(&end), outcome.result),
            (json!("max_iterations_reached"), OutcomeResult::MaxIterationsReached)
        );
        assert!(outcome.is_active(), "the session reads about it");
        outcome.prompt = None;
        assert!(!outcome.is_active());
    }

    #[test]
    fn an_interrupt_ends_an_evaluation_that_began() {
        let mut working = outcome(3);
        assert!(working.interrupt(Time(5)).is_none());
        assert_eq!(working.view()["result"], "interrupted");
        let mut graded = outcome(3);
        graded.evaluate();
        assert_eq!(result(&graded.interrupt(Time(5)).unwrap()), "interrupted");
    }

    #[test]
    fn only_a_clear_word_is_a_verdict() {
        let answer = "Sure: {\"result\": \"needs_revision\", \"explanation\": \"no title\"}";
        assert_eq!(Verdict::parse(answer), Some(Verdict::NeedsRevision("no title".to_owned())));
        for answer in ["satisfied", "{}", "{\"result\": \"maybe\"}", "}{", ""] {
            assert_eq!(Verdict::parse(answer), None, "{answer}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let rubric = json!({ "type": "text", "content": "x" });
        for (event, field) in [
            (json!({ "rubric": rubric }), "description"),
            (json!({ "description": "d" }), "rubric"),
            (
                json!({ "description": "d", "rubric": { "type": "file", "file_id": "file_1" } }),
                "rubric.file_id",
            ),
            (json!({ "description": "d", "rubric": {} }), "rubric.type"),
            (json!({ "description": "d", "rubric": rubric, "max_iterations": 21 }), "max_iterations"),
        ] {
            let problem = Outcome::read(Fields::of_item(&event).unwrap(), &GivenFiles::new()).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field), "{event}");
        }
        let older = json!({ "outcome": "a report" });
        assert_eq!(
            Outcome::read(Fields::of_item(&older).unwrap(), &GivenFiles::new()).unwrap().0.rubric,
            "a report"
        );
    }
}
