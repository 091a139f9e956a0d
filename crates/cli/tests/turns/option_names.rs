//! Messages name options as their reader writes them: flags on the command line, options in an SDK.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Wire, calls, command, run};

/// What a run says whose calls are denied and whose turns run out, for the program that started it.
fn told(entrypoint: Option<&str>) -> String {
    let sandbox = Sandbox::new();
    let call = |number: usize| {
        let id: &'static str = ["toolu_1", "toolu_2", "toolu_3"][number];
        calls(&[(id, "Bash", json!({ "command": "touch made" }))])
    };
    let server =
        ScriptedServer::start(Script::by_assistant_count(vec![call(0), call(1), Reply::text("over")]));
    let mut started = command(&sandbox, &server, Wire::Messages);
    started.args(["-p", "go", "--output-format", "stream-json", "--max-turns", "1"]);
    if let Some(entrypoint) = entrypoint {
        started.env("QODER_ENTRYPOINT", entrypoint);
    }
    run(started).stdout
}

#[test]
fn limits_and_denials_name_what_the_reader_can_set() {
    let flags = told(None);
    assert!(
        flags.contains("Raise --max-turns or") && flags.contains("--allowed-tools 'Bash(touch made)'"),
        "{flags}"
    );
    for entrypoint in ["sdk-py", "sdk-rust"] {
        let snake = told(Some(entrypoint));
        assert!(snake.contains("Raise `max_turns` or"), "{snake}");
        assert!(snake.contains(r#"\"Bash(touch made)\" in `allowed_tools`"#), "{snake}");
        assert!(!snake.contains("--allowed-tools") && !snake.contains("--max-turns"), "{snake}");
    }
    let camel = told(Some("sdk-ts"));
    assert!(camel.contains("Raise `maxTurns` or") && camel.contains("in `allowedTools`"), "{camel}");
}

#[test]
fn errors_at_the_start_name_the_option_too() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![Reply::text("over")]));
    for (entrypoint, name) in
        [(None, "--max-budget-usd"), (Some("sdk-py"), "`max_budget_usd`"), (Some("sdk-ts"), "`maxBudgetUsd`")]
    {
        let mut started = command(&sandbox, &server, Wire::Messages);
        started.args(["-p", "go", "--output-format", "stream-json", "--max-budget-usd", "0"]);
        if let Some(entrypoint) = entrypoint {
            started.env("QODER_ENTRYPOINT", entrypoint);
        }
        let finished = run(started);
        assert_eq!(finished.code, 42, "{}", finished.stderr);
        assert!(finished.stderr.contains(name), "{}", finished.stderr);
    }
}
