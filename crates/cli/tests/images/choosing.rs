//! A host that chooses models chooses the image model too, with the purpose `image_gen`. It is asked before the first
//! turn whether it has one, where the host names the tool; without an answer the tool is not offered.

use qoder_testkit::{Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::images::host::{Host, call, say};
use crate::images::support::{PNG, pixels};

/// The purposes that the host is asked about, the tools of the first message and the result.
fn session(
    sandbox: &Sandbox,
    flags: &[&str],
    choose: &dyn Fn(&str) -> Result<Value, String>,
) -> (Vec<String>, Vec<Value>, Value) {
    let replies =
        json!([call(1, "ImageGen", &json!({ "prompt": "a cat", "file_path": "cat.png" })), say("done")]);
    let mut host = Host::connect(sandbox, &replies, flags, json!({ "modelPolicy": true }));
    let playbook = sandbox.write("../chosen.json", replies.to_string());
    host.prompt("draw");
    let (mut purposes, mut tools) = (Vec::new(), Vec::new());
    loop {
        let line = host.until(|line| {
            line["type"] == "result" || line["type"] == "control_request" || line["subtype"] == "init"
        });
        if line["type"] == "result" {
            return (purposes, tools, line);
        }
        if line["subtype"] == "init" {
            tools = line["tools"].as_array().unwrap().clone();
            continue;
        }
        let purpose = line["request"]["purpose"].as_str().unwrap().to_owned();
        assert_eq!(line["request"]["agentId"], "main", "{line}");
        purposes.push(purpose.clone());
        if purpose != "image_gen" {
            host.respond(&line, &json!({ "model": format!("scripted:{}", playbook.display()) }));
            continue;
        }
        match choose(&purpose) {
            Ok(choice) => host.respond(&line, &choice),
            Err(problem) => host.respond_error(&line, &problem),
        }
    }
}

fn painter() -> ScriptedServer {
    ScriptedServer::start(Script::list(Vec::new()).images(|call, _| pixels(call)))
}

fn own(server: &ScriptedServer) -> Value {
    let credentials = json!({ "provider": "openai", "api_key": "byok-key", "url": server.base_url() });
    json!({ "model": "gpt-image-1", "credentials": credentials, "parameters": { "background": "opaque" } })
}

#[test]
fn a_host_that_answers_for_pictures_brings_the_tool() {
    let (sandbox, server) = (Sandbox::new(), painter());
    let flags = ["--allowed-tools", "ImageGen", "--cwd", sandbox.project().to_str().unwrap()];
    let (purposes, tools, result) = session(&sandbox, &flags, &|_| Ok(own(&server)));
    assert_eq!(purposes, ["image_gen", "main", "image_gen", "main"]);
    assert!(tools.iter().any(|tool| tool == "ImageGen"), "{tools:?}");
    assert_eq!(result["result"], "done");
    assert!(std::fs::read(sandbox.project().join("cat.png")).unwrap().starts_with(PNG));
    let asked = &server.requests()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer byok-key"));
    assert_eq!(
        (&asked.json()["model"], &asked.json()["background"]),
        (&json!("gpt-image-1"), &json!("opaque"))
    );
    assert_eq!(result["total_cost_usd"], 0.0, "the user pays the provider");
}

#[test]
fn a_host_without_an_answer_has_no_tool_and_the_session_goes_on() {
    for answer in
        [Err("no pictures here".to_owned()), Ok(json!({ "model": "" })), Ok(json!({ "model": "no-such" }))]
    {
        let sandbox = Sandbox::new();
        let flags = ["--allowed-tools", "ImageGen"];
        let (purposes, tools, result) = session(&sandbox, &flags, &|_| answer.clone());
        assert_eq!(purposes, ["image_gen", "main", "main"], "{answer:?}");
        assert!(!tools.iter().any(|tool| tool == "ImageGen"), "{tools:?}");
        assert_eq!(result["result"], "done");
    }
}

#[test]
fn nobody_is_asked_about_pictures_unless_the_tool_is_named() {
    let sandbox = Sandbox::new();
    let (purposes, tools, _) = session(&sandbox, &[], &|_| panic!("no picture was asked for"));
    assert_eq!(purposes, ["main", "main"]);
    assert!(!tools.iter().any(|tool| tool == "ImageGen"));
}

#[test]
fn the_setting_offers_the_tool_and_the_host_still_chooses() {
    let (sandbox, server) = (Sandbox::new(), painter());
    let settings = json!({ "model": { "image": "offline" } }).to_string();
    sandbox.write(sandbox.config().join("settings.json"), settings);
    let flags = ["--permission-mode", "acceptEdits"];
    let (purposes, tools, _) = session(&sandbox, &flags, &|_| Ok(own(&server)));
    assert_eq!(purposes, ["main", "image_gen", "main"]);
    assert!(tools.iter().any(|tool| tool == "ImageGen"));
    assert_eq!(server.requests().len(), 1);
}
