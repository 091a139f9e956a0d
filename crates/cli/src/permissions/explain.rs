//! `qodercli permissions explain`: why a past call ran or did not, what it was asked to do and what it did. Sessions and calls
//! may be named by the beginning of their ids; without one, the last denial is meant.

use std::collections::BTreeMap;

use qoder_runtime::layout::SessionPaths;
use qoder_runtime::permission_check::explanation;
use qoder_types::record::{Answered, Asked, RecordBody};
use qoder_types::{Behavior, ContentBlock, Decision, HookVerdict, Hooked};
use serde_json::{Value, json};

use super::{place, word};
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_line, print_row};
use crate::sessions::{kept_agents, locate, newest, read};

/// What a log says about one call.
#[derive(Default)]
struct CallHistory {
    /// The child that made the call, if it was one.
    agent_id: Option<String>,
    tool: Option<(String, Value)>,
    /// What counts in place of the model's input, and who changed it.
    changed: Option<(Value, String)>,
    /// What hooks said, in order.
    hooks: Vec<Hooked>,
    asked: Option<Asked>,
    answer: Option<Answered>,
    decision: Option<Decision>,
    started: bool,
    outcome: Option<String>,
}

impl CallHistory {
    /// Replaces the input that counted so far.
    fn change(&mut self, input: Option<&Value>, by: &str) {
        let counts = self.changed.as_ref().map(|(input, _)| input);
        let counts = counts.or(self.tool.as_ref().map(|(_, input)| input));
        let Some(input) = input.filter(|input| Some(*input) != counts) else { return };
        let by = match self.changed.take() {
            Some((_, before)) if before != by => format!("{before}, then {by}"),
            Some(_) | None => by.to_owned(),
        };
        self.changed = Some((input.clone(), by));
    }
}

/// Explains a call of a session; the last that was denied when none is named, of the newest session when none is named.
pub fn run(
    environment: &BTreeMap<String, String>,
    session: Option<&str>,
    call: Option<&str>,
    as_json: bool,
) -> Result<Exit, Fault> {
    let (id, paths, call) = match (session, call) {
        (None, _) => {
            let (id, paths) = newest(environment)?;
            (id, paths, None)
        }
        (Some(session), Some(call)) => {
            let (id, paths) = locate(environment, session)?;
            (id, paths, Some(call))
        }
        // One word alone may name a call of the newest session.
        (Some(given), None) => match (locate(environment, given), newest(environment)) {
            (Ok((id, paths)), _) => (id, paths, None),
            (Err(_), Ok((id, paths))) if is_call(&paths, given)? => (id, paths, Some(given)),
            (Err(fault), _) => return Err(fault),
        },
    };
    let call = find_call(&id, &paths, call)?;
    let history = history_of(&paths, &call)?;
    let Some((tool, input)) = &history.tool else { return Err(no_call(&id, &call)) };
    if as_json { print_explained(&id, &call, &history) } else { print_text(&call, tool, input, &history) }
}

/// The logs of a session and of its children.
fn logs(paths: &SessionPaths) -> Result<Vec<(Option<String>, SessionPaths)>, Fault> {
    let children =
        kept_agents(paths)?.into_iter().map(|agent| (Some(agent.key.id().to_owned()), agent.paths));
    Ok(std::iter::once((None, paths.clone())).chain(children).collect())
}

/// The whole id of the call that is meant.
fn find_call(session: &str, paths: &SessionPaths, given: Option<&str>) -> Result<String, Fault> {
    match given {
        Some(given) => complete(given, &calls(paths)?)?.ok_or_else(|| no_call(session, given)),
        None => last_denial(paths)?.ok_or_else(|| {
            Fault::input(
                format!("session {session} has no denied call"),
                format!("name a call: `qodercli sessions show {session}` prints their IDs"),
            )
        }),
    }
}

fn no_call(session: &str, call: &str) -> Fault {
    Fault::input(
        format!("session {session} has no call {call}"),
        format!("`qodercli sessions show {session}` prints the IDs of its calls"),
    )
}

fn is_call(paths: &SessionPaths, given: &str) -> Result<bool, Fault> {
    Ok(calls(paths)?.iter().any(|id| id.starts_with(given)))
}

/// The ids of all calls.
fn calls(paths: &SessionPaths) -> Result<Vec<String>, Fault> {
    let mut ids = Vec::new();
    for (_, paths) in logs(paths)? {
        read(&paths, |body| {
            if let RecordBody::Assistant(entry) = body {
                ids.extend(entry.message.content.iter().filter_map(|block| match block {
                    ContentBlock::ToolUse { id, .. } => Some(id.clone()),
                    _ => None,
                }));
            }
        })?;
    }
    Ok(ids)
}

/// The whole id of a call that is named by it or by the beginning of it; one that is unknown stays as it is.
pub fn full_id(paths: &SessionPaths, given: &str) -> Result<String, Fault> {
    // What cannot be read now is reported when the session is opened.
    let known = calls(paths).unwrap_or_default();
    Ok(complete(given, &known)?.unwrap_or_else(|| given.to_owned()))
}

/// The answer that a log has for a call, when it can be read.
pub fn answer_of(paths: &SessionPaths, call: &str) -> Option<Answered> {
    history_of(paths, call).ok().and_then(|history| history.answer)
}

/// The ID that begins like this; `None` when no call has such an ID.
fn complete<T: AsRef<str>>(given: &str, ids: &[T]) -> Result<Option<String>, Fault> {
    let all = || ids.iter().map(AsRef::as_ref);
    if given.is_empty() || all().any(|id| id == given) {
        return Ok(Some(given.to_owned()).filter(|id| !id.is_empty()));
    }
    let mut fitting: Vec<&str> = all().filter(|id| id.starts_with(given)).collect();
    fitting.sort_unstable();
    fitting.dedup();
    match fitting.as_slice() {
        [] => Ok(None),
        [id] => Ok(Some((*id).to_owned())),
        several => {
            let shown = several.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            Err(Fault::input(
                format!("`{given}` is the beginning of {} call IDs", several.len()),
                format!("give more of it: {shown}"),
            ))
        }
    }
}

/// The last call that was denied: of the session itself, else of its children.
fn last_denial(paths: &SessionPaths) -> Result<Option<String>, Fault> {
    for (_, paths) in logs(paths)? {
        let mut last = None;
        read(&paths, |body| {
            if let RecordBody::Decided(decided) = body
                && decided.decision.behavior == Behavior::Deny
            {
                last = Some(decided.tool_use_id.clone());
            }
        })?;
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

/// Looks for a call in the log of a session and then in those of its children.
fn history_of(paths: &SessionPaths, tool_use_id: &str) -> Result<CallHistory, Fault> {
    let mut history = CallHistory::default();
    for (agent_id, paths) in logs(paths)? {
        history = CallHistory { agent_id, ..CallHistory::default() };
        read(&paths, |body| collect(&mut history, body, tool_use_id))?;
        if history.tool.is_some() {
            break;
        }
    }
    Ok(history)
}

fn print_explained(session: &str, call: &str, history: &CallHistory) -> Result<Exit, Fault> {
    let (tool, input) = history.tool.as_ref().map(|(tool, input)| (tool, input)).unzip();
    let (ran, by) = history.changed.as_ref().map(|(input, by)| (input, by)).unzip();
    let mut value = json!({
        "sessionId": session, "toolUseId": call, "tool": tool, "input": input,
        "decision": history.decision.as_ref().map(|decision| decision.behavior),
        "reason": history.decision.as_ref().map(explanation),
        "agentId": history.agent_id, "hooks": history.hooks, "asked": history.asked, "answer": history.answer,
        "started": history.started, "outcome": history.outcome,
    });
    if let (Some(ran), Some(by)) = (ran, by) {
        value["ranInput"] = ran.clone();
        value["inputChangedBy"] = json!(by);
    }
    print_json(&value)?;
    Ok(Exit::Success)
}

fn print_text(call: &str, tool: &str, input: &Value, history: &CallHistory) -> Result<Exit, Fault> {
    print_row(&format!("call     {call}"))?;
    print_row(&format!("tool     {tool}"))?;
    print_row(&format!("input    {input}"))?;
    if let Some((ran, by)) = &history.changed {
        let label = if history.started { "ran     " } else { "changed " };
        print_row(&format!("{label} {ran} (changed by {by})"))?;
    }
    if let Some(agent) = &history.agent_id {
        print_row(&format!("agent    {agent}"))?;
    }
    for hooked in &history.hooks {
        let by = hooked.by.as_deref().unwrap_or("no hook");
        let said = match hooked.verdict {
            Some(HookVerdict::Allow) => format!("{by} allows it"),
            Some(HookVerdict::Ask) => format!("{by} asks for confirmation"),
            Some(HookVerdict::Deny) => format!("{by} denies it"),
            Some(HookVerdict::Defer) | None => "no opinion".to_owned(),
        };
        let reason = hooked.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        print_row(&format!("hooks    {}: {said}{reason}", hooked.event))?;
    }
    if let Some(asked) = &history.asked {
        print_row(&format!("asked    {}", asked.decision.reason))?;
    }
    if let Some(answer) = &history.answer {
        print_row(&format!("answer   {} by {}", answer.word(), answer.by))?;
    }
    match &history.decision {
        Some(decision) => describe(decision)?,
        None => print_line("decision none yet: without one the call does not run")?,
    }
    let outcome = history.outcome.as_deref().unwrap_or(if history.started {
        "started, no end on record"
    } else {
        "not run"
    });
    print_row(&format!("outcome  {outcome}"))?;
    Ok(Exit::Success)
}

fn describe(decision: &Decision) -> Result<(), Fault> {
    let layer = json!(decision.layer);
    print_line(&format!("decision {}", word(decision.behavior)))?;
    print_line(&format!("layer    {}", layer.as_str().unwrap_or_default()))?;
    print_row(&format!("reason   {}", decision.reason))?;
    if let Some(rule) = &decision.rule {
        print_row(&format!("rule     {rule}"))?;
    }
    if let Some(origin) = &decision.origin {
        print_row(&format!("from     {}", place(origin)))?;
    }
    print_line(&format!("mode     {}", decision.mode.as_str()))?;
    for considered in &decision.considered {
        let rule = considered.rule.as_deref().map(|rule| format!("`{rule}` ")).unwrap_or_default();
        let would = considered.behavior.map(|behavior| format!("{}: ", word(behavior))).unwrap_or_default();
        print_row(&format!("also     {would}{rule}{}", considered.note))?;
    }
    Ok(())
}

fn collect(history: &mut CallHistory, body: &RecordBody, id: &str) {
    match body {
        RecordBody::Assistant(entry) => {
            for block in &entry.message.content {
                if let ContentBlock::ToolUse { id: call, name, input } = block
                    && call == id
                {
                    history.tool = Some((name.clone(), input.clone()));
                }
            }
        }
        RecordBody::Asked(asked) if asked.tool_use_id == id => history.asked = Some((**asked).clone()),
        RecordBody::Answered(answer) if answer.tool_use_id == id && history.answer.is_none() => {
            history.change(answer.updated_input.as_ref(), &answer.by.to_string());
            history.answer = Some((**answer).clone());
        }
        RecordBody::Decided(decided) if decided.tool_use_id == id => {
            history.decision = Some(decided.decision.clone())
        }
        RecordBody::Hooked(hooked) if hooked.tool_use_id.as_deref() == Some(id) => {
            history.change(hooked.updated_input.as_ref(), &hooked.changer());
            history.hooks.push((**hooked).clone());
        }
        RecordBody::ToolStarted(started) if started.tool_use_id == id => history.started = true,
        RecordBody::User(entry) => {
            let blocks = entry.message.content.clone().into_blocks();
            let mine = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { tool_use_id, .. } if tool_use_id == id);
            if blocks.iter().any(mine) {
                history.outcome =
                    entry.outcome.map(|outcome| json!(outcome).as_str().unwrap_or_default().to_owned());
            }
        }
        _ => {}
    }
}
