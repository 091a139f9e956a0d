//! Installing, listing, switching and removing.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::plugins::support::{names, plugin, plugins, text, turn};

const HOOKS: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
    {"type": "command", "command": "${QODER_PLUGIN_ROOT}/bin/check --all"}]}]}}"#;
const SERVERS: &str =
    r#"{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "."]}}}"#;

fn full(sandbox: &Sandbox) -> std::path::PathBuf {
    plugin(
        sandbox,
        "demo",
        &[
            ("hooks/hooks.json", HOOKS),
            (".mcp.json", SERVERS),
            ("agents/a.md", "---\nname: a\ndescription: d\n---\nDo it.\n"),
            ("output-styles/x.md", "x"),
        ],
    )
}

fn settings(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn installing_copies_the_folder_and_shows_hooks_and_servers_in_full() {
    let sandbox = Sandbox::new();
    let folder = full(&sandbox);
    let shown = plugins(&sandbox, &["install", text(&folder)]).ok();
    for words in [
        "${QODER_PLUGIN_ROOT}/bin/check --all",
        "hook PreToolUse on Bash",
        "MCP server plugin_demo_git",
        "uvx",
        "[\"mcp-server-git\",\"--repository\",\".\"]",
        "output styles are not supported",
        "installed demo@local in",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(
        settings(&sandbox.config().join("settings.json")),
        json!({ "enabledPlugins": { "demo@local": true } })
    );
    let copy = sandbox.config().join("plugins/local/demo");
    assert!(copy.join("agents/a.md").is_file());
    std::fs::remove_dir_all(&folder).unwrap();
    let row = &plugins(&sandbox, &["list", "--json"]).json()[0];
    assert_eq!(
        (&row["id"], &row["enabled"], &row["approved"]),
        (&json!("demo@local"), &json!(true), &json!(true))
    );
    assert_eq!(row["path"], text(&copy));
    assert_eq!(
        (&row["parts"]["hooks"], &row["parts"]["mcpServers"], &row["parts"]["agents"]),
        (&json!(1), &json!(1), &json!(1))
    );
}

#[test]
fn enable_and_disable_work_per_scope() {
    let sandbox = Sandbox::new();
    plugins(&sandbox, &["install", text(&full(&sandbox)), "--scope", "project"]).ok();
    let project = sandbox.project().join(".qoder/settings.json");
    assert_eq!(settings(&project), json!({ "enabledPlugins": { "demo@local": true } }));
    assert_eq!(names(&turn(&sandbox, &["--trust"]).init()["plugins"]), ["demo"]);
    let told = plugins(&sandbox, &["disable", "demo@local", "--scope", "local"]);
    assert!(told.stderr.contains("not trusted"), "{}", told.stderr);
    assert!(turn(&sandbox, &["--trust"]).init()["plugins"].as_array().unwrap().is_empty());
    plugins(&sandbox, &["enable", "demo", "--scope", "local"]).ok();
    assert_eq!(names(&turn(&sandbox, &["--trust"]).init()["plugins"]), ["demo"]);
    assert!(plugins(&sandbox, &["list", "--trust"]).ok().starts_with("on   demo"));
    assert!(plugins(&sandbox, &["list"]).ok().starts_with("off  demo"));
}

#[test]
fn uninstalling_removes_the_copy_and_the_switch_and_keeps_the_data() {
    let sandbox = Sandbox::new();
    plugins(&sandbox, &["install", text(&full(&sandbox))]).ok();
    turn(&sandbox, &[]);
    let data = sandbox.config().join("plugins/data/demo");
    assert!(data.is_dir(), "a session with its servers made it");
    let told = plugins(&sandbox, &["uninstall", "demo@local"]).ok();
    assert!(told.contains("its data stays"), "{told}");
    assert!(!sandbox.config().join("plugins/local/demo").exists() && data.is_dir());
    assert_eq!(settings(&sandbox.config().join("settings.json")), json!({ "enabledPlugins": {} }));
    let ran = turn(&sandbox, &[]);
    assert!(ran.init()["plugins"].as_array().unwrap().is_empty());
    assert!(!ran.stderr.contains("demo"), "{}", ran.stderr);
    let again = plugins(&sandbox, &["uninstall", "demo"]);
    assert_eq!(again.code, 42, "{again:?}");
    assert!(plugins(&sandbox, &["list"]).ok().contains("no plugins are installed"));
}

#[test]
fn what_is_no_plugin_is_not_installed() {
    let sandbox = Sandbox::new();
    let empty = plugin(&sandbox, "empty", &[("README.md", "x")]);
    let link = plugin(&sandbox, "link", &[("commands/a.md", "x")]);
    std::os::unix::fs::symlink("/etc/hostname", link.join("commands/b.md")).unwrap();
    let spaced = plugin(&sandbox, "a b", &[("commands/a.md", "x")]);
    let absent = sandbox.home().join("absent");
    for (folder, words) in [
        (&empty, "has no part of a plugin"),
        (&link, "it leads out of the plugin"),
        (&spaced, "cannot be the name of a plugin"),
        (&absent, "there is no such folder"),
    ] {
        let ran = plugins(&sandbox, &["install", text(folder)]);
        assert_eq!(ran.code, 42, "{ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let left = std::fs::read_dir(sandbox.config().join("plugins")).unwrap().count();
    assert_eq!(left, 0, "nothing is left of what was not installed");
    assert!(!sandbox.config().join("settings.json").exists());
}

#[test]
fn what_is_wrong_is_named_in_the_folder_that_was_given() {
    let sandbox = Sandbox::new();
    let folder = plugin(&sandbox, "demo", &[("commands/open.md", "---\nx"), ("commands/fine.md", "x")]);
    let ran = plugins(&sandbox, &["install", text(&folder)]);
    let told = format!("warning: {}/commands/open.md:1: its head begins", folder.display());
    assert!(ran.stderr.contains(&told), "{told}\n{}", ran.stderr);
    assert!(!ran.stderr.contains(".staging"), "{}", ran.stderr);
}
