//! The scenarios that all SDKs share: what a user sees, described once in `sdks/scenarios`. Run with the engine in
//! process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use qoder_agent_sdk::{
    ContentBlock, ElicitationResult, HookEvent, HookMatcher, McpStdioServerConfig, Message, OnFailure,
    PermissionResult, QoderAgentOptions, QoderSdkClient, SdkPluginConfig, SettingSource, Skills,
    ToolAnnotations, ToolPermissionContext, ToolResult, ToolSet, UserMessage, create_sdk_mcp_server,
    tool_with_schema,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::external_real::program;
use crate::support::{Place, all, within};

/// The session of a scenario that resumes one.
const SESSION: &str = "5ce7a210-0000-4000-8000-000000000001";

/// The exit code of a run whose question waits.
const WAITING: i32 = 54;

/// Fields of system messages that are not compared; the README of the scenarios says why.
const LEFT_OUT: [&str; 12] = [
    "type",
    "uuid",
    "session_id",
    "cwd",
    "model",
    "apiKeySource",
    "qodercli_version",
    "claude_code_version",
    "hook_id",
    "task_id",
    "output_file",
    "usage",
];

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn source(word: &str) -> SettingSource {
    match word {
        "user" => SettingSource::User,
        "project" => SettingSource::Project,
        "local" => SettingSource::Local,
        other => panic!("a scenario lists the source {other}, which this runner does not know"),
    }
}

fn with_options(mut options: QoderAgentOptions, described: &Value) -> QoderAgentOptions {
    for (name, value) in described.as_object().into_iter().flatten() {
        options = match name.as_str() {
            "allowed_tools" => options.allowed_tools(texts(value)),
            "disallowed_tools" => options.disallowed_tools(texts(value)),
            "tools" => options.tools(ToolSet::Only(texts(value))),
            "allowed_mcp_server_names" => options.allowed_mcp_server_names(texts(value)),
            "env" => value
                .as_object()
                .unwrap()
                .iter()
                .fold(options, |options, (name, value)| options.env(name.clone(), text(value))),
            "enable_file_checkpointing" => options.enable_file_checkpointing(value.as_bool().unwrap()),
            "agents" => value.as_object().unwrap().iter().fold(options, |options, (name, agent)| {
                options.agent_definition(name.clone(), serde_json::from_value(agent.clone()).unwrap())
            }),
            "skills" if value.is_string() => options.skills(Skills::All),
            "skills" => options.skills(Skills::Only(texts(value))),
            "setting_sources" => {
                options.setting_sources(texts(value).iter().map(|word| source(word)).collect())
            }
            "model" => options.model(text(value)),
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

/// Servers outside of the program: those that the test command installed, and the files beside the scenarios.
fn with_external_servers(mut options: QoderAgentOptions, servers: &Value) -> QoderAgentOptions {
    for (name, described) in servers.as_object().into_iter().flatten() {
        let installed = |program: &str| match std::env::var("QODER_TEST_MCP") {
            Ok(folder) => format!("{folder}/{program}"),
            Err(_) => {
                panic!("QODER_TEST_MCP names the folder of MCP servers; `cargo xtask test` sets it")
            }
        };
        let mut config: McpStdioServerConfig = serde_json::from_value(described.clone()).unwrap();
        if let Some(program) = described["program"].as_str() {
            config.command = installed(program);
        }
        if let Some(file) = described["own"].as_str() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdks/scenarios/servers").join(file);
            config.command = installed("venv/bin/python");
            config.args = vec![file.display().to_string(), "stdio".to_owned()];
        }
        options = options.mcp_server(name.clone(), config);
    }
    options
}

/// System messages that `system` does not have; the README of the scenarios says why.
const OTHERS: [&str; 3] = ["notice", "mcp_status_change", "task_progress"];

/// What the permission callback was given, and when it may answer.
struct Asked {
    given: Arc<Mutex<Vec<Value>>>,
    may_answer: watch::Sender<bool>,
}

impl Asked {
    fn new() -> Self {
        Self { given: Arc::default(), may_answer: watch::Sender::new(false) }
    }

    fn given(&self) -> Vec<Value> {
        self.given.lock().unwrap().clone()
    }
}

/// Everything that a permission callback is given, but the signal.
fn given(tool: &str, input: &Value, context: ToolPermissionContext) -> Value {
    // Every field is named: a new one has to be compared too.
    let ToolPermissionContext {
        signal: _,
        suggestions,
        blocked_path,
        decision_reason,
        decision_reason_type,
        classifier_approvable,
        title,
        display_name,
        description,
        tool_use_id,
        agent_id,
        exit_plan_mode,
    } = context;
    let fields = json!({
        "tool": tool, "input": input, "suggestions": suggestions, "blocked_path": blocked_path,
        "decision_reason": decision_reason, "decision_reason_type": decision_reason_type,
        "classifier_approvable": classifier_approvable, "title": title, "display_name": display_name,
        "description": description, "tool_use_id": tool_use_id, "agent_id": agent_id,
        "exit_plan_mode": exit_plan_mode,
    });
    let fields = fields.as_object().unwrap().clone();
    Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

/// Runs a turn in print mode whose question waits in the session.
fn park(place: &Place, prompt: &str, model: &str) {
    let settings = json!({ "permissions": { "unattended": "park" } }).to_string();
    let arguments = ["-p", prompt, "--session-id", SESSION, "--model", model, "--settings", &settings];
    let finished = place.0.run(program(), &arguments);
    assert_eq!(finished.status.code(), Some(WAITING), "{finished:?}");
}

fn with_callbacks(mut options: QoderAgentOptions, scenario: &Value, asked: &Asked) -> QoderAgentOptions {
    if let Some(answers) = scenario.get("can_use_tool").cloned() {
        let (kept, may_answer) = (Arc::clone(&asked.given), asked.may_answer.subscribe());
        options = options.can_use_tool(move |name: String, input, context| {
            kept.lock().unwrap().push(given(&name, &input, context));
            let (answer, mut may_answer) = (answers[&name].clone(), may_answer.clone());
            async move {
                may_answer.wait_for(|may| *may).await.map_err(|error| error.to_string())?;
                if let Some(problem) = answer["raises"].as_str() {
                    return Err(problem.to_owned());
                }
                let deny = answer["deny"].as_bool().unwrap_or(false);
                Ok(match (deny, answer["interrupt"].as_bool().unwrap_or(false)) {
                    (true, true) => PermissionResult::deny_and_interrupt(text(&answer["message"])),
                    (true, false) => PermissionResult::deny(text(&answer["message"])),
                    // Where the scenario has no other input this is null, which changes nothing.
                    (false, _) => PermissionResult::allow_with(answer["updated_input"].clone()),
                })
            }
        });
    }
    if let Some(answer) = scenario.get("elicitation").cloned() {
        options = options.on_elicitation(move |_| {
            let answer: Option<ElicitationResult> = serde_json::from_value(answer.clone()).unwrap();
            std::future::ready(answer.unwrap_or(ElicitationResult::Cancel))
        });
    }
    for (event, entries) in scenario["hooks"].as_object().into_iter().flatten() {
        let event: HookEvent = serde_json::from_value(json!(event)).unwrap();
        for entry in entries.as_array().unwrap().iter().cloned() {
            let matcher = entry["matcher"].as_str().map_or_else(HookMatcher::new, HookMatcher::for_tools);
            let on_failure = entry["on_failure"].as_str().map(|word| match word {
                "continue" => OnFailure::Continue,
                "block" => OnFailure::Block,
                other => panic!("a scenario declares {other}, which this runner does not know"),
            });
            let matcher = on_failure.into_iter().fold(matcher, HookMatcher::on_failure);
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
            // What subagents say among themselves is not the user's.
            Message::Assistant(reply) if reply.parent_tool_use_id.is_some() => continue,
            Message::User(user) if user.parent_tool_use_id.is_some() => continue,
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
                    "result_of": names.get(&tool_use_id), "text": content.to_text(), "is_error": is_error,
                })),
                _ => {}
            }
        }
    }
    said
}

/// What the runtime warned of, whole.
fn notices(messages: &[Message]) -> Vec<Value> {
    let notice = |message: &Message| match message {
        Message::System(system) if system.subtype == "notice" => Some(json!(system.data)),
        _ => None,
    };
    messages.iter().filter_map(notice).collect()
}

/// The system messages, without what differs from run to run.
fn news(messages: &[Message]) -> Vec<Value> {
    let news = |message: &Message| match message {
        Message::System(system) if !OTHERS.contains(&system.subtype.as_str()) => {
            let fields = system.data.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()));
            let mut fields: Map<String, Value> =
                fields.map(|(name, value)| (name.clone(), value.clone())).collect();
            fields.insert("subtype".to_owned(), json!(system.subtype));
            Some(Value::Object(fields))
        }
        _ => None,
    };
    messages.iter().filter_map(news).collect()
}

/// Like `fits`, but every field must be named, except where the subtype stands alone.
fn fits_whole(expected: &Value, actual: &[Value]) -> bool {
    let names = |value: &Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let mut pairs = expected.as_array().unwrap().iter().zip(actual);
    let named = pairs.all(|(one, other)| names(one) == ["subtype"] || names(one) == names(other));
    named && fits(expected, &json!(actual))
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

/// The id of a prompt, by its number.
fn message_id(number: u64) -> String {
    format!("c0ffee00-0000-4000-8000-{number:012}")
}

async fn play(scenario: &Value) {
    let place = Place::new();
    for (name, content) in scenario["files"].as_object().into_iter().flatten() {
        place.0.write(name, text(content));
    }
    let model = place.playbook(scenario.get("playbook").unwrap_or(&json!([])));
    let mut options = with_options(place.options().model(model.clone()), &scenario["options"]);
    if let Some(prompt) = scenario["parked"].as_str() {
        park(&place, prompt, &model);
        options = options.resume(SESSION);
    }
    let plugins = scenario["plugins"].as_array().into_iter().flatten();
    let plugins = plugins.map(|name| SdkPluginConfig::Local(place.0.project().join(text(name)))).collect();
    let options = options.trust(scenario["trusted"] == true).plugins(plugins);
    let options = with_external_servers(options, &scenario["external_servers"]);
    let asked = Asked::new();
    let options = with_callbacks(with_servers(options, &scenario["servers"]), scenario, &asked);
    let mut client = QoderSdkClient::new(options);
    let connected = within(client.connect(None)).await;
    if let Some(expected) = scenario.get("fails") {
        let problem = connected.unwrap_err().to_string();
        assert!(fits(expected, &json!(problem)), "{}: {problem}", scenario["name"]);
        return;
    }
    connected.unwrap();
    let (mut said, mut warned, mut reported) = (Vec::new(), Vec::new(), Vec::new());
    for (number, prompt) in (1..).zip(scenario["prompts"].as_array().unwrap()) {
        if let Some(to) = prompt["rewind_files"].as_u64() {
            let dry_run = prompt["dry_run"].as_bool().unwrap_or(false);
            let report = within(client.rewind_files(&message_id(to), dry_run)).await.unwrap();
            let files = report.files_changed.iter().filter_map(|path| Path::new(path).file_name()?.to_str());
            said.push(json!({
                "rewound": files.collect::<Vec<_>>(), "insertions": report.insertions,
                "deletions": report.deletions,
            }));
            continue;
        }
        if prompt.is_string() {
            client.query(UserMessage::new(text(prompt)).with_uuid(message_id(number))).await.unwrap();
        }
        asked.may_answer.send_replace(true);
        let messages = all(client.receive_response()).await;
        warned.extend(notices(&messages));
        reported.extend(news(&messages));
        said.extend(seen(&messages));
    }
    within(client.disconnect()).await.unwrap();
    let said = Value::Array(said);
    assert!(fits(&scenario["expect"], &said), "{}: {said:#}", scenario["name"]);
    let prompts = scenario["prompts"].as_array().unwrap().iter().filter(|prompt| prompt.is_string());
    let each_turn: Value = prompts.map(|_| json!({ "subtype": "init" })).collect();
    let expected = scenario.get("system").unwrap_or(&each_turn);
    assert!(fits_whole(expected, &reported), "{}: {:#}", scenario["name"], json!(reported));
    let (expected, asked) = (scenario.get("asked").cloned().unwrap_or(json!([])), asked.given());
    assert!(fits_whole(&expected, &asked), "{}: {:#}", scenario["name"], json!(asked));
    if let Some(expected) = scenario.get("notices") {
        assert!(fits(expected, &json!(warned)), "{}: {warned:#?}", scenario["name"]);
    }
    for (name, content) in scenario["left"].as_object().into_iter().flatten() {
        let left = std::fs::read_to_string(place.0.project().join(name)).ok();
        assert_eq!(json!(left), *content, "{}: {name}", scenario["name"]);
    }
}

async fn play_all(file: &str) -> usize {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdks/scenarios").join(file);
    let scenarios: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for scenario in &scenarios {
        play(scenario).await;
    }
    scenarios.len()
}

#[tokio::test]
async fn every_scenario_is_seen_as_it_is_described() {
    assert!(play_all("scenarios.json").await > 20);
}

#[tokio::test]
async fn scenarios_of_questions_are_seen_as_they_are_described() {
    assert!(play_all("questions.json").await > 5);
}

#[tokio::test]
async fn scenarios_around_the_turn_are_seen_as_they_are_described() {
    assert!(play_all("around-the-turn.json").await > 20);
}

#[tokio::test]
async fn scenarios_of_notices_are_seen_as_they_are_described() {
    assert!(play_all("notices.json").await > 5);
}

#[tokio::test]
async fn scenarios_of_definitions_are_seen_as_they_are_described() {
    assert!(play_all("definitions.json").await > 5);
}

#[tokio::test]
async fn scenarios_with_servers_outside_are_seen_as_they_are_described() {
    assert!(play_all("external-servers.json").await > 10);
}
