//! What a plugin in the workspace runs is protected as our own hooks are: no mode that accepts edits covers it.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::plugins::host::{Host, call, named, say};

#[test]
fn the_manifest_and_the_hooks_of_a_plugin_are_protected_files() {
    for file in ["my-plugin/hooks/hooks.json", "my-plugin/.qoder-plugin/plugin.json", "my-plugin/.mcp.json"] {
        let sandbox = Sandbox::new();
        let replies = json!([call(1, "Write", &json!({ "file_path": file, "content": "{}" })), say("done")]);
        let flags = ["--permission-mode", "acceptEdits", "--trust"];
        let mut host = Host::connect(&sandbox, &replies, &flags, named(json!({})));
        host.prompt("write it");
        let result = host.result();
        assert_eq!(result["permission_denials"][0]["tool_name"], "Write", "{file}: {result}");
        assert!(!sandbox.project().join(file).exists(), "{file}");
    }
}
