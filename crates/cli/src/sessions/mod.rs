//! `qodercli sessions`: list, show, watch, send, interrupt, delete, export, repair, prune and rewind. Reading never changes a session. What is
//! here finds and lists sessions; each larger command has a file of its own.

pub mod arguments;
mod draw;
mod export;
pub mod inbox;
mod page;
mod prune;
mod rewind;
mod show;
mod status;
mod timeline;
mod watch;

use std::collections::BTreeMap;
use std::slice;
use std::time::UNIX_EPOCH;

use clap::Parser;

use qoder_config::home;
use qoder_core::State;
use qoder_runtime::catalog::{self, SessionInfo};
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::session::agent_logs;
use qoder_runtime::session::apply_line;
use qoder_runtime::sessions::new_id;
use qoder_runtime::store::jsonl::{Durability, Scan, scan};
use qoder_runtime::store::line::Line;
use qoder_runtime::store::{SessionKey, SessionLocation, StoreError};
use qoder_types::Record;
use qoder_types::record::RecordBody;
use serde_json::json;

use crate::command_line::arguments::Arguments;
use crate::command_line::place::current_directory;
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_line, print_note, print_row};
use crate::sessions::arguments::SessionsAction;
pub use status::Status;

/// Runs a sessions command.
pub fn run(action: &SessionsAction, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        SessionsAction::List { all, json } => list(environment, *all, *json),
        SessionsAction::Show(arguments) => show::run(arguments, environment),
        SessionsAction::Delete { id } => {
            let (id, paths) = locate(environment, id)?;
            catalog::delete(&paths, &id)?;
            print_line(&format!("deleted {id}"))?;
            Ok(Exit::Success)
        }
        SessionsAction::Export { id, format } => export::run(environment, id, format),
        SessionsAction::Repair { id } => repair(environment, id),
        SessionsAction::Prune { dry_run, json } => prune::run(environment, *dry_run, *json),
        SessionsAction::Watch(arguments) => watch::run(arguments, environment),
        SessionsAction::Send { id, text, resume } => inbox::send(environment, id, text.as_deref(), *resume),
        SessionsAction::Interrupt { id } => inbox::interrupt(environment, id),
        SessionsAction::Rewind(arguments) => rewind::run(arguments, environment),
    }
}

/// A session by its id or by the beginning of it, with its whole id. Sessions are found from any directory here: these
/// commands only name them.
pub fn locate(environment: &BTreeMap<String, String>, given: &str) -> Result<(String, SessionPaths), Fault> {
    let root = home::config_root(environment);
    let cwd = current_directory(None)?;
    let id = catalog::complete_id(&root, &cwd, given)?;
    let paths = match catalog::find_session(&root, &cwd, &id) {
        Err(StoreError::NotFound { elsewhere: Some(_), .. }) => {
            let found = catalog::info(&root, None, &id).map(|session| session.paths);
            found.ok_or_else(|| StoreError::NotFound { id: id.clone(), project: cwd, elsewhere: None })?
        }
        other => other?,
    };
    Ok((id, paths))
}

/// The newest session of the current directory.
pub fn newest(environment: &BTreeMap<String, String>) -> Result<(String, SessionPaths), Fault> {
    let cwd = current_directory(None)?;
    let mut sessions = catalog::newest_of(&home::config_root(environment), Some(slice::from_ref(&cwd)));
    sessions.next().map(|session| (session.id, session.paths)).ok_or_else(|| {
        Fault::input(
            format!("there is no session of {}", cwd.display()),
            "`qodercli sessions list --all` shows those of other directories",
        )
    })
}

/// Lists sessions, newest first.
pub fn list(environment: &BTreeMap<String, String>, all: bool, as_json: bool) -> Result<Exit, Fault> {
    let root = home::config_root(environment);
    let cwd = current_directory(None)?;
    let sessions = catalog::list(&root, (!all).then_some(cwd.as_path()));
    if as_json {
        let rows: Vec<_> = sessions.iter().map(info_json).collect();
        print_json(&serde_json::Value::Array(rows))?;
        return Ok(Exit::Success);
    }
    if sessions.is_empty() {
        print_note("no sessions here; `qodercli sessions list --all` shows those of other directories");
    }
    for session in sessions {
        let modified = jiff::Timestamp::try_from(session.modified)
            .map(|time| time.strftime("%Y-%m-%d %H:%M").to_string())
            .unwrap_or_default();
        let summary: String = session.summary().chars().take(80).collect();
        let summary = summary.replace(['\n', '\r', '\t'], " ");
        let place = if all { session.cwd.clone().unwrap_or_default() + "  " } else { String::new() };
        let status = Status::of(&session.paths, session.modified).words();
        print_row(&format!("{}  {modified}  {status:<19}  {place}{summary}", session.id))?;
    }
    Ok(Exit::Success)
}

/// Resumes a session in this process with a message, as `qodercli -p --resume` does.
fn resume(environment: &BTreeMap<String, String>, id: &str, text: &str) -> Result<Exit, Fault> {
    let cwd = catalog::info(&home::config_root(environment), None, id).and_then(|info| info.cwd);
    let mut words = vec!["qodercli".to_owned(), "-p".to_owned(), "--resume".to_owned(), id.to_owned()];
    words.extend(cwd.into_iter().flat_map(|cwd| ["--cwd".to_owned(), cwd]));
    words.extend(["--".to_owned(), text.to_owned()]);
    let arguments = Arguments::try_parse_from(words).map_err(|error| {
        Fault::input(error.to_string(), "`qodercli -p --resume SESSION \"…\"` does the same")
    })?;
    crate::run::print::run(&arguments, environment.clone())
}

fn info_json(session: &SessionInfo) -> serde_json::Value {
    let modified = session.modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let status = Status::of(&session.paths, session.modified).to_json();
    json!({
        "sessionId": session.id, "summary": session.summary(), "lastModified": u64::try_from(modified).unwrap_or(0),
        "customTitle": session.title, "firstPrompt": session.first_prompt, "gitBranch": session.branch,
        "cwd": session.cwd, "fileSize": session.size,
        "status": status["status"], "statusSince": status["since"], "pid": status["pid"],
    })
}

/// An agent of a session on this machine that has a log.
#[derive(Clone)]
pub struct KeptAgent {
    /// Its name in the store.
    pub key: SessionKey,
    /// Which agent it is, if that is known.
    pub agent_type: Option<String>,
    /// Its files.
    pub paths: SessionPaths,
}

/// The agents of a session; parents before their own agents.
pub fn kept_agents(session: &SessionPaths) -> Result<Vec<KeptAgent>, Fault> {
    let logs = agent_logs(&SessionLocation::in_files(session, Durability::Process))?;
    let kept = logs.into_iter().filter_map(|log| {
        let paths = log.location.files().filter(|paths| paths.log.is_file())?;
        Some(KeptAgent { key: log.location.key().clone(), agent_type: log.agent_type, paths })
    });
    Ok(kept.collect())
}

/// Reads all records. A damaged log is shown up to the damage.
pub fn read(paths: &SessionPaths, mut visit: impl FnMut(&RecordBody)) -> Result<State, Fault> {
    let mut state = State::default();
    let scanned = scan(paths, |line| {
        match &line {
            Line::Record(Record { body, .. }) | Line::Foreign(body) => visit(body),
        }
        apply_line(&mut state, line);
    });
    tell_damage(scanned)?;
    Ok(state)
}

/// Prints what is wrong with a log; answers with it. A log that cannot be read at all is a fault.
fn tell_damage(scanned: Result<Scan, StoreError>) -> Result<Option<String>, Fault> {
    let damage = match scanned {
        Ok(scanned) if scanned.torn > 0 => {
            format!("the last record was never completed ({} bytes)", scanned.torn)
        }
        Ok(_) => return Ok(None),
        Err(error @ StoreError::Corrupt { .. }) => format!("{error}; showing what stands before it"),
        Err(error) => return Err(error.into()),
    };
    print_note(&format!("warning: {damage}"));
    Ok(Some(damage))
}

fn repair(environment: &BTreeMap<String, String>, id: &str) -> Result<Exit, Fault> {
    let (id, paths) = locate(environment, id)?;
    let new = new_id();
    let copy = paths.beside(&new);
    let saved = catalog::repair(&paths, &id, &copy, &new)?;
    if saved.saved == 0 {
        catalog::delete(&copy, &new)?;
        let problem = format!("nothing of {} can be read", paths.log.display());
        return Err(Fault::input(problem, "`qodercli sessions delete` removes it"));
    }
    print_line(&new)?;
    print_note(&format!("saved {} records as {new}; the original is unchanged", saved.saved));
    if !saved.lost.is_empty() {
        let lines: Vec<String> = saved.lost.iter().take(20).map(u64::to_string).collect();
        print_note(&format!("lost {} lines: {}", saved.lost.len(), lines.join(", ")));
    }
    Ok(Exit::Success)
}
