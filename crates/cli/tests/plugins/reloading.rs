//! `list_plugins` and `reload_plugins`: what is there, and reading everything anew while a session runs.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::plugins::host::{Host, named, say};
use crate::plugins::support::{names, plugin, plugins, server_files, text};

fn list(host: &mut Host) -> Value {
    host.request(&json!({ "subtype": "list_plugins" })).unwrap()["plugins"].clone()
}

fn reload(host: &mut Host) -> Value {
    host.request(&json!({ "subtype": "reload_plugins" })).unwrap()
}

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n")
}

#[test]
fn list_plugins_says_what_each_brings() {
    let sandbox = Sandbox::new();
    let [(path, description), (program, code)] = server_files();
    let manifest = "{\"name\": \"demo\", \"version\": \"1.2.0\", \"description\": \"Shows.\"}";
    let folder = plugin(
        &sandbox,
        "demo",
        &[
            (".qoder-plugin/plugin.json", manifest),
            (path, &description),
            (program, &code),
            ("agents/a.md", &agent("a")),
        ],
    );
    let flags = ["--plugin-dir", text(&folder)];
    let mut host = Host::start(&sandbox, &json!([say("done")]), &flags);
    let greeting = host.initialize(named(json!({})));
    assert_eq!(names(&greeting["plugins"]), ["demo"]);
    let row = &list(&mut host)[0];
    assert_eq!(row["path"], text(&folder));
    assert_eq!((&row["source"], &row["version"]), (&json!("inline"), &json!("1.2.0")));
    assert_eq!(row["description"], "Shows.");
    assert_eq!((&row["parts"]["agents"], &row["parts"]["mcpServers"]), (&json!(1), &json!(1)));
    assert_eq!(row["errors"], json!([]));
}

#[test]
fn reload_plugins_reads_everything_anew_and_the_next_turn_sees_it() {
    let sandbox = Sandbox::new();
    let folder = plugin(&sandbox, "demo", &[("agents/a.md", &agent("first"))]);
    let absent = sandbox.home().join("sources/late");
    let flags = ["--plugin-dir", text(&folder), "--plugin-dir", text(&absent)];
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &flags, named(json!({})));
    host.prompt("one");
    let init = host.until(|line| line["subtype"] == "init");
    assert!(init["agents"].as_array().unwrap().contains(&json!("first")), "{init}");
    assert_eq!(init["plugin_errors"].as_array().unwrap().len(), 1);
    host.result();
    let [(path, description), (program, code)] = server_files();
    sandbox.write(folder.join("agents/a.md"), agent("second"));
    sandbox.write(folder.join("agents/b.md"), "---\nname: b\n---\n");
    plugin(&sandbox, "late", &[(path, &description), (program, &code)]);
    let told = reload(&mut host);
    assert_eq!(told["error_count"], 1, "{told}");
    assert_eq!(names(&told["plugins"]), ["demo", "late"]);
    assert!(told["plugins"][0]["errors"][0].as_str().unwrap().contains("agents/b.md"), "{told}");
    let agents = names(&told["agents"]);
    assert!(agents.contains(&"second") && !agents.contains(&"first"), "{agents:?}");
    assert_eq!(told["mcpServers"][0]["name"], "plugin_late_where");
    assert_eq!(told["mcpServers"][0]["status"], "connected", "{told}");
    assert!(told["commands"].is_array());
    host.prompt("two");
    let init = host.until(|line| line["subtype"] == "init");
    assert!(init["agents"].as_array().unwrap().contains(&json!("second")), "{init}");
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__plugin_late_where__where")), "{init}");
    host.result();
    std::fs::remove_dir_all(&absent).unwrap();
    assert_eq!(reload(&mut host)["mcpServers"], json!([]));
    let tools: Vec<String> = sandbox
        .transcript_lines()
        .iter()
        .map(Value::to_string)
        .filter(|line| line.contains("Does second."))
        .collect();
    assert!(!tools.is_empty(), "the model was told of the agent");
}

#[test]
fn a_plugin_that_was_installed_meanwhile_comes_with_a_reload() {
    let sandbox = Sandbox::new();
    let folder = plugin(&sandbox, "demo", &[("agents/a.md", &agent("first"))]);
    let mut host = Host::connect(&sandbox, &json!([say("done")]), &[], named(json!({})));
    assert_eq!(list(&mut host), json!([]));
    plugins(&sandbox, &["install", text(&folder)]).ok();
    let told = reload(&mut host);
    assert_eq!(told["plugins"][0]["source"], "demo@local");
    plugins(&sandbox, &["disable", "demo"]).ok();
    assert_eq!(reload(&mut host)["plugins"], json!([]));
}

#[test]
fn settings_that_cannot_be_read_leave_everything_as_it_was() {
    let sandbox = Sandbox::new();
    let folder = plugin(&sandbox, "demo", &[("agents/a.md", &agent("first"))]);
    let mut host =
        Host::connect(&sandbox, &json!([say("done")]), &["--plugin-dir", text(&folder)], named(json!({})));
    sandbox.write(sandbox.config().join("settings.json"), "{");
    let problem = host.request(&json!({ "subtype": "reload_plugins" })).unwrap_err();
    assert!(problem.contains("settings.json:1"), "{problem}");
    assert_eq!(names(&list(&mut host)), ["demo"]);
}
