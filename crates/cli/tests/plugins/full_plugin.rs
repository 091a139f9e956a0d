//! A plugin with every part, used end to end.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::host::{Host, call, named, say};
use crate::support::{plugin, server_files, text};

#[test]
fn a_server_of_a_plugin_runs_with_the_plugins_root_and_data() {
    let sandbox = Sandbox::new();
    let [(path, description), (program, code)] = server_files();
    let folder = plugin(&sandbox, "demo", &[(path, &description), (program, &code)]);
    let replies = json!([call(1, "mcp__plugin_demo_where__where", &json!({})), say("done")]);
    let flags = ["--plugin-dir", text(&folder), "--allowed-tools", "mcp__plugin_demo_where__where"];
    let mut command = Host::command(&sandbox, &replies, &flags);
    // Programs start slowly on a machine that runs many tests.
    command.env("QODER_MCP_START_WAIT_MS", "60000");
    let mut host = Host::spawn(command);
    host.initialize(named(json!({})));
    host.prompt("where?");
    let data = sandbox.config().join("plugins/data/demo");
    assert_eq!(host.tool_result(), format!("{} {}", folder.display(), data.display()));
    assert!(data.is_dir());
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(rows["mcpServers"][0]["scope"], "plugin");
}

#[test]
fn only_the_servers_of_the_command_line_count_when_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let [(path, description), (program, code)] = server_files();
    let folder = plugin(&sandbox, "demo", &[(path, &description), (program, &code)]);
    let flags = ["--plugin-dir", text(&folder), "--strict-mcp-config"];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({})));
    let rows = host.request(&json!({ "subtype": "mcp_status" })).unwrap();
    assert_eq!(rows["mcpServers"], json!([]));
    let told = host.request(&json!({ "subtype": "reload_plugins" })).unwrap();
    assert_eq!(told["mcpServers"], json!([]));
}
