//! `WorktreeCreate` makes a worktree in the place of git, and `WorktreeRemove` is called when it goes.

use serde_json::json;

use crate::hooks::support::{NOTE, Stage, call, entry, print, say, specific};

const FLAGS: [&str; 2] = ["--allowedTools", "EnterWorktree,ExitWorktree,Bash"];

#[test]
fn worktree_create_has_name_and_the_absolute_path_comes_from_stdout_or_worktree_path() {
    let by_field = print(&specific("WorktreeCreate", &json!({ "worktreePath": "PLACE" })));
    for answer in ["echo making it; echo PLACE".to_owned(), by_field] {
        let stage = Stage::new(&json!({}));
        let place = stage.beside("tree");
        std::fs::create_dir(&place).unwrap();
        let answer = answer.replace("PLACE", place.to_str().unwrap());
        let hooks = json!({ "hooks": { "WorktreeCreate": [entry(&format!("{NOTE}; {answer}"))],
            "WorktreeRemove": [entry(NOTE)] } });
        stage.sandbox.write(stage.sandbox.config().join("settings.json"), hooks.to_string());
        let replies = json!([
            call(1, "EnterWorktree", &json!({ "name": "trial" })),
            call(2, "Bash", &json!({ "command": "touch inside" })),
            call(3, "ExitWorktree", &json!({ "action": "remove" })),
            call(4, "Bash", &json!({ "command": "touch outside" })),
            say("done"),
        ]);
        let ran = stage.run(&replies, &FLAGS);
        assert_eq!(ran.said(), "done", "{ran:#?}");
        assert!(
            place.join("inside").exists() && stage.sandbox.project().join("outside").exists(),
            "{ran:#?}"
        );
        let seen = stage.seen();
        assert_eq!(
            (&seen[0]["hook_event_name"], &seen[0]["name"]),
            (&json!("WorktreeCreate"), &json!("trial"))
        );
        assert_eq!(seen[1]["worktree_path"], json!(place), "{seen:#?}");
        let events: Vec<_> = stage.records().iter().map(|record| record["event"].clone()).collect();
        assert!(events.contains(&json!("WorktreeCreate")) && events.contains(&json!("WorktreeRemove")));
    }
}

#[test]
fn any_exit_code_but_0_of_worktree_create_is_a_failure_and_so_is_no_path() {
    for command in ["exit 1", "exit 2", "true", "echo relative/path", "echo /nonexistent"] {
        let stage = Stage::command("WorktreeCreate", command);
        let replies = json!([
            call(1, "EnterWorktree", &json!({})),
            call(2, "Bash", &json!({ "command": "touch here" })),
            say("done")
        ]);
        let ran = stage.run(&replies, &FLAGS);
        assert!(stage.sandbox.project().join("here").exists(), "{command}: {ran:#?}");
        let refused = ["did not make the worktree", "named no absolute path"];
        assert!(refused.iter().any(|text| ran.tool_results().contains(text)), "{command}: {ran:#?}");
    }
}
