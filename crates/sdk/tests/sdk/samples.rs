//! The samples of the tools guide and of the reference, each as the program that it becomes in Rust. What a sample
//! says about a real service is said by a playbook here.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{
    CustomModel, HookEvent, HookJsonOutput, HookMatcher, McpSdkServerConfig, Message, ModelPolicyResult,
    PermissionMode, PermissionResult, QoderSdkClient, ToolAnnotations, ToolContext, ToolResult,
    create_sdk_mcp_server, query, tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, tool_results, within};

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Search keywords
    query: String,
    /// Maximum snippets to return
    max_results: Option<u32>,
    /// Where to search
    source: Option<Source>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Source {
    Docs,
    Tickets,
    Wiki,
}

fn kb_tools() -> McpSdkServerConfig {
    let search = tool("search_docs", "Search internal product documentation.", |search: Search| async move {
        let limit = search.max_results.unwrap_or(5);
        format!("{} ({limit}, {:?})", search.query, search.source.unwrap_or(Source::Docs))
    });
    let hints =
        ToolAnnotations::default().title("Search docs").read_only(true).destructive(false).open_world(false);
    create_sdk_mcp_server("kb", "1.0.0", [search.with_annotations(hints)]).unwrap()
}

/// Tools guide, "Built-in Tools": only three tools are visible and run without a question.
#[tokio::test]
async fn built_in_tools_are_chosen() {
    let place = Place::new();
    place.0.write("auth.rs", "fn login() {}");
    let replies = call_then_done("Grep", &json!({ "pattern": "login", "path": "." }));
    let options =
        place.playing(&replies).tools(["Read", "Grep", "Glob"]).allowed_tools(["Read", "Grep", "Glob"]);
    let messages = all(query("Summarize risks in the authentication module.", options).unwrap()).await;
    let Message::System(init) = &messages[0] else { panic!("{messages:#?}") };
    assert_eq!(init.init().unwrap().tools, ["Read", "Glob", "Grep"]);
    assert!(!tool_results(&messages)[0].1);
}

/// Tools guide, "Method 1": nothing is offered with an empty list, and denied tools are not offered.
#[tokio::test]
async fn tools_are_taken_away() {
    let tools = |messages: &[Message]| match &messages[0] {
        Message::System(init) => init.init().unwrap().tools,
        other => panic!("{other:?}"),
    };
    let place = Place::new();
    let replies = json!([{ "text": "x", "repeat": true }]);
    let none = all(query("Explain.", place.playing(&replies).tools([""; 0])).unwrap()).await;
    assert!(tools(&none).is_empty());
    let options = place.playing(&replies).disallowed_tools(["Bash", "Write", "Edit"]);
    let few = tools(&all(query("Review.", options).unwrap()).await);
    assert!(few.contains(&"Read".to_owned()) && !few.contains(&"Bash".to_owned()), "{few:?}");
}

/// Tools guide, "Configure Input Parameters": optional fields and enums are in the schema and are kept to.
#[tokio::test]
async fn parameters_are_described_and_checked() {
    let place = Place::new();
    let run = |input: serde_json::Value| {
        let options = place
            .playing(&call_then_done("mcp__kb__search_docs", &input))
            .mcp_server("kb", kb_tools())
            .allowed_tools(["mcp__kb__search_docs"]);
        async move { tool_results(&all(query("Search.", options).unwrap()).await).remove(0) }
    };
    assert_eq!(run(json!({ "query": "refund" })).await, ("refund (5, Docs)".to_owned(), false));
    let full = json!({ "query": "refund", "max_results": 2, "source": "wiki" });
    assert_eq!(run(full).await, ("refund (2, Wiki)".to_owned(), false));
    assert!(run(json!({ "query": "refund", "source": "web" })).await.1);
}

/// Tools guide, the second handler parameter: a tool that is cancelled sees it and says how far it came.
#[tokio::test]
async fn a_cancelled_tool_can_leave() {
    #[derive(Deserialize, JsonSchema)]
    struct Watch {}
    let seen = Arc::new(Mutex::new(None));
    let (begun, saw) = (Arc::new(tokio::sync::Notify::new()), Arc::clone(&seen));
    let begins = Arc::clone(&begun);
    let watch = tool("watch", "Watch a counter until max.", move |_: Watch, context: ToolContext| {
        let (begins, saw) = (Arc::clone(&begins), Arc::clone(&saw));
        async move {
            begins.notify_one();
            context.signal.cancelled().await;
            *saw.lock().unwrap() = Some(context.signal.is_cancelled());
            "aborted"
        }
    });
    let place = Place::new();
    let options = place
        .playing(&call_then_done("mcp__clock__watch", &json!({})))
        .mcp_server("clock", create_sdk_mcp_server("clock", "1.0.0", [watch]).unwrap())
        .allowed_tools(["mcp__clock__watch"]);
    let mut client = QoderSdkClient::new(options);
    within(client.connect(Some("Go.".into()))).await.unwrap();
    within(begun.notified()).await;
    within(client.interrupt()).await.unwrap();
    let messages = all(client.receive_response()).await;
    assert_eq!(result(&messages).terminal_reason.as_deref(), Some("aborted_tools"));
    assert_eq!(*seen.lock().unwrap(), Some(true));
}

/// Tools guide, "Method 3": only the order lookup may run.
#[tokio::test]
async fn can_use_tool_decides_by_name_and_input() {
    let place = Place::new();
    let options = place
        .playing(&call_then_done("Write", &json!({ "file_path": "a", "content": "" })))
        .mcp_server("kb", kb_tools())
        .can_use_tool(|tool_name, input, _| async move {
            if tool_name != "mcp__orders__lookup_order" {
                return PermissionResult::deny("Only order lookup is allowed in this workflow.");
            }
            PermissionResult::allow_with(input)
        });
    let messages = all(query("Check order O-1001.", options).unwrap()).await;
    assert_eq!(tool_results(&messages)[0].0, "Only order lookup is allowed in this workflow.");
}

/// Tools guide, business failures: the model reads an error that explains itself.
#[tokio::test]
async fn a_business_failure_is_structured() {
    #[derive(Deserialize, JsonSchema)]
    struct Sql {
        statement: String,
    }
    let run_sql = tool("run_sql", "Runs a read-only statement.", |sql: Sql| async move {
        if sql.statement.starts_with("SELECT") {
            return ToolResult::text("1 row");
        }
        let message = "Only SELECT statements are allowed.";
        ToolResult::error(json!({ "error": "VALIDATION_ERROR", "message": message }).to_string())
    });
    let place = Place::new();
    let options = place
        .playing(&call_then_done("mcp__db__run_sql", &json!({ "statement": "DROP TABLE x" })))
        .mcp_server("db", create_sdk_mcp_server("db", "1.0.0", [run_sql]).unwrap())
        .allowed_tools(["mcp__db__run_sql"]);
    let (text, failed) = tool_results(&all(query("Go.", options).unwrap()).await).remove(0);
    assert!(failed && text.contains("VALIDATION_ERROR"), "{text}");
}

/// Reference, `QoderSDKClient`: an initial prompt, then rounds of input, with the mode and model switched between.
#[tokio::test]
async fn a_client_is_used_as_the_reference_shows() {
    let place = Place::new();
    let mut client = QoderSdkClient::new(place.playing(&json!([{ "text": "hello", "repeat": true }])));
    within(client.connect(Some("Initial prompt.".into()))).await.unwrap();
    assert_eq!(result(&all(client.receive_response()).await).text(), "hello");
    within(client.set_permission_mode(PermissionMode::Plan)).await.unwrap();
    client.query("Search docs for the refund policy.").await.unwrap();
    let mut messages = client.receive_messages();
    let mut modes = Vec::new();
    while let Some(message) = within(messages.next()).await {
        match message.unwrap() {
            Message::System(system) => modes.extend(system.init().map(|init| init.permission_mode)),
            Message::Result(_) => break,
            _ => {}
        }
    }
    assert_eq!(modes, ["plan"]);
    drop(messages);
    assert!(!client.supported_agents().is_empty());
    within(client.disconnect()).await.unwrap();
}

/// Reference, `CustomModel`: a key of the user's own goes to the provider that the answer names.
#[tokio::test]
async fn a_model_on_a_key_of_ones_own_is_routed_to_its_provider() {
    let place = Place::new();
    let replies = vec![qoder_testkit::Reply::text("from the provider")];
    let server = qoder_testkit::ScriptedServer::start(qoder_testkit::Script::list(replies));
    let url = server.base_url();
    let options = place.options().model("offline").resolve_model(move |_| {
        let custom = CustomModel {
            provider: "mine".to_owned(),
            model: "some-model".to_owned(),
            api_key: "key-of-the-test".to_owned(),
            url: Some(url.clone()),
            style: Some("anthropic".to_owned()),
        };
        async move { ModelPolicyResult::custom(custom) }
    });
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "from the provider");
    assert_eq!(result(&messages).total_cost_usd, Some(0.0));
}

/// Tools guide, "Method 4": the hook of the sample keeps a command from running that a rule allows.
#[tokio::test]
async fn a_hook_blocks_a_dangerous_command() {
    let place = Place::new();
    let block = HookMatcher::for_tools("Bash").hook(|input, _, _| async move {
        let command = input.tool_input().and_then(|input| input["command"].as_str()).unwrap_or_default();
        if command.contains("rm -rf") {
            HookJsonOutput::deny("rm -rf is not allowed")
        } else {
            HookJsonOutput::allow()
        }
    });
    let replies = call_then_done("Bash", &json!({ "command": "rm -rf build" }));
    let options = place.playing(&replies).allowed_tools(["Bash"]).hook(HookEvent::PreToolUse, block);
    let messages = all(query("Run the test command.", options).unwrap()).await;
    let (text, failed) = tool_results(&messages).remove(0);
    assert!(failed && text.contains("rm -rf is not allowed"), "{text}");
}
