//! `agents.overrides` of the settings modifies agents that exist, and creates none.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::agents::support::{child_request, delegating, file, listed, rows, run, stream, tools};

fn settings(overrides: &Value) -> String {
    json!({ "agents": { "overrides": overrides } }).to_string()
}

#[test]
fn overrides_change_tools_limits_model_and_servers() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r.1", "d", "tools: [Bash]\nmaxTurns: 2"));
    let wanted = settings(&json!({ "r.1": {
        "tools": ["Read"], "runConfig": { "maxTurns": 9, "maxTimeMinutes": 3 },
        "modelConfig": { "model": "lite", "generateContentConfig": { "temperature": 0.1 } },
        "mcpServers": ["kb"] } }));
    let all = listed(&sandbox, &["--settings", &wanted]);
    let row = rows(&all, "r.1")[0];
    assert_eq!(all["problems"], json!([]));
    for (field, value) in [
        ("tools", json!(["Read"])),
        ("maxTurns", json!(9)),
        ("timeoutMins", json!(3.0)),
        ("model", json!("lite")),
        ("temperature", json!(0.1)),
        ("mcpServers", json!(["kb"])),
    ] {
        assert_eq!(row[field], value, "{field}");
    }
}

#[test]
fn an_agent_that_is_not_enabled_is_listed_and_cannot_be_started() {
    let sandbox = Sandbox::new();
    let wanted = settings(&json!({ "Explore": { "enabled": false } }));
    let all = listed(&sandbox, &["--settings", &wanted]);
    let row = rows(&all, "Explore")[0];
    assert_eq!((&row["active"], &row["disabled"]), (&json!(false), &json!(true)));
    let text = run(&sandbox, &["agents", "list", "--settings", &wanted]).ok();
    assert!(text.contains("(switched off by the settings)"), "{text}");
    let server = delegating("Explore", vec![]);
    let ran = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--settings", &wanted]);
    assert_eq!(ran.init()["agents"], json!(["general-purpose", "Plan"]));
    assert!(ran.stdout.contains("There is no agent named Explore"), "{ran:?}");
}

#[test]
fn overrides_hold_for_the_usual_agent_too() {
    let sandbox = Sandbox::new();
    let wanted = settings(&json!({ "general-purpose": { "tools": ["Read"] } }));
    let server = delegating("general-purpose", vec![Reply::text("seen")]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--settings", &wanted]).ok();
    assert_eq!(tools(&child_request(&server)), ["Read"]);
}

#[test]
fn overrides_create_nothing_and_unknown_names_and_keys_are_warned_about() {
    let sandbox = Sandbox::new();
    let text = format!("\n{}", settings(&json!({ "absent": { "tools": [] }, "Plan": { "colour": 1 } })));
    sandbox.write(sandbox.config().join("settings.json"), text);
    let all = listed(&sandbox, &[]);
    assert!(rows(&all, "absent").is_empty());
    let problems = all["problems"].to_string();
    assert!(problems.contains("there is no agent `absent` to change"), "{problems}");
    assert!(problems.contains("`agents.overrides.Plan.colour`: is not known"), "{problems}");
    assert!(all["problems"][0]["path"].as_str().unwrap().ends_with("settings.json"), "{problems}");
    assert_eq!(all["problems"][0]["line"], 2, "{problems}");
}

#[test]
fn a_value_that_an_override_does_not_take_stops_the_start() {
    let sandbox = Sandbox::new();
    for (wanted, told) in [
        (json!({ "Plan": 3 }), "`agents.overrides.Plan` is 3; accepted is an object"),
        (json!({ "Plan": { "enabled": "no" } }), "`agents.overrides.Plan.enabled` is \"no\""),
        (json!({ "Plan": { "tools": "Read" } }), "`agents.overrides.Plan.tools` is \"Read\""),
        (json!({ "Plan": { "runConfig": { "maxTurns": 0 } } }), "runConfig.maxTurns` is 0"),
        (json!({ "Plan": { "runConfig": { "maxTimeMinutes": -1 } } }), "maxTimeMinutes` is -1"),
        (json!({ "Plan": { "modelConfig": { "model": "" } } }), "modelConfig.model` is \"\""),
        (json!({ "Plan": { "modelConfig": { "generateContentConfig": { "temperature": 9 } } } }), "is 9"),
        (json!({ "Plan": { "mcpServers": 3 } }), "`agents.overrides.Plan.mcpServers` is 3"),
        (json!({ "general-purpose": { "enabled": false } }), "deny `Agent(general-purpose)` instead"),
    ] {
        let ran = run(&sandbox, &["agents", "list", "--settings", &settings(&wanted)]);
        assert!(ran.code == 52 && ran.stderr.contains(told), "{told}: {ran:?}");
    }
}

#[test]
fn settings_of_a_project_describe_no_servers_of_agents() {
    let sandbox = Sandbox::new();
    let servers = json!(["kb", { "own": { "command": "run" } }]);
    sandbox.write(".qoder/settings.json", settings(&json!({ "Plan": { "mcpServers": servers } })));
    let all = listed(&sandbox, &[]);
    assert_eq!(rows(&all, "Plan")[0]["mcpServers"], json!(["kb"]));
    assert!(all["problems"].to_string().contains("cannot describe servers here"), "{all:#}");
}
