//! `qodercli skills list` and `qodercli commands list`: what a session here would have, where each comes from, and which
//! files cannot be used.

use crate::command_line::place::PlaceArguments;
use clap::Subcommand;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use qoder_config::commands::{Command, Local};
use qoder_config::extensions::Loaded;
use qoder_config::skills::Skill;
use qoder_config::sources::{Kind, Origin, Problem};
use qoder_types::RuleValue;
use qoder_types::display::escaped_line;
use serde_json::{Value, json};

use super::agents::tell_all;
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_line};

/// What to do with skills or commands.
#[derive(Debug, Subcommand)]
pub enum DefinitionsAction {
    /// List those that a session here would have, their sources, and problems.
    List(PlaceArguments),
}

/// Lists skills or commands.
pub fn list(
    kind: Kind,
    action: DefinitionsAction,
    environment: BTreeMap<String, String>,
) -> Result<Exit, Fault> {
    let DefinitionsAction::List(place) = action;
    let json = place.json;
    let setup = place.prepare(environment)?;
    let loaded = setup.extensions(BTreeMap::new())?;
    let rows = match kind {
        Kind::Skills => skills(&loaded),
        Kind::Commands | Kind::Agents => commands(&loaded),
    };
    if json {
        let problem = |one: &Problem| json!({ "path": one.path, "line": one.line, "problem": one.text, "source": one.origin.as_str() });
        let problems: Vec<Value> = loaded.problems.iter().map(problem).collect();
        print_json(&json!({ kind.folder(): rows, "problems": problems }))?;
    } else {
        tell_all(&loaded.problems);
        print_line(as_text(&rows, kind).trim_end())?;
    }
    Ok(Exit::Success)
}

fn skills(loaded: &Loaded) -> Vec<Value> {
    let row = |skill: &Skill, active: bool| {
        let mut row = json!({
            "name": skill.name, "description": skill.description, "source": skill.origin.as_str(),
            "path": skill.file, "active": active, "modelInvocation": skill.by_model,
            "argumentHint": skill.argument_hint, "allowedTools": rules(&skill.allowed), "paths": skill.paths,
        });
        put_plugin(&mut row, &skill.origin);
        row
    };
    let shadowed = loaded.skills.shadowed().iter().map(|skill| row(skill, false));
    loaded.skills.iter().map(|skill| row(skill, true)).chain(shadowed).collect()
}

fn commands(loaded: &Loaded) -> Vec<Value> {
    let row = |command: &Command, active: bool| {
        let mut row = json!({
            "name": command.name, "description": command.description, "source": command.origin.as_str(),
            "path": command.file, "active": active, "argumentHint": command.argument_hint,
            "allowedTools": rules(&command.allowed),
        });
        put_plugin(&mut row, &command.origin);
        row
    };
    let built_in = Local::ALL.into_iter().map(|local| {
        json!({
            "name": local.name(), "description": local.description(), "source": Origin::BuiltIn.as_str(),
            "active": true, "argumentHint": Some(local.hint()).filter(|hint| !hint.is_empty()),
        })
    });
    // Of a command and a skill with one name, the skill is meant.
    let own = loaded.commands.iter().map(|command| row(command, loaded.skills.get(&command.name).is_none()));
    let shadowed = loaded.commands.shadowed().iter().map(|command| row(command, false));
    built_in.chain(own).chain(shadowed).collect()
}

fn rules(rules: &[RuleValue]) -> Vec<String> {
    rules.iter().map(RuleValue::text).collect()
}

fn put_plugin(row: &mut Value, origin: &Origin) {
    if let Origin::Plugin(name) = origin {
        row["plugin"] = json!(name);
    }
}

fn as_text(rows: &[Value], kind: Kind) -> String {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let slash = if kind == Kind::Skills { "" } else { "/" };
    if rows.is_empty() {
        return "There are no skills here: they lie in ~/.qoder/skills and, in a trusted folder, in .qoder/skills."
            .to_owned();
    }
    let width = rows.iter().map(|row| text(row, "name").chars().count() + slash.len()).max().unwrap_or(0);
    let mut out = String::new();
    for row in rows {
        let name = format!("{slash}{}", text(row, "name"));
        let standing = if row["active"] == json!(true) { "" } else { "(its name is taken) " };
        let (source, words) = (text(row, "source"), text(row, "description"));
        let line = format!("{name:<width$}  {source:<8}  {standing}{}", words.replace('\n', " "));
        // Writing into a text cannot fail.
        let _ = writeln!(out, "{}", escaped_line(line.trim_end()));
        if let Some(path) = row["path"].as_str() {
            let _ = writeln!(out, "{:width$}  {}", "", escaped_line(path));
        }
    }
    out
}
