//! Calls of tools as lines: a title with what came of it, then output, a change or an answer. The command is never shortened.

use ratatui_core::text::{Line, Span};

use super::diff::diff_lines;
use super::summary::{call_about, call_outcome, call_output, elapsed_seconds, tool_name};
use crate::markdown::Renderer;
use crate::state::Call;
use crate::text::{LongWords, ansi, clipped, one_line, plain_lines, wrap};
use crate::theme::Ink;
use crate::theme::{Extent, Look};

/// Rows of a change, lines of an error, and lines of output at its start that are shown.
const DIFF_ROWS: usize = 40;
const ERROR_LINES: usize = 20;
const HEAD_LINES: usize = 2;
/// Lines of output of a call that runs.
const TAIL_LINES: usize = 5;
/// After this long the time of a call that runs is shown.
const LONG_CALL: std::time::Duration = std::time::Duration::from_secs(2);

/// A finished call.
pub(crate) fn call_lines(call: &Call, look: &Look<'_>) -> Vec<Line<'static>> {
    match call.tool.as_str() {
        "ExitPlanMode" => return plan_lines(call, look),
        "AskUserQuestion" => return answer_lines(call, look),
        _ => {}
    }
    let mut lines = title_lines(call, look, LongWords::Keep);
    match call.tool.as_str() {
        "Edit" | "Write" | "NotebookEdit" if call.result().is_some_and(|result| !result.is_error) => {
            let most = if look.extent == Extent::Whole { usize::MAX } else { DIFF_ROWS };
            lines.extend(diff_lines(&change_of(call), most, look));
        }
        _ => lines.extend(output_lines(call, look)),
    }
    if look.extent == Extent::Whole && is_foreign(&call.tool) {
        lines.insert(
            1.min(lines.len()),
            Line::from(look.span(Ink::Dim, format!("  {}", one_line(&call.input.to_string())))),
        );
    }
    lines
}

fn is_foreign(tool: &str) -> bool {
    tool.starts_with("mcp__")
}

/// The change that a call made, in unified form.
fn change_of(call: &Call) -> String {
    let diff = call.result().and_then(|result| result.structured["diff"].as_str());
    match (diff, call.text("content").or_else(|| call.text("new_source"))) {
        (Some(diff), _) => diff.to_owned(),
        (None, Some(content)) => {
            let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
            format!("@@ -0,0 +1,{} @@\n{lines}", content.lines().count())
        }
        (None, None) => String::new(),
    }
}

/// The title: sign, tool, what it is about, what came of it.
fn title_lines(call: &Call, look: &Look<'_>, long: LongWords) -> Vec<Line<'static>> {
    let ink = match (&call.denial, call.result()) {
        (Some(_), _) => Ink::Warning,
        (None, Some(result)) if result.is_error => Ink::Bad,
        (None, Some(_)) => Ink::Good,
        (None, None) => Ink::Accent,
    };
    let about = call_about(call, look.cwd);
    let mut about = plain_lines(&about).into_iter();
    let outcome = call_outcome(call);
    let mut head =
        vec![look.span(ink, format!("{} ", look.signs.call)), look.span(Ink::Strong, tool_name(&call.tool))];
    if let Some(first) = about.next().filter(|first| !first.is_empty()) {
        head.push(look.span(Ink::Text, format!(" {first}")));
    }
    let more: Vec<String> = about.collect();
    let add_outcome = |spans: &mut Vec<Span<'static>>| {
        if !outcome.is_empty() {
            spans.push(look.span(Ink::Dim, format!(" {} {outcome}", look.signs.dot)));
        }
    };
    if more.is_empty() {
        add_outcome(&mut head);
    }
    let mut lines = wrap(&Line::from(head), look.width, &Span::raw("  "), long);
    let last = more.len().saturating_sub(1);
    for (at, text) in more.into_iter().enumerate() {
        let mut spans = vec![look.span(Ink::Text, format!("    {text}"))];
        if at == last {
            add_outcome(&mut spans);
        }
        let line = Line::from(spans);
        match long {
            LongWords::Keep => lines.push(line),
            LongWords::Split => lines.extend(wrap(&line, look.width, &Span::raw("    "), long)),
        }
    }
    lines
}

/// What a finished call printed: some of it, or all in an overlay.
fn output_lines(call: &Call, look: &Look<'_>) -> Vec<Line<'static>> {
    let is_error = call.result().is_some_and(|result| result.is_error);
    let text = if look.extent == Extent::Whole {
        call.result().map(|result| result.text.clone()).unwrap_or_default()
    } else {
        call_output(call)
    };
    if text.trim().is_empty() {
        return Vec::new();
    }
    let all = ansi::lines(&text, look.theme.has_colors());
    let most = match (look.extent, is_error) {
        (Extent::Whole, _) => usize::MAX,
        (Extent::Short, true) => ERROR_LINES.max(look.output_lines),
        (Extent::Short, false) => look.output_lines,
    };
    let indented = |line: &Line<'static>| {
        let spans = std::iter::once(Span::raw("  ")).chain(line.spans.iter().cloned());
        Line::from(spans.collect::<Vec<_>>())
    };
    // One line more than the bound is shorter than the words that would replace it.
    if all.len() <= most.saturating_add(1) && most > 0 {
        return all.iter().map(indented).collect();
    }
    let head = HEAD_LINES.min(most);
    let tail = most - head;
    let hidden = all.len() - head - tail;
    let mut lines: Vec<Line<'static>> = all[..head].iter().map(indented).collect();
    let words = format!("  {} {hidden} more lines (Ctrl+O shows all)", look.signs.more);
    lines.push(Line::from(look.span(Ink::Dim, words)));
    lines.extend(all[all.len() - tail..].iter().map(indented));
    lines
}

/// A call that has no result yet, in rows that fit.
pub(crate) fn live_call_lines(call: &Call, look: &Look<'_>) -> Vec<Line<'static>> {
    if call.is_done() {
        return title_lines(call, look, LongWords::Split);
    }
    let mut lines = title_lines(call, look, LongWords::Split);
    let elapsed = call.since.map(|since| look.now.saturating_duration_since(since));
    let elapsed = elapsed.filter(|elapsed| *elapsed >= LONG_CALL && !look.still).map(elapsed_seconds);
    let progress = call.agent.as_ref().map(|agent| {
        let tool = agent.last_tool.as_deref().map(tool_name).unwrap_or_default();
        let about = one_line(&agent.about);
        format!(
            "{tool} {about} {} {} calls {} {} tokens",
            look.signs.dot, agent.calls, look.signs.dot, agent.tokens
        )
    });
    if let Some(progress) = progress {
        lines.push(Line::from(look.span(Ink::Dim, clipped(&format!("  {progress}"), look.width))));
    }
    let (tail, hidden) = call.tail.last(TAIL_LINES);
    if hidden > 0 {
        lines.push(Line::from(look.span(Ink::Dim, format!("  {} {hidden} lines before", look.signs.more))));
    }
    for line in ansi::lines(&tail.join("\n"), look.theme.has_colors()) {
        let text: String = line.spans.iter().map(|span| &*span.content).collect();
        if !text.is_empty() || tail.len() > 1 {
            lines.push(Line::from(look.span(Ink::Dim, clipped(&format!("  {text}"), look.width))));
        }
    }
    if let Some(elapsed) = elapsed {
        lines.push(Line::from(look.span(Ink::Dim, format!("  {elapsed}"))));
    }
    lines
}

/// A plan and what was said to it.
fn plan_lines(call: &Call, look: &Look<'_>) -> Vec<Line<'static>> {
    let approved = call.denial.is_none() && call.result().is_some_and(|result| !result.is_error);
    let (ink, words) =
        if approved { (Ink::Good, "Plan approved") } else { (Ink::Warning, "Plan not approved") };
    let mut lines = vec![Line::from(vec![
        look.span(ink, format!("{} ", look.signs.call)),
        look.span(Ink::Strong, words),
    ])];
    lines.extend(Renderer::whole(call.text("plan").unwrap_or_default(), look));
    lines
}

/// Questions of the model and what was answered.
fn answer_lines(call: &Call, look: &Look<'_>) -> Vec<Line<'static>> {
    let answers = call.result().and_then(|result| result.structured["answers"].as_object()).cloned();
    let mut lines = vec![Line::from(vec![
        look.span(Ink::Accent, format!("{} ", look.signs.call)),
        look.span(Ink::Strong, if answers.is_some() { "Answered" } else { "Not answered" }),
    ])];
    for (question, answer) in answers.into_iter().flatten() {
        let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let line = Line::from(vec![
            look.span(Ink::Text, format!("  {} ", one_line(&question))),
            look.span(Ink::Dim, format!("{} ", look.signs.arrow)),
            look.span(Ink::Strong, one_line(&answer)),
        ]);
        lines.extend(wrap(&line, look.width, &Span::raw("    "), LongWords::Keep));
    }
    lines
}
