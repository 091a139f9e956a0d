//! Who may do what: modes, rules from flags and settings, and what happens when no one can be asked. Whatever is not
//! allowed does not run, is reported to the model and to the host, and every decision is on record with its reason.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{
    Finished, assert_calls_in_order, bodies, calls, keys, records, results_in, stream,
};

/// What came of one reply with calls.
struct Attempt {
    finished: Finished,
    sandbox: Sandbox,
    /// Text and failure of each call, in order.
    results: Vec<(String, bool)>,
}

impl Attempt {
    fn made(&self, file: &str) -> bool {
        self.sandbox.project().join(file).exists()
    }

    fn denied(&self) -> Vec<String> {
        let denials = self.finished.result()["permission_denials"].clone();
        denials
            .as_array()
            .unwrap()
            .iter()
            .map(|denial| denial["tool_use_id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn decisions(&self) -> Vec<Value> {
        records(&self.sandbox, "decision").into_iter().map(|record| record["decision"].clone()).collect()
    }
}

/// Lets the model make these calls in a sandbox and returns what came of them.
fn attempt_in(sandbox: Sandbox, wanted: &[(&str, &str, Value)], arguments: &[&str]) -> Attempt {
    let server = ScriptedServer::start(Script::by_assistant_count(vec![calls(wanted), Reply::text("done")]));
    let mut all = vec!["go"];
    all.extend_from_slice(arguments);
    let finished = stream(&sandbox, &server, &all);
    assert_eq!(finished.success()["result"], "done");
    assert_calls_in_order(&sandbox);
    let results = results_in(&bodies(&server)[1]);
    assert_eq!(results.len(), wanted.len());
    Attempt {
        finished,
        sandbox,
        results: results.into_iter().map(|(_, text, failed)| (text, failed)).collect(),
    }
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    sandbox
}

fn read_write_run() -> [(&'static str, &'static str, Value); 3] {
    [
        ("toolu_read", "Read", json!({ "file_path": "notes.txt" })),
        ("toolu_write", "Write", json!({ "file_path": "written.txt", "content": "x" })),
        ("toolu_run", "Bash", json!({ "command": "touch ran.txt" })),
    ]
}

#[test]
fn by_default_only_reads_run_and_denials_are_told() {
    let attempt = attempt_in(sandbox(), &read_write_run(), &[]);
    assert!(!attempt.made("written.txt") && !attempt.made("ran.txt"));
    assert_eq!(attempt.results[0], ("     1\thello\n".to_owned(), false));
    let denials = json!([
        { "tool_name": "Write", "tool_use_id": "toolu_write",
          "tool_input": { "file_path": "written.txt", "content": "x" } },
        { "tool_name": "Bash", "tool_use_id": "toolu_run", "tool_input": { "command": "touch ran.txt" } },
    ]);
    assert_eq!(attempt.finished.result()["permission_denials"], denials);
    let told = attempt.finished.system("permission_denied");
    assert_eq!(told.len(), 2);
    for (told, (index, way)) in told.iter().zip([(1, "--allowed-tools Write"), (2, "--allowed-tools 'Bash(")])
    {
        let expected = [
            "decision_reason",
            "decision_reason_type",
            "message",
            "session_id",
            "subtype",
            "tool_name",
            "tool_use_id",
            "type",
            "uuid",
        ];
        assert_eq!(keys(told), expected);
        assert_eq!(told["decision_reason_type"], "unattended");
        let (text, failed) = &attempt.results[index];
        assert!(*failed && told["message"] == text.as_str(), "{told}");
        assert!(text.contains("nobody can be asked here") && text.contains(way), "{text}");
    }
    assert!(records(&attempt.sandbox, "tool-start").iter().all(|start| start["toolUseId"] == "toolu_read"));
}

#[test]
fn every_mode_does_what_it_says() {
    let modes = [
        ("default", [true, false, false]),
        ("acceptEdits", [true, true, false]),
        ("plan", [true, false, false]),
        ("dontAsk", [true, false, false]),
        ("auto", [true, true, false]),
        ("bypassPermissions", [true, true, true]),
        ("yolo", [true, true, true]),
    ];
    for (mode, expected) in modes {
        let attempt = attempt_in(sandbox(), &read_write_run(), &["--permission-mode", mode]);
        let ran = [!attempt.results[0].1, attempt.made("written.txt"), attempt.made("ran.txt")];
        assert_eq!(ran, expected, "{mode}");
        let succeeded: Vec<bool> = attempt.results.iter().map(|(_, failed)| !failed).collect();
        assert_eq!(succeeded, expected, "{mode}: {:?}", attempt.results);
        let shown = if mode == "yolo" { "bypassPermissions" } else { mode };
        assert_eq!(attempt.finished.system("init")[0]["permissionMode"], shown);
        assert!(attempt.decisions().iter().all(|decision| decision["mode"] == shown), "{mode}");
        assert_eq!(attempt.denied().len(), expected.iter().filter(|ran| !**ran).count(), "{mode}");
    }
}

#[test]
fn the_flag_without_a_mode_is_the_mode_without_questions() {
    let attempt = attempt_in(sandbox(), &read_write_run(), &["--dangerously-skip-permissions"]);
    assert!(attempt.made("written.txt") && attempt.made("ran.txt"));
    assert_eq!(attempt.denied(), Vec::<String>::new());
}

#[test]
fn plan_mode_makes_no_changes_even_where_rules_allow() {
    let arguments = ["--permission-mode", "plan", "--allowed-tools", "Write,Bash"];
    let attempt = attempt_in(sandbox(), &read_write_run(), &arguments);
    assert!(!attempt.made("written.txt") && !attempt.made("ran.txt"));
    assert!(attempt.results[1].0.contains("plan mode makes no changes"), "{}", attempt.results[1].0);
}

#[test]
fn rules_from_flags_allow_exactly_what_they_name() {
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "touch one.txt" })),
        ("toolu_2", "Bash", json!({ "command": "touch two.txt" })),
        ("toolu_3", "Bash", json!({ "command": "touch one.txt; touch three.txt" })),
        ("toolu_4", "Bash", json!({ "command": "mkdir four" })),
        ("toolu_5", "Write", json!({ "file_path": "five.txt", "content": "x" })),
    ];
    let rules = ["--allowed-tools", "Bash(touch one.txt),Bash(mkdir:*)", "--allowedTools", "Write"];
    let attempt = attempt_in(sandbox(), &wanted, &rules);
    let made: Vec<bool> = ["one.txt", "two.txt", "three.txt", "four", "five.txt"]
        .iter()
        .map(|file| attempt.made(file))
        .collect();
    assert_eq!(made, [true, false, false, true, true]);
    assert_eq!(attempt.denied(), ["toolu_2", "toolu_3"]);
    let decisions = attempt.decisions();
    assert_eq!(decisions[0]["rule"], "Bash(touch one.txt)");
    assert_eq!(decisions[0]["origin"], json!({ "source": "cliArg" }));
    assert_eq!(decisions[3]["rule"], "Bash(mkdir:*)");
}

#[test]
fn denying_beats_allowing_and_the_mode_without_questions() {
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "touch bad.txt" })),
        ("toolu_2", "Bash", json!({ "command": "/usr/bin/touch bad.txt" })),
        ("toolu_3", "Bash", json!({ "command": "true && touch bad.txt" })),
        ("toolu_4", "Bash", json!({ "command": "mkdir good" })),
    ];
    let rules = ["--disallowed-tools", "Bash(touch:*)"];
    for more in [["--allowed-tools", "Bash"], ["--permission-mode", "bypassPermissions"]] {
        let attempt = attempt_in(sandbox(), &wanted, &[rules, more].concat());
        assert!(!attempt.made("bad.txt") && attempt.made("good"), "{more:?}");
        assert_eq!(attempt.denied(), ["toolu_1", "toolu_2", "toolu_3"], "{more:?}");
        let decision = &attempt.decisions()[0];
        assert_eq!((&decision["behavior"], &decision["layer"]), (&json!("deny"), &json!("rule")));
        assert_eq!(decision["rule"], "Bash(touch:*)");
    }
}

#[test]
fn a_tool_that_is_denied_as_a_whole_is_not_offered() {
    let attempt = attempt_in(
        sandbox(),
        &read_write_run(),
        &["--disallowed-tools", "Bash", "--permission-mode", "yolo"],
    );
    assert!(!attempt.made("ran.txt") && attempt.made("written.txt"));
    let tools = &attempt.finished.system("init")[0]["tools"];
    assert!(!tools.as_array().unwrap().contains(&json!("Bash")), "{tools}");
    assert!(attempt.results[2].0.starts_with("There is no tool named Bash."), "{}", attempt.results[2].0);
}

#[test]
fn rules_of_settings_count_and_are_on_record_with_file_and_line() {
    let sandbox = sandbox();
    let settings = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(mkdir:*)\",\n      \"Bash(touch:*)\"\n    ],\n    \
                    \"ask\": [\"Bash(touch asked.txt)\"],\n    \"deny\": [\n      \"Bash(touch denied.txt)\"\n    ]\n  }\n}\n";
    let file = sandbox.write(sandbox.config().join("settings.json"), settings);
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": "touch allowed.txt" })),
        ("toolu_2", "Bash", json!({ "command": "touch asked.txt" })),
        ("toolu_3", "Bash", json!({ "command": "touch denied.txt" })),
    ];
    let attempt = attempt_in(sandbox, &wanted, &[]);
    assert!(attempt.made("allowed.txt") && !attempt.made("asked.txt") && !attempt.made("denied.txt"));
    assert_eq!(attempt.denied(), ["toolu_2", "toolu_3"]);
    let seen: Vec<(Value, Value, Value)> = attempt
        .decisions()
        .iter()
        .map(|decision| (decision["behavior"].clone(), decision["rule"].clone(), decision["origin"].clone()))
        .collect();
    let origin =
        |line: u32| json!({ "source": "userSettings", "file": file.to_str().unwrap(), "line": line });
    let expected = [
        (json!("allow"), json!("Bash(touch:*)"), origin(5)),
        (json!("deny"), json!("Bash(touch asked.txt)"), origin(7)),
        (json!("deny"), json!("Bash(touch denied.txt)"), origin(9)),
    ];
    assert_eq!(seen, expected);
    assert!(attempt.results[1].0.contains("`Bash(touch asked.txt)`"), "{}", attempt.results[1].0);
}

#[test]
fn an_ask_rule_holds_in_the_mode_without_questions() {
    let settings = r#"{"permissions":{"ask":["Write"]}}"#;
    let arguments = ["--settings", settings, "--permission-mode", "bypassPermissions"];
    let attempt = attempt_in(sandbox(), &read_write_run(), &arguments);
    assert!(!attempt.made("written.txt") && attempt.made("ran.txt"));
    assert_eq!(attempt.denied(), ["toolu_write"]);
}

#[test]
fn a_projects_settings_count_only_when_the_folder_is_trusted() {
    let rules = r#"{"permissions":{"allow":["Bash(touch:*)"]}}"#;
    for (arguments, expected) in [(&[][..], false), (&["--trust"][..], true)] {
        let sandbox = sandbox();
        sandbox.write(".qoder/settings.json", rules);
        let attempt = attempt_in(sandbox, &read_write_run(), arguments);
        assert_eq!(attempt.made("ran.txt"), expected, "{arguments:?}");
    }
}

#[test]
fn removing_everything_is_never_automatic() {
    let sandbox = sandbox();
    let project = sandbox.project().to_str().unwrap().to_owned();
    let wanted = [
        ("toolu_1", "Bash", json!({ "command": format!("rm -rf {project}") })),
        ("toolu_2", "Bash", json!({ "command": "rm -rf ~" })),
        ("toolu_3", "Bash", json!({ "command": "true; rm -rf \"$HOME\"" })),
    ];
    let attempt = attempt_in(sandbox, &wanted, &["--allowed-tools", "Bash"]);
    assert!(attempt.made("notes.txt"));
    assert_eq!(attempt.denied(), ["toolu_1", "toolu_2", "toolu_3"]);
    let attempt = attempt_in(self::sandbox(), &wanted[1..], &["--permission-mode", "bypassPermissions"]);
    assert!(attempt.made("notes.txt"));
    assert_eq!(attempt.denied(), ["toolu_2", "toolu_3"]);
}

#[test]
fn an_advice_names_the_rule_that_helps_and_claims_nothing_else() {
    let sandbox = sandbox();
    let outside = sandbox.home().join("outside.txt");
    let wanted = [
        ("toolu_1", "Write", json!({ "file_path": outside, "content": "x" })),
        ("toolu_2", "Bash", json!({ "command": "sudo ls" })),
        ("toolu_3", "Bash", json!({ "command": "echo x >> .git/config" })),
    ];
    let attempt = attempt_in(sandbox, &wanted, &["--allowed-tools", "Bash"]);
    let texts: Vec<&str> = attempt.results.iter().map(|(text, _)| text.as_str()).collect();
    assert!(texts[0].contains(&format!("--allowed-tools 'Edit(/{})'", outside.display())), "{}", texts[0]);
    assert!(texts[1].contains("--allowed-tools 'Bash(sudo ls)'"), "{}", texts[1]);
    assert!(texts[2].contains("A person can run it by hand"), "{}", texts[2]);
    assert!(texts.iter().all(|text| !text.contains("no rule")), "{texts:?}");
}
