//! Descriptions of servers: which kind they mean, what each field takes, variables of the environment, and what is shown.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use qoder_config::server_config::{ConfigError, expand_server, parse_server, read_server, unknown_fields};
use qoder_types::server::{ServerConfig, ToolPolicy, Transport};
use serde_json::{Value, json};

fn parse(value: &Value) -> ServerConfig {
    parse_server("kb", value).unwrap()
}

fn problem(value: &Value) -> String {
    parse_server("kb", value).unwrap_err().to_string()
}

fn environment() -> BTreeMap<String, String> {
    [("TOKEN", "s3cret"), ("EMPTY", ""), ("HOST", "a.example")]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .into()
}

#[test]
fn the_kind_is_told_by_the_type_or_by_what_is_there() {
    for (value, kind) in [
        (json!({ "command": "x" }), "stdio"),
        (json!({ "type": "stdio", "command": "x" }), "stdio"),
        (json!({ "url": "https://a.example" }), "http"),
        (json!({ "http_url": "https://a.example" }), "http"),
        (json!({ "httpUrl": "https://a.example" }), "http"),
        (json!({ "type": "http", "url": "https://a.example" }), "http"),
        (json!({ "type": "sse", "url": "https://a.example" }), "sse"),
        (json!({ "type": "sdk", "name": "x" }), "sdk"),
        (json!({ "type": null, "command": "x" }), "stdio"),
    ] {
        let config = parse(&value);
        assert_eq!(config.transport.kind(), kind, "{value}");
        assert_eq!(config.shown["type"], kind, "{value}");
    }
}

#[test]
fn every_field_is_read() {
    let config = parse(&json!({
        "command": "serve", "args": ["--fast", "x"], "env": { "A": "1" }, "cwd": "/srv", "timeout": 1500,
        "includeTools": ["a", "b"], "exclude_tools": ["b"], "alwaysAllow": ["a"], "disabled": true, "description": "d",
        "tools": [{ "name": "b", "permission_policy": "always_deny" }, { "name": "c", "permissionPolicy": "always_ask" }],
    }));
    let Transport::Stdio { command, args, env, cwd } = config.transport else { panic!("stdio") };
    assert_eq!((command.as_str(), args.len(), env["A"].as_str()), ("serve", 2, "1"));
    assert_eq!(cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(config.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(config.include_tools, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(config.exclude_tools, ["b"]);
    assert!(!config.enabled);
    let policies = [
        ("a".to_owned(), ToolPolicy::AlwaysAllow),
        ("b".to_owned(), ToolPolicy::AlwaysDeny),
        ("c".to_owned(), ToolPolicy::AlwaysAsk),
    ];
    assert_eq!(config.policies, policies);
    let remote = parse(&json!({
        "url": "https://a.example", "headers": { "X-Key": "v" }, "enabled": true,
        "oauth": { "clientId": "c", "clientSecret": "s", "scopes": "one two", "callbackPort": 4000 },
    }));
    assert!(remote.enabled);
    assert_eq!(remote.oauth.scopes, Some(vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!((remote.oauth.client_id.as_deref(), remote.oauth.callback_port), (Some("c"), Some(4000)));
}

#[test]
fn other_kinds_are_refused_by_name() {
    for kind in ["ws", "tcp", "streamable", "STDIO"] {
        let error =
            parse_server("kb", &json!({ "type": kind, "url": "ws://x", "command": "x" })).unwrap_err();
        assert_eq!(error, ConfigError::Kind { server: "kb".to_owned(), kind: kind.to_owned() });
        assert!(error.to_string().contains("accepted are stdio, sse, http and sdk"), "{error}");
    }
    assert!(problem(&json!({ "tcp": "localhost:1" })).contains("`tcp`"));
    let socket = read_server("kb", &json!({ "url": "wss://a.example" }), &BTreeMap::new()).unwrap_err();
    assert_eq!(socket.code(), "mcp_config_kind");
}

#[test]
fn a_wrong_value_is_named_with_server_and_field() {
    for (value, told) in [
        (json!([]), "MCP server `kb`: `mcpServers.kb` must be an object, not a list"),
        (json!({}), "MCP server `kb`: `command` is missing, and so is `url`"),
        (json!({ "type": 1 }), "MCP server `kb`: `type` must be a text, not a number"),
        (json!({ "type": "stdio" }), "MCP server `kb`: `command` is missing"),
        (json!({ "command": " " }), "MCP server `kb`: `command` is empty"),
        (json!({ "command": ["x"] }), "MCP server `kb`: `command` must be a text, not a list"),
        (
            json!({ "command": "x", "args": "y" }),
            "MCP server `kb`: `args` must be a list of texts, not a text",
        ),
        (
            json!({ "command": "x", "args": ["a", 1] }),
            "MCP server `kb`: `args[1]` must be a text, not a number",
        ),
        (
            json!({ "command": "x", "env": { "A": 1 } }),
            "MCP server `kb`: `env.A` must be a text, not a number",
        ),
        (
            json!({ "command": "x", "timeout": 0 }),
            "MCP server `kb`: `timeout` must be a whole number of milliseconds above 0",
        ),
        (
            json!({ "command": "x", "tools": [{ "name": "a", "permission_policy": "maybe" }] }),
            "MCP server `kb`: `tools[0].permission_policy` is `maybe`; accepted are always_allow, always_ask and always_deny",
        ),
        (
            json!({ "url": "x", "oauth": { "callbackPort": 70000 } }),
            "MCP server `kb`: `oauth.callbackPort` must be a port: 1 to 65535",
        ),
        (
            json!({ "command": "x", "url": "y" }),
            "MCP server `kb`: `type` is missing, and there are both a `command` and an address",
        ),
        (
            json!({ "command": "x", "enabled": "yes" }),
            "MCP server `kb`: `enabled` must be true or false, not a text",
        ),
    ] {
        assert_eq!(problem(&value), told);
    }
    assert_eq!(parse_server("a__b", &json!({ "command": "x" })).unwrap_err().code(), "mcp_config_name");
}

#[test]
fn variables_are_put_in_where_they_may_stand() {
    let config = read_server(
        "kb",
        &json!({
            "command": "${RUNNER:-npx}", "args": ["--host=${HOST}", "${EMPTY:-none}", "${EMPTY}", "$HOST ${not a name}"],
            "env": { "KEY": "${TOKEN}" },
        }),
        &environment(),
    )
    .unwrap();
    let Transport::Stdio { command, args, env, .. } = config.transport else { panic!("stdio") };
    assert_eq!(command, "npx");
    assert_eq!(args, ["--host=a.example", "none", "", "$HOST ${not a name}"]);
    assert_eq!(env["KEY"], "s3cret");
    let remote = json!({ "url": "https://${HOST}/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } });
    let remote = read_server("kb", &remote, &environment()).unwrap();
    let Transport::Http { url, headers } = remote.transport else { panic!("http") };
    assert_eq!((url.as_str(), headers["Authorization"].as_str()), ("https://a.example/mcp", "Bearer s3cret"));
}

#[test]
fn a_variable_that_is_not_set_fails_that_server_alone() {
    let value = json!({ "command": "x", "env": { "KEY": "${MISSING}" } });
    let error = read_server("kb", &value, &environment()).unwrap_err();
    assert_eq!(error.to_string(), "MCP server `kb`: `env.KEY` uses ${MISSING}, which is not set");
    assert_eq!(error.hint(), "set MISSING, or give a default: ${MISSING:-…}");
}

#[test]
fn addresses_and_headers_are_checked_after_the_variables() {
    for value in [
        json!({ "url": "ftp://a.example" }),
        json!({ "url": "not an address" }),
        json!({ "url": "https://a.example", "headers": { "bad name": "x" } }),
        json!({ "url": "https://a.example", "headers": { "X": "a\nb" } }),
    ] {
        let error = read_server("kb", &value, &environment()).unwrap_err();
        assert_eq!(error.code(), "mcp_config_field", "{error}");
    }
}

#[test]
fn what_is_shown_has_no_secrets() {
    let value = json!({
        "url": "https://me:pw@a.example/mcp?key=pw", "headers": { "Authorization": "Bearer pw" }, "mystery": "pw",
        "oauth": { "clientId": "c", "clientSecret": "pw" },
    });
    let shown = parse(&value).shown;
    assert_eq!(
        shown,
        json!({ "type": "http", "url": "https://***@a.example/mcp?key=***", "headers": { "Authorization": "***" },
            "oauth": { "clientId": "c", "clientSecret": "***" } })
    );
    let process = parse(&json!({ "command": "x", "args": ["${TOKEN}"], "env": { "KEY": "pw" } }));
    let process = expand_server(process, "kb", &environment()).unwrap();
    let shown = json!({ "type": "stdio", "command": "x", "args": ["${TOKEN}"], "env": { "KEY": "***" } });
    assert_eq!(process.shown, shown);
}

#[test]
fn fields_that_nobody_reads_are_told() {
    let told = unknown_fields(&json!({ "command": "x", "always-allow": [], "trust": true, "color": 1 }));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().any(|text| text.contains("did you mean `alwaysAllow`?")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("`trust` is not used")), "{told:?}");
    assert_eq!(unknown_fields(&json!({ "command": "x", "args": [] })), Vec::<String>::new());
}

#[test]
fn what_a_description_grants_is_shown() {
    let value = json!({ "command": "x", "sampling": true, "alwaysAllow": ["a"], "nonsense": 1 });
    let shown = json!({ "type": "stdio", "command": "x", "sampling": true, "alwaysAllow": ["a"] });
    assert_eq!(parse(&value).shown, shown);
}
