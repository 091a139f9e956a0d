//! The handshake: what the program gets first, and whether its answer fits this SDK. Hooks are named by numbers
//! here, and the credentials travel here and nowhere else.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::VERSION;
use crate::error::{Error, Result};
use crate::hooks::HookCallback;
use crate::options::{QoderAgentOptions, Skills};

/// The protocol that this SDK speaks.
const PROTOCOL: u64 = 1;

/// The first request, and the hooks that it names.
pub(super) struct Initialize {
    pub(super) request: Value,
    /// By the number in their name.
    pub(super) hooks: Arc<[HookCallback]>,
}

impl Initialize {
    pub(super) fn new(options: &QoderAgentOptions) -> Result<Self> {
        let mut callbacks = Vec::new();
        let hooks = hooks(options, &mut callbacks);
        let mut request = json!({
            "subtype": "initialize",
            "hooks": if hooks.is_empty() { Value::Null } else { Value::Object(hooks) },
            "protocolVersion": PROTOCOL,
            "sdk": { "name": "rust", "version": VERSION },
        });
        if !options.agents.is_empty() {
            request["agents"] = json!(options.agents);
        }
        if let Some(Skills::Only(names)) = &options.skills {
            request["skills"] = json!(names);
        }
        if let Some(auth) = &options.auth {
            request["auth"] = auth.wire(&options.environment())?;
        }
        for (declared, key) in [
            (options.resolve_model.is_some(), "modelPolicy"),
            (options.on_elicitation.is_some(), "elicitation"),
            (options.on_mcp_oauth_required.is_some(), "mcpOAuth"),
            (options.on_auth_expired.is_some(), "authExpired"),
            (options.prompt_suggestions, "promptSuggestions"),
            (options.forward_subagent_text, "forwardSubagentText"),
        ] {
            if declared {
                request[key] = json!(true);
            }
        }
        for (key, value) in [
            ("proxy", options.proxy.as_ref().map(|value| json!(value))),
            ("planModeInstructions", options.plan_mode_instructions.as_ref().map(|value| json!(value))),
            ("toolConfig", options.tool_config.clone()),
            ("customContext", options.custom_context.as_ref().map(|value| json!(value))),
            ("goalMaxTurns", options.goal_max_turns.map(|value| json!(value))),
        ] {
            if let Some(value) = value {
                request[key] = value;
            }
        }
        Ok(Self { request, hooks: callbacks.into() })
    }
}

fn hooks(options: &QoderAgentOptions, callbacks: &mut Vec<HookCallback>) -> Map<String, Value> {
    let mut events = Map::new();
    for (event, matchers) in &options.hooks {
        let mut entries = Vec::new();
        for matcher in matchers {
            let ids: Vec<String> = matcher
                .hooks
                .iter()
                .map(|hook| {
                    callbacks.push(Arc::clone(hook));
                    format!("hook_{}", callbacks.len() - 1)
                })
                .collect();
            let mut entry = json!({ "matcher": matcher.matcher, "hookCallbackIds": ids });
            if let Some(seconds) = matcher.timeout {
                entry["timeout"] = json!(seconds);
            }
            if let Some(on_failure) = matcher.on_failure {
                entry["onFailure"] = json!(on_failure.as_str());
            }
            entries.push(entry);
        }
        events.insert(event.as_str().to_owned(), Value::Array(entries));
    }
    events
}

/// Refuses a program that does not fit.
pub(super) fn check(info: &Value) -> Result<()> {
    let protocol = info.get("protocol_version").and_then(Value::as_u64);
    let version = info.get("qodercli_version").and_then(Value::as_str).unwrap_or("unknown");
    if protocol == Some(PROTOCOL) && series(version) == series(VERSION) {
        return Ok(());
    }
    let spoken = protocol.map_or_else(|| "none".to_owned(), |number| number.to_string());
    Err(Error::ProtocolVersionMismatch {
        sdk: format!("{VERSION} (protocol {PROTOCOL})"),
        cli: format!("{version} (protocol {spoken})"),
    })
}

/// Major and minor.
fn series(version: &str) -> Vec<&str> {
    version.split('.').take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HookEvent, HookJsonOutput, HookMatcher, OnFailure, access_token};

    #[test]
    fn the_first_request_has_what_was_given_and_nothing_else() {
        let plain = Initialize::new(&QoderAgentOptions::new()).unwrap().request;
        assert_eq!(
            plain,
            json!({ "subtype": "initialize", "hooks": null, "protocolVersion": 1,
                "sdk": { "name": "rust", "version": VERSION } })
        );
        let options = QoderAgentOptions::new().auth(access_token("pat")).goal_max_turns(3).hook(
            HookEvent::PreToolUse,
            HookMatcher::for_tools("Bash")
                .hook(|_, _, _| async { HookJsonOutput::default() })
                .timeout(5)
                .on_failure(OnFailure::Block),
        );
        let full = Initialize::new(&options).unwrap();
        assert_eq!(
            full.request["hooks"]["PreToolUse"],
            json!([{ "matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 5, "onFailure": "block" }])
        );
        assert_eq!(full.request["auth"], json!({ "type": "accessToken", "accessToken": "pat" }));
        assert_eq!(full.request["goalMaxTurns"], 3);
        assert_eq!(full.hooks.len(), 1);
    }

    #[test]
    fn a_program_that_does_not_fit_is_named_with_its_version() {
        check(&json!({ "protocol_version": 1, "qodercli_version": VERSION })).unwrap();
        let error = check(&json!({ "protocol_version": 2, "qodercli_version": "9.9.0" })).unwrap_err();
        assert_eq!(error.code(), "protocol_version_mismatch");
        assert!(error.to_string().ends_with("the program is 9.9.0 (protocol 2)"), "{error}");
        assert!(check(&json!({})).is_err());
    }
}
