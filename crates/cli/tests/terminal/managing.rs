//! Panels that change something: what they offer are commands, and what a command does is said.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{BINARY, ENTER, ESC, Start};

/// The last row of a panel.
const END: &str = "\u{1b}[F";

#[test]
fn a_server_of_the_folder_is_approved_when_what_it_runs_was_shown() {
    let sandbox = Sandbox::new();
    let servers = json!({ "mcpServers": { "kb": { "command": "/nowhere/kb", "args": ["--all"] } } });
    sandbox.write(".mcp.json", servers.to_string());
    sandbox.run(BINARY, &["trust"]);
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let mut screen = Start::new(&sandbox).with(&server).size(100, 30).run();
    screen.until_idle().until("claude").send("/mcp").send(ENTER).until("needs approval");
    screen.send(ENTER).until("Approve it").send(ENTER);
    screen
        .until("command: /nowhere/kb")
        .until("args: [\"--all\"]")
        .send(END)
        .until("› approve it")
        .send(ENTER);
    screen.until("kb is approved as it is described now.").until("kb` failed");
    let output = sandbox.run(BINARY, &["mcp", "approve"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no server of this folder waits"));
}

#[test]
fn another_session_is_announced_and_a_setting_says_its_value() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let mut screen = Start::new(&sandbox).with(&server).size(100, 30).run();
    screen.until_idle().until("claude").send("first thing").send(ENTER).until("hello").until_idle();
    screen.send("/new").send(ENTER).until("── new session ──").until_idle();
    screen.send("/vim").send(ENTER).until("general.vimMode = true is set in").send("/vim").send(ENTER);
    screen.until("general.vimMode = false is set in").send("/resume").send(ENTER);
    // The age is shown beside a prompt of any length.
    let is_listed = |row: &String| row.starts_with("  first thing ") && row.ends_with(" now");
    screen.wait("the age", |rows| rows.iter().any(is_listed)).send(ESC).until_gone("Right shows it");
    screen
        .send("/permissions")
        .send(ENTER)
        .until("add a rule")
        .send(END)
        .send(ENTER)
        .until_prompt("/permissions add");
}

#[test]
fn lists_keep_their_shape_in_the_transcript() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("- one\n- two\n  - three")]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen
        .until_idle()
        .send("list")
        .send(ENTER)
        .until("• two")
        .until_idle()
        .send("\u{f}")
        .until("Transcript");
    screen.wait("the list", |rows| {
        ["• one", "• two", "  • three"].iter().all(|wanted| rows.iter().any(|row| row == wanted))
    });
}
