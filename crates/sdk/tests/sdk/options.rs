//! Invalid options are reported at once, by their names, and nothing is started.

use qoder_agent_sdk::{
    AgentDefinition, McpHttpServerConfig, McpServerConfig, McpStdioServerConfig, PermissionMode,
    PermissionResult, QoderAgentOptions, access_token_from_env_var, list_sessions, query,
};
use serde_json::json;

use crate::support::{Place, all, result, within};
use futures::StreamExt;

fn complaint(options: QoderAgentOptions) -> (String, String) {
    let error = query("Hi.", options).unwrap_err();
    assert!(!error.hint().is_empty());
    (error.to_string(), error.code().to_owned())
}

#[test]
fn each_complaint_names_its_option() {
    let place = Place::new();
    let id = "123e4567-e89b-42d3-a456-426614174000";
    let new = || place.options();
    let url = McpHttpServerConfig { url: "nowhere".to_owned(), ..McpHttpServerConfig::default() };
    let cases = [
        (new().permission_mode(PermissionMode::BypassPermissions), "permission_mode: bypassPermissions"),
        (
            new()
                .can_use_tool(|_, _, _| async { PermissionResult::allow() })
                .permission_prompt_tool_name("mcp__a__b"),
            "permission_prompt_tool_name: it cannot be combined with can_use_tool",
        ),
        (
            new().resume(id).continue_conversation(true),
            "continue_conversation: it cannot be combined with resume",
        ),
        (new().fork_session(true), "fork_session: there is nothing to copy"),
        (new().session_id("7"), "session_id: `7` is not a UUID"),
        (new().session_id(id).resume(id), "session_id: it cannot be combined with resume"),
        (new().resume(""), "resume: the session ID is empty"),
        (new().max_budget_usd(0.0), "max_budget_usd: 0 is no budget"),
        (new().max_budget_usd(f64::NAN), "max_budget_usd: NaN is no budget"),
        (new().task_budget(0), "task_budget: 0 is no budget"),
        (new().output_format(json!("json")), "output_format: there is no schema"),
        (new().resume_session_at(id), "resume_session_at: there is no session"),
        (new().resume(id).resume_session_at(" "), "resume_session_at: the UUID is empty"),
        (new().resume(id).resume_drops_turn(id), "resume_drops_turn: it needs resume_session_at"),
        (new().persist_session(false).resume(id), "persist_session: "),
        (new().cwd("/does/not/exist"), "cwd: /does/not/exist is not a directory"),
        (new().add_dirs(["nowhere"]), "add_dirs: "),
        (new().tools(["Reed"]), "tools: `Reed` is not a tool"),
        (new().model(" "), "model: the name of a model is empty"),
        (new().mcp_server("kb", McpStdioServerConfig::default()), "mcp_servers.kb: `command` is empty"),
        (new().mcp_server("kb", McpServerConfig::Http(url)), "mcp_servers.kb: `url` is not an address"),
        (new().auth(access_token_from_env_var("NO_SUCH_PAT")), "auth: the environment variable NO_SUCH_PAT"),
        (new().cli_path("/does/not/exist"), "cli_path: /does/not/exist cannot be started"),
    ];
    for (options, words) in cases {
        let (text, _) = complaint(options);
        assert!(text.starts_with(words), "{text:?} does not start with {words:?}");
    }
    assert!(list_sessions(&place.sessions()).unwrap().is_empty());
}

#[tokio::test]
async fn what_the_engine_in_process_lacks_is_refused_by_name() {
    let place = Place::new();
    let new = || place.playing(&json!([{ "text": "x" }]));
    let cases =
        [(new().goal_max_turns(3), "goal_max_turns"), (new().extra_arg("debug", None), "extra_args.debug")];
    for (options, what) in cases {
        let error = within(query("Hi.", options).unwrap().next()).await.unwrap().unwrap_err();
        assert_eq!(error.code(), "unsupported");
        assert_eq!(error.to_string(), format!("{what} is not supported by the engine in process"));
    }
}

#[tokio::test]
async fn an_agent_of_the_program_does_a_task() {
    let place = Place::new();
    let replies = json!([
        { "when": { "turn": 1, "purpose": "main" },
          "toolCalls": [{ "name": "Agent", "input": { "subagent_type": "reviewer", "prompt": "review" } }] },
        { "when": { "purpose": "subagent" }, "text": "reviewed" },
        { "when": { "lastToolResultContains": "reviewed" }, "text": "all good" },
    ]);
    let reviewer = AgentDefinition::new("Reviews.", "Review.");
    let options = place.playing(&replies).allowed_tools(["Agent"]).agent_definition("reviewer", reviewer);
    assert_eq!(result(&all(query("Go.", options).unwrap()).await).text(), "all good");
}

#[tokio::test]
async fn bypassing_permissions_works_when_it_is_meant() {
    let place = Place::new();
    let replies = crate::support::call_then_done("Write", &json!({ "file_path": "a.txt", "content": "x" }));
    let options = place
        .playing(&replies)
        .permission_mode(PermissionMode::BypassPermissions)
        .allow_dangerously_skip_permissions(true);
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).permission_denials, []);
    assert_eq!(std::fs::read_to_string(place.0.project().join("a.txt")).unwrap(), "x");
}

#[tokio::test]
async fn warnings_go_to_whoever_listens() {
    let place = Place::new();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let lines = std::sync::Arc::clone(&heard);
    let options = place
        .playing(&json!([{ "text": "x" }]))
        .allowed_tools(["Reed"])
        .stderr(move |line| lines.lock().unwrap().push(line.to_owned()));
    all(query("Go.", options).unwrap()).await;
    let heard = heard.lock().unwrap();
    assert!(heard.iter().any(|line| line.contains("`Reed` names no known tool")), "{heard:?}");
}

#[tokio::test]
async fn a_system_prompt_may_come_from_a_file_that_must_exist() {
    let place = Place::new();
    let missing = qoder_agent_sdk::SystemPrompt::File("/does/not/exist".into());
    let options = place.playing(&json!([{ "text": "x" }])).system_prompt(missing);
    let error = within(query("Hi.", options).unwrap().next()).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("system_prompt: /does/not/exist cannot be read"), "{error}");
}
