//! `qodercli sessions`: list, show, delete, export, repair and rewind. Reading never changes a session.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::UNIX_EPOCH;

use qoder_core::State;
use qoder_runtime::catalog::{self, SessionInfo};
use qoder_runtime::error::SessionError;
use qoder_runtime::layout::{self, SessionPaths};
use qoder_runtime::session::{apply_line, new_id};
use qoder_runtime::store::jsonl::scan;
use qoder_runtime::store::line::Line;
use qoder_types::record::{RecordBody, UserEntry, UserOrigin};
use qoder_types::{ContentBlock, HookVerdict, Hooked, Record};
use serde_json::json;

use crate::commands::SessionsAction;
use crate::exit::{Exit, Fault};
use crate::host::{say, tell};
use crate::print::current_directory;

/// Runs a sessions command.
pub fn run(action: &SessionsAction, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        SessionsAction::List { all, json } => list(environment, *all, *json),
        SessionsAction::Show { id, json } => show(environment, id, *json),
        SessionsAction::Delete { id } => {
            catalog::delete(&locate(environment, id)?, id)?;
            say(&format!("deleted {id}"))?;
            Ok(Exit::Success)
        }
        SessionsAction::Export { id, format } => export(environment, id, format),
        SessionsAction::Repair { id } => repair(environment, id),
        SessionsAction::Rewind(arguments) => crate::rewind::run(arguments, environment),
    }
}

/// Sessions are found from any directory here: these commands only name them.
pub fn locate(environment: &BTreeMap<String, String>, id: &str) -> Result<SessionPaths, Fault> {
    let root = layout::config_root(environment);
    let cwd = current_directory(None)?;
    match catalog::find_session(&root, &cwd, id) {
        Err(SessionError::NotFound { elsewhere: Some(_), .. }) => {
            let found = catalog::list(&root, None).into_iter().find(|session| session.id == id);
            found.map(|session| session.paths).ok_or_else(|| {
                SessionError::NotFound { id: id.to_owned(), project: cwd, elsewhere: None }.into()
            })
        }
        other => Ok(other?),
    }
}

/// Lists sessions, newest first.
pub fn list(environment: &BTreeMap<String, String>, all: bool, as_json: bool) -> Result<Exit, Fault> {
    let root = layout::config_root(environment);
    let cwd = current_directory(None)?;
    let sessions = catalog::list(&root, (!all).then_some(cwd.as_path()));
    if as_json {
        let rows: Vec<_> = sessions.iter().map(info_json).collect();
        say(&format!("{:#}", serde_json::Value::Array(rows)))?;
        return Ok(Exit::Success);
    }
    if sessions.is_empty() {
        tell("no sessions here; `qodercli sessions list --all` shows those of other directories");
    }
    let mut out = std::io::stdout().lock();
    for session in sessions {
        let modified = jiff::Timestamp::try_from(session.modified)
            .map(|time| time.strftime("%Y-%m-%d %H:%M").to_string())
            .unwrap_or_default();
        let summary: String = session.summary().chars().take(80).collect();
        let place = if all { session.cwd.clone().unwrap_or_default() + "  " } else { String::new() };
        if writeln!(out, "{}  {modified}  {place}{summary}", session.id).is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    Ok(Exit::Success)
}

fn info_json(session: &SessionInfo) -> serde_json::Value {
    let modified = session.modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    json!({
        "sessionId": session.id, "summary": session.summary(), "lastModified": u64::try_from(modified).unwrap_or(0),
        "customTitle": session.title, "firstPrompt": session.first_prompt, "gitBranch": session.branch,
        "cwd": session.cwd, "fileSize": session.size,
    })
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
    match scanned {
        Ok(scanned) if scanned.torn > 0 => {
            tell(&format!("warning: the last record was never completed ({} bytes)", scanned.torn));
        }
        Ok(_) => {}
        Err(error @ SessionError::Corrupt { .. }) => {
            tell(&format!("warning: {error}; showing what stands before it"));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(state)
}

fn show(environment: &BTreeMap<String, String>, id: &str, as_json: bool) -> Result<Exit, Fault> {
    let paths = locate(environment, id)?;
    let mut lines = Vec::new();
    let state = read(&paths, |body| lines.extend(describe(body)))?;
    if as_json {
        let summary = json!({
            "sessionId": id, "records": state.last_seq, "cwd": state.cwd, "prompts": state.prompts,
            "unfinished": state.is_unfinished(), "totalCostUsd": state.total_cost_usd, "modelUsage": state.totals,
            "contextTokens": state.context.tokens(), "epoch": state.epoch.as_ref().map(|epoch| epoch.number),
        });
        say(&format!("{summary:#}"))?;
        return Ok(Exit::Success);
    }
    say(&format!("session {id}\nlog     {}\ncwd     {}", paths.log.display(), state.cwd))?;
    let open = if state.is_unfinished() { ", unfinished: --resume goes on" } else { "" };
    say(&format!("records {}{open}\ncost    ${:.4}\n", state.last_seq, state.total_cost_usd))?;
    for line in lines {
        say(&line)?;
    }
    Ok(Exit::Success)
}

/// One or more lines that tell what a record was about.
fn describe(body: &RecordBody) -> Vec<String> {
    let one = |text: &str| -> String {
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.chars().take(100).collect()
    };
    match body {
        RecordBody::User(entry) => vec![describe_user(entry, one)],
        RecordBody::Assistant(entry) => entry
            .message
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } if !text.trim().is_empty() => Some(format!("  {}", one(text))),
                ContentBlock::ToolUse { name, input, .. } => {
                    Some(format!("  • {name} {}", one(&input.to_string())))
                }
                _ => None,
            })
            .collect(),
        RecordBody::Decided(decided) => {
            let behavior = format!("{:?}", decided.decision.behavior).to_lowercase();
            vec![format!("    {behavior}: {}", one(&decided.decision.reason))]
        }
        RecordBody::SideCalled(call) => vec![format!(
            "    {} answered beside the conversation: {} + {} tokens",
            call.model,
            call.usage.total_input(),
            call.usage.output_tokens
        )],
        RecordBody::Asked(asked) => vec![format!("    asked: {}", one(&asked.decision.reason))],
        RecordBody::Answered(answer) => {
            let word = if answer.allow { "allowed" } else { "denied" };
            vec![format!("    {word} by {}", one(&answer.by))]
        }
        RecordBody::Elicited(question) => {
            vec![format!("    {} asks a person: {}", one(&question.server_name), one(&question.message))]
        }
        RecordBody::ElicitationAnswered(answer) => {
            vec![format!("    {} by {}", one(&answer.action), one(&answer.by))]
        }
        RecordBody::PermissionsChanged(changed) => {
            vec![format!("    permissions changed by {}", one(&changed.by))]
        }
        RecordBody::ModelFailed(failed) => vec![format!("  ! {}", one(&failed.failure.message))],
        RecordBody::TaskStarted(task) => {
            vec![format!("    {} starts: {}", task.task_id, one(&task.description))]
        }
        RecordBody::TaskEnded(task) => vec![format!("    {}", one(&task.summary))],
        RecordBody::Hooked(hooked) => vec![describe_hooks(hooked, one)],
        RecordBody::Interrupted(_) => vec!["  (interrupted)".to_owned()],
        RecordBody::TurnEnded(end) => vec![format!(
            "  = {} after {} model calls, {} + {} tokens, ${:.4} so far",
            if end.is_error { "error" } else { "done" },
            end.num_turns,
            end.usage.total_input(),
            end.usage.output_tokens,
            end.total_cost_usd
        )],
        RecordBody::Cut(cut) => vec![match &cut.at {
            Some(at) => format!("  (the conversation goes on from {at})"),
            None => "  (the conversation begins anew)".to_owned(),
        }],
        RecordBody::FilesRewound(rewound) => vec![format!(
            "  (files go back to what they were before {}: {})",
            rewound.to,
            one(&rewound.files.join(", "))
        )],
        RecordBody::InputWithdrawn(_) => vec!["  (an input was taken back)".to_owned()],
        RecordBody::SessionStarted(_)
        | RecordBody::Epoch(_)
        | RecordBody::InputAdmitted(_)
        | RecordBody::System(_)
        | RecordBody::ModelRequested(_)
        | RecordBody::ToolStarted(_)
        | RecordBody::Unknown(_) => Vec::new(),
    }
}

fn describe_user(entry: &UserEntry, one: impl Fn(&str) -> String) -> String {
    match entry.origin {
        UserOrigin::Prompt => format!("> {}", one(&entry.message.content.to_text())),
        UserOrigin::ToolResult => {
            let outcome = entry.outcome.map(|outcome| format!("{outcome:?}").to_lowercase());
            let ran = entry.duration_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
            format!("    {}{ran}", outcome.unwrap_or_else(|| "result".to_owned()))
        }
        UserOrigin::Summary => "  (older messages were replaced by a summary)".to_owned(),
        UserOrigin::Notice => format!("  [{}]", one(&entry.message.content.to_text())),
    }
}

fn describe_hooks(hooked: &Hooked, one: impl Fn(&str) -> String) -> String {
    let verdict = match hooked.verdict {
        Some(HookVerdict::Allow) => ": allow",
        Some(HookVerdict::Defer) => ": defer",
        Some(HookVerdict::Ask) => ": ask",
        Some(HookVerdict::Deny) => ": deny",
        None => "",
    };
    let stop = if hooked.stop.is_some() { ", ends the turn" } else { "" };
    let reason = hooked.stop.as_ref().or(hooked.reason.as_ref());
    let reason = reason.map(|reason| format!(" ({})", one(reason))).unwrap_or_default();
    let hooks = match hooked.runs.len() {
        1 => "1 hook".to_owned(),
        count => format!("{count} hooks"),
    };
    format!("    {hooks} for {}{verdict}{stop}{reason}", hooked.event)
}

fn export(environment: &BTreeMap<String, String>, id: &str, format: &str) -> Result<Exit, Fault> {
    let paths = locate(environment, id)?;
    let mut out = std::io::stdout().lock();
    if format == "jsonl" {
        let mut file = std::fs::File::open(&paths.log)
            .map_err(|error| Fault::input(format!("cannot read {}: {error}", paths.log.display()), ""))?;
        return Ok(if std::io::copy(&mut file, &mut out).is_ok() {
            Exit::Success
        } else {
            Exit::OutputClosed
        });
    }
    let mut text = format!("# Session {id}\n");
    read(&paths, |body| text.push_str(&markdown(body)))?;
    Ok(if out.write_all(text.as_bytes()).is_ok() { Exit::Success } else { Exit::OutputClosed })
}

fn markdown(body: &RecordBody) -> String {
    match body {
        RecordBody::User(entry) if entry.origin == UserOrigin::Prompt => {
            format!("\n## User\n\n{}\n", entry.message.content.to_text())
        }
        RecordBody::User(entry) => match &entry.message.content {
            qoder_types::MessageContent::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    ContentBlock::ToolResult { content, .. } => {
                        Some(format!("\n```text\n{}\n```\n", content.to_text().replace("```", "'''")))
                    }
                    _ => None,
                })
                .collect(),
            qoder_types::MessageContent::Text(text) => format!("\n*{text}*\n"),
        },
        RecordBody::Assistant(entry) => {
            let blocks = entry.message.content.iter().filter_map(|block| match block {
                ContentBlock::Text { text } => Some(format!("{text}\n")),
                ContentBlock::ToolUse { name, input, .. } => {
                    Some(format!("\n**{name}**\n\n```json\n{input:#}\n```\n"))
                }
                _ => None,
            });
            format!("\n## Assistant\n\n{}", blocks.collect::<String>())
        }
        _ => String::new(),
    }
}

fn repair(environment: &BTreeMap<String, String>, id: &str) -> Result<Exit, Fault> {
    let paths = locate(environment, id)?;
    let new = new_id();
    let folder = paths.log.parent().map(std::path::Path::to_path_buf).unwrap_or_default();
    let saved = catalog::repair(&paths, id, &SessionPaths::new(&folder, &new), &new)?;
    say(&new)?;
    tell(&format!("saved {} records as {new}; the original is unchanged", saved.saved));
    if !saved.lost.is_empty() {
        let lines: Vec<String> = saved.lost.iter().take(20).map(u64::to_string).collect();
        tell(&format!("lost {} lines: {}", saved.lost.len(), lines.join(", ")));
    }
    Ok(Exit::Success)
}
