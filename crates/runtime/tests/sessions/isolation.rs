//! An isolated session: an allowed tool never asks inside its environment, whatever leaves it is denied, and confined commands
//! read nothing that is not listed. Where no sandbox can be enforced, what commands read is not checked, and the test says so.

use qoder_runtime::sessions::FirstPrompt;
use qoder_types::PermissionMode;
use qoder_types::workspace::Isolation;
use serde_json::{Value, json};

use crate::hooks::support::{Ran, Stage, call, text};
use crate::sessions::support::to_the_end;

fn stage(tool: &str, input: Value) -> Stage {
    let mut stage =
        Stage::new(json!([call(tool, input), text("done")])).rules(&["Read", "Write", "Bash"], &[]);
    stage.options.isolation = Some(Isolation::new(vec![stage.options.cwd.clone()]));
    std::fs::write(stage.folder().join("secret.txt"), "the secret").unwrap();
    stage
}

async fn ran(stage: &Stage) -> Ran {
    to_the_end(stage, FirstPrompt::Text("go".to_owned())).await
}

#[tokio::test]
async fn a_protected_file_of_its_own_needs_no_question() {
    let stage = stage("Write", json!({ "file_path": ".envrc", "content": "x" }));
    let ran = ran(&stage).await;
    assert_eq!(ran.outcomes(), ["completed"], "{}", ran.results());
    assert!(stage.path(".envrc").exists());
}

#[tokio::test]
async fn nothing_outside_is_reached_by_any_spelling_or_link_in_any_mode() {
    for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
        for (tool, input) in [
            ("Read", json!({ "file_path": "../secret.txt" })),
            ("Read", json!({ "file_path": "link.txt" })),
            ("Read", json!({ "file_path": "folder/secret.txt" })),
            ("Write", json!({ "file_path": "folder/new.txt", "content": "x" })),
            ("Bash", json!({ "command": "cat folder/secret.txt" })),
            ("Bash", json!({ "command": "cat /root/secret.txt" })),
        ] {
            let mut stage = stage(tool, input.clone());
            stage.options.permission_mode = Some(mode);
            std::os::unix::fs::symlink(stage.folder().join("secret.txt"), stage.path("link.txt")).unwrap();
            std::os::unix::fs::symlink(stage.folder(), stage.path("folder")).unwrap();
            let ran = ran(&stage).await;
            assert_eq!(ran.outcomes(), ["denied"], "{mode:?} {input}: {}", ran.results());
            let decision = ran.decision();
            assert_eq!(decision["layer"], "safetyCheck", "{decision}");
            assert!(!ran.said("the secret") && !stage.folder().join("new.txt").exists());
        }
    }
}

#[tokio::test]
async fn a_confined_command_reads_what_is_listed_and_nothing_else() {
    // The gate knows nothing of what this reads.
    let script = "mkdir -p .git && echo x > .git/config; d=..; for f in $d/secret.txt; do cat $f; done; ls -d /usr/bin";
    let stage = stage("Bash", json!({ "command": script }));
    let ran = ran(&stage).await;
    assert!(!ran.said("the secret"), "{}", ran.results());
    if !ran.results().contains("/usr/bin") {
        eprintln!("SKIPPED: the sandbox cannot be enforced on this machine: {}", ran.results());
        return;
    }
    assert!(stage.path(".git/config").exists(), "its own repository: {}", ran.results());
}
