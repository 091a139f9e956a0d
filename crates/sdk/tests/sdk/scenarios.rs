//! The scenarios that all SDKs share: what a user sees, described once in `sdks/scenarios/scenarios.json`. Run with the
//! engine in process.

use std::collections::HashMap;
use std::path::Path;

use qoder_agent_sdk::{
    ContentBlock, HookEvent, HookMatcher, Message, PermissionResult, QoderAgentOptions, QoderSdkClient,
    ToolAnnotations, ToolResult, ToolSet, create_sdk_mcp_server, tool_with_schema,
};
use serde_json::{Value, json};

use crate::support::{Place, all, within};

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn with_options(mut options: QoderAgentOptions, described: &Value) -> QoderAgentOptions {
    for (name, value) in described.as_object().into_iter().flatten() {
        options = match name.as_str() {
            "allowed_tools" => options.allowed_tools(texts(value)),
            "disallowed_tools" => options.disallowed_tools(texts(value)),
            "tools" => options.tools(ToolSet::Only(texts(value))),
            "max_turns" => options.max_turns(value.as_u64().unwrap()),
            "system_prompt" => options.system_prompt(text(value)),
            "output_format" => options.output_format(value.clone()),
            "task_budget" => options.task_budget(value.as_u64().unwrap()),
            "allow_dangerously_skip_permissions" => {
                options.allow_dangerously_skip_permissions(value.as_bool().unwrap())
            }
            "permission_mode" => options.permission_mode(serde_json::from_value(value.clone()).unwrap()),
            other => panic!("a scenario has the option {other}, which this runner does not know"),
        };
    }
    options
}

fn with_servers(mut options: QoderAgentOptions, servers: &Value) -> QoderAgentOptions {
    for (server, tools) in servers.as_object().into_iter().flatten() {
        let tools = tools.as_object().unwrap().iter().map(|(name, described)| {
            let answer = described.clone();
            let made = tool_with_schema(
                name.clone(),
                text(&described["description"]),
                described["input_schema"].clone(),
                move |_: Value| {
                    let answer = answer.clone();
                    async move {
                        if let Some(problem) = answer["raises"].as_str() {
                            return Err(problem.to_owned());
                        }
                        let said = text(&answer["result"]["content"][0]["text"]);
                        let failed = answer["result"]["is_error"].as_bool().unwrap_or(false);
                        Ok(if failed { ToolResult::error(said) } else { ToolResult::text(said) })
                    }
                },
            );
            let reads = described["annotations"]["readOnlyHint"].as_bool().unwrap_or(false);
            made.with_annotations(ToolAnnotations::default().read_only(reads))
        });
        let config = create_sdk_mcp_server(server.clone(), "1.0.0", tools.collect::<Vec<_>>()).unwrap();
        options = options.mcp_server(server.clone(), config);
    }
    options
}

fn with_callbacks(mut options: QoderAgentOptions, scenario: &Value) -> QoderAgentOptions {
    if let Some(answers) = scenario.get("can_use_tool").cloned() {
        options = options.can_use_tool(move |name, _, _| {
            let answer = answers[&name].clone();
            async move {
                if let Some(problem) = answer["raises"].as_str() {
                    return Err(problem.to_owned());
                }
                let deny = answer["deny"].as_bool().unwrap_or(false);
                Ok(match (deny, answer["interrupt"].as_bool().unwrap_or(false)) {
                    (true, true) => PermissionResult::deny_and_interrupt(text(&answer["message"])),
                    (true, false) => PermissionResult::deny(text(&answer["message"])),
                    (false, _) => PermissionResult::allow_with(answer["updated_input"].clone()),
                })
            }
        });
    }
    for (event, entries) in scenario["hooks"].as_object().into_iter().flatten() {
        let event: HookEvent = serde_json::from_value(json!(event)).unwrap();
        for entry in entries.as_array().unwrap().iter().cloned() {
            let matcher = entry["matcher"].as_str().map_or_else(HookMatcher::new, HookMatcher::for_tools);
            let matcher = matcher.hook(move |_, _, _| {
                let entry = entry.clone();
                async move {
                    match entry["raises"].as_str() {
                        Some(problem) => Err(problem.to_owned()),
                        None => {
                            serde_json::from_value(entry["output"].clone()).map_err(|error| error.to_string())
                        }
                    }
                }
            });
            options = options.hook(event.clone(), matcher);
        }
    }
    options
}

/// What the messages say, in the scenario's words.
fn seen(messages: &[Message]) -> Vec<Value> {
    let mut said = Vec::new();
    let mut names: HashMap<String, String> = HashMap::new();
    for message in messages {
        let blocks = match message {
            Message::Assistant(reply) => reply.message.content.clone(),
            Message::User(user) => user.content().to_vec(),
            Message::Result(end) => {
                let denied: Vec<&str> =
                    end.permission_denials.iter().map(|one| one.tool_name.as_str()).collect();
                said.push(json!({
                    "end": end.subtype, "result": end.result, "errors": end.errors, "denied": denied,
                    "structured": end.structured_output,
                }));
                continue;
            }
            _ => continue,
        };
        for block in blocks {
            match block {
                ContentBlock::Text { text } => said.push(json!({ "text": text })),
                ContentBlock::ToolUse { id, name, input } => {
                    said.push(json!({ "tool": name, "input": input }));
                    names.insert(id, name);
                }
                ContentBlock::ToolResult { tool_use_id, content, is_error } => said.push(json!({
                    "result_of": names[&tool_use_id], "text": content.to_text(), "is_error": is_error,
                })),
                _ => {}
            }
        }
    }
    said
}

/// True when what was said is what is expected; `~` at the start of a text means that it is contained.
fn fits(expected: &Value, actual: &Value) -> bool {
    match expected {
        Value::String(wanted) => match wanted.strip_prefix('~') {
            Some(part) => actual.as_str().is_some_and(|text| text.contains(part)),
            None => expected == actual,
        },
        Value::Array(wanted) => actual.as_array().is_some_and(|items| {
            items.len() == wanted.len() && wanted.iter().zip(items).all(|(one, other)| fits(one, other))
        }),
        Value::Object(wanted) => wanted.iter().all(|(key, value)| fits(value, &actual[key])),
        Value::Null | Value::Bool(_) | Value::Number(_) => expected == actual,
    }
}

async fn play(scenario: &Value) {
    let place = Place::new();
    for (name, content) in scenario["files"].as_object().into_iter().flatten() {
        place.0.write(name, text(content));
    }
    let options = with_options(place.playing(&scenario["playbook"]), &scenario["options"]);
    let options = with_callbacks(with_servers(options, &scenario["servers"]), scenario);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    let mut messages = Vec::new();
    for prompt in texts(&scenario["prompts"]) {
        client.query(prompt).await.unwrap();
        messages.extend(all(client.receive_response()).await);
    }
    within(client.disconnect()).await.unwrap();
    let said = Value::Array(seen(&messages));
    assert!(fits(&scenario["expect"], &said), "{}: {said:#}", scenario["name"]);
    for (name, content) in scenario["left"].as_object().into_iter().flatten() {
        let left = std::fs::read_to_string(place.0.project().join(name)).ok();
        assert_eq!(json!(left), *content, "{}: {name}", scenario["name"]);
    }
}

#[tokio::test]
async fn every_scenario_is_seen_as_it_is_described() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdks/scenarios/scenarios.json");
    let scenarios: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(scenarios.len() > 20);
    for scenario in &scenarios {
        play(scenario).await;
    }
}
