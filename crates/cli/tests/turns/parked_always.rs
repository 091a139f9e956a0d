//! `--always` keeps what was suggested: in the project's private settings, with whatever else stands there, so that
//! neither this session nor a later one asks again. Where there is nothing to keep, the call is allowed this once.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::turns::parked::{SESSION, answer, model, park, pending, resume, sandbox, turn};
use crate::turns::support::{calls, run};

fn runs_twice() -> Vec<Reply> {
    let call = |id: &'static str| calls(&[(id, "Bash", json!({ "command": "touch kept.txt" }))]);
    vec![call("toolu_1"), call("toolu_2"), Reply::text("done")]
}

#[test]
fn the_suggested_rule_is_written_and_counts_from_then_on() {
    let (sandbox, server) = (sandbox(), model(runs_twice()));
    let text = "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(mkdir:*)\" // keep this\n    ]\n  }\n}\n";
    let file = sandbox.write(".qoder/settings.local.json", text);
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_1", &["allow", "--always"]);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("// mine") && written.contains("// keep this"), "{written}");
    assert!(written.contains("Bash(mkdir:*)") && written.contains("Bash(touch kept.txt)"), "{written}");
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    let fresh = run(turn(&sandbox, &server, &["again"]));
    assert_eq!(fresh.success()["permission_denials"], json!([]));
}

#[test]
fn an_allowance_without_it_holds_for_one_call() {
    let (sandbox, server) = (sandbox(), model(runs_twice()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_1", &["allow"]);
    assert_eq!(resume(&sandbox, &server, &[]).code, 54);
    assert_eq!(pending(&sandbox), ["toolu_2"]);
    assert!(!sandbox.project().join(".qoder/settings.local.json").exists());
}

#[test]
fn a_denial_keeps_nothing() {
    let (sandbox, server) = (sandbox(), model(runs_twice()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_1", &["deny", "--always"]);
    assert_eq!(resume(&sandbox, &server, &[]).code, 54);
    assert!(!sandbox.project().join(".qoder/settings.local.json").exists());
}

#[test]
fn an_untrusted_folder_is_not_written() {
    let (sandbox, server) = (sandbox(), model(runs_twice()));
    let settings = json!({ "permissions": { "unattended": "park" } });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    park(&sandbox, &server, &[]);
    let told = answer(&sandbox, "toolu_1", &["allow", "--always"]);
    assert!(told.stderr.contains("not trusted"), "{}", told.stderr);
    assert!(!sandbox.project().join(".qoder").exists());
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done", "it holds for the session");
}

#[test]
fn edits_once_accepted_are_accepted_in_this_session() {
    let write = |id: &'static str| {
        calls(&[(id, "Write", json!({ "file_path": format!("{id}.txt"), "content": "x" }))])
    };
    let server = model(vec![write("toolu_1"), write("toolu_2"), Reply::text("done")]);
    let sandbox = sandbox();
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_1", &["allow", "--always"]);
    let finished = resume(&sandbox, &server, &[]);
    assert_eq!(finished.success()["result"], "done");
    assert!(sandbox.project().join("toolu_2.txt").exists());
    assert_eq!(finished.system("init")[0]["permissionMode"], "acceptEdits");
    let next = run(turn(&sandbox, &server, &["more", "--resume", SESSION]));
    assert_eq!(next.system("init")[0]["permissionMode"], "acceptEdits", "the mode survives");
}

#[test]
fn a_folder_outside_is_read_without_further_questions() {
    let (sandbox, place) = (sandbox(), Sandbox::new());
    let read = |id: &'static str, name: &str| {
        let file = place.write(name, "text\n");
        calls(&[(id, "Read", json!({ "file_path": file.to_str().unwrap() }))])
    };
    let server = model(vec![read("toolu_1", "a.txt"), read("toolu_2", "b.txt"), Reply::text("done")]);
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_1", &["allow", "--always"]);
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    assert_eq!(run(turn(&sandbox, &server, &["a new session"])).code, 54, "it held for that session");
}
