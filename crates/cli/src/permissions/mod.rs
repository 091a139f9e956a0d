//! `qodercli permissions`: decide a case, list the rules in force, and answer calls that wait; `explain` prints why a past
//! call ran or did not.

pub mod arguments;
mod explain;
mod pending;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use qoder_config::home;
use qoder_core::state::Call;
use qoder_runtime::catalog;
use qoder_runtime::error::SessionError;
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::permission_check::Checker;
use qoder_runtime::session::Session;
use qoder_runtime::setup::{Options, Setup};
use qoder_runtime::store::{SessionLocation, StoreError};
use qoder_types::record::{Answered, RecordBody};
use qoder_types::{
    Actor, AskKind, Behavior, ExternalResult, InboxBody, InboxOutcome, InboxReply, PermissionUpdate,
    ToolResultContent,
};
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::screen::{Document, print_json, print_json_line, print_line, print_note, print_row};
use crate::sessions::inbox::{self, Letter};
use crate::sessions::{KeptAgent, locate};
use arguments::{AnswerArguments, PermissionsAction};

use pending::Target;

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
        PermissionsAction::Pending { session, json } => pending::run(&environment, &session, json),
        PermissionsAction::Answer(arguments) => answer(environment, &arguments),
    }
}

fn check(environment: &BTreeMap<String, String>, batch: bool) -> Result<Exit, Fault> {
    let cwd = crate::command_line::place::current_directory(None)?;
    let mut checker = Checker::new(cwd, home::home(environment));
    let mut input = BufReader::with_capacity(256 * 1024, std::io::stdin().lock());
    if !batch {
        let mut text = String::new();
        input.take(LONGEST_CASE).read_to_string(&mut text).map_err(|error| {
            Fault::input(format!("the case cannot be read: {error}"), "send one JSON object")
        })?;
        let checked = checker.check(&text);
        print_json_line(checked.line)?;
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
        // A caller that waits for each answer before the next case gets it at once.
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
            "mode": setup.mode().as_str(), "trusted": setup.config.trust.is_trusted(), "cwd": setup.cwd,
            "projectRoot": setup.config.project_root, "rules": rows,
        });
        print_json(&value)?;
        return Ok(Exit::Success);
    }
    let trust = if setup.config.trust.is_trusted() { "trusted" } else { "not trusted" };
    print_row(&format!("folder {} ({trust}), mode {}", setup.cwd.display(), setup.mode().as_str()))?;
    let mut any = false;
    for (behavior, rules) in lists {
        for rule in rules {
            any = true;
            print_row(&format!("{:<5} {}  [{}]", word(behavior), rule.text, place(&rule.origin)))?;
        }
    }
    if !any {
        print_line("no rules; `permissions.allow`, `ask` and `deny` in the settings hold them")?;
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

fn answer(environment: BTreeMap<String, String>, given: &AnswerArguments) -> Result<Exit, Fault> {
    let (session, paths) = locate(&environment, &given.session)?;
    let session = session.as_str();
    let allow = given.answer == "allow";
    if given.input.is_some() && !allow {
        return Err(Fault::input("`--input` can only be used with `allow`", "a denied call does not run"));
    }
    let updated_input = given.input.as_deref().map(changed_input).transpose()?;
    let result = given.result()?;
    let cwd = catalog::info(&home::config_root(&environment), None, session)
        .and_then(|info| info.cwd)
        .unwrap_or_default();
    let options = Options { cwd: cwd.into(), environment, ..Options::default() };
    let setup = Setup::prepare(options)?;
    let target = pending::find(&paths, &given.tool_use_id, given.agent.as_deref())?;
    let by = given.by.as_deref().map_or_else(|| inbox::user(&setup.options.environment), Actor::claimed);
    let body = Answered {
        tool_use_id: target.tool_use_id.clone(),
        allow,
        message: given.message.clone(),
        updated_input,
        updated_permissions: Vec::new(),
        interrupt: false,
        result,
        by,
    };
    if let Some(first) = winner(target.paths(&paths), &target.tool_use_id) {
        return Err(lost(session, &first));
    }
    if let Some(kind) = target.kind.filter(|kind| !body.answers(*kind)) {
        return Err(wrong_kind(&target.tool_use_id, kind));
    }
    let mut letter: Option<Letter> = None;
    // Each round ends because the process that held the session has ended, so that it can be opened here.
    let open = loop {
        if let Some(open) = opened(&setup, &paths)? {
            break open;
        }
        let letter = match &mut letter {
            Some(letter) => letter,
            None => {
                let entry = entry(&body, target.agent.as_ref(), given.always);
                letter.insert(Letter::leave(&paths, body.by.to_string(), entry)?)
            }
        };
        if let Some(reply) = letter.wait()? {
            return heard(session, target.paths(&paths), &body, reply);
        }
    };
    if let Some(letter) = &mut letter {
        if let Some(reply) = letter.take_back()? {
            return heard(session, target.paths(&paths), &body, reply);
        }
        // The process that took it may have ended before it could say so.
        if winner(target.paths(&paths), &target.tool_use_id).is_some_and(|first| is_of(&body, &first)) {
            return taken(&body);
        }
    }
    record(&setup, (session, &paths), open, &target, body, given.always)
}

fn wrong_kind(tool_use_id: &str, wanted: AskKind) -> Fault {
    match wanted {
        AskKind::Permission => Fault::input(
            format!("the call `{tool_use_id}` waits for permission, not for a result"),
            "answer `allow` or `deny`",
        ),
        AskKind::External => Fault::input(
            format!("the call `{tool_use_id}` runs outside the runtime and waits for its result"),
            "answer `result --content TEXT`",
        ),
    }
}

/// Records the answer in a session that no other process drives. Its lease holds for the logs of its agents, too.
fn record(
    setup: &Setup,
    (session, paths): (&str, &SessionPaths),
    main: Session,
    target: &Target,
    mut body: Answered,
    always: bool,
) -> Result<Exit, Fault> {
    let (tool_use_id, word) = (body.tool_use_id.clone(), past_word(&body));
    let (mut open, _lease) = match &target.agent {
        None => (main, None),
        Some(agent) => {
            let location = agent.key.agents.iter().fold(main.location().clone(), |above, id| above.agent(id));
            (Session::open(location, setup.redactor(), &setup.cwd)?, Some(main))
        }
    };
    let Some(asked) = open.state.call(&tool_use_id).and_then(Call::waiting_ask).cloned() else {
        return Err(match winner(target.paths(paths), &tool_use_id) {
            Some(first) => lost(session, &first),
            None => not_pending(session, &tool_use_id),
        });
    };
    if !body.answers(asked.kind) {
        return Err(wrong_kind(&tool_use_id, asked.kind));
    }
    let updates = if always && body.allow { asked.suggestions } else { Vec::new() };
    if always && body.allow && updates.is_empty() {
        print_note(
            "warning: there is nothing that --always could keep for this call; it is allowed this once",
        );
    }
    body.updated_permissions.clone_from(&updates);
    open.append(RecordBody::Answered(Box::new(body))).map_err(SessionError::Store)?;
    open.sync().map_err(SessionError::Store)?;
    for problem in setup.updates().persist(&updates) {
        print_note(&format!("warning: {problem}"));
    }
    print_line(&format!("{word} {tool_use_id}; continue with: qodercli -p --resume {session}"))?;
    Ok(Exit::Success)
}

fn past_word(body: &Answered) -> &'static str {
    match (&body.result, body.allow) {
        (Some(_), _) => "recorded the result of",
        (None, true) => "allowed",
        (None, false) => "denied",
    }
}

/// The session, to be answered in. `None` while another process drives it.
fn opened(setup: &Setup, paths: &SessionPaths) -> Result<Option<Session>, Fault> {
    let location = SessionLocation::in_files(paths, setup.durability);
    match Session::open(location, setup.redactor(), &setup.cwd) {
        Err(SessionError::Storage(StoreError::Locked { .. })) => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// The answer, to be left for the process that drives the session.
fn entry(body: &Answered, agent: Option<&KeptAgent>, always: bool) -> InboxBody {
    let (tool_use_id, agent_id) = (body.tool_use_id.clone(), agent.map(|agent| agent.key.id().to_owned()));
    match body.result.clone() {
        Some(result) => InboxBody::Result { tool_use_id, agent_id, result },
        None => InboxBody::Answer {
            tool_use_id,
            agent_id,
            allow: body.allow,
            message: body.message.clone(),
            updated_input: body.updated_input.clone(),
            updated_permissions: Vec::new(),
            always,
            interrupt: false,
        },
    }
}

/// True when a recorded answer says what this one says, by the same person.
fn is_of(body: &Answered, first: &Answered) -> bool {
    let parts = |answer: &Answered| {
        let Answered { allow, message, updated_input, result, by, .. } = answer.clone();
        (allow, message, updated_input, result, by.to_string())
    };
    parts(body) == parts(first)
}

/// Says what the process that drives the session made of the answer.
fn heard(session: &str, paths: &SessionPaths, body: &Answered, reply: InboxReply) -> Result<Exit, Fault> {
    let first = || winner(paths, &body.tool_use_id).map(|first| lost(session, &first));
    match reply.outcome {
        InboxOutcome::Accepted => taken(body),
        InboxOutcome::Lost => {
            Err(first().unwrap_or_else(|| Fault::input(reply.message, "your answer changes nothing")))
        }
        InboxOutcome::Refused => Err(first().unwrap_or_else(|| match reply.details["code"].as_str() {
            Some("answer_not_pending" | "answer_withdrawn") | None => not_pending(session, &body.tool_use_id),
            Some(_) => Fault::input(reply.message, "`qodercli permissions pending` prints what waits"),
        })),
    }
}

fn taken(body: &Answered) -> Result<Exit, Fault> {
    let word = past_word(body);
    print_line(&format!("{word} {}; the process that drives the session continues", body.tool_use_id))?;
    Ok(Exit::Success)
}

fn not_pending(session: &str, tool_use_id: &str) -> Fault {
    Fault::input(
        format!("the call {tool_use_id} of session {session} waits for no answer"),
        format!("`qodercli permissions pending {session}` shows what waits"),
    )
}

/// The answer that counts for a call, also when the session has gone on since.
fn winner(paths: &SessionPaths, tool_use_id: &str) -> Option<Answered> {
    // A log that another process writes to may end in half a line, and one that is damaged is reported elsewhere.
    explain::answer_of(paths, tool_use_id)
}

/// Another answer was first.
fn lost(session: &str, first: &Answered) -> Fault {
    let word = first.word();
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

impl AnswerArguments {
    /// The result of a call that runs outside.
    fn result(&self) -> Result<Option<ExternalResult>, Fault> {
        match (self.answer.as_str(), &self.content) {
            ("result", Some(text)) => Ok(Some(ExternalResult {
                content: ToolResultContent::Text(text.clone()),
                is_error: self.is_error,
            })),
            ("result", None) => Err(Fault::input(
                "`result` needs `--content`",
                "give what the model reads with --content TEXT",
            )),
            (_, Some(_)) => Err(Fault::input(
                "`--content` can only be used with `result`",
                "leave it out, or answer `result`",
            )),
            (_, None) => Ok(None),
        }
    }
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
