//! What each field of a definition does when another session starts the agent, from a file as from the flag.

use qoder_testkit::{Ran, Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::agents::support::{child_request, delegating, file, requests, stream, told, tools};

/// Runs an agent of a file whose head has these lines, and one of the flag with these fields; each must do.
fn both(head: &str, fields: &Value, child: &[Reply], check: impl Fn(&Ran, &ScriptedServer, &Sandbox)) {
    let mut flag = json!({ "r": { "description": "Reviews code.", "prompt": "You are r: strict." } });
    for (key, value) in fields.as_object().unwrap() {
        flag["r"][key] = value.clone();
    }
    let flag = flag.to_string();
    for more in [&[][..], &["--agents", &flag][..]] {
        let sandbox = Sandbox::new();
        if more.is_empty() {
            sandbox.write(sandbox.config().join("agents/r.md"), file("r", "Reviews code.", head));
        }
        let server = delegating("r", child.to_vec());
        let usual = ["go", "--allowed-tools", "Agent,Bash,Write"];
        let ran = stream(&sandbox, &server, &[&usual[..], more].concat());
        check(&ran, &server, &sandbox);
    }
}

#[test]
fn description_tells_the_model_when_to_use_it_and_prompt_is_its_system_prompt() {
    both("", &json!({}), &[], |_, server, _| {
        assert!(told(&requests(server)[0]).contains("- `r`: Reviews code."));
        assert!(child_request(server)["system"].to_string().contains("You are r: "));
    });
}

#[test]
fn tools_is_the_tool_allowlist_of_this_agent() {
    both("tools: Read, Grep", &json!({ "tools": ["Read", "Grep"] }), &[], |_, server, _| {
        assert_eq!(tools(&child_request(server)), ["Read", "Grep"]);
    });
}

#[test]
fn disallowed_tools_are_excluded_from_the_tool_set() {
    both("disallowedTools: Bash", &json!({ "disallowedTools": ["Bash"] }), &[], |_, server, _| {
        let request = child_request(server);
        let tools = tools(&request);
        assert!(!tools.contains(&"Bash") && tools.contains(&"Write"), "{tools:?}");
    });
}

#[test]
fn the_tool_set_inherits_no_trimming_from_allowed_tools_and_disallowed_tools_of_the_session() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", ""));
    let touch = Reply::tool("Bash", json!({ "command": "touch made.txt" }));
    let server = delegating("r", vec![touch]);
    let rules = ["--allowed-tools", "Agent", "--disallowed-tools", "Bash"];
    let ran = stream(&sandbox, &server, &[&["go"], &rules[..]].concat());
    let main = requests(&server).remove(0);
    assert!(!tools(&main).contains(&"Bash"));
    let request = child_request(&server);
    let tools = tools(&request);
    assert!(tools.contains(&"Bash") && tools.contains(&"Write"), "{tools:?}");
    assert!(ran.ok().contains("denied by the rule"), "a rule binds the agent's calls all the same");
    assert!(!sandbox.project().join("made.txt").exists());
}

#[test]
fn model_overrides_and_inherit_means_the_main_session_model() {
    both("model: other-model", &json!({ "model": "other-model" }), &[], |_, server, _| {
        assert_eq!(child_request(server)["model"], "other-model");
    });
    both("model: inherit", &json!({ "model": "inherit" }), &[], |_, server, _| {
        assert_eq!(child_request(server)["model"], requests(server)[0]["model"]);
    });
}

#[test]
fn auto_ultimate_performance_efficient_and_lite_are_the_tiers_that_a_model_may_name() {
    for tier in ["auto", "ultimate", "performance", "efficient", "lite"] {
        let sandbox = Sandbox::new();
        sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", &format!("model: {tier}")));
        let server = delegating("r", Vec::new());
        let settings = json!({ "model": { "tiers": { tier: format!("the-{tier}-one") } } }).to_string();
        let ran = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--settings", &settings]);
        assert_eq!(child_request(&server)["model"], format!("the-{tier}-one"), "{ran:?}");
    }
}

#[test]
fn max_turns_limits_the_api_turns_of_the_agent() {
    let look = Reply::tool("Glob", json!({ "pattern": "*" }));
    both("maxTurns: 2", &json!({ "maxTurns": 2 }), &vec![look; 9], |ran, server, _| {
        assert_eq!(requests(server).len(), 4, "two of the agent, two of the session");
        assert!(ran.stdout.contains("did not finish"), "{ran:?}");
    });
}

#[test]
fn effort_is_the_reasoning_effort_of_the_agent() {
    both("effort: high", &json!({ "effort": "high" }), &[], |_, server, _| {
        assert_eq!(child_request(server)["output_config"], json!({ "effort": "high" }));
    });
}

#[test]
fn permission_mode_plan_is_local_to_the_agent() {
    let write = Reply::tool("Write", json!({ "file_path": "made.txt", "content": "x" }));
    both("permissionMode: plan", &json!({ "permissionMode": "plan" }), &[write], |ran, _, sandbox| {
        assert!(!sandbox.project().join("made.txt").exists(), "{ran:?}");
        assert_eq!(ran.init()["permissionMode"], "default");
    });
}

#[test]
fn permission_mode_of_an_agent_of_the_program_has_a_scope_limited_to_this_agent() {
    let write = |name: &str| Reply::tool("Write", json!({ "file_path": name, "content": "x" }));
    let sandbox = Sandbox::new();
    let flag =
        json!({ "r": { "description": "d", "prompt": "p", "permissionMode": "acceptEdits" } }).to_string();
    let server = delegating("r", vec![write("made.txt")]);
    let ran = stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--agents", &flag]);
    assert!(sandbox.project().join("made.txt").exists(), "{ran:?}");
    assert_eq!(ran.init()["permissionMode"], "default");

    let server =
        ScriptedServer::start(Script::by_assistant_count(vec![write("other.txt"), Reply::text("done")]));
    stream(&sandbox, &server, &["go", "--agents", &flag]).ok();
    assert!(!sandbox.project().join("other.txt").exists(), "the session's own mode is as it was");
}

#[test]
fn permission_mode_never_loosens_what_the_session_may_do() {
    let read = Reply::tool("Bash", json!({ "command": "touch made.txt" }));
    let sandbox = Sandbox::new();
    let head = "permissionMode: bypassPermissions";
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", head));
    let server = delegating("r", vec![read]);
    stream(&sandbox, &server, &["go", "--allowed-tools", "Agent"]).ok();
    assert!(!sandbox.project().join("made.txt").exists());
}

#[test]
fn initial_prompt_is_ignored_when_the_agent_is_invoked_through_the_agent_tool() {
    both(
        "initialPrompt: BEGIN AT ONCE",
        &json!({ "initialPrompt": "BEGIN AT ONCE" }),
        &[],
        |_, server, _| {
            assert!(requests(server).iter().all(|request| !request.to_string().contains("BEGIN AT ONCE")));
        },
    );
}

#[test]
fn explore_and_plan_have_no_tool_that_changes_anything() {
    for name in ["Explore", "Plan"] {
        let server = delegating(name, vec![]);
        let sandbox = Sandbox::new();
        stream(&sandbox, &server, &["go", "--permission-mode", "bypassPermissions"]).ok();
        let request = child_request(&server);
        let tools = tools(&request);
        assert!(tools.contains(&"Read") && tools.contains(&"Grep"), "{tools:?}");
        for changing in ["Bash", "Write", "Edit", "NotebookEdit", "Agent", "Config"] {
            assert!(!tools.contains(&changing), "{name}: {tools:?}");
        }
        assert_eq!(request["model"], requests(&server)[0]["model"], "no light model is configured");
    }
}

#[test]
fn explore_takes_the_light_model_where_one_is_configured_and_plan_that_of_the_session() {
    let settings = json!({ "model": { "tiers": { "lite": "small-model" } } }).to_string();
    for (name, light) in [("Explore", true), ("Plan", false)] {
        let server = delegating(name, vec![]);
        let sandbox = Sandbox::new();
        stream(&sandbox, &server, &["go", "--allowed-tools", "Agent", "--settings", &settings]).ok();
        assert_eq!(child_request(&server)["model"] == "small-model", light, "{name}");
    }
}
