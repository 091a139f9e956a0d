//! `qodercli config`: what is in force, from which file and line, without showing keys.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::sessions::support::run;

fn sandbox() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let text =
        "{\n  // mine\n  \"language\": \"German\",\n  \"model\": {\n    \"name\": \"offline\"\n  }\n}\n";
    let file = sandbox.write(sandbox.config().join("settings.json"), text).display().to_string();
    (sandbox, file)
}

#[test]
fn values_come_with_file_and_line() {
    let (sandbox, file) = sandbox();
    let shown = run(&sandbox, &["config"]).exits(0);
    for line in [
        format!(
            "folder: {} (not trusted: its settings, AGENTS.md and rules are not used)",
            sandbox.project().display()
        ),
        format!("config: {}", sandbox.config().display()),
        format!("language = \"German\"  [{file}:3]"),
        format!("model.name = \"offline\"  [{file}:5]"),
        "general.maxAttempts = 10  [default]".to_owned(),
        "permissions.allow = []  [default]".to_owned(),
    ] {
        assert!(shown.stdout.lines().any(|found| found == line), "`{line}` is not in {}", shown.stdout);
    }
    assert_eq!(shown.stderr, "");
    let flagged = run(&sandbox, &["config", "language", "--settings", "{\"language\": \"Latin\"}"]).exits(0);
    assert_eq!(flagged.stdout, "language = \"Latin\"  [--settings:1]\n");
}

#[test]
fn one_key_or_a_group_can_be_asked_for() {
    let (sandbox, file) = sandbox();
    let one = run(&sandbox, &["config", "model.name"]).exits(0);
    assert_eq!(one.stdout, format!("model.name = \"offline\"  [{file}:5]\n"));
    let group = run(&sandbox, &["config", "model"]).exits(0).stdout;
    assert!(group.lines().count() >= 2 && group.lines().all(|line| line.starts_with("model.")), "{group}");
    run(&sandbox, &["config", "no.such"]).exits(42).says(&["no setting `no.such` is known or set", "hint: "]);
}

#[test]
fn keys_that_have_no_effect_are_marked() {
    let (sandbox, _) = sandbox();
    let shown = run(&sandbox, &["config"]).exits(0).stdout;
    let line = |key: &str| shown.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    assert!(line("general.enableAutoUpdate").ends_with("(no effect yet)"), "{shown}");
    assert!(!line("general.durability").contains("no effect"), "{shown}");
    let settings = r#"{"ui": {"theme": "ANSI", "autoThemeSwitching": false}, "outputStyle": "short"}"#;
    let rows = run(&sandbox, &["config", "--json", "--settings", settings]).exits(0).json();
    let row = |key: &str| rows.as_array().unwrap().iter().find(|row| row["key"] == key).cloned().unwrap();
    assert_eq!(
        (&row("ui.autoThemeSwitching")["hasEffect"], &row("outputStyle")["hasEffect"]),
        (&json!(false), &json!(false))
    );
    assert_eq!((&row("language")["hasEffect"], &row("ui.theme")["hasEffect"]), (&Value::Null, &Value::Null));
}

#[test]
fn json_has_key_value_and_origin() {
    let (sandbox, file) = sandbox();
    let rows = run(&sandbox, &["config", "--json"]).exits(0).json();
    let row = |key: &str| rows.as_array().unwrap().iter().find(|row| row["key"] == key).cloned().unwrap();
    assert_eq!(row("language"), json!({"key": "language", "value": "German", "origin": format!("{file}:3")}));
    let default = json!({"key": "general.durability", "value": "process", "origin": "default"});
    assert_eq!(row("general.durability"), default);
    let keys: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["key"]).collect();
    let mut sorted = keys.clone();
    sorted.sort_by_key(ToString::to_string);
    assert_eq!(keys, sorted);
}

#[test]
fn keys_are_masked() {
    let sandbox = Sandbox::new();
    let settings = json!({"providers": {"mine": {"protocol": "anthropic", "baseUrl": "https://example.org",
        "apiKey": "secret-one", "headers": {"Authorization": "Bearer secret-two", "x-api-key": "secret-three",
        "x-team": "plain"}}, "other": {"protocol": "openai", "baseUrl": "https://example.org", "apiKeyEnv": "MY_KEY"}}});
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    for arguments in [&["config"][..], &["config", "--json"], &["config", "providers"]] {
        let shown = run(&sandbox, arguments).exits(0);
        for secret in ["secret-one", "secret-two", "secret-three"] {
            assert!(!shown.stdout.contains(secret), "{secret}: {}", shown.stdout);
        }
        assert!(shown.stdout.contains("MY_KEY"), "the name of a variable is no secret");
        assert!(shown.stdout.contains("plain") && shown.stdout.contains("***"), "{}", shown.stdout);
    }
}

#[test]
fn the_trusted_project_counts() {
    let (sandbox, _) = sandbox();
    let file = sandbox.write(".qoder/settings.json", "{\"language\": \"Latin\"}").display().to_string();
    let shown = run(&sandbox, &["config", "language"]).exits(0);
    assert!(shown.stdout.contains("German"));
    let shown = run(&sandbox, &["config", "language", "--trust"]).exits(0);
    assert_eq!(shown.stdout, format!("language = \"Latin\"  [{file}:1]\n"));
    assert!(run(&sandbox, &["config", "--trust"]).exits(0).stdout.contains("(trusted for this run)"));
    run(&sandbox, &["trust"]).exits(0);
    assert!(run(&sandbox, &["config"]).exits(0).stdout.contains("(trusted)\n"));
}
