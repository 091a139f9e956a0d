//! An agent as the main one: `--agent`, or the setting `agent`. Its prompt, model, tools, mode and first prompt are those
//! of the main conversation.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::agents::support::{file, requests, run, stream, told, tools};

fn server() -> ScriptedServer {
    ScriptedServer::start(Script::list(vec![Reply::text("done")]))
}

fn with(head: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "Reviews code.", head));
    sandbox
}

#[test]
fn the_main_session_uses_that_agents_prompt_model_and_tool_restrictions() {
    let sandbox = with("model: other-model\ntools: Read, Grep\ndisallowedTools: Grep\neffort: low");
    let server = server();
    stream(&sandbox, &server, &["go", "--agent", "r"]).ok();
    let request = &requests(&server)[0];
    assert!(request["system"].to_string().contains("You are r: Reviews code."));
    assert_eq!(request["model"], "other-model");
    assert_eq!(tools(request), ["Read"]);
    assert_eq!(request["output_config"], json!({ "effort": "low" }));
}

#[test]
fn a_number_as_effort_is_what_it_thinks_with() {
    let sandbox = with("effort: 2048");
    let server = server();
    stream(&sandbox, &server, &["go", "--agent", "r"]).ok();
    assert_eq!(requests(&server)[0]["thinking"]["budget_tokens"], 2048);
}

#[test]
fn initial_prompt_is_submitted_as_the_first_user_input() {
    let sandbox = with("initialPrompt: BEGIN AT ONCE");
    let server = server();
    stream(&sandbox, &server, &["--agent", "r"]).ok();
    let first = requests(&server)[0]["messages"][0].to_string();
    assert!(first.contains("BEGIN AT ONCE"), "{first}");

    let session = ["--session-id", "0a0a0a0a-0000-4000-8000-000000000001"];
    stream(&sandbox, &server, &[&["--agent", "r", "THEN THIS"], &session[..]].concat()).ok();
    let both = requests(&server)[1]["messages"][0].to_string();
    assert!(both.find("BEGIN AT ONCE").unwrap() < both.find("THEN THIS").unwrap(), "{both}");

    stream(&sandbox, &server, &["--agent", "r", "--resume", session[1], "AND THIS"]).ok();
    let resumed = &requests(&server)[2]["messages"];
    assert_eq!(resumed.to_string().matches("BEGIN AT ONCE").count(), 1, "{resumed:#}");
}

#[test]
fn the_setting_agent_names_the_main_one_and_the_flag_wins() {
    let sandbox = with("");
    sandbox.write(sandbox.config().join("agents/s.md"), file("s", "Other.", ""));
    let settings = json!({ "agent": "r" }).to_string();
    let server = server();
    stream(&sandbox, &server, &["go", "--settings", &settings]).ok();
    assert!(requests(&server)[0]["system"].to_string().contains("You are r: "));
    stream(&sandbox, &server, &["go", "--settings", &settings, "--agent", "s"]).ok();
    assert!(requests(&server)[1]["system"].to_string().contains("You are s: "));
}

#[test]
fn an_unknown_agent_is_an_error_that_lists_the_names() {
    let sandbox = with("");
    let ran = run(&sandbox, &["-p", "go", "--agent", "absent"]);
    assert_eq!(ran.code, 42, "{ran:?}");
    let words = "there is no agent named `absent`; known are: general-purpose, Explore, Plan, r";
    assert!(ran.stderr.contains(words), "{ran:?}");
    let ran = run(&sandbox, &["-p", "go", "--settings", r#"{"agent": "absent"}"#]);
    assert!(ran.code == 52 && ran.stderr.contains(words) && ran.stderr.contains("--settings"), "{ran:?}");
}

#[test]
fn any_agent_of_any_source_can_be_the_main_one() {
    let sandbox = Sandbox::new();
    sandbox.write(".qoder/agents/p.md", file("p", "Of the project.", ""));
    let flag = json!({ "f": { "description": "d", "prompt": "OF THE FLAG" } }).to_string();
    let server = server();
    for (number, (name, words)) in [
        ("p", "You are p: Of the project."),
        ("f", "OF THE FLAG"),
        ("Explore", "You find things in a code base"),
        ("general-purpose", "Working directory"),
    ]
    .into_iter()
    .enumerate()
    {
        stream(&sandbox, &server, &["go", "--trust", "--agents", &flag, "--agent", name]).ok();
        let request = &requests(&server)[number];
        assert!(request["system"].to_string().contains(words), "{name}: {}", request["system"]);
    }
}

#[test]
fn permission_mode_is_that_of_the_session_unless_the_person_says_otherwise() {
    let server = server();
    let sandbox = with("permissionMode: plan");
    assert_eq!(stream(&sandbox, &server, &["go", "--agent", "r"]).init()["permissionMode"], "plan");
    let arguments = ["go", "--agent", "r", "--permission-mode", "acceptEdits"];
    assert_eq!(stream(&sandbox, &server, &arguments).init()["permissionMode"], "acceptEdits");
    let forbidden = json!({ "security": { "disableYoloMode": true } }).to_string();
    let ran = stream(
        &with("permissionMode: bypassPermissions"),
        &server,
        &["go", "--agent", "r", "--settings", &forbidden],
    );
    assert!(ran.code == 42 && ran.stderr.contains("disableYoloMode"), "{ran:?}");
}

#[test]
fn an_agent_of_a_project_cannot_choose_a_mode_that_its_settings_could_not() {
    let server = server();
    for (word, mode) in [("bypassPermissions", "default"), ("auto", "default"), ("plan", "plan")] {
        let sandbox = Sandbox::new();
        sandbox.write(".qoder/agents/p.md", file("p", "d", &format!("permissionMode: {word}")));
        let ran = stream(&sandbox, &server, &["go", "--trust", "--agent", "p"]);
        assert_eq!(ran.init()["permissionMode"], mode, "{word}");
    }
}

#[test]
fn agent_with_names_limits_whom_the_main_one_delegates_to() {
    let sandbox = with("tools: Read, Agent(Explore)");
    let server = server();
    let ran = stream(&sandbox, &server, &["go", "--agent", "r"]);
    assert_eq!(ran.init()["agents"], json!(["Explore"]));
    let request = &requests(&server)[0];
    assert_eq!(tools(request), ["Read", "Agent"]);
    assert!(told(request).contains("`Explore`") && !told(request).contains("`Plan`"));
}

#[test]
fn fields_without_effect_on_the_main_one_are_told() {
    let sandbox = with("isolation: worktree\nbackground: true");
    let ran = stream(&sandbox, &server(), &["go", "--agent", "r"]);
    for field in ["isolation", "background"] {
        assert!(ran.stderr.contains(&format!("`{field}` has no effect")), "{ran:?}");
    }
}
