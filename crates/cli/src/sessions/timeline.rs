//! Reads a session's timeline turn by turn, with the timelines of the agents that its calls started. A turn is handed on
//! as soon as it is over, so a log of any length needs the memory of one turn, and texts are cut unless whole ones are
//! wanted.

use std::collections::BTreeSet;

use qoder_core::timeline::{Happening, Span, TimeByKind, Totals, Tracker, TurnEnd, TurnStart, What};
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::store::jsonl::scan;
use qoder_runtime::store::line::Line;
use qoder_types::Record;
use serde::Serialize;
use serde_json::Value;

use super::page::cut;
use super::tell_damage;
use crate::exit::Fault;

/// Characters of a text that is not wanted as a whole.
const SHORT: usize = 400;
/// Agents that start agents that start agents: no deeper than this.
const DEEPEST: usize = 8;
/// Logs of agents that are looked at.
const MOST_AGENTS: usize = 500;

/// A turn, or what happened between two of them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnLine {
    /// The beginning; none between turns.
    #[serde(flatten)]
    pub start: Option<TurnStart>,
    /// What happened in it, in order.
    pub spans: Vec<SpanLine>,
    /// How it ended; none when it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
}

/// A span and the agent that it started.
#[derive(Debug, Serialize)]
pub struct SpanLine {
    /// The span.
    #[serde(flatten)]
    pub span: Span,
    /// The agent's own timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentTimeline>,
}

/// The timeline of an agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTimeline {
    /// The agent.
    pub agent_id: String,
    /// Its turns.
    pub turns: Vec<TurnLine>,
    /// What it came to.
    pub totals: Totals,
    /// What is wrong with its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// What is known at the end of a log.
#[derive(Debug)]
pub struct Ended {
    /// The totals and the rest.
    pub tracker: Tracker,
    /// What is wrong with the log.
    pub damage: Option<String>,
    /// Agents whose call has no result.
    pub others: Vec<AgentTimeline>,
}

/// How a timeline is read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// True for whole texts.
    pub full: bool,
    /// Only this turn.
    pub turn: Option<u64>,
    depth: usize,
}

impl Reading {
    /// Of a session itself.
    pub fn new(full: bool, turn: Option<u64>) -> Self {
        Self { full, turn, depth: 0 }
    }

    /// Reads a log. Turns go to `each` as they end, with what is known by then.
    pub fn follow(
        self,
        paths: &SessionPaths,
        mut each: impl FnMut(TurnLine, &Tracker) -> Result<(), Fault>,
    ) -> Result<Ended, Fault> {
        let mut tracker = Tracker::default();
        let mut open = Open { reading: self, paths, line: TurnLine::default(), shown: BTreeSet::new() };
        let mut fault = None;
        let scanned = scan(paths, |line| {
            let record = match line {
                Line::Record(record) => record,
                Line::Foreign(body) => Record { seq: 0, timestamp: String::new(), body },
            };
            for happening in tracker.see(&record) {
                if fault.is_none() {
                    fault = open.take(happening, |turn| each(turn, &tracker)).err();
                }
            }
        });
        let damage = tell_damage(scanned)?;
        for happening in tracker.finish() {
            if fault.is_none() {
                fault = open.take(happening, |turn| each(turn, &tracker)).err();
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        open.hand_on(|turn| each(turn, &tracker))?;
        let others = if self.turn.is_none() { open.others() } else { Vec::new() };
        Ok(Ended { tracker, damage, others })
    }
}

/// The turn that is being read.
struct Open<'a> {
    reading: Reading,
    paths: &'a SessionPaths,
    line: TurnLine,
    shown: BTreeSet<String>,
}

impl Open<'_> {
    fn take(
        &mut self,
        happening: Happening,
        mut each: impl FnMut(TurnLine) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match happening {
            Happening::TurnBegan(mut start) => {
                self.hand_on(&mut each)?;
                if !self.reading.full {
                    start.prompt = cut(&start.prompt, SHORT);
                }
                self.line.start = Some(start);
            }
            Happening::Span(span) => self.span(*span),
            Happening::TurnEnded(mut end) => {
                if !self.reading.full {
                    end.result = end.result.map(|text| cut(&text, SHORT));
                }
                self.line.end = Some(*end);
                self.hand_on(&mut each)?;
            }
        }
        Ok(())
    }

    fn is_wanted(&self) -> bool {
        let number = self.line.start.as_ref().map(|start| start.number);
        self.reading.turn.is_none_or(|wanted| number == Some(wanted))
    }

    fn hand_on(&mut self, mut each: impl FnMut(TurnLine) -> Result<(), Fault>) -> Result<(), Fault> {
        let wanted = self.is_wanted();
        let mut line = std::mem::take(&mut self.line);
        if !wanted || (line.start.is_none() && line.spans.is_empty()) {
            return Ok(());
        }
        line.spans.sort_by_key(|line| line.span.began_ms);
        each(line)
    }

    fn span(&mut self, mut span: Span) {
        let agent = match &span.what {
            What::Tool(call) => call.agent_id.clone().filter(|id| self.shown.insert(id.clone())),
            _ => None,
        };
        if !self.is_wanted() {
            return;
        }
        let agent = agent.and_then(|id| self.agent(&id));
        if !self.reading.full {
            shorten(&mut span);
        }
        self.line.spans.push(SpanLine { span, agent });
    }

    fn agent(&self, id: &str) -> Option<AgentTimeline> {
        // The name comes from a log; it must not lead elsewhere.
        let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if self.reading.depth >= DEEPEST || !plain || id.is_empty() {
            return None;
        }
        let paths = self.paths.agent(id);
        if !paths.log.is_file() {
            return None;
        }
        let mut turns = Vec::new();
        let reading = Reading { turn: None, depth: self.reading.depth + 1, ..self.reading };
        // An agent whose log cannot be read is left out; its session is shown all the same.
        let keep = |turn: TurnLine, _: &Tracker| {
            turns.push(turn);
            Ok(())
        };
        let ended = reading.follow(&paths, keep).ok()?;
        Some(AgentTimeline {
            agent_id: id.to_owned(),
            turns,
            totals: ended.tracker.totals,
            damage: ended.damage,
        })
    }

    /// Agents that no result names: they still run, or the process died with them.
    fn others(&self) -> Vec<AgentTimeline> {
        let ids = self.paths.agent_ids().into_iter().filter(|id| !self.shown.contains(id)).take(MOST_AGENTS);
        ids.filter_map(|id| self.agent(&id)).collect()
    }
}

/// Where the time went, for people.
pub fn told_time(time: &TimeByKind) -> [(&'static str, u64); 4] {
    [("model", time.model), ("tools", time.tools), ("hooks", time.hooks), ("questions", time.questions)]
}

fn shorten(span: &mut Span) {
    match &mut span.what {
        What::Model(call) => call.text = cut(&call.text, SHORT),
        What::Tool(call) => {
            call.result = cut(&call.result, SHORT);
            for input in [Some(&mut call.input), call.ran_input.as_mut()].into_iter().flatten() {
                let text = input.to_string();
                if text.len() > SHORT {
                    *input = Value::String(cut(&text, SHORT));
                }
            }
        }
        What::Mark(mark) => mark.text = cut(&mark.text, SHORT),
        What::Question(question) => question.text = cut(&question.text, SHORT),
        What::Task(task) => task.description = cut(&task.description, SHORT),
        What::Hooks(_) | What::Compaction(_) | What::SideCall(_) => {}
    }
}
