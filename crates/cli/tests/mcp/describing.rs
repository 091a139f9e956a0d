//! `qodercli mcp add`, `add-json`, `get` and `remove`: what they write, what they keep, and what they refuse.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::mcp::support::{everything, mcp, trusted};

fn local(sandbox: &Sandbox) -> Value {
    let text = std::fs::read_to_string(sandbox.project().join(".qoder/settings.local.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_program_is_described_in_the_local_settings() {
    let sandbox = trusted(&json!({}));
    let said =
        mcp(&sandbox, &["add", "git", "-e", "A=${B}=c", "--", "uvx", "mcp-server-git", "--repository", "."])
            .ok();
    assert!(said.starts_with("added the stdio server git to "), "{said}");
    let expected = json!({ "command": "uvx", "args": ["mcp-server-git", "--repository", "."], "env": { "A": "${B}=c" } });
    assert_eq!(local(&sandbox)["mcpServers"]["git"], expected);
    let shown = mcp(&sandbox, &["get", "git", "--json"]).json();
    assert_eq!(shown["scope"], "local");
    assert_eq!(shown["approved"], true, "the user who adds a server has approved it");
    assert_eq!(shown["config"]["env"], json!({ "A": "***" }));
    assert!(shown["at"].as_str().unwrap().contains("settings.local.json:"), "{shown}");
}

#[test]
fn an_address_is_described_with_headers() {
    let sandbox = trusted(&json!({}));
    let arguments =
        ["add", "-s", "user", "docs", "https://a.example/mcp", "-H", "Authorization: Bearer ${T:-x}"];
    mcp(
        &sandbox,
        &[&arguments[..], &["--timeout", "9000", "--client-id", "me", "--callback-port", "4711"]].concat(),
    )
    .ok();
    let settings = std::fs::read_to_string(sandbox.config().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let expected = json!({ "type": "http", "url": "https://a.example/mcp", "timeout": 9000,
        "headers": { "Authorization": "Bearer ${T:-x}" }, "oauth": { "clientId": "me", "callbackPort": 4711 } });
    assert_eq!(settings["mcpServers"]["docs"], expected);
    mcp(&sandbox, &["add", "-s", "project", "-t", "sse", "old", "http://127.0.0.1:9/sse"]).ok();
    let file = std::fs::read_to_string(sandbox.project().join(".mcp.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["mcpServers"]["old"], json!({ "type": "sse", "url": "http://127.0.0.1:9/sse" }));
    let left: Vec<_> =
        std::fs::read_dir(sandbox.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".mcp.json"], "no lock and no temporary file stays in the project");
}

#[test]
fn comments_and_order_of_a_file_stay() {
    let sandbox = trusted(&json!({}));
    let before =
        "{\n  // ours\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" } // keep\n  },\n  \"z\": 1\n}\n";
    sandbox.write(".mcp.json", before);
    mcp(&sandbox, &["add-json", "-s", "project", "b", r#"{"command": "y"}"#]).ok();
    let text = std::fs::read_to_string(sandbox.project().join(".mcp.json")).unwrap();
    assert!(text.contains("// ours") && text.contains("// keep"), "{text}");
    assert!(text.find("\"a\"") < text.find("\"b\"") && text.find("\"b\"") < text.find("\"z\""), "{text}");
    mcp(&sandbox, &["remove", "b"]).ok();
    let text = std::fs::read_to_string(sandbox.project().join(".mcp.json")).unwrap();
    assert!(text.contains("// ours") && !text.contains("\"b\""), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let sandbox = trusted(&json!({}));
    for (arguments, told) in [
        (&["add", "a__b", "--", "x"][..], "has `__`"),
        (&["add", "a b", "--", "x"], "has the character ' '"),
        (&["add", "-H", "A: b", "a", "x"], "--header is for remote servers"),
        (&["add", "-e", "A=b", "a", "https://x.example"], "--env is for programs"),
        (&["add", "-e", "A", "a", "x"], "--env: `A` has no value"),
        (&["add", "a", "https://x.example", "more"], "an address has no arguments"),
        (&["add", "-t", "http", "a", "ftp://x"], "must begin with http:// or https://"),
        (&["add", "-t", "ws", "a", "ws://x"], "invalid value 'ws'"),
        (&["add-json", "a", "{"], "is not JSON"),
        (
            &["add-json", "a", r#"{"type": "ws", "url": "x"}"#],
            "`ws` is not supported; accepted are stdio, sse, http and sdk",
        ),
        (&["add-json", "a", r#"{"type": "sdk"}"#], "no file can describe one"),
        (&["add-json", "a", r#"{"command": "x", "args": "y"}"#], "`args` must be a list of texts"),
        (&["remove", "a"], "there is no MCP server named `a`"),
        (&["get", "a"], "there is no MCP server named `a`"),
    ] {
        let ran = mcp(&sandbox, arguments);
        assert_eq!(ran.code, 42, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!sandbox.project().join(".qoder").exists() && !sandbox.project().join(".mcp.json").exists());
}

#[test]
fn a_server_is_not_described_twice_by_accident() {
    let sandbox = trusted(&json!({}));
    mcp(&sandbox, &["add", "a", "--", "x"]).ok();
    mcp(&sandbox, &["add", "a", "--", "x"]).ok();
    let again = mcp(&sandbox, &["add", "a", "--", "y"]);
    assert_eq!(again.code, 42);
    assert!(again.stderr.contains("qodercli mcp remove a -s local"), "{}", again.stderr);
    mcp(&sandbox, &["add", "-s", "user", "a", "--", "y"]).ok();
    let which = mcp(&sandbox, &["remove", "a"]);
    assert!(which.code == 42 && which.stderr.contains("--scope"), "{}", which.stderr);
    mcp(&sandbox, &["remove", "-s", "local", "a"]).ok();
    assert_eq!(mcp(&sandbox, &["get", "a", "--json"]).json()["config"]["command"], "y");
}

#[test]
fn a_broken_file_is_named_and_not_touched() {
    let sandbox = trusted(&json!({}));
    sandbox.write(".mcp.json", "{\n  \"mcpServers\": {,\n}\n");
    let ran = mcp(&sandbox, &["add", "-s", "project", "a", "--", "x"]);
    assert_eq!(ran.code, 42, "{}", ran.stderr);
    assert!(ran.stderr.contains(".mcp.json:2:"), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(sandbox.project().join(".mcp.json")).unwrap(),
        "{\n  \"mcpServers\": {,\n}\n"
    );
}

#[test]
fn help_has_examples() {
    let help = mcp(&Sandbox::new(), &["--help"]).ok();
    for text in ["qodercli mcp add git -- uvx", "approve", "auth", "logout", "status", "Scopes:"] {
        assert!(help.contains(text), "{help}");
    }
    assert!(mcp(&Sandbox::new(), &["add", "--help"]).ok().contains("NAME=VALUE"));
}

#[test]
fn signing_in_is_for_remote_servers() {
    let sandbox = trusted(&json!({ "mcpServers": {
        "git": { "command": "x" }, "docs": { "url": "http://127.0.0.1:9/mcp" }, "bad": { "type": "ws", "url": "ws://x" } } }));
    for (arguments, code, told) in [
        (["auth", "git"], 42, "a program on this machine"),
        (["auth", "bad"], 42, "`ws` is not supported"),
        (["auth", "none"], 42, "known are: bad, docs, git"),
        (["auth", "docs"], 41, "authorization failed"),
    ] {
        let ran = mcp(&sandbox, &[&arguments[..], &["--no-browser"]].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(mcp(&sandbox, &["logout", "docs"]).ok(), "signed out of docs\n");
}

#[test]
fn read_only_destructive_and_open_world_are_badges_in_the_details_of_a_tool() {
    let sandbox = trusted(&json!({ "mcpServers": { "all": everything() } }));
    let shown = mcp(&sandbox, &["status"]).ok();
    assert!(shown.contains("  tool    echo [read-only]  "), "{shown}");
    assert!(shown.contains("  tool    gzip-file-as-resource [open-world]  "), "{shown}");
    assert!(
        shown.contains("  tool    toggle-simulated-logging  "),
        "what is not claimed is not shown: {shown}"
    );
}

#[test]
fn adding_to_a_folder_that_is_not_trusted_says_so_and_how_to_proceed() {
    let sandbox = Sandbox::new();
    let added = mcp(&sandbox, &["add", "git", "--", "no-such-program"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    for text in ["this folder is not trusted", "do not use git yet", "`qodercli trust`", "-s user"] {
        assert!(added.stderr.contains(text), "{text}: {}", added.stderr);
    }
    let listed = mcp(&sandbox, &["list"]);
    for text in ["no MCP servers", ".qoder/settings.local.json", "not trusted", "`qodercli trust`"] {
        assert!(listed.stdout.contains(text), "{text}: {}", listed.stdout);
    }
    let added = mcp(&sandbox, &["add", "-s", "user", "everywhere", "--", "no-such-program"]);
    assert!(!added.stderr.contains("do not use everywhere yet"), "{}", added.stderr);
}

#[test]
fn an_empty_list_says_where_servers_would_be() {
    let sandbox = Sandbox::new();
    let listed = mcp(&sandbox, &["list"]);
    for text in ["no MCP servers", "settings.json", ".mcp.json", "`qodercli mcp add NAME -- COMMAND`"] {
        assert!(listed.stdout.contains(text), "{text}: {}", listed.stdout);
    }
    assert_eq!(mcp(&sandbox, &["list", "--json"]).stdout.trim(), "[]");
}
