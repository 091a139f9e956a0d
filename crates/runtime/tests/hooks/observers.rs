//! Hooks that observe: the start and end of a session, memory files, changed files, a changed folder and compactions. What
//! they add reaches the model before its next reply; the host gets the events of runs if it wants them.

use serde_json::{Value, json};

use crate::hooks::support::{Received, Stage, call, specific, text};

fn of(told: &Received, field: &str) -> Vec<Value> {
    told.lock().unwrap().iter().map(|input| input[field].clone()).collect()
}

#[tokio::test]
async fn a_session_starts_and_ends_once_in_a_process() {
    let mut stage = Stage::new(json!([text("one"), text("two"), text("three")]));
    let context = specific("SessionStart", json!({"additionalContext": "you are in the lab"}));
    let started = stage.hook("SessionStart", None, context);
    let ended = stage.hook("SessionEnd", None, json!({}));
    let ran = stage.run(&["first", "second"]).await;
    assert_eq!(of(&started, "source"), [json!("startup")]);
    assert_eq!(of(&ended, "reason"), [json!("other")]);
    assert!(ran.said("you are in the lab"));
    assert_eq!(ran.system("hook_started").len(), 1, "the start of a session is always told");
    assert_eq!(ran.system("hook_response")[0]["outcome"], "success");
    stage.run(&["third"]).await;
    assert_eq!(of(&started, "source"), [json!("startup"), json!("resume")]);
    assert_eq!(ended.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_matcher_looks_at_the_source() {
    let mut stage = Stage::new(json!([text("one")]));
    let resumed = stage.hook("SessionStart", Some("resume"), json!({}));
    let started = stage.hook("SessionStart", Some("startup"), json!({}));
    stage.run(&["hi"]).await;
    assert!(resumed.lock().unwrap().is_empty());
    assert_eq!(started.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_that_a_tool_writes_is_new_and_then_changed() {
    let replies = json!([
        call("Write", json!({"file_path": "a.txt", "content": "1"})),
        {"toolCalls": [{"id": "call_2", "name": "Edit",
            "input": {"file_path": "a.txt", "old_string": "1", "new_string": "2"}}]},
        text("done")]);
    let mut stage = Stage::new(replies).rules(&["Write", "Edit"], &[]);
    let told = stage.hook("FileChanged", Some("a\\.txt$"), json!({}));
    let ran = stage.run(&["go"]).await;
    assert_eq!(ran.outcomes(), ["completed", "completed"]);
    assert_eq!(of(&told, "event"), [json!("add"), json!("change")]);
    let path = json!(stage.path("a.txt"));
    assert_eq!(of(&told, "file_path"), [path.clone(), path]);
}

#[tokio::test]
async fn a_changed_folder_is_told() {
    let mut stage = Stage::new(json!([call("Bash", json!({"command": "cd inner"})), text("done")]));
    std::fs::create_dir(stage.path("inner")).unwrap();
    stage = stage.rules(&["Bash"], &[]);
    let output = specific("CwdChanged", json!({"additionalContext": "inner has its own rules"}));
    let told = stage.hook("CwdChanged", None, output);
    let ran = stage.run(&["go"]).await;
    assert_eq!(of(&told, "old_cwd"), [json!(stage.options.cwd)]);
    assert_eq!(of(&told, "new_cwd"), [json!(stage.path("inner"))]);
    assert!(ran.said("inner has its own rules"));
}

#[tokio::test]
async fn memory_files_of_inner_folders_are_told() {
    let replies = json!([call("Read", json!({"file_path": "inner/a.txt"})), text("done")]);
    let mut stage = Stage::new(replies);
    std::fs::create_dir(stage.path("inner")).unwrap();
    stage.write("inner/a.txt", "text");
    stage.write("inner/AGENTS.md", "be brief");
    let told = stage.hook("InstructionsLoaded", None, json!({}));
    let ran = stage.run(&["go"]).await;
    assert!(ran.said("be brief"));
    assert_eq!(of(&told, "load_reason"), [json!("nested_traversal")]);
    assert_eq!(of(&told, "file_path"), [json!(stage.path("inner/AGENTS.md"))]);
}

#[tokio::test]
async fn compactions_are_told_before_and_after() {
    let usage = json!({"input_tokens": 900_000, "output_tokens": 1});
    let replies = json!([
        {"when": {"contains": "continues an earlier one"}, "text": "done"},
        {"toolCalls": [{"id": "call_1", "name": "Glob", "input": {"pattern": "*"}}], "usage": usage}]);
    let mut stage = Stage::new(replies);
    stage.options.context_window = Some(100_000);
    let before = stage.hook("PreCompact", Some("auto"), json!({}));
    let after = stage.hook("PostCompact", None, json!({}));
    let context = specific("SessionStart", json!({"additionalContext": "you are in the lab"}));
    let started = stage.hook("SessionStart", None, context);
    let ran = stage.run(&["go"]).await;
    assert_eq!(of(&before, "trigger"), [json!("auto")]);
    assert_eq!(of(&before, "custom_instructions"), [Value::Null]);
    assert_eq!(of(&after, "trigger"), [json!("auto")]);
    assert!(!of(&after, "compact_summary")[0].as_str().unwrap().is_empty());
    assert_eq!(of(&started, "source"), [json!("startup"), json!("compact")]);
    assert!(ran.said("you are in the lab"), "the model reads the context again after the summary");
}

#[tokio::test]
async fn a_host_that_wants_to_hears_of_every_hook() {
    let mut stage = Stage::new(json!([text("one")])).with_hook_events();
    stage.hook("UserPromptSubmit", None, json!({"reason": "x"}));
    stage.silent_hook("Stop", std::time::Duration::from_millis(20));
    let ran = stage.run(&["hi"]).await;
    let (started, responses) = (ran.system("hook_started"), ran.system("hook_response"));
    let events: Vec<_> = started.iter().map(|message| message["hook_event"].clone()).collect();
    assert_eq!(events, [json!("UserPromptSubmit"), json!("Stop")]);
    assert_eq!(responses[0]["output"], "{\"reason\":\"x\"}");
    assert_eq!(responses[0]["hook_id"], started[0]["hook_id"]);
    let outcomes: Vec<_> = responses.iter().map(|message| message["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("success"), json!("error")]);
    assert_eq!(responses[0]["hook_name"], "UserPromptSubmit 1");
}

#[tokio::test]
async fn a_host_that_does_not_want_to_hears_nothing() {
    let mut stage = Stage::new(json!([text("one")]));
    stage.hook("UserPromptSubmit", None, json!({}));
    assert!(stage.run(&["hi"]).await.system("hook_started").is_empty());
}
