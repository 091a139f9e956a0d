//! Variables in files of a project: only those that the user lists have a value there, so that no project carries the
//! environment of its user to a model or a server. Every other one stays as it is written, and a warning names it.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{Run, finish, offline, online, server};

const VALUE: &str = "value-of-the-user";

/// A trusted project whose user lists these variables.
fn sandbox(listed: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    let settings = json!({ "permissions": { "trustDirectories": [sandbox.project().to_str().unwrap()] },
        "security": { "projectEnvironment": listed } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

fn with_variable(mut command: std::process::Command) -> Run {
    command.env("OF_USER", VALUE).env("QODER_MCP_START_WAIT_MS", "60000");
    finish(command)
}

#[test]
fn settings_of_a_project_get_only_listed_variables() {
    for (listed, gets) in [(json!([]), false), (json!(["OTHER"]), false), (json!(["OF_USER"]), true)] {
        let sandbox = sandbox(&listed);
        // The project lists it too, which counts for nothing.
        let settings = json!({ "language": "${OF_USER}", "security": { "projectEnvironment": ["OF_USER"] } });
        let file = sandbox.write(".qoder/settings.json", settings.to_string());
        let run = with_variable(offline(&sandbox, &["config", "language", "--json"])).exits(0);
        assert_eq!(run.json()[0]["value"], if gets { VALUE } else { "${OF_USER}" }, "{listed}");
        let warning = format!("{}: `${{OF_USER}}` is not expanded", file.display());
        assert_eq!(run.stderr.contains(&warning), !gets, "{}", run.stderr);
        let server = server(vec![Reply::text("ok")]);
        with_variable(online(&sandbox, &server, &["-p", "hello"])).exits(0);
        let sent = String::from_utf8_lossy(&server.requests()[0].body).into_owned();
        assert_eq!(sent.contains(VALUE), gets, "the model reads it");
    }
}

#[test]
fn servers_of_a_project_get_only_listed_variables() {
    for (listed, gets) in [(json!([]), false), (json!(["OF_USER"]), true)] {
        let sandbox = sandbox(&listed);
        let program = "import sys; open('told', 'w').write(' '.join(sys.argv[1:]))";
        let args = json!(["-c", program, "${OF_USER}", "${OF_USER:-default}", "${HOME:-none}"]);
        let file = json!({ "mcpServers": { "one": { "command": "python3", "args": args } } });
        let file = sandbox.write(".mcp.json", file.to_string());
        with_variable(offline(&sandbox, &["mcp", "approve", "--all"])).exits(0);
        let run = with_variable(offline(&sandbox, &["mcp", "status"])).exits(0);
        let told = std::fs::read_to_string(sandbox.project().join("told")).unwrap();
        let expected =
            if gets { format!("{VALUE} {VALUE} none") } else { "${OF_USER} ${OF_USER} none".to_owned() };
        assert_eq!(told, expected);
        let warning = format!("{}:1: `${{OF_USER}}` is not expanded", file.display());
        assert_eq!(run.stderr.contains(&warning), !gets, "{}", run.stderr);
    }
}
