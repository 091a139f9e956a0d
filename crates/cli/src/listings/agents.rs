//! Agents on the command line: those that `--agents` defines, the one that `--agent` makes the main one, and
//! `qodercli agents list`.

use crate::command_line::place::PlaceArguments;
use clap::Subcommand;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use qoder_config::agents::{Listed, Standing};
use qoder_config::extensions::Loaded;
use qoder_config::sources::{Origin, Problem};
use qoder_types::display::escaped_line;
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::run::agents_flag::of_flag;
use crate::screen::{print_json, print_line, print_note};

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List agents, including shadowed definitions.
    List {
        #[command(flatten)]
        place: PlaceArguments,
        /// Agents as `--agents` of a run has them.
        #[arg(long, value_name = "JSON")]
        agents: Option<String>,
    },
}

/// How much of a purpose the list shows.
const LONGEST: usize = 100;

pub fn tell_all(problems: &[Problem]) {
    for problem in problems {
        print_note(&format!("warning: {problem}"));
    }
}

/// Runs a command about agents.
pub fn run(action: AgentsAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let AgentsAction::List { place, agents } = action;
    let (json, own) = (place.json, of_flag(agents.as_deref())?);
    let setup = place.prepare(environment)?;
    let loaded = setup.extensions(own)?;
    if json {
        print_json(&as_json(&loaded))?;
    } else {
        tell_all(&loaded.problems);
        print_line(as_text(&loaded).trim_end())?;
    }
    Ok(Exit::Success)
}

fn as_text(loaded: &Loaded) -> String {
    let all: Vec<&Listed> = loaded.agents.all().collect();
    let sources: Vec<String> = all.iter().map(|one| source(&one.definition.origin)).collect();
    let width =
        |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let names = width(&mut all.iter().map(|one| one.name.as_str()));
    let second = width(&mut sources.iter().map(String::as_str));
    let mut out = String::new();
    for (one, source) in all.iter().zip(&sources) {
        let standing = match &one.standing {
            Standing::Active => String::new(),
            Standing::Shadowed { by, path: Some(path) } => {
                format!("(shadowed by {}: {}) ", self::source(by), path.display())
            }
            Standing::Shadowed { by, path: None } => format!("(shadowed by {}) ", self::source(by)),
            Standing::Disabled => "(switched off by the settings) ".to_owned(),
        };
        let words = shortened(&one.definition.description);
        let line = format!("{:<names$}  {source:<second$}  {standing}{words}", one.name);
        // Writing into a text cannot fail.
        let _ = writeln!(out, "{}", escaped_line(line.trim_end()));
        if let Some(path) = &one.definition.path {
            let _ = writeln!(out, "{:names$}  {}", "", escaped_line(&path.display().to_string()));
        }
    }
    out
}

fn source(origin: &Origin) -> String {
    match origin {
        Origin::Plugin(name) => format!("plugin {name}"),
        Origin::BuiltIn | Origin::User | Origin::Project | Origin::Flag => origin.as_str().to_owned(),
    }
}

fn shortened(text: &str) -> String {
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match whole.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", whole[..end].trim_end()),
        None => whole,
    }
}

fn as_json(loaded: &Loaded) -> Value {
    let problem = |one: &Problem| json!({ "path": one.path, "line": one.line, "problem": one.text, "source": one.origin.as_str() });
    let agents: Vec<Value> = loaded.agents.all().map(Listed::to_wire).collect();
    let problems: Vec<Value> = loaded.problems.iter().map(problem).collect();
    json!({ "agents": agents, "problems": problems })
}
