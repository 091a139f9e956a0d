//! Setup scripts of environments: run once in each session, confined as its commands are, with its variables.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, id, kind, result_text, toolset};

fn session(server: &Server, script: &str) -> String {
    session_in(server, &json!({ "type": "cloud", "setup_script": script }))
}

fn session_in(server: &Server, config: &Value) -> String {
    let environment = id(&server.post("/v1/environments", &json!({ "name": "e", "config": config })).ok());
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": environment,
        "environment_variables": { "GREETING": "hello", "API_TOKEN": "value-of-a-token" } });
    id(&server.post("/v1/sessions", &body).ok())
}

fn errors(server: &Server, session: &str) -> Vec<Value> {
    server.events(session).into_iter().filter(|event| kind(event) == "session.error").collect()
}

fn last_result(server: &Server, session: &str) -> String {
    let events = server.events(session);
    result_text(events.iter().rfind(|event| kind(event) == "agent.tool_result").unwrap())
}

#[test]
fn a_script_runs_once_before_the_first_turn() {
    let look = bash("cat log.txt; cat ~/.config/tool");
    let script = vec![look.clone(), Reply::text("a"), look, Reply::text("b")];
    let mut server = Server::scripted(Script::by_assistant_count(script));
    let setup =
        "echo \"$GREETING from $PWD\" >> log.txt\nmkdir -p ~/.config && echo ready > ~/.config/tool\n";
    let session = session(&server, setup);
    server.ask(&session, "look");
    assert_eq!(errors(&server, &session), Vec::<Value>::new());
    let expected = format!("hello from {}\nready", server.workspace(&session).display());
    assert_eq!(last_result(&server, &session).trim(), expected);
    server.kill();
    server.start_again();
    server.ask(&session, "look again");
    assert_eq!(last_result(&server, &session).trim(), expected, "it ran once");
}

#[test]
fn a_script_reaches_nothing_outside_of_the_session() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let outside = server.data().join("outside");
    let database = server.data().join("server.db");
    let setup = format!("echo x > {}; cat {} > copy; exit 0", outside.display(), database.display());
    let session = session(&server, &setup);
    server.ask(&session, "go");
    assert!(!outside.exists());
    let copy = std::fs::read(server.workspace(&session).join("copy")).unwrap();
    assert!(copy.is_empty(), "the script read the server's database");
}

#[test]
fn a_script_that_fails_is_reported_without_secrets_and_the_session_runs() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = session(&server, "echo \"no: $API_TOKEN\" >&2; exit 3");
    server.ask(&session, "go");
    let error = errors(&server, &session).remove(0)["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exit code 3") && message.contains("no: "), "{message}");
    assert!(!message.contains("value-of-a-token"), "{message}");
    assert!(server.kinds(&session).contains(&"agent.message".to_owned()));
}

#[test]
fn packages_that_cannot_be_installed_are_reported_before_the_script_runs() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let packages = json!({ "gem": ["./nothing-of-this-name.gem"] });
    let config = json!({ "type": "cloud", "packages": packages, "setup_script": "echo x > made" });
    let session = session_in(&server, &config);
    server.ask(&session, "go");
    let error = errors(&server, &session).remove(0)["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("exit code"), "{error}");
    assert!(!server.workspace(&session).join("made").exists());
    assert!(server.kinds(&session).contains(&"agent.message".to_owned()));
}

#[test]
fn programs_that_the_setup_installs_are_found() {
    let server = Server::replying(vec![bash("greet"), Reply::text("done")]);
    let setup = "mkdir -p ~/.local/bin\nprintf '#!/bin/sh\\necho good day\\n' > ~/.local/bin/greet\nchmod +x ~/.local/bin/greet";
    let session = session(&server, setup);
    server.ask(&session, "go");
    assert_eq!(last_result(&server, &session).trim(), "good day");
}
