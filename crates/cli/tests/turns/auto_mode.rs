//! Auto mode never asks: reads and edits in the workspace run, the rest is denied, or judged by a model that the person
//! chose. Only a clear allowance of that model counts, it is paid for, and no project can choose it.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{bodies, calls, fault, records, results_in, stream};

const JUDGE: &str = "scripted-judge";

/// The model of the turn, and the judge behind another name.
fn server(verdict: Reply) -> ScriptedServer {
    ScriptedServer::start(Script::by(move |request, _| {
        if request["model"] == JUDGE {
            return verdict.clone();
        }
        match qoder_testkit::assistant_count(request) {
            0 => calls(&[("toolu_1", "Bash", json!({ "command": "npm install left-pad; mkdir made" }))]),
            _ => Reply::text("done"),
        }
    }))
}

fn sandbox(judge: bool) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut settings = json!({});
    if judge {
        settings["autoMode"] = json!({ "classifier": JUDGE, "soft_deny": ["installing packages"] });
    }
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

fn attempt(sandbox: &Sandbox, server: &ScriptedServer) -> Value {
    stream(
        sandbox,
        server,
        &["PLEASE PREPARE", "--permission-mode", "auto", "--allowed-tools", "Bash(npm install:*)"],
    )
    .success()
}

fn asked(server: &ScriptedServer) -> Vec<Value> {
    bodies(server).into_iter().filter(|request| request["model"] == JUDGE).collect()
}

#[test]
fn without_a_judge_it_edits_the_workspace_and_denies_the_rest() {
    let wanted = [
        ("toolu_1", "Write", json!({ "file_path": "made.txt", "content": "x" })),
        ("toolu_2", "Bash", json!({ "command": "npm i left-pad" })),
        ("toolu_3", "Write", json!({ "file_path": "/tmp/outside-of-the-workspace", "content": "x" })),
    ];
    let server = ScriptedServer::start(Script::by_assistant_count(vec![calls(&wanted), Reply::text("done")]));
    let sandbox = Sandbox::new();
    let finished = stream(&sandbox, &server, &["go", "--permission-mode", "auto"]);
    let denied: Vec<Value> = finished.success()["permission_denials"].as_array().unwrap().clone();
    assert!(sandbox.project().join("made.txt").exists());
    let ids: Vec<&str> = denied.iter().map(|denial| denial["tool_use_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["toolu_2", "toolu_3"]);
    assert!(results_in(&bodies(&server)[1])[1].1.contains("auto mode never asks"));
}

#[test]
fn a_clear_allowance_lets_the_call_run_and_is_paid_for() {
    let (sandbox, server) =
        (sandbox(true), server(Reply::text("{\"decision\":\"allow\",\"reason\":\"part of it\"}")));
    let result = attempt(&sandbox, &server);
    assert!(sandbox.project().join("made").exists());
    let asked = asked(&server);
    assert_eq!(asked.len(), 1);
    let question = asked[0].to_string();
    assert!(question.contains("PLEASE PREPARE") && question.contains("mkdir made"), "{question}");
    assert!(question.contains("installing packages"), "{question}");
    assert!(asked[0]["tools"].as_array().is_none_or(Vec::is_empty), "a judge has no tools");
    let decision = &records(&sandbox, "decision")[0]["decision"];
    assert_eq!((&decision["behavior"], &decision["layer"]), (&json!("allow"), &json!("classifier")));
    let spent = records(&sandbox, "side-call");
    assert_eq!((&spent[0]["toolUseId"], &spent[0]["model"]), (&json!("toolu_1"), &json!(JUDGE)));
    assert_eq!(result["modelUsage"][JUDGE]["outputTokens"], 5, "{result:#}");
}

#[test]
fn anything_else_denies() {
    for (verdict, reason) in [
        (Reply::text("{\"decision\":\"deny\",\"reason\":\"it installs\"}"), "it installs"),
        (Reply::text("sure, go ahead"), "cannot be read"),
        (Reply::text("{\"decision\":\"ALLOW\"}"), "cannot be read"),
        (calls(&[("toolu_x", "Bash", json!({ "command": "true" }))]), "cannot be read"),
        (fault(400, "invalid_request_error", "no judging today"), "no judging today"),
    ] {
        let (sandbox, server) = (sandbox(true), server(verdict));
        let result = attempt(&sandbox, &server);
        assert!(!sandbox.project().join("made").exists(), "{reason}");
        assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_1");
        let told = results_in(bodies(&server).last().unwrap());
        assert!(told[0].1.contains(reason), "{reason}: {told:?}");
    }
}

#[test]
fn a_deny_rule_is_not_for_the_judge() {
    let (sandbox, server) = (sandbox(true), server(Reply::text("{\"decision\":\"allow\"}")));
    let arguments = ["go", "--permission-mode", "auto", "--disallowed-tools", "Bash(mkdir:*)"];
    stream(&sandbox, &server, &arguments).success();
    assert!(!sandbox.project().join("made").exists());
    assert_eq!(asked(&server), Vec::<Value>::new());
}

#[test]
fn no_project_chooses_the_judge() {
    let settings = json!({ "autoMode": { "classifier": JUDGE } }).to_string();
    for file in [".qoder/settings.json", ".qoder/settings.local.json"] {
        let (sandbox, server) = (sandbox(false), server(Reply::text("{\"decision\":\"allow\"}")));
        sandbox.write(file, &settings);
        let finished = stream(&sandbox, &server, &["go", "--permission-mode", "auto", "--trust"]);
        assert_eq!(finished.success()["permission_denials"][0]["tool_use_id"], "toolu_1");
        assert!(finished.stderr.contains("`autoMode` cannot be set by a project"), "{}", finished.stderr);
        assert_eq!(asked(&server), Vec::<Value>::new());
    }
}
