//! Servers that came with a folder: not started before the folder is trusted and the person has approved exactly this
//! description. Nothing in the folder can approve.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::mcp::support::{mcp, model, settle, trusted, turn};

/// A server that leaves a mark when it is started.
fn marker(sandbox: &Sandbox) -> Value {
    let mark = sandbox.project().join("started");
    json!({ "command": "touch", "args": [mark.to_str().unwrap()] })
}

fn project_file(sandbox: &Sandbox, server: &Value) {
    sandbox.write(".mcp.json", json!({ "mcpServers": { "kb": server } }).to_string());
}

/// The server's row after a listing, and whether it was started.
fn listed(sandbox: &Sandbox) -> (Value, bool) {
    let rows = mcp(sandbox, &["list", "--json"]).json();
    let mark = sandbox.project().join("started");
    let started = mark.exists();
    std::fs::remove_file(mark).ok();
    (rows[0].clone(), started)
}

#[test]
fn a_server_of_the_project_waits_for_approval_of_exactly_this_description() {
    let sandbox = trusted(&json!({}));
    project_file(&sandbox, &marker(&sandbox));
    let (row, started) = listed(&sandbox);
    assert!(!started);
    assert_eq!(row["status"], "disabled");
    assert_eq!(row["error"], "needs approval: run `qodercli mcp approve kb`");
    assert_eq!(row["scope"], "project");
    let waiting = mcp(&sandbox, &["approve"]).ok();
    assert!(waiting.contains("command: touch") && waiting.contains("started"), "{waiting}");
    assert!(!listed(&sandbox).1, "showing approves nothing");
    assert!(mcp(&sandbox, &["approve", "kb"]).ok().contains("approved kb as it is described in"));
    let (row, started) = listed(&sandbox);
    assert!(started, "{row}");
    assert_eq!(row["status"], "failed", "touch speaks no protocol");
    let mut changed = marker(&sandbox);
    changed["env"] = json!({ "A": "1" });
    project_file(&sandbox, &changed);
    assert!(!listed(&sandbox).1, "a changed description needs approval again");
    mcp(&sandbox, &["approve", "--all"]).ok();
    assert!(listed(&sandbox).1);
}

#[test]
fn nothing_of_an_untrusted_folder_is_looked_at() {
    let sandbox = Sandbox::new();
    project_file(&sandbox, &marker(&sandbox));
    let ran = mcp(&sandbox, &["list"]);
    assert!(ran.stdout.contains("no MCP servers"), "{}", ran.stdout);
    assert!(ran.stderr.contains(".mcp.json is not used"), "{}", ran.stderr);
    assert_eq!(mcp(&sandbox, &["approve", "kb"]).code, 42);
    settle(&sandbox, &json!({ "mcp": { "enableAllProjectMcpServers": true } }));
    assert!(listed(&sandbox).1);
}

#[test]
fn the_folder_cannot_approve_its_own_servers() {
    let sandbox = trusted(&json!({}));
    project_file(&sandbox, &marker(&sandbox));
    let approving =
        json!({ "mcp": { "enableAllProjectMcpServers": true, "enabledProjectMcpServers": ["kb"] } });
    for file in [".qoder/settings.json", ".qoder/settings.local.json"] {
        sandbox.write(file, approving.to_string());
        let ran = mcp(&sandbox, &["list", "--json"]);
        assert!(ran.stderr.contains("cannot be set by a project"), "{}", ran.stderr);
        let (row, started) = listed(&sandbox);
        assert!(!started, "{file}");
        assert_eq!(row["status"], "disabled", "{file}");
    }
}

#[test]
fn servers_in_the_settings_of_the_folder_wait_too() {
    for file in [".qoder/settings.json", ".qoder/settings.local.json"] {
        let sandbox = trusted(&json!({}));
        sandbox.write(file, json!({ "mcpServers": { "kb": marker(&sandbox) } }).to_string());
        assert!(!listed(&sandbox).1, "{file}");
        mcp(&sandbox, &["approve", "kb"]).ok();
        assert!(listed(&sandbox).1, "{file}");
    }
}

#[test]
fn the_users_settings_approve_and_switch_off_by_name() {
    let sandbox = trusted(&json!({ "mcp": { "enabledProjectMcpServers": ["kb"] } }));
    project_file(&sandbox, &marker(&sandbox));
    assert!(listed(&sandbox).1);
    let off = json!({ "mcp": { "enableAllProjectMcpServers": true, "disabledProjectMcpServers": ["kb"] } });
    settle(&sandbox, &off);
    let (row, started) = listed(&sandbox);
    assert!(!started);
    assert_eq!(row["status"], "disabled");
}

#[test]
fn a_turn_starts_no_server_that_waits() {
    let sandbox = trusted(&json!({}));
    project_file(&sandbox, &marker(&sandbox));
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["go"]);
    assert_eq!(ran.init()["mcp_servers"][0]["status"], "disabled", "{}", ran.stderr);
    assert!(!sandbox.project().join("started").exists());
}

fn agent_file(sandbox: &Sandbox, name: &str, mark: &str) {
    let server = format!("mcpServers:\n  - kb:\n      command: touch\n      args: [{mark}]\n");
    let text = format!("---\nname: {name}\ndescription: d\n{server}---\nYou keep notes.\n");
    sandbox.write(format!(".qoder/agents/{name}.md"), text);
}

#[test]
fn servers_inside_of_project_agent_files_are_listed_and_approved_with_their_agent() {
    let sandbox = trusted(&json!({}));
    agent_file(&sandbox, "keeper", "kept");
    agent_file(&sandbox, "reader", "read");
    let rows = || mcp(&sandbox, &["list", "--json"]).json();
    for (row, agent) in rows().as_array().unwrap().iter().zip(["keeper", "reader"]) {
        assert_eq!((&row["name"], &row["agent"]), (&json!("kb"), &json!(agent)));
        assert_eq!((&row["status"], &row["scope"]), (&json!("disabled"), &json!("project")));
    }
    let listed = mcp(&sandbox, &["list"]).ok();
    assert!(listed.contains("for the agent keeper") && listed.contains("mcp approve kb"), "{listed}");
    let waiting = mcp(&sandbox, &["approve"]).ok();
    assert!(waiting.contains("agent keeper") && waiting.contains("args: [\"read\"]"), "{waiting}");
    let approved = mcp(&sandbox, &["approve", "kb"]).ok();
    assert_eq!(approved.matches("approved kb as it is described in").count(), 2, "{approved}");
    assert!(rows().as_array().unwrap().iter().all(|row| row["status"] == "pending"), "{}", rows());
    agent_file(&sandbox, "keeper", "other");
    let changed = rows();
    assert_eq!((&changed[0]["status"], &changed[1]["status"]), (&json!("disabled"), &json!("pending")));
    for made in ["kept", "read", "other"] {
        assert!(!sandbox.project().join(made).exists(), "a list starts nothing of an agent");
    }
}
