//! `qodercli plugins validate`: every mistake with file and line, and what would become active.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::plugins::support::{plugin, plugins, text};

#[test]
fn a_good_plugin_is_shown_and_a_bad_one_ends_with_42_and_every_place() {
    let sandbox = Sandbox::new();
    let agent = "---\nname: a\ndescription: d\n---\nDo it.\n";
    let good = plugin(&sandbox, "good", &[("agents/a.md", agent)]);
    assert!(plugins(&sandbox, &["validate", text(&good)]).ok().contains("good: agents: 1"));
    assert!(!sandbox.config().join("plugins").exists(), "looking changes nothing");
    let bad = plugin(
        &sandbox,
        "bad",
        &[
            (".qoder-plugin/plugin.json", "{\n\"name\": \"bad\",\n\"skills\": \"./absent\"}"),
            ("agents/a.md", "---\nname: a\n---\nDo it.\n"),
            (".mcp.json", "{\n\"mcpServers\": {\n\"x\": {\"command\": 1}}}"),
            ("commands/c.md", "---\ndescription: [\n---\nDo it.\n"),
            ("hooks/hooks.json", "{\n\"hooks\": {\n\"PreToolUse\": 3}}"),
        ],
    );
    let ran = plugins(&sandbox, &["validate", text(&bad)]);
    assert_eq!(ran.code, 42, "{ran:?}");
    for place in [
        ".qoder-plugin/plugin.json:3: ",
        "agents/a.md",
        ".mcp.json:3: ",
        "commands/c.md:",
        "hooks/hooks.json:3: ",
    ] {
        let place = bad.join(place);
        assert!(ran.stdout.contains(text(&place)), "{}: {}", place.display(), ran.stdout);
    }
    assert!(ran.stderr.contains("5 problems"), "{}", ran.stderr);
    let ran = plugins(&sandbox, &["validate", text(&bad), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, told["problems"].as_array().unwrap().len()), (42, 5), "{told}");
    assert_eq!(told["plugin"]["name"], json!("bad"));
    let broken = plugin(&sandbox, "broken", &[(".qoder-plugin/plugin.json", "{")]);
    let ran = plugins(&sandbox, &["validate", text(&broken)]);
    assert_eq!(ran.code, 42);
    assert!(ran.stdout.contains("plugin.json:1: is not valid JSON"), "{}", ran.stdout);
}

#[test]
fn control_characters_of_a_plugin_are_shown_and_not_obeyed() {
    let sandbox = Sandbox::new();
    let manifest = "{\"name\": \"demo\", \"a\\u001b[2J\": 1}";
    let files = [(".qoder-plugin/plugin.json", manifest), ("commands/b\u{1b}[2J.md", "---\nx")];
    let ran = plugins(&sandbox, &["validate", text(&plugin(&sandbox, "demo", &files))]);
    assert_eq!(ran.stdout.matches("\\u{1b}[2J").count(), 2, "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}
