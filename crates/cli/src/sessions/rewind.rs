//! `qodercli sessions rewind`: takes a session that no process drives back to one of its messages, or lists the messages that
//! there are. The same rewind as the one over the pipes.

use std::collections::BTreeMap;

use qoder_runtime::checkpoints::{RewindError, RewindReport, RewindRequest, RewindScope, rewind};
use qoder_runtime::session::Session;
use qoder_runtime::setup::{Options, Setup};
use qoder_runtime::store::SessionLocation;
use qoder_types::record::{RecordBody, UserOrigin};

use crate::exit::{Exit, Fault};
use crate::screen::{self, print_line, print_note};
use crate::sessions::arguments::RewindArguments;
use crate::sessions::{locate, read};

/// Rewinds, or lists the messages when none is named.
pub fn run(arguments: &RewindArguments, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let (_, paths) = locate(environment, &arguments.id)?;
    let Some(to) = &arguments.to else {
        let mut prompts = Vec::new();
        read(&paths, |body| prompts.extend(prompt(body)))?;
        prompts.iter().try_for_each(|line| screen::print_row(line))?;
        print_note("give one of these as --to MESSAGE; --dry-run shows what would change");
        return Ok(Exit::Success);
    };
    // The parser has refused any other word.
    let scope = RewindScope::parse(&arguments.scope).unwrap_or_default();
    let setup = Setup::prepare(Options { environment: environment.clone(), ..Options::default() })?;
    let location = SessionLocation::in_files(&paths, setup.durability);
    let mut session = Session::open(location, setup.redactor(), &setup.cwd)?;
    let request = RewindRequest {
        user_message_id: to.clone(),
        scope,
        dry_run: arguments.dry_run,
        by: "command line".into(),
    };
    let report = rewind(&mut session, &request, &setup.checkpoints())?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Fault::output(&error.into()))?;
        screen::print_json_line(text)?;
    } else {
        print_report(&report, arguments.dry_run)?;
    }
    Ok(Exit::Success)
}

/// A message that a session can be taken back to.
fn prompt(body: &RecordBody) -> Option<String> {
    let RecordBody::User(entry) = body else { return None };
    let text = entry.message.content.to_text();
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect();
    (entry.origin == UserOrigin::Prompt).then(|| format!("{}  {line}", entry.uuid))
}

fn print_report(report: &RewindReport, dry_run: bool) -> Result<(), Fault> {
    let would = if dry_run { "would change" } else { "changed" };
    if let Some(files) = &report.files_changed {
        let (added, removed) = (report.insertions.unwrap_or(0), report.deletions.unwrap_or(0));
        print_line(&format!("{} files {would}, +{added} -{removed} lines", files.len()))?;
        files.iter().try_for_each(|file| screen::print_row(&format!("  {file}")))?;
    }
    for link in &report.skipped_links {
        screen::print_row(&format!("  {link} is left alone: a link leads elsewhere by now"))?;
    }
    for file in &report.changed_elsewhere {
        let goes = if dry_run { "would go" } else { "went" };
        screen::print_row(&format!(
            "  {file} was also changed by something else than a file tool; that {goes} too"
        ))?;
    }
    match report.messages_removed {
        Some(removed) => {
            print_line(&format!("{removed} messages {}", if dry_run { "would go" } else { "are gone" }))
        }
        None => Ok(()),
    }
}

impl From<RewindError> for Fault {
    fn from(error: RewindError) -> Self {
        let hint = error.hint();
        let message = error.to_string();
        let exit = match error {
            RewindError::Session(error) => return error.into(),
            RewindError::NoCheckpoint(_) | RewindError::NoMessage(_) | RewindError::NotEnabled => Exit::Input,
            RewindError::Busy
            | RewindError::InTheWay { .. }
            | RewindError::NotKept(_)
            | RewindError::Unusable { .. }
            | RewindError::Unfinished { .. }
            | RewindError::Store(_) => Exit::Session,
        };
        Self { exit, message, hint }
    }
}
