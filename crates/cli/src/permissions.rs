//! `qodercli permissions`: decide a case, explain a past call, list the rules in force, and answer calls that wait.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use qoder_runtime::error::SessionError;
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::permission_check::{Checker, explanation};
use qoder_runtime::session::{Keep, Session};
use qoder_runtime::setup::{Options, Setup};
use qoder_runtime::{agent, catalog, layout};
use qoder_types::record::{Answered, Asked, RecordBody};
use qoder_types::{Behavior, ContentBlock, Decision, HookVerdict, Hooked, PermissionUpdate};
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
            explain(&environment, &session, &tool_use_id, json)
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

/// What a log says about one call.
#[derive(Default)]
struct Told {
    /// The child that made the call, if it was one.
    agent_id: Option<String>,
    tool: Option<(String, Value)>,
    /// What hooks said, in order.
    hooks: Vec<Hooked>,
    asked: Option<Asked>,
    answer: Option<Answered>,
    decision: Option<Decision>,
    started: bool,
    outcome: Option<String>,
}

/// Looks for a call in the log of a session and then in those of its children.
fn told_of(paths: &SessionPaths, tool_use_id: &str) -> Result<Told, Fault> {
    let mut told = Told::default();
    read(paths, |body| collect(&mut told, body, tool_use_id))?;
    if told.tool.is_some() {
        return Ok(told);
    }
    for log in agent::agent_logs(paths) {
        let mut told = Told { agent_id: Some(log.agent_id), ..Told::default() };
        read(&log.paths, |body| collect(&mut told, body, tool_use_id))?;
        if told.tool.is_some() {
            return Ok(told);
        }
    }
    Ok(told)
}

fn explain(
    environment: &BTreeMap<String, String>,
    session: &str,
    tool_use_id: &str,
    as_json: bool,
) -> Result<Exit, Fault> {
    let told = told_of(&locate(environment, session)?, tool_use_id)?;
    let Some((tool, input)) = &told.tool else {
        return Err(Fault::input(
            format!("session {session} has no call {tool_use_id}"),
            format!("`qodercli sessions export {session} --format jsonl` shows all calls"),
        ));
    };
    if as_json {
        let value = json!({
            "sessionId": session, "toolUseId": tool_use_id, "tool": tool, "input": input,
            "decision": told.decision.as_ref().map(|decision| decision.behavior),
            "reason": told.decision.as_ref().map(explanation),
            "agentId": told.agent_id, "hooks": told.hooks, "asked": told.asked, "answer": told.answer, "started": told.started, "outcome": told.outcome,
        });
        say_json(&value)?;
        return Ok(Exit::Success);
    }
    say_row(&format!("call     {tool_use_id}"))?;
    say_row(&format!("tool     {tool}"))?;
    say_row(&format!("input    {input}"))?;
    if let Some(agent) = &told.agent_id {
        say_row(&format!("agent    {agent}"))?;
    }
    for hooked in &told.hooks {
        let by = hooked.by.as_deref().unwrap_or("no hook");
        let said = match hooked.verdict {
            Some(HookVerdict::Allow) => format!("{by} allows it"),
            Some(HookVerdict::Ask) => format!("{by} wants somebody to be asked"),
            Some(HookVerdict::Deny) => format!("{by} denies it"),
            Some(HookVerdict::Defer) | None => "no opinion".to_owned(),
        };
        let reason = hooked.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        say_row(&format!("hooks    {}: {said}{reason}", hooked.event))?;
    }
    if let Some(asked) = &told.asked {
        say_row(&format!("asked    {}", asked.decision.reason))?;
    }
    if let Some(answer) = &told.answer {
        say_row(&format!("answer   {} by {}", if answer.allow { "allow" } else { "deny" }, answer.by))?;
    }
    match &told.decision {
        Some(decision) => describe(decision)?,
        None => say("decision none yet: without one the call does not run")?,
    }
    let outcome =
        told.outcome.as_deref().unwrap_or(if told.started { "started, no end on record" } else { "not run" });
    say_row(&format!("outcome  {outcome}"))?;
    Ok(Exit::Success)
}

fn describe(decision: &Decision) -> Result<(), Fault> {
    let layer = json!(decision.layer);
    say(&format!("decision {}", word(decision.behavior)))?;
    say(&format!("layer    {}", layer.as_str().unwrap_or_default()))?;
    say_row(&format!("reason   {}", decision.reason))?;
    if let Some(rule) = &decision.rule {
        say_row(&format!("rule     {rule}"))?;
    }
    if let Some(origin) = &decision.origin {
        say_row(&format!("from     {}", place(origin)))?;
    }
    say(&format!("mode     {}", decision.mode.as_str()))?;
    for considered in &decision.considered {
        let rule = considered.rule.as_deref().map(|rule| format!("`{rule}` ")).unwrap_or_default();
        let would = considered.behavior.map(|behavior| format!("{}: ", word(behavior))).unwrap_or_default();
        say_row(&format!("also     {would}{rule}{}", considered.note))?;
    }
    Ok(())
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

fn collect(told: &mut Told, body: &RecordBody, id: &str) {
    match body {
        RecordBody::Assistant(entry) => {
            for block in &entry.message.content {
                if let ContentBlock::ToolUse { id: call, name, input } = block
                    && call == id
                {
                    told.tool = Some((name.clone(), input.clone()));
                }
            }
        }
        RecordBody::Asked(asked) if asked.tool_use_id == id => told.asked = Some((**asked).clone()),
        RecordBody::Answered(answer) if answer.tool_use_id == id && told.answer.is_none() => {
            told.answer = Some((**answer).clone());
        }
        RecordBody::Decided(decided) if decided.tool_use_id == id => {
            told.decision = Some(decided.decision.clone())
        }
        RecordBody::Hooked(hooked) if hooked.tool_use_id.as_deref() == Some(id) => {
            told.hooks.push((**hooked).clone());
        }
        RecordBody::ToolStarted(started) if started.tool_use_id == id => told.started = true,
        RecordBody::User(entry) => {
            let blocks = entry.message.content.clone().into_blocks();
            let mine = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { tool_use_id, .. } if tool_use_id == id);
            if blocks.iter().any(mine) {
                told.outcome =
                    entry.outcome.map(|outcome| json!(outcome).as_str().unwrap_or_default().to_owned());
            }
        }
        _ => {}
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
    let paths = locate(environment, session)?;
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
    let paths = locate(&environment, session)?;
    if given.input.is_some() && !given.allow {
        return Err(Fault::input("--input goes with allow alone", "a denied call runs with no input at all"));
    }
    let updated_input = given.input.as_deref().map(changed_input).transpose()?;
    let cwd = catalog::info(&layout::config_root(&environment), None, session)
        .and_then(|info| info.cwd)
        .unwrap_or_default();
    let options = Options { cwd: cwd.into(), environment, ..Options::default() };
    let setup = Setup::prepare(options)?;
    let mut open = opened(&setup, session, &paths, tool_use_id)?;
    let call = open.state.call(tool_use_id).filter(|call| call.answer.is_none());
    let Some(asked) = call.and_then(|call| call.asked.clone()) else {
        return Err(match winner(&paths, tool_use_id) {
            Some(first) => lost(session, &first),
            None => Fault::input(
                format!("the call {tool_use_id} of session {session} waits for no answer"),
                format!("`qodercli permissions pending {session}` shows what waits"),
            ),
        });
    };
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
    open.append(RecordBody::Answered(Box::new(body))).map_err(SessionError::Store)?;
    open.sync().map_err(SessionError::Store)?;
    for problem in setup.updates().persist(&updates) {
        tell(&format!("warning: {problem}"));
    }
    say(&format!(
        "{} {tool_use_id}; go on with: qodercli -p --resume {session}",
        if given.allow { "allowed" } else { "denied" }
    ))?;
    Ok(Exit::Success)
}

/// How often and how long the process is waited for that holds the session and may be putting its answer on record.
const TRIES: u32 = 100;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// The session, to be answered in. While another process holds it, its log says whether that one has answered.
fn opened(setup: &Setup, session: &str, paths: &SessionPaths, tool_use_id: &str) -> Result<Session, Fault> {
    let mut attempt = 1;
    loop {
        let keep = Keep::Files { paths: paths.clone(), durability: setup.durability };
        match Session::open(session, keep, setup.redactor(), &setup.cwd) {
            Err(error @ SessionError::Locked { .. }) => {
                if let Some(first) = winner(paths, tool_use_id) {
                    return Err(lost(session, &first));
                }
                if attempt >= TRIES {
                    return Err(error.into());
                }
                std::thread::sleep(PAUSE);
                attempt += 1;
            }
            other => return Ok(other?),
        }
    }
}

/// The answer that counts for a call, also when the session has gone on since.
fn winner(paths: &SessionPaths, tool_use_id: &str) -> Option<Answered> {
    // A log that another process writes to may end in half a line, and one that is damaged is reported elsewhere.
    told_of(paths, tool_use_id).ok().and_then(|told| told.answer)
}

/// Somebody else has answered first.
fn lost(session: &str, first: &Answered) -> Fault {
    let word = if first.allow { "allow" } else { "deny" };
    let mut text = format!("the call {} was answered before: {word} by {}", first.tool_use_id, first.by);
    if let Some(input) = &first.updated_input {
        text.push_str(&format!(", with the input {input}"));
    }
    if let Some(message) = &first.message {
        text.push_str(&format!(", with the message: {message}"));
    }
    if !first.updated_permissions.is_empty() {
        let kept: Vec<String> = first.updated_permissions.iter().map(in_words).collect();
        text.push_str(&format!(", keeping {}", kept.join("; ")));
    }
    Fault::input(text, format!("your answer changes nothing; continue with qodercli -p --resume {session}"))
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
