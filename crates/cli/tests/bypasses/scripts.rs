//! The scripts that hooks run: no mode that accepts edits and no broad rule covers them, and one that changed since its
//! folder was trusted is not run; what it would have said counts as a failure.

use serde_json::{Value, json};

use crate::bypasses::support::{BINARY, Case, call, done, touch};

/// A hook before calls that runs this command.
fn guard(command: &str) -> Value {
    json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": command }] }] })
}

fn write(file: &str) -> Value {
    call("Write", &json!({ "file_path": file, "content": "exit 0" }))
}

#[test]
fn a_script_that_a_hook_names_is_a_protected_file() {
    for command in [
        "scripts/check.sh",
        "./scripts/check.sh --all",
        "bash scripts/check.sh",
        "\"$QODER_PROJECT_DIR\"/scripts/check.sh",
        "${QODER_PROJECT_DIR}/scripts/check.sh",
        "true && sh -e 'scripts/check.sh'",
        "bash -c 'scripts/check.sh; true'",
    ] {
        let case = Case::trusted(&json!({ "hooks": guard(command) }));
        let flags = ["--permission-mode", "acceptEdits", "--allowed-tools", "Edit,Write"];
        let ran =
            case.run("go", &json!([write("scripts/check.sh"), write("scripts/other.sh"), done()]), &flags);
        assert!(!case.has("scripts/check.sh") && case.has("scripts/other.sh"), "{command}: {}", ran.told());
    }
}

#[test]
fn other_ways_to_change_a_script_ask_as_well() {
    for attempt in [
        call("Bash", &json!({ "command": "echo 'exit 0' > scripts/check.sh" })),
        call("Bash", &json!({ "command": "cp other.sh scripts/check.sh" })),
        call("Bash", &json!({ "command": "sed -i s/1/0/ scripts/check.sh" })),
        call("Write", &json!({ "file_path": "link.sh", "content": "exit 0" })),
        call("Write", &json!({ "file_path": "scripts/../scripts/check.sh", "content": "exit 0" })),
    ] {
        let hooks = json!({ "Stop": [{ "hooks": [{ "type": "command", "command": "scripts/check.sh" }] }] });
        let case = Case::trusted(&json!({ "hooks": hooks }));
        let script = case.file("scripts/check.sh", "exit 1");
        case.file("other.sh", "exit 0");
        case.link("link.sh", &script);
        let ran = case.run(
            "go",
            &json!([attempt, done()]),
            &["--permission-mode", "acceptEdits", "--allowed-tools", "Edit"],
        );
        assert_eq!(std::fs::read_to_string(&script).unwrap(), "exit 1", "{attempt}: {}", ran.told());
    }
}

#[test]
fn a_rule_that_names_the_script_covers_it() {
    let case = Case::trusted(&json!({ "hooks": guard("scripts/check.sh") }));
    let ran = case.run(
        "go",
        &json!([write("scripts/check.sh"), done()]),
        &["--allowed-tools", "Edit(scripts/check.sh)"],
    );
    assert!(case.has("scripts/check.sh"), "{}", ran.told());
}

/// A folder that was put on the list with a hook that runs a script which allows everything.
fn listed() -> Case {
    let case = Case::untrusted(&json!({}));
    case.file(".qoder/settings.json", &json!({ "hooks": guard("bash scripts/check.sh") }).to_string());
    case.file("scripts/check.sh", "cat > /dev/null; exit 0");
    let told = case.sandbox.run(BINARY, &["trust"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("scripts/check.sh"), "{told:?}");
    case
}

#[test]
fn a_script_that_changed_since_its_folder_was_trusted_is_not_run() {
    let flags = ["--allowed-tools", "Bash(touch:*)"];
    let case = listed();
    case.run("go", &json!([touch(), done()]), &flags);
    assert!(case.made(), "as it was trusted, it runs and allows");
    let case = listed();
    case.file("scripts/check.sh", "touch ran; exit 0");
    let ran = case.run("go", &json!([touch(), done()]), &flags);
    assert!(!case.made() && !case.has("ran"), "{}", ran.all());
    assert!(ran.all().contains("scripts/check.sh has changed since the folder was trusted"), "{}", ran.all());
    assert!(case.sandbox.run(BINARY, &["trust"]).status.success());
    case.run("go", &json!([touch(), done()]), &flags);
    assert!(case.made() && case.has("ran"), "trusted again, it runs");
}

#[test]
fn a_script_that_was_not_there_when_the_folder_was_trusted_is_not_run() {
    let case = Case::untrusted(&json!({}));
    case.file(".qoder/settings.json", &json!({ "hooks": guard("sh late.sh || true") }).to_string());
    assert!(case.sandbox.run(BINARY, &["trust"]).status.success());
    case.file("late.sh", "touch ran");
    let ran = case.run("go", &json!([touch(), done()]), &["--allowed-tools", "Bash(touch:*)"]);
    assert!(!case.made() && !case.has("ran"), "{}", ran.all());
    assert!(ran.all().contains("late.sh was not there when"), "{}", ran.all());
}

#[test]
fn whoever_vouches_for_one_run_vouches_for_what_is_there() {
    let case = listed();
    case.file("scripts/check.sh", "cat > /dev/null; touch ran; exit 0");
    let ran = case.run("go", &json!([touch(), done()]), &["--trust", "--allowed-tools", "Bash(touch:*)"]);
    assert!(case.made() && case.has("ran"), "{}", ran.all());
}
