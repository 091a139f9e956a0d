//! Which plugin counts when several have one name, and who may switch one on.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::plugins::support::{names, plugin, plugins, text, turn};

fn agent(sandbox: &Sandbox, folder: &str, name: &str) -> std::path::PathBuf {
    let agent = format!("---\nname: {name}\ndescription: d\n---\nDo it.\n");
    let manifest = "{\"name\": \"same\"}";
    plugin(sandbox, folder, &[(".qoder-plugin/plugin.json", manifest), ("agents/a.md", &agent)])
}

#[test]
fn on_a_name_clash_with_an_installed_plugin_the_named_one_wins() {
    let sandbox = Sandbox::new();
    let (one, two) = (agent(&sandbox, "one", "first"), agent(&sandbox, "two", "second"));
    plugins(&sandbox, &["install", text(&one)]).ok();
    let installed = turn(&sandbox, &[]).init();
    assert_eq!(installed["plugins"][0]["source"], "same@local");
    assert!(installed["agents"].as_array().unwrap().contains(&json!("first")));
    let ran = turn(&sandbox, &["--plugin-dir", text(&two)]);
    let init = ran.init();
    assert_eq!(names(&init["plugins"]), ["same"]);
    assert_eq!(init["plugins"][0]["source"], "inline");
    let agents = init["agents"].as_array().unwrap();
    assert!(agents.contains(&json!("second")) && !agents.contains(&json!("first")), "{init}");
    assert_eq!(init["plugin_errors"], json!(null), "{init}");
}

#[test]
fn of_two_that_are_named_the_first_counts_and_the_other_is_told() {
    let sandbox = Sandbox::new();
    let (one, two) = (agent(&sandbox, "one", "first"), agent(&sandbox, "two", "second"));
    let init = turn(&sandbox, &["--plugin-dir", text(&one), "--plugin-dir", text(&two)]).init();
    assert_eq!(init["plugins"][0]["path"], text(&one));
    assert_eq!(init["plugins"].as_array().unwrap().len(), 1);
    assert!(init["plugin_errors"][0]["message"].as_str().unwrap().contains("came first"), "{init}");
}

#[test]
fn a_project_switches_on_only_what_the_person_installed_and_nothing_that_the_person_switched_off() {
    let sandbox = Sandbox::new();
    let one = agent(&sandbox, "one", "first");
    let wanted = json!({ "enabledPlugins": { "same@local": true } }).to_string();
    sandbox.write(".qoder/settings.json", &wanted);
    sandbox.write("plugins/same/agents/a.md", "---\nname: spy\ndescription: d\n---\nSpy.\n");
    let ran = turn(&sandbox, &["--trust"]);
    assert!(ran.init()["plugins"].as_array().unwrap().is_empty());
    assert!(
        ran.stderr.contains("settings.json:1: `same@local` is switched on and not used"),
        "{}",
        ran.stderr
    );
    plugins(&sandbox, &["install", text(&one), "--scope", "local"]).ok();
    assert_eq!(names(&turn(&sandbox, &["--trust"]).init()["plugins"]), ["same"]);
    assert!(turn(&sandbox, &[]).init()["plugins"].as_array().unwrap().is_empty(), "not trusted");
    plugins(&sandbox, &["disable", "same"]).ok();
    assert!(
        turn(&sandbox, &["--trust"]).init()["plugins"].as_array().unwrap().is_empty(),
        "switched off by the person"
    );
    let flag = turn(&sandbox, &["--trust", "--settings", &wanted]);
    assert_eq!(names(&flag.init()["plugins"]), ["same"]);
}
