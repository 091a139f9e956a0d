//! `qodercli permissions`: decide a case, list the rules in force, and answer calls that wait; `explain` tells of a past
//! call.

mod explain;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use qoder_runtime::permission_check::Checker;
use qoder_runtime::session::{Keep, Session};
use qoder_runtime::setup::{Options, Setup};
use qoder_runtime::{catalog, layout};
use qoder_types::record::{Answered, RecordBody};
use qoder_types::{Behavior, PermissionUpdate};
use serde_json::{Value, json};

use crate::commands::PermissionsAction;
use crate::exit::{Exit, Fault};
use crate::screen::{Document, say, say_json, say_json_line, say_row, tell};
use crate::sessions::{locate, read};

/// The longest case that is read.
const LONGEST_CASE: u64 = 8 * 1024 * 1024;

/// Runs a permissions command.
pub fn run(action: PermissionsAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        PermissionsAction::Check { batch, json: _ } => check(&environment, batch),
        PermissionsAction::Explain { session, tool_use_id, json } => {
            explain::run(&environment, session.as_deref(), tool_use_id.as_deref(), json)
        }
        PermissionsAction::List(place) => {
            let json = place.json;
            list(&place.prepare(environment)?, json)
        }
        PermissionsAction::Pending { session, json } => pending(&environment, &session, json),
        PermissionsAction::Answer { session, tool_use_id, answer, always, message, input, by } => {
            let given = Given { allow: answer == "allow", always, message, input, by };
            self::answer(environment, &session, &tool_use_id, given)
        }
    }
}

fn check(environment: &BTreeMap<String, String>, batch: bool) -> Result<Exit, Fault> {
    let cwd = crate::print::current_directory(None)?;
    let mut checker = Checker::new(cwd, layout::home(environment));
    let mut input = BufReader::with_capacity(256 * 1024, std::io::stdin().lock());
    if !batch {
        let mut text = String::new();
        input.take(LONGEST_CASE).read_to_string(&mut text).map_err(|error| {
            Fault::input(format!("the case cannot be read: {error}"), "send one JSON object")
        })?;
        let checked = checker.check(&text);
        say_json_line(checked.line)?;
        return Ok(if checked.is_error { Exit::Input } else { Exit::Success });
    }
    let mut out = Document::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = (&mut input)
            .take(LONGEST_CASE)
            .read_until(b'\n', &mut line)
            .map_err(|error| Fault::input(format!("stdin cannot be read: {error}"), ""))?;
        if count == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        let checked = checker.check(&text);
        let mut told = out.write_json(&checked.line).and_then(|()| out.write_json("\n"));
        // Whoever waits for each answer before the next case gets it at once.
        if input.buffer().is_empty() {
            told = told.and_then(|()| out.flush());
        }
        told.map_err(|error| Fault::output(&error))?;
    }
    out.flush().map_err(|error| Fault::output(&error))?;
    Ok(Exit::Success)
}

fn word(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    }
}

fn place(origin: &qoder_types::RuleOrigin) -> String {
    let source = json!(origin.source);
    let source = source.as_str().unwrap_or_default();
    match (&origin.file, origin.line) {
        (Some(file), Some(line)) => format!("{file}:{line} ({source})"),
        (Some(file), None) => format!("{file} ({source})"),
        (None, _) => source.to_owned(),
    }
}

fn list(setup: &Setup, as_json: bool) -> Result<Exit, Fault> {
    let rules = setup.rules();
    let lists = [(Behavior::Deny, &rules.deny), (Behavior::Ask, &rules.ask), (Behavior::Allow, &rules.allow)];
    if as_json {
        let rows: Vec<Value> = lists
            .iter()
            .flat_map(|(behavior, rules)| {
                rules.iter().map(move |rule| {
                    json!({"behavior": behavior, "rule": rule.text, "tool": rule.tool, "origin": rule.origin})
                })
            })
            .collect();
        let value = json!({
            "mode": setup.mode().as_str(), "trusted": setup.trust.is_trusted(), "cwd": setup.cwd,
            "projectRoot": setup.project_root, "rules": rows,
        });
        say_json(&value)?;
        return Ok(Exit::Success);
    }
    let trust = if setup.trust.is_trusted() { "trusted" } else { "not trusted" };
    say_row(&format!("folder {} ({trust}), mode {}", setup.cwd.display(), setup.mode().as_str()))?;
    let mut any = false;
    for (behavior, rules) in lists {
        for rule in rules {
            any = true;
            say_row(&format!("{:<5} {}  [{}]", word(behavior), rule.text, place(&rule.origin)))?;
        }
    }
    if !any {
        say("no rules; `permissions.allow`, `ask` and `deny` in the settings hold them")?;
    }
    Ok(Exit::Success)
}

fn pending(environment: &BTreeMap<String, String>, session: &str, as_json: bool) -> Result<Exit, Fault> {
    let (session, paths) = locate(environment, session)?;
    let state = read(&paths, |_| {})?;
    let waiting: Vec<_> = state
        .open_calls()
        .filter(|call| call.answer.is_none())
        .filter_map(|call| call.asked.as_ref().map(|asked| (call, asked)))
        .collect();
    if as_json {
        let rows: Vec<Value> = waiting
            .iter()
            .map(|(call, asked)| {
                json!({"toolUseId": call.id, "tool": call.name, "input": call.input, "reason": asked.decision.reason,
                       "suggestions": asked.suggestions})
            })
            .collect();
        say_json(&Value::Array(rows))?;
        return Ok(Exit::Success);
    }
    if waiting.is_empty() {
        tell(&format!("no call of session {session} waits for an answer"));
    }
    for (call, asked) in waiting {
        say_row(&format!("{}  {} {}", call.id, call.name, call.input))?;
        say_row(&format!("    {}", asked.decision.reason))?;
        for update in &asked.suggestions {
            say_row(&format!("    --always would keep: {}", in_words(update)))?;
        }
    }
    Ok(Exit::Success)
}

/// A change of permissions, for people.
fn in_words(update: &PermissionUpdate) -> String {
    let kept = json!(update.destination());
    let kept = kept.as_str().unwrap_or_default();
    match update {
        PermissionUpdate::AddRules { rules, behavior, .. }
        | PermissionUpdate::ReplaceRules { rules, behavior, .. }
        | PermissionUpdate::RemoveRules { rules, behavior, .. } => {
            let texts: Vec<String> = rules.iter().map(qoder_types::RuleValue::text).collect();
            format!("{} {} ({kept})", word(*behavior), texts.join(", "))
        }
        PermissionUpdate::SetMode { mode, .. } => format!("mode {} ({kept})", mode.as_str()),
        PermissionUpdate::AddDirectories { directories, .. }
        | PermissionUpdate::RemoveDirectories { directories, .. } => {
            format!("directory {} ({kept})", directories.join(", "))
        }
    }
}

/// An answer from the command line.
struct Given {
    allow: bool,
    always: bool,
    message: Option<String>,
    input: Option<String>,
    by: Option<String>,
}

fn answer(
    environment: BTreeMap<String, String>,
    session: &str,
    tool_use_id: &str,
    given: Given,
) -> Result<Exit, Fault> {
    let (session, paths) = locate(&environment, session)?;
    let session = session.as_str();
    if given.input.is_some() && !given.allow {
        return Err(Fault::input("`--input` can only be used with `allow`", "a denied call does not run"));
    }
    let updated_input = given.input.as_deref().map(changed_input).transpose()?;
    let cwd = catalog::info(&layout::config_root(&environment), None, session)
        .and_then(|info| info.cwd)
        .unwrap_or_default();
    let options = Options { cwd: cwd.into(), environment, ..Options::default() };
    let setup = Setup::prepare(options)?;
    let keep = Keep::Files { paths, durability: setup.durability };
    let mut open = Session::open(session, keep, setup.redactor(), &setup.cwd)?;
    let tool_use_id = &waiting_call(&open, tool_use_id)?;
    let call = open.state.call(tool_use_id);
    let Some(asked) = call.and_then(|call| call.asked.clone()) else {
        return Err(Fault::input(
            format!("the call {tool_use_id} of session {session} waits for no answer"),
            format!("`qodercli permissions pending {session}` shows what waits"),
        ));
    };
    if let Some(first) = call.and_then(|call| call.answer.as_ref()) {
        let word = if first.allow { "allow" } else { "deny" };
        return Err(Fault::input(
            format!("the call {tool_use_id} was answered before: {word} by {}", first.by),
            format!("go on with qodercli -p --resume {session}"),
        ));
    }
    let updates = if given.always && given.allow { asked.suggestions } else { Vec::new() };
    if given.always && given.allow && updates.is_empty() {
        tell("warning: there is nothing that --always could keep for this call; it is allowed this once");
    }
    let by = given.by.unwrap_or_else(|| format!("{} on the command line", user(&setup)));
    let body = Answered {
        tool_use_id: tool_use_id.to_owned(),
        allow: given.allow,
        message: given.message,
        updated_input,
        updated_permissions: updates.clone(),
        interrupt: false,
        by,
    };
    open.append(RecordBody::Answered(Box::new(body))).map_err(qoder_runtime::error::SessionError::Store)?;
    open.sync().map_err(qoder_runtime::error::SessionError::Store)?;
    for problem in setup.updates().persist(&updates) {
        tell(&format!("warning: {problem}"));
    }
    say(&format!(
        "{} {tool_use_id}; go on with: qodercli -p --resume {session}",
        if given.allow { "allowed" } else { "denied" }
    ))?;
    Ok(Exit::Success)
}

/// The whole id of a call that is named by it or by the beginning of it.
fn waiting_call(session: &Session, given: &str) -> Result<String, Fault> {
    let asked = session.state.open_calls().filter(|call| call.asked.is_some());
    let ids: Vec<&str> = asked.map(|call| call.id.as_str()).collect();
    explain::complete(given, &ids).map(|id| id.unwrap_or_else(|| given.to_owned()))
}

/// An input is an object; anything else could never run and would use the answer up.
fn changed_input(text: &str) -> Result<Value, Fault> {
    let hint = "give the whole input as one JSON object";
    match serde_json::from_str(text) {
        Ok(input @ Value::Object(_)) => Ok(input),
        Ok(_) => Err(Fault::input("--input is not a JSON object", hint)),
        Err(error) => Err(Fault::input(format!("--input is not JSON: {error}"), hint)),
    }
}

fn user(setup: &Setup) -> String {
    let name = setup.options.environment.get("USER").or_else(|| setup.options.environment.get("LOGNAME"));
    name.cloned().unwrap_or_else(|| "somebody".to_owned())
}
