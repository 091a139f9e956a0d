//! What the approval of a project's server covers: the files that its command line names, too. One that changes asks again,
//! and what is shown before says which files those are.

use serde_json::{Value, json};

use crate::mcp::support::{mcp, trusted};

fn approved(sandbox: &qoder_testkit::Sandbox) -> bool {
    let shown: Value = mcp(sandbox, &["get", "one", "--json"]).json();
    shown["approved"] == true
}

#[test]
fn a_changed_file_of_the_command_line_asks_again() {
    for (args, file) in [
        (json!(["-u", "server.py"]), "server.py"),
        (json!(["-u", "tools/serve"]), "tools/serve"),
        (json!(["--require=./setup.py", "-m", "json"]), "setup.py"),
    ] {
        let sandbox = trusted(&json!({}));
        sandbox.write(file, "print(1)\n");
        sandbox.write("data.json", "{}");
        let server = json!({ "command": "python3", "args": args, "env": { "X": "data.json" } });
        sandbox.write(".mcp.json", json!({ "mcpServers": { "one": server } }).to_string());
        let shown = mcp(&sandbox, &["approve", "one"]).ok();
        assert!(shown.contains(&format!("  bound: {file} (a change asks again)\n")), "{shown}");
        assert!(shown.contains("not bound: what its program loads by itself"), "{shown}");
        assert!(approved(&sandbox), "{args}");
        sandbox.write("data.json", "{ }");
        assert!(approved(&sandbox), "data is not what runs");
        sandbox.write(file, "print(2)\n");
        assert!(!approved(&sandbox), "{args}");
    }
}

#[test]
fn what_is_known_only_at_the_start_is_bound_to_every_script() {
    let sandbox = trusted(&json!({}));
    let server = json!({ "command": "bash", "args": ["-c", "exec $TOOL/run `cat name`"] });
    sandbox.write(".mcp.json", json!({ "mcpServers": { "one": server } }).to_string());
    let shown = mcp(&sandbox, &["approve", "one"]).ok();
    assert!(shown.contains("  known only when the server starts: $TOOL/run"), "{shown}");
    assert!(shown.contains("  bound: every script in the folder"), "{shown}");
    assert!(approved(&sandbox));
    sandbox.write("notes.txt", "data");
    assert!(approved(&sandbox));
    sandbox.write("deep/new.sh", "true");
    assert!(!approved(&sandbox));
}
