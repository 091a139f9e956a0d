//! Draws a timeline for people: a line for each thing that happened, with how long it took and a bar that shows when in
//! its turn that was; under it what was decided, by whom, and how it ended.

use std::io;

use qoder_core::timeline::{
    Compaction, HooksRan, MarkKind, ModelCall, Question, SideCall, Span, ToolCall, Totals, Tracker, TurnEnd,
    TurnStart, What,
};
use qoder_types::{
    Behavior, CallOutcome, Decision, DecisionLayer, HookOutcome, HookVerdict, TaskStatus, Usage,
};

use super::page::{Page, Scale, columns, cut, duration, one_line, pad};
use super::timeline::{AgentTimeline, TurnLine, told_time};
use crate::screen::{Document, Ink};

/// Room for a length of time.
const TIME: usize = 8;

/// Digits of a blob's name that tell it apart for people.
const SHORT_NAME: usize = 13;

/// Draws on a page.
pub struct Drawing<'a> {
    /// The page.
    pub page: Page,
    /// Where it goes.
    pub out: &'a mut Document,
}

/// The place of a line.
#[derive(Clone, Copy)]
struct At {
    indent: usize,
    scale: Scale,
}

impl Drawing<'_> {
    /// Draws a turn, or what happened between two.
    pub fn turn(&mut self, turn: &TurnLine) -> io::Result<()> {
        let from = turn.start.as_ref().map(|start| start.began_ms);
        let to = turn.end.as_ref().map(|end| end.ended_ms);
        let first = turn.spans.iter().map(|line| line.span.began_ms).min();
        let last = turn.spans.iter().map(|line| line.span.ended_ms).max();
        let scale = Scale {
            from: from.or(first).unwrap_or(0),
            to: to.or(last).unwrap_or(0),
            cells: (self.page.width / 5).clamp(10, 30),
        };
        let at = At { indent: 0, scale };
        if turn.start.is_none() {
            self.heading(Ink::Faint, "between turns")?;
        }
        self.lines(turn, at)
    }

    fn lines(&mut self, turn: &TurnLine, at: At) -> io::Result<()> {
        if let Some(start) = &turn.start {
            self.head(start, turn.end.as_ref(), at)?;
        }
        for line in &turn.spans {
            self.span(&line.span, at)?;
            if let Some(agent) = &line.agent {
                self.agent(agent, At { indent: at.indent + 4, ..at })?;
            }
        }
        match &turn.end {
            Some(end) => self.end(end, at),
            None => Ok(()),
        }
    }

    fn head(&mut self, start: &TurnStart, end: Option<&TurnEnd>, at: At) -> io::Result<()> {
        if at.indent == 0 {
            let when = jiff::Timestamp::from_millisecond(start.began_ms).unwrap_or_default();
            let took = end.map(|end| u64::try_from(end.ended_ms - end.began_ms).unwrap_or(0)).unwrap_or(0);
            let head =
                format!("turn {}  {}  {}", start.number, when.strftime("%Y-%m-%d %H:%M:%S"), duration(took));
            self.heading(Ink::Faint, &head)?;
        }
        if start.prompt.is_empty() {
            return Ok(());
        }
        let room = self.page.width - 2 - at.indent;
        let prompt = format!("> {}", self.page.text(&start.prompt, at.indent + 2, room));
        self.plain(Ink::Bold, &prompt, at.indent)
    }

    /// The timeline of an agent.
    pub fn others(&mut self, agent: &AgentTimeline) -> io::Result<()> {
        let spans = agent.turns.iter().flat_map(|turn| &turn.spans);
        let from =
            agent.turns.iter().filter_map(|turn| turn.start.as_ref()).map(|start| start.began_ms).min();
        let to = spans.map(|line| line.span.ended_ms).max();
        let scale = Scale {
            from: from.unwrap_or(0),
            to: to.unwrap_or(0),
            cells: (self.page.width / 5).clamp(10, 30),
        };
        self.heading(Ink::Faint, "an agent without a result")?;
        self.agent(agent, At { indent: 4, scale })
    }

    fn agent(&mut self, agent: &AgentTimeline, at: At) -> io::Result<()> {
        let totals = &agent.totals;
        let told = format!(
            "agent {}  {}  ${:.4}",
            one_line(&agent.agent_id),
            tokens(&totals.usage),
            totals.cost_usd
        );
        self.plain(Ink::Faint, &told, at.indent)?;
        if let Some(damage) = &agent.damage {
            self.plain(Ink::Bad, &format!("! {}", one_line(damage)), at.indent)?;
        }
        agent.turns.iter().try_for_each(|turn| self.lines(turn, at))
    }

    fn span(&mut self, span: &Span, at: At) -> io::Result<()> {
        match &span.what {
            What::Model(call) => self.model(call, span, at),
            What::Tool(call) => self.tool(call, span, at),
            What::Hooks(hooks) => self.hooks(hooks, span, at),
            What::Question(question) => self.question(question, span, at),
            What::Task(task) => {
                let status = task.status.map_or("still runs", TaskStatus::as_str);
                let text =
                    format!("& {}: {} ({status})", one_line(&task.task_id), one_line(&task.description));
                let ink = if task.status == Some(TaskStatus::Failed) { Ink::Bad } else { Ink::Plain };
                self.row(ink, &text, span, at, 2)
            }
            What::Compaction(compaction) => self.compaction(compaction, span, at),
            What::SideCall(call) => self.side_call(call, span, at),
            What::Mark(mark) => {
                let most = self.page.width.saturating_sub(at.indent + 4);
                let text = self.page.text(&mark.text, at.indent + 4, most);
                let text = match mark.mark {
                    MarkKind::Notice => format!("  [{text}]"),
                    MarkKind::Interrupted => "  (interrupted)".to_owned(),
                    MarkKind::Permissions | MarkKind::Cut | MarkKind::Rewound | MarkKind::Withdrawn => {
                        format!("  ({text})")
                    }
                };
                self.plain(Ink::Faint, &text, at.indent)
            }
        }
    }

    /// A line with a length of time and a bar at its end.
    fn row(&mut self, ink: Ink, text: &str, span: &Span, at: At, indent: usize) -> io::Result<()> {
        let room = self.page.width.saturating_sub(at.scale.cells + TIME + 3);
        let line = cut(&format!("{}{text}", " ".repeat(at.indent + indent)), room);
        let filled = pad(&line, room);
        let (text, space) = filled.split_at(line.len());
        let took = duration(span.duration_ms());
        let before = " ".repeat(TIME.saturating_sub(columns(&took)));
        let bar = at.scale.bar(span.began_ms, span.ended_ms);
        let line = self.page.ink(ink, text).plain(&format!("{space} {before}{took}  ")).ink(Ink::Faint, &bar);
        self.out.write_line(&line)
    }

    fn plain(&mut self, ink: Ink, text: &str, indent: usize) -> io::Result<()> {
        self.out.write_line(&self.page.ink(Ink::Plain, &" ".repeat(indent)).ink(ink, text))
    }

    fn heading(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        self.out.write_line(&self.page.ink(Ink::Plain, "\n").ink(ink, text))
    }

    fn model(&mut self, call: &ModelCall, span: &Span, at: At) -> io::Result<()> {
        let model = if call.model.is_empty() { &call.requested_model } else { &call.model };
        let model = one_line(model);
        if call.model.is_empty() {
            let why = call.failure.as_ref().map_or("no reply", |failure| failure.message.as_str());
            self.row(Ink::Bad, &format!("* {model}  no reply"), span, at, 2)?;
            let most = self.page.width.saturating_sub(at.indent + 4);
            let why = self.page.text(why, at.indent + 4, most);
            return self.plain(Ink::Bad, &format!("  ! {why}"), at.indent);
        }
        let text = format!("* {model}  {}  ${:.4}", tokens(&call.usage), call.cost_usd);
        self.row(Ink::Good, &text, span, at, 2)?;
        if call.text.trim().is_empty() {
            return Ok(());
        }
        let said = self.page.text(&call.text, at.indent + 2, self.page.width.saturating_sub(at.indent + 2));
        self.plain(Ink::Plain, &format!("  {said}"), at.indent)
    }

    fn tool(&mut self, call: &ToolCall, span: &Span, at: At) -> io::Result<()> {
        let name = one_line(&call.name);
        self.row(Ink::Name, &format!("• {name} {}", one_line(&told_input(&call.input))), span, at, 2)?;
        if self.page.full {
            let whole = format!("{:#}", call.input);
            self.plain(Ink::Plain, &format!("    {}", self.page.text(&whole, at.indent + 4, 0)), at.indent)?;
        }
        self.changed_input(call, at)?;
        if let Some(decision) = &call.decision {
            let (behavior, ink) = match decision.behavior {
                Behavior::Allow => ("allow", Ink::Faint),
                Behavior::Ask => ("ask", Ink::Faint),
                Behavior::Deny => ("deny", Ink::Bad),
            };
            let text = format!("{behavior}: {} · {}", who(decision), one_line(&decision.reason));
            let most = self.page.width.saturating_sub(at.indent + 4);
            self.plain(ink, &format!("    {}", self.page.text(&text, at.indent + 4, most)), at.indent)?;
        }
        self.kept(call, at)?;
        let (outcome, ink) = outcome_word(call.outcome);
        let ran = call.ran_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
        let id = span.tool_use_id.as_deref().map(|id| format!(" · {}", one_line(id))).unwrap_or_default();
        self.plain(ink, &format!("    {outcome}{ran}{id}"), at.indent)?;
        if self.page.full && !call.result.is_empty() {
            let result = self.page.text(&call.result, at.indent + 4, 0);
            self.plain(Ink::Faint, &format!("    {result}"), at.indent)?;
        }
        Ok(())
    }

    /// What counts in place of what the model asked for, and who changed it.
    fn changed_input(&mut self, call: &ToolCall, at: At) -> io::Result<()> {
        let Some(input) = &call.ran_input else { return Ok(()) };
        let by = call.input_changed_by.as_deref().map(one_line).unwrap_or_default();
        let ran = if call.ran_ms.is_some() { "ran with" } else { "input is now" };
        let most = self.page.width.saturating_sub(at.indent + 4);
        let text = match self.page.full {
            true => format!("{input:#}"),
            false => told_input(input),
        };
        let text = format!("changed by {by}, {ran} {text}");
        self.plain(Ink::Name, &format!("    {}", self.page.text(&text, at.indent + 4, most)), at.indent)
    }

    /// The files that were kept before the call changed them.
    fn kept(&mut self, call: &ToolCall, at: At) -> io::Result<()> {
        for kept in &call.kept {
            let what = match &kept.sha256 {
                Some(sha256) => format!("kept {} as {}", kept.path, cut(sha256, SHORT_NAME)),
                None => format!("kept {} as not being there", kept.path),
            };
            let most = self.page.width.saturating_sub(at.indent + 4);
            self.plain(
                Ink::Faint,
                &format!("    {}", self.page.text(&what, at.indent + 4, most)),
                at.indent,
            )?;
        }
        Ok(())
    }

    fn hooks(&mut self, hooks: &HooksRan, span: &Span, at: At) -> io::Result<()> {
        let verdict = match hooks.verdict {
            Some(HookVerdict::Allow) => ": allow",
            Some(HookVerdict::Defer) => ": defer",
            Some(HookVerdict::Ask) => ": ask",
            Some(HookVerdict::Deny) => ": deny",
            None => "",
        };
        let stop = if hooks.stops { ", ends the turn" } else { "" };
        let reason =
            hooks.reason.as_ref().map(|reason| format!(" ({})", one_line(reason))).unwrap_or_default();
        let count = match hooks.runs.len() {
            1 => "1 hook".to_owned(),
            count => format!("{count} hooks"),
        };
        let text = format!("{count} for {}{verdict}{stop}{reason}", one_line(&hooks.event));
        self.row(Ink::Plain, &text, span, at, 4)?;
        for run in hooks.runs.iter().filter(|run| run.outcome != HookOutcome::Success) {
            let problem = run.problem.as_deref().unwrap_or("no answer");
            let most = self.page.width.saturating_sub(at.indent + 6);
            let text = format!("! {}: {}", one_line(&run.hook), self.page.text(problem, at.indent + 6, most));
            self.plain(Ink::Bad, &format!("      {}", cut(&text, most)), at.indent)?;
        }
        Ok(())
    }

    fn question(&mut self, question: &Question, span: &Span, at: At) -> io::Result<()> {
        let (of, text) = (one_line(&question.of), one_line(&question.text));
        self.row(Ink::Plain, &format!("? {of} asks: {text}"), span, at, 4)?;
        let by = question.by.as_deref().map(one_line).unwrap_or_default();
        let answer = match question.answer.as_deref() {
            Some("allow") => format!("allowed by {by}"),
            Some("deny") => format!("denied by {by}"),
            Some(other) => format!("{} by {by}", one_line(other)),
            None => "still waits for an answer".to_owned(),
        };
        self.plain(Ink::Faint, &format!("      {answer}"), at.indent)
    }

    fn compaction(&mut self, compaction: &Compaction, span: &Span, at: At) -> io::Result<()> {
        let text = format!(
            "= older messages were replaced by a summary ({} tokens before)  {}  {}  ${:.4}",
            compaction.pre_tokens,
            one_line(&compaction.model),
            tokens(&compaction.usage),
            compaction.cost_usd
        );
        self.row(Ink::Plain, &text, span, at, 2)
    }

    fn side_call(&mut self, call: &SideCall, span: &Span, at: At) -> io::Result<()> {
        let purpose = serde_json::to_value(call.purpose).unwrap_or_default();
        let text = format!(
            "+ {} for {}  {}  ${:.4}",
            one_line(&call.model),
            purpose.as_str().unwrap_or("a call"),
            tokens(&call.usage),
            call.cost_usd
        );
        self.row(Ink::Plain, &text, span, at, 4)
    }

    fn end(&mut self, end: &TurnEnd, at: At) -> io::Result<()> {
        let (word, ink) = match end.subtype {
            None => ("unfinished", Ink::Bad),
            Some(_) if end.is_error => ("error", Ink::Bad),
            Some(_) => ("done", Ink::Good),
        };
        let text = format!(
            "  = {word} after {} model calls, {}, ${:.4}",
            end.model_calls,
            tokens(&end.usage),
            end.cost_usd
        );
        self.plain(ink, &text, at.indent)?;
        for error in &end.errors {
            let most = self.page.width.saturating_sub(at.indent + 4);
            self.plain(Ink::Bad, &format!("  ! {}", self.page.text(error, at.indent + 4, most)), at.indent)?;
        }
        Ok(())
    }

    /// What the session came to.
    pub fn totals(&mut self, tracker: &Tracker) -> io::Result<()> {
        let totals: &Totals = &tracker.totals;
        let open = if tracker.is_unfinished() { ", unfinished: continue with --resume" } else { "" };
        let time: Vec<String> = told_time(&totals.time_ms)
            .iter()
            .map(|(kind, time)| format!("{kind} {}", duration(*time)))
            .collect();
        let money = |(model, totals): (&String, &qoder_types::ModelTotals)| {
            format!("{} ${:.4}", one_line(model), totals.cost_usd)
        };
        let money: Vec<String> = totals.by_model.iter().map(money).collect();
        let money = if money.len() > 1 { format!(" ({})", money.join(", ")) } else { String::new() };
        self.heading(Ink::Bold, "totals")?;
        for line in [
            format!("turns   {}{open}", totals.turns),
            format!("records {}", tracker.records),
            format!("models  {} calls, {}", totals.model_calls, tokens(&totals.usage)),
            format!("tools   {} calls, {} denied", totals.tool_calls, totals.denied),
            format!("cost    ${:.4}{money}", totals.cost_usd),
            format!("time    {}: {}", duration(totals.turns_ms), time.join(", ")),
        ] {
            self.out.write_row(&line)?;
        }
        Ok(())
    }
}

/// An input, which may have been cut to a text before.
fn told_input(input: &serde_json::Value) -> String {
    match input {
        serde_json::Value::String(cut) => cut.clone(),
        whole => whole.to_string(),
    }
}

fn tokens(usage: &Usage) -> String {
    let cached = match usage.cache_read_input_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    format!("{} in{cached} + {} out tokens", usage.total_input(), usage.output_tokens)
}

fn outcome_word(outcome: Option<CallOutcome>) -> (&'static str, Ink) {
    match outcome {
        Some(CallOutcome::Completed) => ("completed", Ink::Good),
        Some(CallOutcome::Failed) => ("failed", Ink::Bad),
        Some(CallOutcome::Denied) => ("denied", Ink::Bad),
        Some(CallOutcome::Interrupted) => ("interrupted", Ink::Bad),
        Some(CallOutcome::NotRun) => ("notrun", Ink::Bad),
        Some(CallOutcome::Unknown) => ("unknown", Ink::Bad),
        None => ("no result", Ink::Bad),
    }
}

/// Who decided: the rule with its place, the mode, the hook or the person.
fn who(decision: &Decision) -> String {
    let answered = decision.answered_by.as_ref().map(|by| one_line(&by.to_string()));
    match decision.layer {
        DecisionLayer::Rule => {
            let rule = decision.rule.as_deref().map(one_line).unwrap_or_default();
            let place = decision.origin.as_ref().and_then(|origin| {
                let line = origin.line.map(|line| format!(":{line}")).unwrap_or_default();
                Some(format!(" of {}{line}", one_line(origin.file.as_deref()?)))
            });
            format!("rule {rule}{}", place.unwrap_or_default())
        }
        DecisionLayer::Mode => format!("mode {}", decision.mode.as_str()),
        DecisionLayer::Person => format!("person {}", answered.unwrap_or_default()),
        DecisionLayer::Hook => answered.unwrap_or_else(|| "hook".to_owned()),
        DecisionLayer::BuiltIn => "known of the tool".to_owned(),
        DecisionLayer::SafetyCheck => "safety check".to_owned(),
        DecisionLayer::Unattended => "no one to ask".to_owned(),
        DecisionLayer::Classifier => "classifier".to_owned(),
        DecisionLayer::Sandbox => "sandbox".to_owned(),
    }
}
