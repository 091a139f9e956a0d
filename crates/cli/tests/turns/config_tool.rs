//! The Config tool shows what is in force without its secrets, and writes a setting only after a person allowed this very
//! change, in any mode. What a project may not set cannot be written into its files.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::turns::parked::{answer, model, park, resume, sandbox, settle, turn};
use crate::turns::support::{bodies, calls, results_in, run};

fn set(value: Value) -> Vec<Reply> {
    vec![calls(&[("toolu_set", "Config", value)]), Reply::text("done")]
}

#[test]
fn reading_needs_no_answer_and_hides_secrets() {
    let sandbox = sandbox();
    let more = json!({ "language": "Deutsch",
        "tools": { "webSearch": { "provider": "brave", "apiKey": "the-key-of-the-search" } } });
    settle(&sandbox, &more);
    let wanted = [
        ("toolu_1", "Config", json!({ "action": "list" })),
        ("toolu_2", "Config", json!({ "action": "get", "key": "language" })),
        ("toolu_3", "Config", json!({ "action": "get", "key": "tools.webSearch.apiKey" })),
        ("toolu_4", "Config", json!({ "action": "get", "key": "tools.shell.timeoutMs" })),
        ("toolu_5", "Config", json!({ "action": "get", "key": "no.such.key" })),
        ("toolu_6", "Config", json!({ "action": "get" })),
    ];
    let server = model(vec![calls(&wanted), Reply::text("done")]);
    run(turn(&sandbox, &server, &["go"])).success();
    let results = results_in(&bodies(&server)[1]);
    let failed: Vec<bool> = results.iter().map(|(_, _, failed)| *failed).collect();
    assert_eq!(failed, [false, false, false, false, true, true], "{results:?}");
    assert!(results[0].1.contains("language = \"Deutsch\""), "{results:?}");
    assert_eq!(results[1].1, "language = \"Deutsch\"");
    assert_eq!(results[3].1, "tools.shell.timeoutMs = 120000");
    assert!(results.iter().all(|(_, text, _)| !text.contains("the-key-of-the-search")), "{results:?}");
    assert!(results[2].1.contains("***"), "{results:?}");
}

#[test]
fn writing_is_a_question_in_every_mode() {
    let input = json!({ "action": "set", "key": "language", "value": "English" });
    for mode in ["default", "acceptEdits", "bypassPermissions"] {
        let (sandbox, server) = (sandbox(), model(set(input.clone())));
        let arguments = ["--permission-mode", mode, "--allowed-tools", "Config"];
        park(&sandbox, &server, &arguments);
        answer(&sandbox, "toolu_set", &["allow"]);
        resume(&sandbox, &server, &arguments).success();
        let file = sandbox.project().join(".qoder/settings.local.json");
        let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(written, json!({ "language": "English" }), "{mode}");
    }
    for mode in ["dontAsk", "auto", "plan"] {
        let (sandbox, server) = (sandbox(), model(set(input.clone())));
        let finished = run(turn(&sandbox, &server, &["go", "--permission-mode", mode]));
        assert!(!sandbox.project().join(".qoder").exists(), "{mode}");
        assert!(finished.code == 54 || finished.success()["permission_denials"][0]["tool_name"] == "Config");
    }
}

#[test]
fn the_scope_chooses_the_file_and_null_removes() {
    let (sandbox, server) = (
        sandbox(),
        model(set(json!({ "action": "set", "key": "language", "value": null, "scope": "user" }))),
    );
    settle(&sandbox, &json!({ "language": "Deutsch" }));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_set", &["allow"]);
    resume(&sandbox, &server, &[]).success();
    let text = std::fs::read_to_string(sandbox.config().join("settings.json")).unwrap();
    assert!(!text.contains("language") && text.contains("unattended"), "{text}");
}

#[test]
fn what_cannot_be_set_is_refused_with_the_reason() {
    for (input, reason) in [
        (json!({ "action": "set", "key": "no.such.key", "value": 1 }), "There is no setting"),
        (json!({ "action": "set", "key": "language" }), "`value` is needed"),
        (json!({ "action": "set", "key": "tools.shell.timeoutMs", "value": "soon" }), "cannot be set so"),
        (json!({ "action": "set", "key": "security.disableYoloMode", "value": false }), "cannot be set so"),
        (
            json!({ "action": "set", "key": "general.defaultPermissionMode", "value": "yolo" }),
            "cannot be set so",
        ),
        (
            json!({ "action": "set", "key": "autoMode.classifier", "value": "x", "scope": "project" }),
            "cannot be set so",
        ),
    ] {
        let (sandbox, server) = (sandbox(), model(set(input.clone())));
        park(&sandbox, &server, &[]);
        answer(&sandbox, "toolu_set", &["allow"]);
        resume(&sandbox, &server, &[]).success();
        let told = results_in(&bodies(&server)[1]);
        assert!(told[0].2 && told[0].1.contains(reason), "{input}: {told:?}");
        assert!(!sandbox.project().join(".qoder").exists(), "{input}");
    }
}

#[test]
fn a_secret_that_was_written_is_not_repeated() {
    let input =
        json!({ "action": "set", "key": "tools.webSearch.apiKey", "value": "the-new-key", "scope": "user" });
    let (sandbox, server) = (sandbox(), model(set(input)));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_set", &["allow"]);
    let finished = resume(&sandbox, &server, &[]);
    finished.success();
    let told = results_in(&bodies(&server)[1]);
    assert!(!told[0].2 && !told[0].1.contains("the-new-key"), "{told:?}");
    let kept = std::fs::read_to_string(sandbox.config().join("settings.json")).unwrap();
    assert!(kept.contains("the-new-key"), "{kept}");
}
