//! `qodercli hooks`: which hooks settings define here, who wrote each, for which event and what it is about, and what runs.
//! The same list is shown when a person trusts a folder: to vouch for hooks they have to see them whole.

use std::collections::BTreeMap;

use clap::Subcommand;
use qoder_config::hooks::Hook;
use qoder_config::sources::Problem;
use qoder_types::display::{escaped_for_display, escaped_line};
use serde_json::{Value, json};

use crate::command_line::place::PlaceArguments;
use crate::exit::{Exit, Fault};
use crate::screen;

/// What to do about hooks.
#[derive(Debug, Subcommand)]
pub enum HooksAction {
    /// List the hooks in force here, with file and line.
    List(PlaceArguments),
}

/// Runs the command.
pub fn run(action: HooksAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let HooksAction::List(place) = action;
    let json = place.json;
    let setup = place.prepare(environment)?;
    let (hooks, problems) = setup.settings_hooks().list();
    if json {
        let rows: Vec<Value> = hooks.iter().map(Hook::to_wire).collect();
        let problems: Vec<Value> = problems.iter().map(problem).collect();
        screen::print_json(&json!({ "hooks": rows, "problems": problems }))?;
        return Ok(Exit::Success);
    }
    tell_problems(&problems);
    if hooks.is_empty() {
        screen::print_line("no settings define hooks here")?;
    }
    for hook in &hooks {
        screen::print_line(&line(hook))?;
    }
    Ok(Exit::Success)
}

/// Says what is wrong with files.
pub fn tell_problems(problems: &[Problem]) {
    for problem in problems {
        screen::print_note(&format!("warning: {}", indented(&problem.to_string())));
    }
}

/// A hook in words, with all of what runs.
pub fn line(hook: &Hook) -> String {
    let matcher = hook.matcher.as_deref().filter(|matcher| !matcher.is_empty()).unwrap_or("*");
    let condition = hook.traits.condition.as_ref().map(|text| format!(" if {text}")).unwrap_or_default();
    let place = hook.traits.place.as_ref();
    let origin = place.map(|place| format!("  [{} {place}]", place.origin.as_str())).unwrap_or_default();
    let head = format!("{} {matcher}{condition}{origin}", hook.event);
    format!("{}\n    {}: {}", escaped_line(&head), hook.action.kind(), indented(&hook.action.display_text()))
}

fn problem(problem: &Problem) -> Value {
    json!({
        "file": problem.path.display().to_string(), "line": problem.line, "problem": problem.text,
        "origin": problem.origin.as_str(),
    })
}

/// Lines stay lines, indented so that none passes for another hook.
fn indented(text: &str) -> String {
    escaped_for_display(text).replace('\n', "\n    ")
}
