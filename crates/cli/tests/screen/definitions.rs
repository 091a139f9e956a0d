//! Files that define something: settings, rules, hooks, agents, skills, commands, plugins.

use serde_json::json;

use crate::screen::support::{BINARY, assert_escaped, hostile, hostile_yaml, shown, trusted};

#[test]
fn names_descriptions_and_commands_are_escaped_in_every_list() {
    let hostile = hostile();
    let sandbox = trusted(&json!({ "env": { "PLAIN": hostile }, hostile.clone(): hostile }));
    let settings = json!({
        "permissions": { "allow": [format!("Bash({hostile})")], "deny": [format!("Read({hostile})")] },
        "hooks": { "PreToolUse": [{ "matcher": hostile, "hooks": [
            { "type": "command", "command": format!("echo '{hostile}'\nforged: row") },
            { "type": "command", "command": format!("./{hostile}.sh") } ] }] },
    });
    sandbox.write(".qoder/settings.json", settings.to_string());
    sandbox.write(format!("{hostile}.sh"), "true\n");
    let head = format!("---\nname: reviewer\ndescription: {}\n---\nText.\n", hostile_yaml());
    sandbox.write(".qoder/agents/reviewer.md", &head);
    sandbox.write(format!(".qoder/agents/{hostile}.md"), "---\nname: [\n---\n");
    sandbox.write(".qoder/skills/one/SKILL.md", head.replace("reviewer", "one"));
    sandbox.write(format!(".qoder/skills/{hostile}/SKILL.md"), head.replace("reviewer", "two"));
    sandbox.write(".qoder/commands/three.md", &head);
    sandbox.write(format!(".qoder/commands/{hostile}.md"), &head);
    let lists: &[&[&str]] = &[
        &["config"],
        &["config", "env"],
        &["permissions", "list"],
        &["hooks", "list"],
        &["agents", "list"],
        &["skills", "list"],
        &["commands", "list"],
        &["trust"],
    ];
    for arguments in lists {
        assert_escaped(&shown(&sandbox, arguments), &format!("{arguments:?}"));
        let piped = sandbox.run(BINARY, arguments);
        assert_escaped(&String::from_utf8(piped.stdout).unwrap(), &format!("piped {arguments:?}"));
    }
}

#[test]
fn a_folder_with_a_hostile_name_is_escaped() {
    let sandbox = trusted(&json!({}));
    let folder = sandbox.project().join(hostile());
    std::fs::create_dir(&folder).unwrap();
    for arguments in [&["config"][..], &["permissions", "list"], &["trust"], &["-p", "hello", "--debug"]] {
        let mut command = sandbox.command(BINARY);
        command.current_dir(&folder).args(arguments);
        assert_escaped(&crate::screen::support::on_terminal(&command), &format!("{arguments:?}"));
    }
}

#[test]
fn what_a_plugin_says_of_itself_is_escaped_before_it_is_approved() {
    let hostile = hostile();
    let sandbox = trusted(&json!({}));
    let manifest = json!({ "name": "guest", "version": hostile, "description": hostile });
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": hostile, "hooks": [
        { "type": "command", "command": hostile }] }] } });
    sandbox.write("guest/.qoder-plugin/plugin.json", manifest.to_string());
    sandbox.write("guest/hooks/hooks.json", hooks.to_string());
    sandbox.write(
        "guest/.mcp.json",
        json!({ "mcpServers": { "one": { "command": hostile, "args": [hostile] } } }).to_string(),
    );
    sandbox.write(format!("guest/agents/{hostile}.md"), "---\nname: [\n---\n");
    for arguments in [
        &["plugins", "validate", "guest"][..],
        &["plugins", "install", "guest"],
        &["plugins", "list"],
        &["plugins", "approve", "guest"],
    ] {
        assert_escaped(&shown(&sandbox, arguments), &format!("{arguments:?}"));
    }
}

#[test]
fn settings_that_cannot_be_read_are_escaped() {
    let hostile = hostile();
    for text in [
        format!("{{ \"{hostile}\": }}"),
        json!({ "model": { hostile.clone(): 1 } }).to_string(),
        json!({ "permissions": { "deny": [hostile.clone()], "defaultMode": hostile } }).to_string(),
        json!({ "hooks": { hostile.clone(): [{ "hooks": [{ "type": hostile }] }] } }).to_string(),
    ] {
        let sandbox = trusted(&json!({}));
        sandbox.write(".qoder/settings.json", text);
        for arguments in [&["config"][..], &["hooks", "list"], &["-p", "hello"]] {
            crate::screen::support::assert_tame(&shown(&sandbox, arguments), &format!("{arguments:?}"));
        }
    }
}
