//! Hooks around whole sessions: the first message, skills that are read again, setting a folder up, and turns that end
//! because the output limit cut the model off.

use serde_json::{Value, json};

use crate::hooks::support::{NOTE, Stage, call, entry, print, say, say_when, specific};

#[test]
fn initial_user_message_is_submitted_before_the_prompt_as_a_message_of_its_own() {
    let part = json!({ "initialUserMessage": "first greet everybody" });
    let stage = Stage::new(&json!({
        "SessionStart": [entry(&print(&specific("SessionStart", &part)))], "UserPromptSubmit": [entry(NOTE)],
    }));
    let replies = json!([say_when("first greet everybody", "hello all"), say_when("go", "gone")]);
    let ran = stage.run(&replies, &[]);
    let results: Vec<&Value> = ran.lines.iter().filter(|line| line["type"] == "result").collect();
    assert_eq!(results.last().unwrap()["result"], "gone", "{ran:#?}");
    let lines = stage.sandbox.transcript_lines();
    let prompts: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "user" && line["origin"] == "prompt")
        .filter_map(|line| line["message"]["content"].as_str())
        .collect();
    assert_eq!(prompts, ["first greet everybody", "go"], "{lines:#?}");
    // What a hook says itself is no prompt of a person.
    let seen: Vec<Value> = stage.seen().iter().map(|input| input["prompt"].clone()).collect();
    assert_eq!(seen, [json!("go")]);
}

#[test]
fn reload_skills_reads_the_skills_again_after_the_hook() {
    let make = "mkdir -p .qoder/skills/made && printf -- '---\\nname: made\\ndescription: Knows what was made.\\n---\\nTHE TEXT\\n' \
                > .qoder/skills/made/SKILL.md";
    let answer = print(&specific("SessionStart", &json!({ "reloadSkills": true })));
    let stage = Stage::command("SessionStart", &format!("{make}; {answer}"));
    let replies = json!([call(1, "Skill", &json!({ "skill": "made" })), say("done")]);
    let ran = stage.run(&replies, &["--trust", "--allowedTools", "Skill"]);
    assert_eq!(ran.system("init")[0]["skills"], json!(["made"]), "{ran:#?}");
    assert!(ran.tool_results().contains("THE TEXT"), "{ran:#?}");
}

#[test]
fn setup_has_trigger_init_and_comes_with_the_first_session_of_a_folder_alone() {
    let stage = Stage::command("Setup", NOTE);
    for _ in 0..2 {
        stage.run(&json!([say("hi")]), &[]).said();
    }
    let seen = stage.seen();
    assert_eq!(seen.len(), 1, "{seen:#?}");
    assert_eq!(seen[0]["trigger"], "init");
}

#[test]
fn stop_failure_has_error_type_max_output_tokens_and_stop_does_not_come() {
    let stage = Stage::new(&json!({ "StopFailure": [entry(NOTE)], "Stop": [entry(NOTE)] }));
    stage.run(&json!([{ "text": "and so", "stopReason": "max_tokens", "repeat": true }]), &[]);
    let seen = stage.seen();
    assert_eq!(seen.len(), 1, "{seen:#?}");
    assert_eq!(
        (&seen[0]["hook_event_name"], &seen[0]["error_type"]),
        (&json!("StopFailure"), &json!("max_output_tokens"))
    );
    assert!(seen[0]["error"].is_string());
}

#[test]
fn task_created_and_task_completed_come_for_an_agent_in_the_background() {
    let stage = Stage::new(&json!({ "TaskCreated": [entry(NOTE)], "TaskCompleted": [entry(NOTE)] }));
    let start = json!({ "prompt": "look", "description": "look around", "run_in_background": true });
    let replies = json!([
        call(1, "Agent", &start),
        { "when": { "purpose": "subagent" }, "text": "nothing there" },
        { "text": "done", "repeat": true },
    ]);
    stage.run(&replies, &["--allowedTools", "Agent"]).said();
    let seen = stage.seen();
    let of = |event: &str| seen.iter().find(|input| input["hook_event_name"] == event).unwrap();
    let (created, completed) = (of("TaskCreated"), of("TaskCompleted"));
    assert_eq!(created["task_id"], completed["task_id"]);
    assert_eq!(created["description"], "look around", "{created:#}");
    assert_eq!(completed["status"], "completed", "{completed:#}");
}
