//! Values of settings: one of the wrong kind is reported with its place and what is accepted, and a project's files can make
//! limits tighter but not wider.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{run, run_with, server};

fn user_file(sandbox: &Sandbox, text: impl AsRef<[u8]>) -> String {
    sandbox.write(sandbox.config().join("settings.json"), text).display().to_string()
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_place() {
    let sandbox = Sandbox::new();
    let cases = [
        ("security", "disableYoloMode", "\"true\"", "true or false"),
        ("general", "retryFetchErrors", "1", "true or false"),
        ("general", "maxAttempts", "\"3\"", "a whole number"),
        ("model", "contextWindow", "0.5", "a whole number"),
        ("tools", "shell", "[]", "an object"),
        ("model", "name", "[\"a\"]", "a text"),
        ("model", "reasoningEffort", "\"extreme\"", "disabled, off, none, low, medium, high, xhigh, max"),
        ("general", "durability", "\"maybe\"", "process, power"),
        ("permissions", "additionalDirectories", "\"x\"", "a list of texts"),
        ("tools", "exclude", "[null]", "a list of texts"),
    ];
    for (group, key, value, accepted) in cases {
        let file = user_file(&sandbox, format!("{{\n  \"{group}\": {{\n    \"{key}\": {value}\n  }}\n}}"));
        let said = format!("error: {file}:3: `{group}.{key}` is ");
        for arguments in [&["-p", "hello"][..], &["config"]] {
            let refused = run(&sandbox, arguments).exits(52);
            assert_eq!(refused.stdout, "");
            refused.says(&[&said, &format!("; accepted is {accepted}"), "hint: "]);
        }
    }
    let file = user_file(&sandbox, "{\"model\":\n3}");
    run(&sandbox, &["-p", "hello"])
        .exits(52)
        .says(&[&format!("{file}:2: `model` is 3; accepted is an object")]);
    let flag = ["-p", "hello", "--setting-sources", "", "--settings", "{\"language\": 1}"];
    run(&sandbox, &flag).exits(52).says(&["error: --settings:1: `language` is 1; accepted is a text"]);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_misspelt_group_is_warned_about_with_its_neighbour() {
    let sandbox = Sandbox::new();
    let file = user_file(&sandbox, "{\"modle\": {\"name\": \"x\"}}");
    let warned = run(&sandbox, &["-p", "hello"]).exits(0);
    warned.says(&[&format!("warning: {file}:1: unknown setting `modle`; did you mean `model`?")]);
}

#[test]
fn no_effort_means_no_thinking() {
    let sandbox = Sandbox::new();
    let request = |settings: Value, more: &[&str]| {
        let server = server(vec![Reply::text("ok")]);
        user_file(&sandbox, settings.to_string());
        run_with(&sandbox, &server, &[&["-p", "hello"], more].concat()).exits(0);
        let request = server.requests()[0].json();
        (request["thinking"]["type"].clone(), request["output_config"]["effort"].clone())
    };
    for word in ["disabled", "off", "none"] {
        let settings = json!({"model": {"reasoningEffort": word}});
        assert_eq!(request(settings.clone(), &[]), (json!("disabled"), Value::Null));
        assert_eq!(request(settings.clone(), &["--effort", "low"]), (Value::Null, json!("low")));
        assert_eq!(request(settings, &["--thinking", "adaptive"]), (json!("adaptive"), Value::Null));
    }
    let high = json!({"model": {"reasoningEffort": "high"}});
    assert_eq!(request(high, &[]), (Value::Null, json!("high")));
}

/// The effective value of a key in the trusted project, and what was warned about.
fn effective(sandbox: &Sandbox, key: &str) -> (Value, String) {
    let shown = run(sandbox, &["config", key, "--json", "--trust"]).exits(0);
    (shown.json()[0]["value"].clone(), shown.stderr)
}

#[test]
fn a_project_adds_only_directories_of_its_own() {
    let sandbox = Sandbox::new();
    let outside = sandbox.write(sandbox.home().join("outside/file.txt"), "x\n");
    let outside = outside.parent().unwrap();
    std::os::unix::fs::symlink(outside, sandbox.project().join("link")).unwrap();
    sandbox.write("inside/file.txt", "x\n");
    let key = "permissions.additionalDirectories";
    let wanted = json!([outside, "../home", "link", "~/outside", "/", "inside"]);
    let layer = |wanted: &Value| json!({"permissions": {"additionalDirectories": wanted}}).to_string();
    for name in ["settings.json", "settings.local.json"] {
        let file = sandbox.write(format!(".qoder/{name}"), layer(&wanted));
        let (value, warnings) = effective(&sandbox, key);
        assert_eq!(value, json!([sandbox.project().join("inside")]));
        assert_eq!(warnings.matches("a project cannot add the directory").count(), 5, "{warnings}");
        std::fs::remove_file(file).unwrap();
    }
    user_file(&sandbox, layer(&json!([outside])));
    let (value, warnings) = effective(&sandbox, key);
    assert_eq!((value, warnings.as_str()), (json!([outside]), ""));
}

#[test]
fn a_project_gives_commands_less_time_but_not_more() {
    let sandbox = Sandbox::new();
    let shell = |time: u64, silence: u64| {
        json!({"tools": {"shell": {"timeoutMs": time, "inactivityTimeout": silence}}}).to_string()
    };
    let times = || {
        let (time, warnings) = effective(&sandbox, "tools.shell.timeoutMs");
        (time, effective(&sandbox, "tools.shell.inactivityTimeout").0, warnings)
    };
    let file = sandbox.write(".qoder/settings.json", shell(5_000, 7)).display().to_string();
    assert_eq!(times(), (json!(5_000), json!(7), String::new()));
    sandbox.write(&file, shell(600_000, 0));
    let (time, silence, warnings) = times();
    assert_eq!((time, silence), (json!(120_000), json!(300)));
    for key in ["tools.shell.timeoutMs", "tools.shell.inactivityTimeout"] {
        let said = format!("warning: {file}:1: a project can only shorten `{key}`; it is ignored");
        assert!(warnings.contains(&said), "{warnings}");
    }
    user_file(&sandbox, shell(600_000, 0));
    assert_eq!(times(), (json!(600_000), json!(0), String::new()), "a person may");
}
