//! Where servers come from in print mode: settings, the project, the command line; which one wins, what the flags leave
//! out, and that one wrong description harms no other.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::mcp::support::{bodies, mcp, model, offered, results_in, time, trusted, turn};

/// Name and status of every server at the start of a turn.
fn servers(arguments: &[&str], settings: &Value, project: Option<&str>) -> Vec<(String, String)> {
    let sandbox = trusted(settings);
    if let Some(text) = project {
        sandbox.write(".mcp.json", text);
    }
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &[&["go"], arguments].concat());
    let init = ran.init();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = init["mcp_servers"].as_array().unwrap().iter();
    rows.map(|row| (text(&row["name"]), text(&row["status"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn a_tool_of_a_described_server_is_offered_and_called_in_print_mode() {
    let sandbox = trusted(&json!({ "mcpServers": { "clock": time() } }));
    let call = Reply::tool("mcp__clock__get_current_time", json!({ "timezone": "UTC" }));
    let server = model(vec![call, Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["go", "--allowed-tools", "mcp__clock"]);
    assert_eq!(ran.result()["result"], "done", "{}", ran.stderr);
    let sent = bodies(&server);
    assert!(offered(&sent[0]).contains(&"mcp__clock__get_current_time".to_owned()));
    let (content, is_error) = &results_in(&sent[1])[0];
    assert!(!is_error && content.to_string().contains("datetime"), "{content}");
    assert_eq!(
        ran.init()["mcp_servers"],
        json!([{ "name": "clock", "status": "connected", "source": "user" }])
    );
}

#[test]
fn a_tool_of_a_server_is_asked_about_unless_its_description_allows_it() {
    let call = || Reply::tool("mcp__clock__get_current_time", json!({ "timezone": "UTC" }));
    for (policy, denied) in [
        (json!({}), true),
        (json!({ "alwaysAllow": ["get_current_time"] }), false),
        (json!({ "tools": [{ "name": "get_current_time", "permission_policy": "always_allow" }] }), false),
    ] {
        let mut clock = time();
        clock.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        let sandbox = trusted(&json!({ "mcpServers": { "clock": clock } }));
        let server = model(vec![call(), Reply::text("done")]);
        turn(&sandbox, &server, &["go"]);
        assert_eq!(results_in(&bodies(&server)[1])[0].1, denied, "{policy}");
    }
}

#[test]
fn the_higher_place_wins() {
    let user = json!({ "mcpServers": { "a": { "command": "no-such-program-of-the-user" } }, "mcp": { "enableAllProjectMcpServers": true } });
    let sandbox = trusted(&user);
    sandbox.write(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "of-the-project"}, "b": {"command": "b-project"}}}"#,
    );
    let rows = mcp(&sandbox, &["list", "--json"]).json();
    assert_eq!(rows[0]["config"]["command"], "no-such-program-of-the-user");
    assert_eq!((rows[1]["name"].as_str(), rows[1]["scope"].as_str()), (Some("b"), Some("project")));
    sandbox.write(".qoder/settings.local.json", r#"{"mcpServers": {"a": {"command": "of-local"}}}"#);
    let rows = mcp(&sandbox, &["list", "--json"]).json();
    assert_eq!(rows[0]["config"]["command"], "of-local");
}

#[test]
fn the_flags_add_leave_out_and_stand_alone() {
    let settings =
        json!({ "mcpServers": { "a": { "command": "no-such-a" }, "b": { "command": "no-such-b" } } });
    let config = r#"{"mcpServers": {"c": {"command": "no-such-c"}}}"#;
    let failed = |names: &[&str]| pairs(&names.iter().map(|name| (*name, "failed")).collect::<Vec<_>>());
    assert_eq!(servers(&["--mcp-config", config], &settings, None), failed(&["a", "b", "c"]));
    let strict = ["--mcp-config", config, "--strict-mcp-config"];
    assert_eq!(servers(&strict, &settings, None), failed(&["c"]));
    let some = ["--mcp-config", config, "--allowed-mcp-server-names", "a,c"];
    assert_eq!(servers(&some, &settings, None), failed(&["a", "c"]));
    assert_eq!(servers(&["--setting-sources", ""], &settings, None), failed(&[]));
}

#[test]
fn one_wrong_description_harms_no_other() {
    let settings = json!({ "mcpServers": {
        "clock": time(), "socket": { "type": "ws", "url": "ws://x" }, "missing": { "command": "x", "args": ["${NOT_SET_ANYWHERE}"] },
        "bad name": { "command": "x" }, "wrong": { "command": 5 }, "off": { "command": "x", "disabled": true },
    } });
    let expected = [
        ("bad name", "failed"),
        ("clock", "connected"),
        ("missing", "failed"),
        ("off", "disabled"),
        ("socket", "failed"),
        ("wrong", "failed"),
    ];
    assert_eq!(servers(&[], &settings, None), pairs(&expected));
    let sandbox = trusted(&settings);
    let rows = mcp(&sandbox, &["list", "--json"]).json();
    let error = |name: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["error"].as_str().unwrap().to_owned()
    };
    assert!(error("missing").contains("uses ${NOT_SET_ANYWHERE}, which is not set"), "{}", error("missing"));
    assert!(error("socket").contains("the type `ws` is not supported"), "{}", error("socket"));
    assert!(error("wrong").contains("`command` must be a text, not a number"), "{}", error("wrong"));
}

#[test]
fn a_broken_file_of_the_project_is_told_and_the_rest_goes_on() {
    let settings = json!({ "mcpServers": { "a": { "command": "no-such-a" } } });
    let sandbox = trusted(&settings);
    sandbox.write(".mcp.json", "{\n\"mcpServers\": [\n");
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["go"]);
    assert!(ran.stderr.contains(".mcp.json:"), "{}", ran.stderr);
    assert_eq!(ran.result()["result"], "done");
    assert_eq!(ran.init()["mcp_servers"][0]["name"], "a");
}

#[test]
fn a_broken_flag_is_an_error_at_the_start() {
    let sandbox = trusted(&json!({}));
    let server = model(vec![Reply::text("done")]);
    for (config, told) in [
        ("{\"mcpServers\": ", "--mcp-config"),
        ("{}", "has no object `mcpServers`"),
        ("/no/such/file.json", "/no/such/file.json"),
        ("{\"mcpServers\": []}", "must be an object"),
    ] {
        let ran = turn(&sandbox, &server, &["go", "--mcp-config", config]);
        assert_eq!(ran.code, 42, "{config}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{config}: {}", ran.stderr);
    }
    assert!(bodies(&server).is_empty());
}

#[test]
fn a_file_on_the_command_line_may_have_comments_and_variables() {
    let sandbox = trusted(&json!({}));
    let mut clock = time();
    clock["args"] = json!(["--local-timezone", "${ZONE:-UTC}"]);
    let text = format!("{{ // servers\n\"mcpServers\": {{ \"clock\": {clock} }} }}");
    let path = sandbox.write("servers.json", text);
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["go", "--mcp-config", path.to_str().unwrap()]);
    let expected = json!([{ "name": "clock", "status": "connected", "source": "dynamic" }]);
    assert_eq!(ran.init()["mcp_servers"], expected, "{}", ran.stderr);
}

#[test]
fn a_listing_shows_people_what_is_wrong() {
    let sandbox =
        trusted(&json!({ "mcpServers": { "clock": time(), "gone": { "command": "no-such-program" } } }));
    let text = mcp(&sandbox, &["list"]).ok();
    assert!(text.contains("clock  connected, 2 tools  [user]"), "{text}");
    assert!(text.contains("gone   failed: "), "{text}");
    assert!(!text.contains('\u{1b}'), "colour is for terminals alone");
    let status = mcp(&sandbox, &["status", "clock"]).ok();
    assert!(status.contains("tool    get_current_time") && !status.contains("gone"), "{status}");
    let status = mcp(&sandbox, &["status", "clock", "--json"]).json();
    assert_eq!(status["tools"].as_array().unwrap().len(), 2);
}
