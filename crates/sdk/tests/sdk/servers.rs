//! MCP servers outside of the program, in process: from options and files, replaced while a session runs, with the
//! callbacks that answer their questions, and with what the description decides about their tools.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qoder_agent_sdk::{
    ElicitationResult, McpHttpServerConfig, McpOAuthResolution, McpServerConfig, McpServerToolPolicy,
    McpServers, McpStdioServerConfig, NoArguments, OAuthToken, PermissionPolicy, QoderAgentOptions,
    QoderSdkClient, create_sdk_mcp_server, tool,
};
use qoder_runtime::mcp::tool_name;
use serde_json::json;

use crate::client::ask;
use crate::support::{Place, call_then_done, tool_results, within};

/// A server that needs nothing but Python.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/protocol/scripts/server.py");

fn server() -> McpStdioServerConfig {
    McpStdioServerConfig {
        command: "python3".to_owned(),
        args: vec![SCRIPT.to_owned()],
        ..McpStdioServerConfig::default()
    }
}

async fn connected(options: QoderAgentOptions) -> QoderSdkClient {
    let mut client = QoderSdkClient::new(options);
    within(client.connect(None)).await.unwrap();
    client
}

#[tokio::test]
async fn a_child_process_serves_tools_and_its_policies_are_rules() {
    let place = Place::new();
    let policy =
        |name: &str, permission_policy| McpServerToolPolicy { name: name.to_owned(), permission_policy };
    let tools =
        vec![policy("echo", PermissionPolicy::AlwaysAllow), policy("die", PermissionPolicy::AlwaysDeny)];
    let options = place
        .playing(&call_then_done("mcp__kb__echo", &json!({ "text": "hello" })))
        .mcp_server("kb", McpStdioServerConfig { tools, ..server() });
    let client = connected(options).await;
    let messages = ask(&client, "Go.").await;
    assert_eq!(tool_results(&messages), [("hello".to_owned(), false)]);
    let init = serde_json::to_value(&messages).unwrap().to_string();
    assert!(init.contains("mcp__kb__grow") && !init.contains("mcp__kb__die"), "{init}");
}

#[tokio::test]
async fn a_file_describes_servers_and_names_filter_them() {
    let place = Place::new();
    let config = json!({ "mcpServers": { "kb": { "command": "python3", "args": [SCRIPT] },
        "other": { "command": "python3", "args": [SCRIPT] } } });
    place.0.write("servers.json", config.to_string());
    let options = place
        .playing(&json!([{ "text": "x" }]))
        .mcp_servers(McpServers::File("servers.json".into()))
        .allowed_mcp_server_names(["kb"])
        .strict_mcp_config(true);
    let client = connected(options).await;
    ask(&client, "Go.").await;
    let rows = within(client.get_mcp_status()).await.unwrap();
    let names: Vec<(&str, &str)> = rows.iter().map(|row| (row.name.as_str(), row.status.as_str())).collect();
    assert_eq!(names, [("kb", "connected")]);
}

#[tokio::test]
async fn servers_are_replaced_and_bring_their_functions() {
    let place = Place::new();
    let replies = call_then_done("mcp__clock__now", &json!({}));
    let client = connected(place.playing(&replies).allowed_tools(["mcp__clock"])).await;
    let now = tool("now", "Returns the time.", |_: NoArguments| async { "noon" });
    let clock = create_sdk_mcp_server("clock", "1.0.0", [now]).unwrap();
    let wanted: BTreeMap<String, McpServerConfig> = [
        ("clock".to_owned(), clock.into()),
        ("kb".to_owned(), server().into()),
        ("bad name".to_owned(), server().into()),
    ]
    .into();
    let replaced = within(client.set_mcp_servers(&wanted)).await.unwrap();
    assert_eq!(replaced.added, ["bad name", "clock", "kb"]);
    assert_eq!(replaced.errors.keys().collect::<Vec<_>>(), ["bad name"]);
    assert_eq!(tool_results(&ask(&client, "Go.").await), [("noon".to_owned(), false)]);
    let replaced = within(client.set_mcp_servers(&BTreeMap::new())).await.unwrap();
    assert_eq!(replaced.removed, ["bad name", "clock", "kb"]);
    let error = within(client.mcp_authenticate("kb", None)).await.unwrap_err();
    assert_eq!(error.to_string(), "mcp_authenticate: there is no MCP server named `kb`; known are: none");
}

#[tokio::test]
async fn a_server_asks_a_person_through_the_callback() {
    let place = Place::new();
    let name = tool_name("kb", "ask person");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    let options = place
        .playing(&call_then_done(&name, &json!({})))
        .allowed_tools(["mcp__kb"])
        .mcp_server("kb", server())
        .on_elicitation(move |request| {
            list.lock().unwrap().push((request.server_name, request.message, request.mode));
            async { ElicitationResult::Accept { content: Some(json!({ "project": "apollo" })) } }
        });
    let client = connected(options).await;
    let results = tool_results(&ask(&client, "Go.").await);
    assert!(results[0].0.contains("apollo"), "{results:?}");
    let asked = ("kb".to_owned(), "Which project?".to_owned(), "form".to_owned());
    assert_eq!(*heard.lock().unwrap(), [asked]);
}

/// A remote server that ends with the test.
struct Remote(Child);

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn remote(place: &Place) -> (Remote, McpServerConfig) {
    let file = place.0.home().join("port");
    let command = Command::new("python3").args([SCRIPT, "http"]).arg(&file).stdin(Stdio::piped()).spawn();
    let remote = Remote(command.unwrap());
    let port = within(async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(port) => break port,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    (remote, McpServerConfig::Http(McpHttpServerConfig { url, ..McpHttpServerConfig::default() }))
}

#[tokio::test]
async fn credentials_come_from_the_callback_and_from_orders() {
    let place = Place::new();
    let (_remote, server) = remote(&place).await;
    let replies = call_then_done("mcp__kb__echo", &json!({ "text": "inside" }));
    let token = || OAuthToken { access_token: "good-token-of-the-test".to_owned(), ..OAuthToken::default() };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    let options =
        place.playing(&replies).allowed_tools(["mcp__kb"]).mcp_server("kb", server).on_mcp_oauth_required(
            move |request| {
                list.lock().unwrap().push((request.server_name, request.auth_url.contains("S256")));
                async move { Some(McpOAuthResolution::Token { token: token() }) }
            },
        );
    let client = connected(options).await;
    let until = |status: &'static str| {
        let client = &client;
        within(async move {
            while client.get_mcp_status().await.unwrap()[0].status != status {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    until("connected").await;
    assert_eq!(*asked.lock().unwrap(), [("kb".to_owned(), true)]);
    assert_eq!(tool_results(&ask(&client, "Go.").await), [("inside".to_owned(), false)]);
    within(client.mcp_clear_auth("kb")).await.unwrap();
    within(client.inject_mcp_token("kb", token())).await.unwrap();
    until("connected").await;
    let begun = within(client.mcp_authenticate("kb", None)).await.unwrap();
    assert!(!begun.requires_user_action);
}
