//! Limits of agents: none starts another unless the user raised the depth and its tools list `Agent`, none is deeper than
//! the limit, no more at one time and in all than may be, and an agent without a usable tool does not start.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::agents::{TASK, child_logs};
use crate::turns::support::{bodies, calls, results_in, stream};

/// Plays every agent by the last word of its task: the replies of that name, by how far its conversation is.
fn play(script: fn(&str, usize) -> Reply) -> ScriptedServer {
    ScriptedServer::start(Script::by(move |request, _| {
        let first = match &request["messages"][0]["content"] {
            Value::String(text) => text.clone(),
            other => other[0]["text"].as_str().unwrap_or_default().to_owned(),
        };
        let who = first.strip_prefix(TASK).unwrap_or("main").trim().to_owned();
        script(&who, qoder_testkit::assistant_count(request))
    }))
}

fn start(id: &'static str, agent: &str, who: &str) -> (&'static str, &'static str, Value) {
    (id, "Agent", json!({ "prompt": format!("{TASK} {who}"), "agent": agent }))
}

/// Agents that delegate to each other, as files of the user.
fn define(sandbox: &Sandbox, name: &str, tools: &str) {
    let text = format!("---\nname: {name}\ndescription: works\ntools: {tools}\n---\nYou are {name}.\n");
    sandbox.write(sandbox.config().join(format!("agents/{name}.md")), text);
}

fn tools_of(request: &Value) -> Vec<&str> {
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn set_depth(sandbox: &Sandbox, file: &std::path::Path, depth: u64) {
    sandbox.write(file, json!({ "agents": { "maxDepth": depth } }).to_string());
}

/// What the lead of a session is offered, and what it reads when it starts an agent all the same.
fn lead_starts(sandbox: &Sandbox, flags: &[&str]) -> (Vec<String>, Vec<(String, String, bool)>) {
    define(sandbox, "lead", "[Read, Agent]");
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_lead", "lead", "lead")]),
        ("lead", 0) => calls(&[start("toolu_worker", "general-purpose", "worker")]),
        (_, _) => Reply::text("done"),
    });
    let mut arguments = vec!["go", "--allowed-tools", "Agent"];
    arguments.extend(flags);
    stream(sandbox, &server, &arguments).success();
    let requests = bodies(&server);
    let offered = tools_of(&requests[1]).into_iter().map(str::to_owned).collect();
    let told = requests.iter().find(|request| {
        let asked = request["messages"][0].to_string().contains(&format!("{TASK} lead"));
        asked && qoder_testkit::assistant_count(request) == 1
    });
    (offered, told.map(results_in).unwrap())
}

#[test]
fn an_agent_that_lists_agent_starts_none_by_default() {
    let sandbox = Sandbox::new();
    let (offered, told) = lead_starts(&sandbox, &[]);
    assert_eq!(offered, ["Read"]);
    assert!(told[0].2 && told[0].1.contains("There is no tool named Agent"), "{told:?}");
    assert_eq!(child_logs(&sandbox).len(), 1);
}

#[test]
fn the_user_and_the_command_line_raise_the_depth_and_a_project_only_lowers_it() {
    let project = [".qoder/settings.json", ".qoder/settings.local.json"];
    for file in project {
        let sandbox = Sandbox::new();
        set_depth(&sandbox, std::path::Path::new(file), 3);
        let (offered, _) = lead_starts(&sandbox, &["--trust"]);
        assert_eq!(offered, ["Read"], "{file}");
    }
    let sandbox = Sandbox::new();
    let (offered, told) = lead_starts(&sandbox, &["--settings", r#"{"agents": {"maxDepth": 2}}"#]);
    assert_eq!(offered, ["Read", "Agent"]);
    assert!(!told[0].2, "{told:?}");
    let sandbox = Sandbox::new();
    set_depth(&sandbox, &sandbox.config().join("settings.json"), 3);
    set_depth(&sandbox, std::path::Path::new(project[0]), 1);
    let (offered, _) = lead_starts(&sandbox, &["--trust"]);
    assert_eq!(offered, ["Read"]);
}

#[test]
fn no_nesting_unless_agent_is_listed() {
    let sandbox = Sandbox::new();
    set_depth(&sandbox, &sandbox.config().join("settings.json"), 2);
    define(&sandbox, "lead", "[Read, Agent]");
    define(&sandbox, "worker", "[Read]");
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_lead", "lead", "lead")]),
        ("lead", 0) => calls(&[start("toolu_worker", "worker", "worker")]),
        ("worker", _) => Reply::text("worked"),
        ("lead", _) => Reply::text("led"),
        (_, _) => Reply::text("done"),
    });
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    assert_eq!(finished.success()["result"], "done");
    let requests = bodies(&server);
    assert_eq!(tools_of(&requests[1]), ["Read", "Agent"]);
    assert_eq!(tools_of(&requests[2]), ["Read"]);
    let marks: Vec<Value> =
        finished.of("assistant").iter().map(|line| line["parent_tool_use_id"].clone()).collect();
    assert_eq!(marks, [json!(null), json!("toolu_lead"), json!(null)]);
    let logs = child_logs(&sandbox);
    assert_eq!(logs.len(), 1, "the log of a nested agent lies in the folder of its parent");
    let nested = logs[0].with_extension("").join("subagents");
    let names: Vec<String> = std::fs::read_dir(nested)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".meta.json"))
        .collect();
    assert_eq!(names.len(), 1);
    let result = finished.result();
    let lead = &result["subagents"][0];
    assert_eq!(
        (&lead["agent_type"], &lead["subagents"][0]["agent_type"]),
        (&json!("lead"), &json!("worker"))
    );
}

#[test]
fn agents_are_not_deeper_than_the_limit() {
    let sandbox = Sandbox::new();
    define(&sandbox, "lead", "[Read, Agent]");
    let settings = json!({ "agents": { "maxDepth": 2 } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_1", "lead", "one")]),
        ("one", 0) => calls(&[start("toolu_2", "lead", "two")]),
        ("two", 0) => calls(&[start("toolu_3", "lead", "three")]),
        (_, _) => Reply::text("done"),
    });
    let finished = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]);
    finished.success();
    let requests = bodies(&server);
    let tools: Vec<Vec<&str>> = requests.iter().take(3).map(tools_of).collect();
    assert_eq!(tools[1..], [vec!["Read", "Agent"], vec!["Read"]]);
    let told = results_in(&requests[3]);
    assert!(told[0].2 && told[0].1.contains("There is no tool named Agent"), "{told:?}");
}

#[test]
fn agent_with_names_limits_delegation() {
    let sandbox = Sandbox::new();
    set_depth(&sandbox, &sandbox.config().join("settings.json"), 2);
    define(&sandbox, "lead", "[Read, \"Agent(worker)\"]");
    define(&sandbox, "worker", "[Read]");
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_1", "lead", "lead")]),
        ("lead", 0) => calls(&[start("toolu_2", "Explore", "other")]),
        (_, _) => Reply::text("done"),
    });
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    let told = results_in(&bodies(&server)[2]);
    assert!(told[0].2 && told[0].1.contains("The agents are: worker."), "{told:?}");
}

#[test]
fn an_agent_without_a_usable_tool_does_not_start() {
    let sandbox = Sandbox::new();
    define(&sandbox, "lost", "[NoSuchTool, mcp__nobody]");
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_1", "lost", "lost")]),
        (_, _) => Reply::text("done"),
    });
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).success();
    let told = results_in(&bodies(&server)[1]);
    assert!(
        told[0].2 && told[0].1.contains("lost has no tool") && told[0].1.contains("NoSuchTool"),
        "{told:?}"
    );
    assert!(child_logs(&sandbox).is_empty());
}

#[test]
fn more_agents_than_may_work_together_wait_their_turn() {
    let sandbox = Sandbox::new();
    let settings = json!({ "agents": { "maxConcurrent": 1 } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    // A folder can be made once: two agents at the same time would find it there.
    let command = "mkdir alone && sleep 0.05 && rmdir alone";
    let server = ScriptedServer::start(Script::by(move |request, _| {
        let child = request["messages"][0].to_string().contains(TASK);
        match (child, qoder_testkit::assistant_count(request)) {
            (false, 0) => calls(&[
                start("toolu_1", "general-purpose", "a"),
                start("toolu_2", "general-purpose", "b"),
                start("toolu_3", "general-purpose", "c"),
            ]),
            (true, 0) => calls(&[("toolu_bash", "Bash", json!({ "command": command }))]),
            (true, _) if request.to_string().contains("File exists") => Reply::text("not alone"),
            (true, _) => Reply::text("alone"),
            (false, _) => Reply::text("done"),
        }
    }));
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent,Bash"]).success();
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told.iter().all(|(_, text, failed)| text == "alone" && !failed), "{told:?}");
    assert_eq!(told.len(), 3);
}

#[test]
fn a_session_has_no_more_agents_than_it_may() {
    let sandbox = Sandbox::new();
    let settings = json!({ "agents": { "maxTotal": 1 } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let server = play(|who, replied| match (who, replied) {
        ("main", 0) => calls(&[start("toolu_1", "general-purpose", "a")]),
        ("main", 1) => calls(&[start("toolu_2", "general-purpose", "b")]),
        (_, _) => Reply::text("done"),
    });
    let session = "72000000-0000-4000-8000-000000000001";
    stream(&sandbox, &server, &["go", "--session-id", session, "--allowed-tools", "Agent"]).success();
    let told = results_in(bodies(&server).last().unwrap());
    assert!(told[0].2 && told[0].1.contains("agents.maxTotal"), "{told:?}");
    let server = play(|who, replied| match (who, replied) {
        ("main", 3) => calls(&[start("toolu_3", "general-purpose", "c")]),
        (_, _) => Reply::text("done"),
    });
    stream(&sandbox, &server, &["again", "--resume", session, "--allowed-tools", "Agent"]).success();
    let told = results_in(bodies(&server).last().unwrap());
    assert!(
        told[0].2 && told[0].1.contains("agents.maxTotal"),
        "those of an earlier process count: {told:?}"
    );
}
