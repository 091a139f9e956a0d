//! Reads what one hook answered: the documented output object. What makes no sense is an error, so that a hook that wanted
//! to deny something and misspelt it does not pass for one that had no opinion.

use qoder_types::{HookVerdict, PermissionUpdate};
use serde_json::{Map, Value};

use qoder_config::sources::kind_of;

use crate::answers::event_fields::EventFields;
use qoder_config::hooks::HookEvent;

/// The longest text of a hook that the model reads, in characters.
const LONGEST_TEXT: usize = 50_000;

/// What one hook said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) verdict: Option<HookVerdict>,
    pub(crate) reason: Option<String>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_output: Option<String>,
    pub(crate) updated_permissions: Vec<PermissionUpdate>,
    pub(crate) interrupt: bool,
    pub(crate) context: Option<String>,
    pub(crate) stop: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) more: EventFields,
}

/// What reading an output came to: what counts of it, and what was wrong with the rest.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) said: Said,
    pub(crate) problem: Option<String>,
}

/// Reads an output. A part for another event is left out whole, and the rest of the output counts; with a part that names
/// no event the whole output is rejected.
pub(crate) fn read(event: HookEvent, output: &Value) -> Read {
    let Some(fields) = output.as_object() else {
        return Read {
            problem: Some(format!("its output is {} and not an object", kind_of(output))),
            ..Read::default()
        };
    };
    if is_async(output) {
        return Read::default();
    }
    if let Some(Value::Object(part)) = fields.get("hookSpecificOutput")
        && !part.get("hookEventName").is_some_and(Value::is_string)
    {
        let problem = format!(
            "its hookSpecificOutput has no hookEventName \"{}\", so its whole output is rejected",
            event.as_str()
        );
        return Read { problem: Some(problem), ..Read::default() };
    }
    match general(event, fields) {
        Ok(mut said) => {
            let problem = specific(event, fields, &mut said).err();
            Read { said, problem }
        }
        Err(problem) => Read { said: Said::default(), problem: Some(problem) },
    }
}

/// True for an output that says that its hook continues in the background.
pub(crate) fn is_async(output: &Value) -> bool {
    output.get("async") == Some(&Value::Bool(true))
}

fn general(event: HookEvent, fields: &Map<String, Value>) -> Result<Said, String> {
    let mut said =
        Said { message: text(fields, "systemMessage")?, reason: text(fields, "reason")?, ..Said::default() };
    said.verdict = match fields.get("decision") {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) => Some(match word.as_str() {
            "approve" | "allow" => HookVerdict::Allow,
            "block" | "deny" => HookVerdict::Deny,
            other => return Err(format!("its decision is `{}`, which does not exist", bounded(other))),
        }),
        Some(other) => return Err(format!("its decision is {} and not a word", kind_of(other))),
    };
    let stop_reason = text(fields, "stopReason")?;
    match fields.get("continue") {
        None | Some(Value::Null | Value::Bool(true)) => {}
        Some(Value::Bool(false)) if event.may_stop() => {
            said.stop = Some(stop_reason.unwrap_or_else(|| "A hook ended the turn.".to_owned()));
        }
        Some(Value::Bool(false)) => {}
        Some(other) => return Err(format!("its `continue` is {} and not true or false", kind_of(other))),
    }
    Ok(said)
}

fn specific(event: HookEvent, fields: &Map<String, Value>, said: &mut Said) -> Result<(), String> {
    let part = match fields.get("hookSpecificOutput") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(part)) => part,
        Some(other) => return Err(format!("its hookSpecificOutput is {} and not an object", kind_of(other))),
    };
    let name = event.as_str();
    if part.get("hookEventName").and_then(Value::as_str) != Some(name) {
        return Err(format!("its hookSpecificOutput names another event than {name} and is left out"));
    }
    // Read whole before anything counts.
    let mut with = said.clone();
    with.context = text(part, "additionalContext")?;
    match event {
        HookEvent::PreToolUse => before_call(part, &mut with)?,
        HookEvent::PermissionRequest => permission(part, &mut with)?,
        HookEvent::PostToolUse => {
            let output = |field: &str| part.get(field).filter(|value| !is_empty(value)).map(as_text);
            with.updated_output = output("updatedToolOutput").or_else(|| output("updatedMCPToolOutput"));
        }
        HookEvent::PostToolUseFailure
        | HookEvent::UserPromptSubmit
        | HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::Stop
        | HookEvent::StopFailure
        | HookEvent::SubagentStart
        | HookEvent::SubagentStop
        | HookEvent::PreCompact
        | HookEvent::PostCompact
        | HookEvent::CwdChanged
        | HookEvent::InstructionsLoaded
        | HookEvent::FileChanged
        | HookEvent::PermissionDenied
        | HookEvent::Notification
        | HookEvent::ConfigChange
        | HookEvent::WorktreeCreate
        | HookEvent::WorktreeRemove
        | HookEvent::Elicitation
        | HookEvent::ElicitationResult
        | HookEvent::TaskCreated
        | HookEvent::TaskCompleted
        | HookEvent::TeammateIdle
        | HookEvent::Setup => {}
    }
    with.more = EventFields::read(event, part)?;
    *said = with;
    Ok(())
}

fn before_call(part: &Map<String, Value>, said: &mut Said) -> Result<(), String> {
    if let Some(word) = text(part, "permissionDecision")? {
        said.verdict = Some(match word.as_str() {
            "allow" => HookVerdict::Allow,
            "deny" => HookVerdict::Deny,
            "ask" => HookVerdict::Ask,
            "defer" => HookVerdict::Defer,
            other => return Err(format!("its permissionDecision is `{other}`, which does not exist")),
        });
    }
    if let Some(reason) = text(part, "permissionDecisionReason")? {
        said.reason = Some(reason);
    }
    said.updated_input = input(part)?;
    Ok(())
}

fn permission(part: &Map<String, Value>, said: &mut Said) -> Result<(), String> {
    let decision = match part.get("decision") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(decision)) => decision,
        Some(other) => {
            return Err(format!("its permission decision is {} and not an object", kind_of(other)));
        }
    };
    match decision.get("behavior").and_then(Value::as_str) {
        Some("allow") => {
            said.verdict = Some(HookVerdict::Allow);
            said.updated_input = input(decision)?;
            if let Some(updates) = decision.get("updatedPermissions").filter(|value| !value.is_null()) {
                said.updated_permissions = serde_json::from_value(updates.clone())
                    .map_err(|error| format!("its updatedPermissions cannot be read: {error}"))?;
            }
        }
        Some("deny") => {
            said.verdict = Some(HookVerdict::Deny);
            said.reason = text(decision, "message")?.or(said.reason.take());
            said.interrupt = decision.get("interrupt") == Some(&Value::Bool(true));
        }
        Some(_) | None => return Err("its permission decision has no behavior `allow` or `deny`".to_owned()),
    }
    Ok(())
}

fn input(part: &Map<String, Value>) -> Result<Option<Value>, String> {
    match part.get("updatedInput") {
        None | Some(Value::Null) => Ok(None),
        Some(input @ Value::Object(_)) => Ok(Some(input.clone())),
        Some(other) => Err(format!("its updatedInput is {} and not an object", kind_of(other))),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// What the model reads of a value: a text as it is, everything else as JSON.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text field; an empty one says nothing.
pub(crate) fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(bounded(text))),
        Some(other) => Err(format!("its {name} is {} and not a text", kind_of(other))),
    }
}

pub(crate) fn bounded(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}[… cut: a hook may say {LONGEST_TEXT} characters]", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn specific(event: HookEvent, mut part: Value) -> Read {
        part["hookEventName"] = json!(event.as_str());
        read(event, &json!({ "hookSpecificOutput": part }))
    }

    #[test]
    fn an_empty_object_and_unknown_keys_say_nothing() {
        for output in [json!({}), json!({"continue": true, "suppressOutput": true, "other": [1]})] {
            assert_eq!(read(HookEvent::PreToolUse, &output), Read::default());
        }
    }

    #[test]
    fn every_spelling_of_a_decision_is_read() {
        for (word, verdict) in [
            ("approve", HookVerdict::Allow),
            ("allow", HookVerdict::Allow),
            ("block", HookVerdict::Deny),
            ("deny", HookVerdict::Deny),
        ] {
            let said = read(HookEvent::Stop, &json!({"decision": word, "reason": "because"})).said;
            assert_eq!((said.verdict, said.reason.as_deref()), (Some(verdict), Some("because")));
        }
        for (word, verdict) in [
            ("allow", HookVerdict::Allow),
            ("deny", HookVerdict::Deny),
            ("ask", HookVerdict::Ask),
            ("defer", HookVerdict::Defer),
        ] {
            let said = specific(HookEvent::PreToolUse, json!({"permissionDecision": word})).said;
            assert_eq!(said.verdict, Some(verdict));
        }
    }

    #[test]
    fn the_part_for_the_event_outranks_the_general_decision() {
        let output = json!({"decision": "approve", "reason": "general", "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "special"}});
        let said = read(HookEvent::PreToolUse, &output).said;
        assert_eq!((said.verdict, said.reason.as_deref()), (Some(HookVerdict::Deny), Some("special")));
    }

    #[test]
    fn a_part_for_another_event_is_left_out_and_the_rest_counts() {
        let part = json!({"hookEventName": "PostToolUse", "permissionDecision": "allow"});
        let read = read(HookEvent::PreToolUse, &json!({"decision": "block", "hookSpecificOutput": part}));
        assert_eq!(read.said.verdict, Some(HookVerdict::Deny));
        assert!(read.problem.unwrap().contains("left out"));
    }

    #[test]
    fn hook_specific_output_without_hook_event_name_rejects_the_whole_json() {
        for part in [json!({"permissionDecision": "allow"}), json!({"hookEventName": 1})] {
            let output = json!({"decision": "approve", "systemMessage": "x", "hookSpecificOutput": part});
            let read = read(HookEvent::PreToolUse, &output);
            assert_eq!(read.said, Said::default());
            assert!(read.problem.unwrap().contains("rejected"));
        }
    }

    #[test]
    fn nonsense_is_a_problem_and_says_nothing() {
        let specific = |part: Value| json!({"decision": "approve", "hookSpecificOutput": part});
        for output in [
            json!(null),
            json!([]),
            json!("deny"),
            json!({"decision": "maybe"}),
            json!({"decision": true}),
            json!({"continue": "no"}),
            json!({"reason": 7, "decision": "approve"}),
        ] {
            let read = read(HookEvent::PreToolUse, &output);
            assert!(read.problem.is_some(), "{output}");
            assert_eq!(read.said, Said::default(), "{output}");
        }
        for part in [
            json!(1),
            json!({"hookEventName": "PreToolUse", "permissionDecision": "yes"}),
            json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": "rm"}),
        ] {
            assert!(read(HookEvent::PreToolUse, &specific(part.clone())).problem.is_some(), "{part}");
        }
    }

    #[test]
    fn only_some_events_can_end_the_turn() {
        let output = json!({"continue": false, "stopReason": "enough"});
        assert_eq!(read(HookEvent::PostToolUse, &output).said.stop.as_deref(), Some("enough"));
        assert_eq!(read(HookEvent::SessionStart, &output).said.stop, None);
        assert!(read(HookEvent::Stop, &json!({"continue": false})).said.stop.is_some());
    }

    #[test]
    fn nothing_of_an_async_output_counts() {
        let output = json!({"async": true, "decision": "block", "continue": false, "systemMessage": "x"});
        assert_eq!(read(HookEvent::PreToolUse, &output), Read::default());
    }

    #[test]
    fn an_updated_output_that_is_no_text_is_its_json() {
        let said = specific(HookEvent::PostToolUse, json!({"updatedToolOutput": {"a": 1}})).said;
        assert_eq!(said.updated_output.as_deref(), Some("{\"a\":1}"));
        assert_eq!(
            specific(HookEvent::PostToolUse, json!({"updatedToolOutput": ""})).said.updated_output,
            None
        );
    }

    #[test]
    fn a_permission_decision_brings_its_changes() {
        let allow = json!({"decision": {"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": [
            {"type": "addRules", "rules": [{"toolName": "Read"}], "behavior": "allow", "destination": "session"}]}});
        let said = specific(HookEvent::PermissionRequest, allow).said;
        assert_eq!(said.verdict, Some(HookVerdict::Allow));
        assert_eq!((said.updated_input, said.updated_permissions.len()), (Some(json!({"a": 1})), 1));
        let deny = json!({"decision": {"behavior": "deny", "message": "no", "interrupt": true}});
        let said = specific(HookEvent::PermissionRequest, deny).said;
        assert_eq!(
            (said.verdict, said.reason.as_deref(), said.interrupt),
            (Some(HookVerdict::Deny), Some("no"), true)
        );
        for bad in [
            json!({"decision": {"behavior": "ask"}}),
            json!({"decision": "allow"}),
            json!({"decision": {"behavior": "allow", "updatedPermissions": 1}}),
        ] {
            assert!(specific(HookEvent::PermissionRequest, bad).problem.is_some());
        }
    }

    #[test]
    fn a_text_is_bounded() {
        let said = specific(HookEvent::PostToolUse, json!({"additionalContext": "ü".repeat(60_000)})).said;
        assert!(said.context.unwrap().chars().count() < 50_100);
    }
}
