//! Hooks of a folder run only when it is trusted, and those of a listed folder only as they were then.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::hooks::support::{BINARY, Ran, Stage, entry, say};

fn folder(command: &str) -> Value {
    json!({ "hooks": { "SessionStart": [entry(command)] } })
}

fn stage() -> Stage {
    let stage = Stage::new(&json!({}));
    stage.sandbox.write(".qoder/settings.json", folder("echo project > ../ran").to_string());
    stage
}

fn trust(sandbox: &Sandbox) -> String {
    let output = sandbox.run(BINARY, &["trust"]);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a turn; true when the hook of the project ran.
fn ran(stage: &Stage, flags: &[&str]) -> (bool, Ran) {
    let file = stage.beside("ran");
    let _ = std::fs::remove_file(&file);
    let ran = stage.run(&json!([say("hi")]), flags);
    (file.exists(), ran)
}

#[test]
fn hooks_of_an_untrusted_folder_do_not_run() {
    let stage = stage();
    assert!(!ran(&stage, &[]).0);
    assert!(ran(&stage, &["--trust"]).0);
    assert!(!ran(&stage, &["--trust", "--setting-sources", "user"]).0);
}

#[test]
fn trust_shows_hooks_with_their_full_commands() {
    let stage = stage();
    let long = format!("echo {} && \u{1b}[2K true", "x".repeat(500));
    stage.sandbox.write(".qoder/settings.local.json", folder(&long).to_string());
    let told = trust(&stage.sandbox);
    assert!(told.contains("echo project > ../ran") && told.contains(&"x".repeat(500)), "{told}");
    assert!(!told.contains('\u{1b}') && told.contains("\\u{1b}"), "{told}");
}

#[test]
fn hooks_that_changed_since_the_folder_was_trusted_do_not_run_until_it_is_trusted_again() {
    let stage = stage();
    trust(&stage.sandbox);
    assert!(ran(&stage, &[]).0);
    stage.sandbox.write(".qoder/settings.json", folder("echo other > ../ran").to_string());
    let (made, told) = ran(&stage, &[]);
    assert!(!made, "{told:#?}");
    assert!(
        told.stderr.contains(".qoder/settings.json") && told.stderr.contains("`qodercli trust`"),
        "{}",
        told.stderr
    );
    assert!(ran(&stage, &["--trust"]).0, "one run vouches for what is there now");
    trust(&stage.sandbox);
    assert!(ran(&stage, &[]).0);
    stage.sandbox.write(".qoder/settings.local.json", folder("true").to_string());
    assert!(!ran(&stage, &[]).0, "another file of the folder changed");
}

#[test]
fn other_settings_of_a_trusted_folder_may_change() {
    let stage = stage();
    trust(&stage.sandbox);
    let mut settings = folder("echo project > ../ran");
    settings["language"] = json!("German");
    stage.sandbox.write(".qoder/settings.json", settings.to_string());
    assert!(ran(&stage, &[]).0);
}

#[test]
fn trust_directories_vouch_for_what_is_there_now() {
    let stage = stage();
    let trusted = json!({ "permissions": { "trustDirectories": [stage.sandbox.project()] } });
    stage.sandbox.write(stage.sandbox.config().join("settings.json"), trusted.to_string());
    assert!(ran(&stage, &[]).0);
}

#[test]
fn what_a_runner_an_option_or_a_pattern_stands_for_is_bound_too() {
    for (command, file, text) in [
        ("make -s go", "Makefile", "go:\n\techo made > ../ran\n"),
        ("make -s -f build.mk go", "build.mk", "go:\n\techo made > ../ran\n"),
        ("cd . && bash steps/*.step", "steps/a.step", "echo made > ../ran\n"),
        ("for f in steps/*.sh; do . ./$f; done", "steps/a.sh", "echo made > ../ran\n"),
    ] {
        let stage = Stage::new(&json!({}));
        stage.sandbox.write(".qoder/settings.json", folder(command).to_string());
        stage.sandbox.write(file, text);
        let told = trust(&stage.sandbox);
        assert!(told.contains(&format!("  {file}\n")), "{command}: {told}");
        assert!(told.contains("not bound"), "{command}: {told}");
        assert!(ran(&stage, &[]).0, "{command}");
        stage.sandbox.write(file, text.replace("made", "changed"));
        let (made, told) = ran(&stage, &[]);
        assert!(!made && told.stderr.contains(file), "{command}: {told:#?}");
        trust(&stage.sandbox);
        assert!(ran(&stage, &[]).0, "{command}");
    }
}

#[test]
fn what_a_hook_loads_or_names_only_when_it_runs_is_bound_too() {
    let go = "echo made > ../ran\n";
    for (command, files, changed) in [
        (
            "bash hooks/check.sh",
            &[("hooks/check.sh", ". \"$(dirname \"$0\")/lib.sh\"\n"), ("hooks/lib.sh", go)][..],
            "hooks/lib.sh",
        ),
        ("make -s go", &[("Makefile", "go:\n\t@sh tools/go.sh\n"), ("tools/go.sh", go)], "tools/go.sh"),
        ("S=hooks/a; sh \"$S.sh\"", &[("hooks/a.sh", go)], "hooks/a.sh"),
        ("bash -c \"$(cat hooks/text.sh)\"", &[("hooks/text.sh", go)], "hooks/text.sh"),
        ("sh $(cat which)", &[("which", "deep/run.sh"), ("deep/run.sh", go)], "deep/run.sh"),
        (
            "cat hooks/list | xargs -n1 sh",
            &[("hooks/list", "hooks/b.sh\n"), ("hooks/b.sh", go)],
            "hooks/b.sh",
        ),
    ] {
        let stage = Stage::new(&json!({}));
        stage.sandbox.write(".qoder/settings.json", folder(command).to_string());
        for (file, text) in files {
            stage.sandbox.write(file, text);
        }
        trust(&stage.sandbox);
        assert!(ran(&stage, &[]).0, "{command}");
        stage.sandbox.write("notes.txt", "data");
        assert!(ran(&stage, &[]).0, "{command}: data is not what runs");
        stage.sandbox.write(changed, "echo changed > ../ran\n");
        let (made, told) = ran(&stage, &[]);
        assert!(!made && told.stderr.contains("trust the folder"), "{command}: {told:#?}");
    }
}
