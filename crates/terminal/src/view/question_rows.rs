//! A question as rows: what is asked and why, all of what would run, and the choices. What is longer than the room scrolls.

use ratatui_core::text::{Line, Span};

use super::bindings::{Bindings, KeyAction};
use super::frame::{Rows, composer_rows, wrapped};
use super::question::QuestionView;
use crate::markdown::Renderer;
use crate::questions::{Asked, BodyLine, Choices, FieldKind, Form, Permission, Plan, TrustFacts};
use crate::text::{clipped, one_line, plain_lines};
use crate::theme::{Ink, Look};

/// What would run is shown in so many rows at least, before everything else of a question has to scroll.
const LEAST_BODY: usize = 3;

/// The rows of a question; `count` are all that wait.
pub(super) fn question_rows(
    view: &QuestionView,
    count: usize,
    room: usize,
    look: &Look<'_>,
    bindings: &Bindings,
) -> Rows {
    let (head, body, foot) = match &view.asked {
        Asked::Permission(permission) => (
            permission_head(permission, look),
            permission_body(permission, look),
            permission_foot(permission, view, look),
        ),
        Asked::Plan(plan) => (plan_head(look), plan_body(plan, look), plan_foot(plan, view, look)),
        Asked::Choices(choices) => {
            (choices_head(choices, view, look), Vec::new(), choices_foot(choices, view, look))
        }
        Asked::Form(form) => (form_head(form, look), Vec::new(), form_foot(form, view, look)),
        Asked::Trust(facts) => (trust_head(facts, look), trust_body(facts, look), trust_foot(view, look)),
    };
    let mut title = head;
    if count > 1
        && let Some(first) = title.first_mut()
    {
        first.spans.push(look.span(Ink::Dim, format!(" (1 of {count})")));
    }
    let hint = focus_hint(view, look, bindings);
    let left = room.saturating_sub(title.len() + foot.lines.len() + hint.len());
    let mut rows = Rows::default();
    if left < body.len().min(LEAST_BODY) {
        let mut all = Rows { lines: title, caret: None };
        all.append(Rows { lines: body, caret: None });
        all.append(foot);
        rows.append(tight_window(all, view, room, look, bindings));
    } else {
        let shown = body_window(&body, view.scroll, left, look);
        rows.append(Rows { lines: title, caret: None });
        rows.append(Rows { lines: shown, caret: None });
        rows.append(foot);
        rows.append(Rows { lines: hint, caret: None });
    }
    if !view.has_focus() {
        rows.caret = None;
    }
    rows
}

/// A question that is too high for the window, choices included: all of it scrolls, and what is chosen or written stays in sight.
fn tight_window(all: Rows, view: &QuestionView, room: usize, look: &Look<'_>, bindings: &Bindings) -> Rows {
    let (count, shown) = (all.lines.len(), room.saturating_sub(1).min(all.lines.len()));
    let mut from = view.scroll.min(count - shown);
    let in_use = all.caret.filter(|_| view.selected > 0 || view.words.is_some());
    if let Some((row, _)) = in_use.filter(|_| shown > 0) {
        from = from.min(row).max((row + 1).saturating_sub(shown));
    }
    let caret = all.caret.and_then(|(row, column)| Some((row.checked_sub(from)?, column)));
    let mut lines: Vec<Line<'static>> = all.lines.into_iter().skip(from).take(shown).collect();
    let word = if view.has_focus() {
        "Enter chooses".to_owned()
    } else {
        format!("{} to answer", bindings.keys(KeyAction::FocusQuestion))
    };
    let dot = look.signs.dot;
    let words = format!("{word} {dot} PageDown {dot} {}-{} of {count}", from + 1, from + shown);
    lines.push(Line::from(look.span(Ink::Warning, clipped(&words, look.width))));
    Rows { caret: caret.filter(|(row, _)| *row < shown), lines }
}

/// The rows of a body that fit, from the one that was scrolled to; never fewer than three.
fn body_window(body: &[Line<'static>], scroll: usize, room: usize, look: &Look<'_>) -> Vec<Line<'static>> {
    if body.len() <= room {
        return body.to_vec();
    }
    let room = room.max(LEAST_BODY) - 1;
    let from = scroll.min(body.len().saturating_sub(room));
    let to = (from + room).min(body.len());
    let mut rows = body[from..to].to_vec();
    let words = format!("  rows {}-{to} of {}: PageUp and PageDown scroll", from + 1, body.len());
    rows.push(Line::from(look.span(Ink::Warning, words)));
    rows
}

fn focus_hint(view: &QuestionView, look: &Look<'_>, bindings: &Bindings) -> Vec<Line<'static>> {
    let writes_words = view.words.is_some() && matches!(view.asked, Asked::Permission(_) | Asked::Plan(_));
    let text = if view.has_focus() && writes_words {
        "Enter sends · Esc goes back to the choices".to_owned()
    } else if view.has_focus() {
        match &view.asked {
            Asked::Permission(_) => "Enter chooses · Tab says why · Ctrl+G edits · Esc stops the turn",
            Asked::Plan(_) => "Enter chooses · Ctrl+G edits the plan",
            Asked::Choices(_) => "Enter answers · Space marks · Tab next question · Esc does not answer",
            Asked::Form(_) => "Enter next field, then send · Ctrl+X declines · Esc cancels",
            Asked::Trust(_) => "Enter chooses · Esc means no",
        }
        .to_owned()
    } else {
        format!("{} to answer; keys go to the prompt until then", bindings.keys(KeyAction::FocusQuestion))
    };
    wrapped(&Line::from(look.span(Ink::Dim, text.replace('·', look.signs.dot))), look)
}

fn title(text: String, look: &Look<'_>) -> Line<'static> {
    Line::from(vec![look.span(Ink::Warning, "? "), look.span(Ink::Strong, text)])
}

/// A row of a list of choices.
fn choice_rows(key: &str, label: String, is_chosen: bool, look: &Look<'_>) -> Vec<Line<'static>> {
    let (sign, ink) = if is_chosen { (look.signs.chosen, Ink::Selected) } else { (" ", Ink::Text) };
    wrapped(&Line::from(vec![look.span(ink, format!("{sign} {key} ")), look.span(ink, label)]), look)
}

fn permission_head(permission: &Permission, look: &Look<'_>) -> Vec<Line<'static>> {
    let mut rows = vec![title(permission.headline(), look)];
    for reason in permission.reasons() {
        rows.extend(wrapped(&Line::from(look.span(Ink::Dim, format!("  {reason}"))), look));
    }
    rows
}

fn permission_body(permission: &Permission, look: &Look<'_>) -> Vec<Line<'static>> {
    let row = |line: BodyLine| match line {
        BodyLine::Text(text) => Line::from(look.span(Ink::Code, format!("  {text}"))),
        BodyLine::Field(name, value) => {
            Line::from(vec![look.span(Ink::Dim, format!("  {name}: ")), look.span(Ink::Text, value)])
        }
        BodyLine::Added(text) => Line::from(look.span(Ink::Added, format!("  + {text}"))),
        BodyLine::Removed(text) => {
            Line::from(look.span(Ink::Removed, format!("  {} {text}", look.signs.minus)))
        }
    };
    permission.body().into_iter().flat_map(|line| wrapped(&row(line), look)).collect()
}

fn permission_foot(permission: &Permission, view: &QuestionView, look: &Look<'_>) -> Rows {
    if let Some(rows) = words_rows(view, "Say what to do instead:", look) {
        return rows;
    }
    let mut rows = Rows::default();
    for (at, choice) in permission.choices().into_iter().enumerate() {
        let is_chosen = view.has_focus() && view.selected == at;
        let mut label = permission.label(choice);
        if choice == crate::questions::PermissionChoice::Always && permission.scopes().len() > 1 {
            let scope = permission.scope().word();
            label = format!("{label} ({scope}; Left and Right change the file)");
        }
        if is_chosen {
            rows.caret = Some((rows.lines.len(), 0));
        }
        rows.lines.extend(choice_rows(&format!("{}.", choice.number()), label, is_chosen, look));
    }
    rows
}

fn plan_head(look: &Look<'_>) -> Vec<Line<'static>> {
    vec![title("The plan is ready. Shall it be carried out?".to_owned(), look)]
}

fn plan_body(plan: &Plan, look: &Look<'_>) -> Vec<Line<'static>> {
    let lines = Renderer::whole(plan.text(), look);
    lines.iter().flat_map(|line| wrapped(line, look)).collect()
}

fn plan_foot(plan: &Plan, view: &QuestionView, look: &Look<'_>) -> Rows {
    if let Some(rows) = words_rows(view, "Say what to change:", look) {
        return rows;
    }
    let mut rows = Rows::default();
    for (at, choice) in plan.choices().iter().enumerate() {
        let is_chosen = view.has_focus() && view.selected == at;
        if is_chosen {
            rows.caret = Some((rows.lines.len(), 0));
        }
        rows.lines.extend(choice_rows(&format!("{}.", at + 1), choice.label().to_owned(), is_chosen, look));
    }
    rows
}

/// The rows in which words are written.
fn words_rows(view: &QuestionView, label: &str, look: &Look<'_>) -> Option<Rows> {
    let words = view.words.as_ref()?;
    let mut rows = Rows { lines: vec![Line::from(look.span(Ink::Text, format!("  {label}")))], caret: None };
    rows.append(composer_rows(words, look, 4));
    Some(rows)
}

fn choices_head(choices: &Choices, view: &QuestionView, look: &Look<'_>) -> Vec<Line<'static>> {
    let Some(choice) = choices.all.get(view.place) else { return Vec::new() };
    let mut rows = Vec::new();
    if choices.all.len() > 1 {
        let mut tabs: Vec<Span<'static>> = Vec::new();
        for (at, one) in choices.all.iter().enumerate() {
            let name = if one.header.is_empty() { format!("{}", at + 1) } else { one_line(&one.header) };
            let sign = if one.is_answered() { "[x]" } else { "[ ]" };
            let ink = if at == view.place { Ink::Selected } else { Ink::Dim };
            tabs.push(look.span(ink, format!("{sign} {name}  ")));
        }
        rows.extend(wrapped(&Line::from(tabs), look));
    }
    for (at, line) in plain_lines(&choice.text).into_iter().enumerate() {
        let line =
            if at == 0 { title(line, look) } else { Line::from(look.span(Ink::Strong, format!("  {line}"))) };
        rows.extend(wrapped(&line, look));
    }
    rows
}

fn choices_foot(choices: &Choices, view: &QuestionView, look: &Look<'_>) -> Rows {
    let Some(choice) = choices.all.get(view.place) else { return Rows::default() };
    let mut rows = Rows::default();
    for (at, (label, description)) in choice.options.iter().enumerate() {
        let is_chosen = view.has_focus() && view.selected == at;
        let mark = match (choice.several, choice.chosen.contains(&at)) {
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, true) => "(x) ",
            (false, false) => "",
        };
        let about = if description.is_empty() {
            String::new()
        } else {
            format!(" {} {}", look.signs.dot, one_line(description))
        };
        if is_chosen {
            rows.caret = Some((rows.lines.len(), 0));
        }
        let label = format!("{mark}{}{about}", one_line(label));
        rows.lines.extend(choice_rows(&format!("{}.", at + 1), label, is_chosen, look));
    }
    let own = choice.options.len();
    let is_chosen = view.has_focus() && view.selected == own;
    let label = if choice.words.is_empty() { "your own words".to_owned() } else { one_line(&choice.words) };
    rows.lines.extend(choice_rows(&format!("{}.", own + 1), label, is_chosen, look));
    if let Some(words) = view.words.as_ref().filter(|_| is_chosen) {
        rows.append(composer_rows(words, look, 4));
    }
    rows
}

fn trust_head(facts: &TrustFacts, look: &Look<'_>) -> Vec<Line<'static>> {
    let mut rows = wrapped(&title(format!("Trust {}?", one_line(&facts.folder)), look), look);
    let words = "  Its files would count from now on. They can run programs on your machine:";
    rows.extend(wrapped(&Line::from(look.span(Ink::Text, words)), look));
    rows
}

fn trust_body(facts: &TrustFacts, look: &Look<'_>) -> Vec<Line<'static>> {
    let lines = facts.enables.iter().flat_map(|line| plain_lines(line));
    lines.flat_map(|line| wrapped(&Line::from(look.span(Ink::Code, format!("  {line}"))), look)).collect()
}

fn trust_foot(view: &QuestionView, look: &Look<'_>) -> Rows {
    let mut rows = Rows::default();
    for (at, label) in ["No, work without them", "Yes, I trust this folder"].into_iter().enumerate() {
        let is_chosen = view.has_focus() && view.selected == at;
        if is_chosen {
            rows.caret = Some((rows.lines.len(), 0));
        }
        rows.lines.extend(choice_rows(&format!("{}.", at + 1), label.to_owned(), is_chosen, look));
    }
    rows
}

fn form_head(form: &Form, look: &Look<'_>) -> Vec<Line<'static>> {
    let name = form.title().map_or_else(String::new, |title| format!(": {}", one_line(title)));
    let mut rows = vec![title(format!("MCP server {} asks{name}", form.server()), look)];
    for line in plain_lines(form.message()) {
        rows.extend(wrapped(&Line::from(look.span(Ink::Text, format!("  {line}"))), look));
    }
    rows
}

fn form_foot(form: &Form, view: &QuestionView, look: &Look<'_>) -> Rows {
    let mut rows = Rows::default();
    for (at, field) in form.fields.iter().enumerate() {
        let is_here = view.has_focus() && view.place == at;
        let ink = if is_here { Ink::Selected } else { Ink::Text };
        let needed = if field.required { " *" } else { "" };
        let sign = if is_here { look.signs.chosen } else { " " };
        let value = if is_here { String::new() } else { format!(": {}", one_line(&field.text)) };
        let name = format!("{sign} {}{needed}{value}", one_line(&field.title));
        rows.lines.extend(wrapped(&Line::from(look.span(ink, name)), look));
        if !is_here {
            continue;
        }
        let mut about = one_line(&field.description);
        match &field.kind {
            FieldKind::OneOf(options) => {
                let names: Vec<String> = options.iter().map(|(_, name)| one_line(name)).collect();
                about = format!("{about} {}", names.join(", "));
            }
            FieldKind::YesNo => about = format!("{about} yes or no"),
            FieldKind::Text { .. } | FieldKind::Number { .. } => {}
        }
        if !about.trim().is_empty() {
            rows.lines.extend(wrapped(&Line::from(look.span(Ink::Dim, format!("  {}", about.trim()))), look));
        }
        if let Some(words) = &view.words {
            rows.append(composer_rows(words, look, 3));
        }
        if let Some(problem) = &view.problem {
            rows.lines.push(Line::from(look.span(Ink::Bad, format!("  {problem}"))));
        }
    }
    rows
}
