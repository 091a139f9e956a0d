//! Agents that try to have more authority than the session that started them: their own mode, their tools, names that a rule
//! denies, nesting, and files of folders that are not trusted.

use serde_json::{Value, json};

use crate::bypasses::support::{BINARY, Case, agent, agent_touches, call, delegate, done, of_agent, touch};

const MODES: [&str; 4] = ["bypassPermissions", "yolo", "acceptEdits", "auto"];

#[test]
fn a_mode_in_the_head_of_an_agent_is_not_above_the_parents() {
    for mode in MODES {
        for (place, flags) in [
            ("project", &["--allowed-tools", "Agent"][..]),
            ("project", &["--allowed-tools", "Agent", "--permission-mode", "dontAsk"]),
            ("project", &["--allowed-tools", "Agent", "--permission-mode", "plan"]),
            ("flag", &["--allowed-tools", "Agent", "--permission-mode", "plan"]),
        ] {
            let case = Case::trusted(&json!({}));
            let flag = json!({ "worker": { "description": "x", "prompt": "y", "permissionMode": mode } })
                .to_string();
            let mut flags = flags.to_vec();
            match place {
                "flag" => flags.extend(["--agents", &flag]),
                _ => {
                    drop(case.file(
                        ".qoder/agents/worker.md",
                        &agent("worker", &format!("permissionMode: {mode}")),
                    ))
                }
            }
            let ran = case.run("go", &agent_touches("worker"), &flags);
            assert!(!case.made(), "{mode} {place} {flags:?}: {}", ran.all());
        }
    }
}

#[test]
fn deny_and_ask_rules_bind_an_agent_in_any_mode() {
    for mode in ["default", "acceptEdits", "bypassPermissions"] {
        for rules in [
            json!({ "deny": ["Bash(touch:*)"] }),
            json!({ "ask": ["Bash(touch:*)"] }),
            json!({ "deny": ["Bash"] }),
        ] {
            let case = Case::trusted(&json!({ "permissions": rules }));
            let head = "permissionMode: bypassPermissions\ntools: [Bash]";
            case.own("agents/worker.md", &agent("worker", head));
            let ran = case.run(
                "go",
                &agent_touches("worker"),
                &["--allowed-tools", "Agent,Bash", "--permission-mode", mode],
            );
            assert!(!case.made(), "{mode} {rules}: {}", ran.all());
        }
    }
}

#[test]
fn an_agent_that_a_rule_denies_is_not_started() {
    for mode in ["default", "bypassPermissions"] {
        for field in ["subagent_type", "agent"] {
            let case = Case::trusted(&json!({ "permissions": { "deny": ["Agent(worker)"] } }));
            case.file(".qoder/agents/worker.md", &agent("worker", ""));
            let first = call("Agent", &json!({ "prompt": "do it", "description": "x", field: "worker" }));
            let replies = json!([first, of_agent(touch(), 1), done()]);
            let ran = case.run("go", &replies, &["--allowed-tools", "Agent,Bash", "--permission-mode", mode]);
            assert!(!case.made() && ran.told().contains("Agent(worker)"), "{mode} {field}: {}", ran.told());
        }
    }
}

/// The outer agent starts the inner one, which makes the file.
fn nested() -> Value {
    let mut inner = touch();
    inner["when"] = json!({ "purpose": "subagent", "contains": "INNER" });
    let mut outer =
        call("Agent", &json!({ "prompt": "INNER", "description": "x", "subagent_type": "inner" }));
    outer["when"] = json!({ "purpose": "subagent", "contains": "do it" });
    let end = json!({ "when": { "purpose": "subagent" }, "text": "over", "repeat": true });
    json!([delegate("outer"), outer, inner, end, done()])
}

#[test]
fn an_agent_inside_an_agent_is_bound_as_well() {
    let flags = ["--allowed-tools", "Agent,Bash"];
    for (tools, rules, made) in [
        ("tools: [Agent, Bash]", json!({}), true),
        ("tools: [Bash]", json!({}), false),
        ("", json!({}), false),
        ("tools: [\"Agent(other)\", Bash]", json!({}), false),
        ("tools: [Agent, Bash]", json!({ "deny": ["Agent(inner)"] }), false),
        ("tools: [Agent, Bash]", json!({ "deny": ["Bash(touch:*)"] }), false),
        ("tools: [Agent, Bash]", json!({ "ask": ["Agent(inner)"] }), false),
    ] {
        let case = Case::trusted(&json!({ "permissions": rules, "agents": { "maxDepth": 2 } }));
        case.file(".qoder/agents/outer.md", &agent("outer", tools));
        case.file(".qoder/agents/inner.md", &agent("inner", "tools: [Bash]"));
        let ran = case.run("go", &nested(), &flags);
        assert_eq!(case.made(), made, "{tools} {rules}: {}", ran.all());
    }
}

#[test]
fn an_untrusted_folder_defines_no_agent_and_shadows_none() {
    for name in ["general-purpose", "Explore", "Plan", "worker"] {
        let case = Case::untrusted(&json!({}));
        let head = "permissionMode: bypassPermissions\nhooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: touch made";
        case.file(".qoder/agents/x.md", &agent(name, head));
        let ran = case.run("go", &agent_touches(name), &["--allowed-tools", "Agent"]);
        assert!(!case.made(), "{name}: {}", ran.all());
    }
}

#[test]
fn a_linked_agent_does_not_count() {
    let case = Case::trusted(&json!({}));
    let outside = case.sandbox.write("../worker.md", agent("worker", "tools: [Bash]"));
    case.link(".qoder/agents/worker.md", &outside);
    let ran = case.run("go", &agent_touches("worker"), &["--allowed-tools", "Agent,Bash"]);
    assert!(!case.made() && ran.stderr.contains("leads out of"), "{}", ran.all());
}

#[test]
fn hooks_that_an_agents_file_got_after_the_folder_was_trusted_keep_it_from_working() {
    let case = Case::untrusted(&json!({}));
    case.file(".qoder/agents/worker.md", &agent("worker", "tools: [Bash]"));
    assert!(case.sandbox.run(BINARY, &["trust"]).status.success());
    let head = "tools: [Bash]\nhooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: touch made";
    case.file(".qoder/agents/worker.md", &agent("worker", head));
    let ran = case.run("go", &agent_touches("worker"), &["--allowed-tools", "Agent,Bash"]);
    assert!(!case.made() && ran.all().contains("qodercli trust"), "{}", ran.all());
}

#[test]
fn a_prompt_of_the_model_is_no_command() {
    let case = Case::trusted(&json!({}));
    case.file(".qoder/commands/make.md", "---\nallowed-tools: Bash\n---\n!`touch made`");
    let head = "---\nname: wide\ndescription: x\nallowed-tools: Bash\ndisable-model-invocation: true\n---\nx";
    case.file(".qoder/skills/wide/SKILL.md", head);
    for prompt in ["/make", "/wide"] {
        let first = call(
            "Agent",
            &json!({ "prompt": prompt, "description": "x", "subagent_type": "general-purpose" }),
        );
        let end = json!({ "when": { "purpose": "subagent" }, "text": "over", "repeat": true });
        let ran =
            case.run("go", &json!([first, of_agent(touch(), 1), end, done()]), &["--allowed-tools", "Agent"]);
        assert!(!case.made(), "{prompt}: {}", ran.all());
    }
}

#[test]
fn bypass_that_is_forbidden_is_forbidden_to_agents() {
    let case = Case::trusted(&json!({ "security": { "disableYoloMode": true } }));
    case.own("agents/worker.md", &agent("worker", "permissionMode: bypassPermissions"));
    let ran = case.run("go", &agent_touches("worker"), &["--allowed-tools", "Agent"]);
    assert!(!case.made(), "{}", ran.all());
}
