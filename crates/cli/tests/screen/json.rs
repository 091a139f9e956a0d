//! JSON on a terminal: escaped as JSON escapes, and equal to what was meant.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::screen::support::{assert_tame, hostile, shown, shown_with, trusted};

#[test]
fn json_is_tame_and_reads_back_equal() {
    let sandbox = Sandbox::new();
    let answer = format!("{} 世界 👩\u{200d}💻", hostile());
    let script = || ScriptedServer::start(Script::by_assistant_count(vec![Reply::text(&answer)]));
    for format in [&["json"][..], &["stream-json", "--include-partial-messages"]] {
        let arguments = [&["-p", "hello", "--output-format"], format].concat();
        let shown = shown_with(&sandbox, &script(), &arguments);
        assert_tame(&shown, &format!("{format:?}"));
        let result: Value = serde_json::from_str(shown.trim().lines().last().unwrap()).unwrap();
        assert_eq!(result["result"], json!(answer));
    }
}

#[test]
fn lists_as_json_are_tame_and_read_back_equal() {
    let hostile = hostile();
    let sandbox = trusted(&json!({}));
    let settings = json!({ "permissions": { "deny": [format!("Read({hostile})")] },
        "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": hostile }] }] } });
    sandbox.write(".qoder/settings.json", settings.to_string());
    for (arguments, holds) in [
        (&["config", "--json"][..], true),
        (&["permissions", "list", "--json"], true),
        (&["hooks", "list", "--json"], true),
        (&["agents", "list", "--json"], false),
        (&["mcp", "list", "--json"], false),
        (&["plugins", "list", "--json"], false),
        (&["sessions", "list", "--json"], false),
    ] {
        let shown = shown(&sandbox, arguments);
        assert_tame(&shown, &format!("{arguments:?}"));
        let begin = shown.find(['[', '{']).unwrap();
        let value: Value =
            serde_json::from_str(&shown[begin..]).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
        let text = serde_json::to_string(&hostile).unwrap();
        let inside = text.trim_matches('"');
        assert_eq!(value.to_string().contains(inside), holds, "{arguments:?}: {value}");
    }
}
