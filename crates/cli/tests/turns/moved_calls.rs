//! What was decided is what runs: a call whose meaning changed after the decision, because an earlier call of the same
//! reply moved the session or put a link in its way, or because a rule was written meanwhile, is not run. The model is
//! told, and may send it again for a decision of its own.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::parked::{answer, model, park, resume, sandbox as trusted, settle};
use crate::turns::support::{assert_calls_in_order, bodies, calls, results_in, stream};

fn not_run(sandbox: &Sandbox, wanted: &[(&str, &str, Value)], arguments: &[&str]) -> String {
    let server = model(vec![calls(wanted), Reply::text("done")]);
    stream(sandbox, &server, &[&["go"], arguments].concat()).success();
    assert_calls_in_order(sandbox);
    let results = results_in(&bodies(&server)[1]);
    assert!(!results[0].2, "{results:?}");
    assert!(results[1].2, "{results:?}");
    results[1].1.clone()
}

#[test]
fn a_directory_that_was_entered_meanwhile() {
    let sandbox = Sandbox::new();
    sandbox.write(".qoder/notes", "");
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "cd .qoder" })),
        ("toolu_2", "Write", json!({ "file_path": "settings.json", "content": "{}" })),
    ];
    let told = not_run(&sandbox, &wanted, &["--permission-mode", "acceptEdits"]);
    assert!(!sandbox.project().join(".qoder/settings.json").exists());
    assert!(told.contains("was not run") && told.contains("again"), "{told}");
}

#[test]
fn a_deny_rule_for_the_directory_that_was_entered() {
    let sandbox = Sandbox::new();
    sandbox.write("secret/key.txt", "the secret\n");
    sandbox.write("key.txt", "harmless\n");
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "cd secret" })),
        ("toolu_2", "Read", json!({ "file_path": "key.txt" })),
    ];
    let told = not_run(&sandbox, &wanted, &["--disallowed-tools", "Read(/secret/**)"]);
    assert!(!told.contains("the secret"), "{told}");
}

#[test]
fn a_link_that_was_made_meanwhile() {
    let sandbox = Sandbox::new();
    let outside = sandbox.home().join("outside.txt");
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": format!("ln -s {} link.txt", outside.display()) })),
        ("toolu_2", "Write", json!({ "file_path": "link.txt", "content": "x" })),
    ];
    not_run(&sandbox, &wanted, &["--permission-mode", "acceptEdits", "--allowed-tools", "Bash(ln:*)"]);
    assert!(!outside.exists());
}

#[test]
fn a_call_that_still_means_the_same_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("src/notes.txt", "");
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "cd src" })),
        ("toolu_2", "Write", json!({ "file_path": "made.txt", "content": "x" })),
    ];
    let server = model(vec![calls(&wanted), Reply::text("done")]);
    stream(&sandbox, &server, &["go", "--permission-mode", "acceptEdits"]).success();
    assert!(sandbox.project().join("src/made.txt").exists(), "{:?}", results_in(&bodies(&server)[1]));
}

#[test]
fn a_rule_that_was_written_while_a_sibling_waited() {
    let wanted = [
        ("toolu_free", "Bash", json!({ "command": "touch free.txt" })),
        ("toolu_asks", "Bash", json!({ "command": "mkdir asked" })),
    ];
    let (sandbox, server) = (trusted(), model(vec![calls(&wanted), Reply::text("done")]));
    settle(&sandbox, &json!({ "permissions": { "allow": ["Bash(touch:*)"] } }));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_asks", &["allow"]);
    settle(&sandbox, &json!({ "permissions": { "allow": ["Bash(touch:*)"], "deny": ["Bash(touch:*)"] } }));
    resume(&sandbox, &server, &[]).success();
    assert!(!sandbox.project().join("free.txt").exists(), "the denial is newer than the decision");
    assert!(sandbox.project().join("asked").exists());
    assert!(results_in(&bodies(&server)[1])[0].1.contains("Bash(touch:*)"));
}
