//! Hooks that ask a model: one question, an answer with `ok`, and a price that the session pays.

use serde_json::{Value, json};

use crate::hooks::support::{Stage, call, say, say_when};

fn prompt_hook(event: &str, more: &Value) -> Stage {
    let mut hook = json!({ "type": "prompt", "prompt": "Is the work done?" });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Stage::with(&json!({
        "hooks": { event: [{ "hooks": [hook] }] },
        "model": { "prices": { "scripted": { "input": 1_000_000, "output": 0 } } },
    }))
}

fn judged(answer: &str) -> Value {
    json!({ "when": { "purpose": "hook_prompt" }, "text": answer })
}

#[test]
fn a_prompt_hook_with_ok_false_blocks_with_its_reason_and_its_call_is_paid_for() {
    let stage = prompt_hook("Stop", &json!({ "once": true }));
    let mut answer = judged("{\"ok\": false, \"reason\": \"the tests are missing\"}");
    answer["usage"] = json!({ "input_tokens": 1000, "output_tokens": 1 });
    let ran =
        stage.run(&json!([say("first"), answer, say_when("the tests are missing", "tests added")]), &[]);
    assert_eq!(ran.said(), "tests added");
    let lines = stage.sandbox.transcript_lines();
    let asked = lines.iter().find(|line| line["type"] == "side-call").unwrap();
    assert_eq!(asked["purpose"], "hook_prompt", "{asked:#}");
    assert!(ran.result()["total_cost_usd"].as_f64().unwrap() >= 1000.0, "{:#}", ran.result());
}

#[test]
fn a_prompt_hook_with_ok_true_lets_a_call_run_and_false_does_not() {
    for (answer, runs) in [("{\"ok\": true}", true), ("Sure: {\"ok\": false, \"reason\": \"risky\"}", false)]
    {
        let stage = prompt_hook("PreToolUse", &json!({}));
        let replies =
            json!([call(1, "Bash", &json!({ "command": "touch made" })), judged(answer), say("done")]);
        stage.run(&replies, &["--allowedTools", "Bash"]).said();
        assert_eq!(stage.sandbox.project().join("made").exists(), runs, "{answer}");
    }
}

#[test]
fn a_prompt_hook_that_answers_nonsense_fails_closed_before_a_call() {
    for answer in ["yes", "{\"ok\": \"yes\"}", "{}"] {
        let stage = prompt_hook("PreToolUse", &json!({}));
        let replies =
            json!([call(1, "Bash", &json!({ "command": "touch made" })), judged(answer), say("done")]);
        let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
        assert!(!stage.sandbox.project().join("made").exists() && ran.stderr.contains("failed"), "{answer}");
    }
}

fn agent_hook(more: &Value) -> Stage {
    let mut hook = json!({ "type": "agent", "prompt": "Look whether it may run: $ARGUMENTS" });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Stage::new(&json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] }))
}

fn judge(text: &str, tool: &str, input: &Value) -> Value {
    let call = json!({ "name": tool, "id": format!("toolu_{tool}"), "input": input });
    json!({ "when": { "purpose": "subagent", "contains": text }, "toolCalls": [call] })
}

#[test]
fn an_agent_hook_looks_with_its_tools_and_answers_through_structured_output() {
    for (answer, runs) in
        [(json!({ "ok": true }), true), (json!({ "ok": false, "reason": "the note forbids it" }), false)]
    {
        let stage = agent_hook(&json!({}));
        stage.sandbox.write("note.txt", "a note\n");
        let replies = json!([
            call(1, "Bash", &json!({ "command": "touch made" })),
            judge("\"tool_name\":\"Bash\"", "Read", &json!({ "file_path": "note.txt" })),
            { "when": { "purpose": "subagent", "lastToolResultContains": "a note" },
              "toolCalls": [{ "name": "StructuredOutput", "id": "toolu_answer", "input": answer }] },
            say("done"),
        ]);
        let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
        assert_eq!(ran.said(), "done", "{ran:#?}");
        assert_eq!(stage.sandbox.project().join("made").exists(), runs, "{ran:#?}");
        assert_eq!(ran.tool_results().contains("the note forbids it"), !runs);
    }
}

#[test]
fn tools_and_max_turns_bound_an_agent_hook_and_no_answer_fails_closed() {
    let stage = agent_hook(&json!({ "tools": ["Grep"], "maxTurns": 1 }));
    let replies = json!([
        call(1, "Bash", &json!({ "command": "touch made" })),
        judge("Look whether", "Read", &json!({ "file_path": "note.txt" })),
        say("done"),
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash"]);
    assert!(!stage.sandbox.project().join("made").exists(), "{ran:#?}");
    assert!(ran.stderr.contains("gave no answer"), "{}", ran.stderr);
}

#[test]
fn hooks_of_an_agents_frontmatter_bind_that_agent_alone() {
    let stage = Stage::new(&json!({}));
    let agent = "---\nname: careful\ndescription: careful\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        \
                 - type: command\n          command: \"echo not-here >&2; exit 2\"\n---\nBe careful.\n";
    stage.sandbox.write(stage.sandbox.config().join("agents/careful.md"), agent);
    let replies = json!([
        call(1, "Bash", &json!({ "command": "touch by-main" })),
        call(2, "Agent", &json!({ "prompt": "make it", "description": "make", "subagent_type": "careful" })),
        { "when": { "purpose": "subagent", "contains": "make it" },
          "toolCalls": [{ "name": "Bash", "id": "toolu_9", "input": { "command": "touch by-agent" } }] },
        { "when": { "purpose": "subagent", "lastToolResultContains": "not-here" }, "text": "I may not" },
        say("done"),
    ]);
    let ran = stage.run(&replies, &["--allowedTools", "Bash,Agent"]);
    assert_eq!(ran.said(), "done", "{ran:#?}");
    let project = stage.sandbox.project();
    assert!(project.join("by-main").exists() && !project.join("by-agent").exists(), "{ran:#?}");
}
