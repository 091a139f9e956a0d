//! Credentials of remote servers, as a host sees them: asked for when a server wants some, brought by the host's own orders,
//! forgotten, and never shown. The server is a small one of our own behind OAuth.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, ROOMY, call, named, say};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protocol/scripts/server.py");
const TOKEN: &str = "good-token-of-the-test";

/// A server that runs until it is dropped.
struct Protected {
    child: Child,
    config: String,
}

impl Protected {
    fn start(sandbox: &Sandbox) -> Self {
        let file: PathBuf = sandbox.home().join("port");
        let child =
            Command::new("python3").args([SCRIPT, "http"]).arg(&file).stdin(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        let port = loop {
            if let Ok(port) = std::fs::read_to_string(&file) {
                break port;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the server did not start");
            std::thread::sleep(Duration::from_millis(5));
        };
        let url = format!("http://127.0.0.1:{port}/mcp");
        let config = json!({ "mcpServers": { "kb": { "type": "http", "url": url } } }).to_string();
        Self { child, config }
    }

    fn flags(&self) -> Vec<&str> {
        vec!["--mcp-config", &self.config, "--settings", ROOMY, "--allowedTools", "mcp__kb"]
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(host: &mut Host) -> Value {
    host.request(&json!({ "subtype": "mcp_status" })).unwrap()["mcpServers"][0].clone()
}

fn until_status(host: &mut Host, status: &str) {
    host.until(|line| line["subtype"] == "mcp_status_change" && line["servers"][0]["status"] == status);
}

fn replies() -> Value {
    json!([call(1, "mcp__kb__echo", &json!({ "text": "inside" })), say("done")])
}

/// Where the person would be sent back to, had they granted access.
fn granted(auth_url: &str) -> String {
    let query = |key: &str| {
        let value = auth_url.split(['?', '&']).find_map(|pair| pair.strip_prefix(&format!("{key}=")));
        value.unwrap_or_else(|| panic!("no {key} in {auth_url}")).to_owned()
    };
    let target = query("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    format!("{target}?code=good-code&state={}", query("state"))
}

#[test]
fn a_host_that_declared_it_is_asked_for_credentials() {
    let sandbox = Sandbox::new();
    let server = Protected::start(&sandbox);
    let mut host = Host::connect(&sandbox, &replies(), &server.flags(), named(json!({ "mcpOAuth": true })));
    let asked = host.asked("mcp_oauth_required");
    let request = &asked["request"];
    assert_eq!(request["server_name"], "kb");
    assert!(request["server_url"].as_str().unwrap().ends_with("/mcp"));
    let auth_url = request["auth_url"].as_str().unwrap();
    assert!(auth_url.contains("code_challenge_method=S256"), "{auth_url}");
    assert!(auth_url.contains(request["state"].as_str().unwrap()), "{auth_url}");
    host.respond(&asked, &json!({ "callbackUrl": granted(auth_url) }));
    until_status(&mut host, "connected");
    host.prompt("go");
    assert_eq!(host.tool_result(), "inside");
    assert_eq!(host.result()["result"], "done");
    assert!(!status(&mut host).to_string().contains(TOKEN));
}

#[test]
fn a_host_that_refuses_makes_the_server_fail() {
    let sandbox = Sandbox::new();
    let server = Protected::start(&sandbox);
    let mut host = Host::connect(&sandbox, &replies(), &server.flags(), named(json!({ "mcpOAuth": true })));
    let asked = host.asked("mcp_oauth_required");
    host.respond(&asked, &Value::Null);
    until_status(&mut host, "failed");
    assert!(status(&mut host)["error"].as_str().unwrap().contains("refused"));
}

#[test]
fn a_token_of_the_host_is_taken_and_forgotten() {
    let sandbox = Sandbox::new();
    let server = Protected::start(&sandbox);
    let replies = json!([
        call(1, "mcp__kb__echo", &json!({ "text": "inside" })),
        call(2, "mcp__kb__echo", &json!({ "text": TOKEN })),
        say("done"),
    ]);
    let mut host = Host::connect(&sandbox, &replies, &server.flags(), named(json!({})));
    until_status(&mut host, "needs-auth");
    let token = json!({ "access_token": TOKEN, "expires_in": 3600 });
    let inject = json!({ "subtype": "inject_mcp_token", "serverName": "kb", "token": token });
    host.request(&inject).unwrap();
    assert_eq!(status(&mut host)["status"], "connected");
    host.prompt("go");
    assert_eq!(host.tool_result(), "inside");
    // Whatever shows a token again, it does not stay in what is kept.
    host.result();
    let log: String =
        sandbox.session_files().iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(!log.contains(TOKEN), "the log has the token");
    host.request(&json!({ "subtype": "mcp_clear_auth", "serverName": "kb" })).unwrap();
    let problem = host.request(&json!({ "subtype": "mcp_reconnect", "serverName": "kb" })).unwrap_err();
    assert!(problem.contains("needs-auth"), "{problem}");
    assert_eq!(status(&mut host)["status"], "needs-auth");
}

#[test]
fn a_host_can_sign_in_by_itself() {
    let sandbox = Sandbox::new();
    let server = Protected::start(&sandbox);
    let mut host = Host::connect(&sandbox, &replies(), &server.flags(), named(json!({})));
    until_status(&mut host, "needs-auth");
    let begin = json!({ "subtype": "mcp_authenticate", "serverName": "kb",
        "redirectUri": "http://localhost:7777/back" });
    let begun = host.request(&begin).unwrap();
    assert_eq!(begun["requiresUserAction"], true);
    let url = begun["authUrl"].as_str().unwrap().to_owned();
    let submit = |url: &str| {
        json!({ "subtype": "mcp_submit_oauth_callback_url", "serverName": "kb",
        "callbackUrl": url })
    };
    let foreign = "http://localhost:7777/back?code=good-code&state=of-another-flow";
    host.request(&submit(foreign)).unwrap_err();
    assert_eq!(status(&mut host)["status"], "needs-auth");
    host.request(&submit(&granted(&url))).unwrap();
    assert_eq!(status(&mut host)["status"], "connected");
    // The credentials are kept: signing in once more needs no user.
    let begun = host.request(&begin).unwrap();
    assert_eq!(begun, json!({ "requiresUserAction": false }));
    let problem = host.request(&json!({ "subtype": "mcp_authenticate", "serverName": "other" })).unwrap_err();
    assert!(problem.contains("there is no MCP server named `other`"), "{problem}");
}

#[test]
fn notification_auth_success_comes_when_a_sign_in_is_complete() {
    let sandbox = Sandbox::new();
    let note = "input=$(cat); printf '%s\\n' \"$input\" >> ../seen";
    let hooks = json!({ "Notification": [{ "matcher": "auth_success", "hooks": [{ "type": "command", "command": note }] }] });
    sandbox.write(sandbox.config().join("settings.json"), json!({ "hooks": hooks }).to_string());
    let server = Protected::start(&sandbox);
    let mut host = Host::connect(&sandbox, &replies(), &server.flags(), named(json!({ "mcpOAuth": true })));
    let asked = host.asked("mcp_oauth_required");
    let auth_url = asked["request"]["auth_url"].as_str().unwrap().to_owned();
    host.respond(&asked, &json!({ "callbackUrl": granted(&auth_url) }));
    until_status(&mut host, "connected");
    // Hooks that notify have the time they need until the session ends.
    assert_eq!(host.end().0, 0);
    let seen = std::fs::read_to_string(sandbox.project().join("../seen")).unwrap();
    let input: Value = serde_json::from_str(seen.trim()).unwrap();
    assert_eq!(input["notification_type"], "auth_success", "{input:#}");
    assert!(input["title"].is_string() && input["message"].as_str().unwrap().contains("kb"), "{input:#}");
    assert_eq!(input["details"]["mcp_server_name"], "kb");
}

#[test]
fn answers_of_a_hostile_authorization_server_are_refused_and_shown_escaped() {
    let sandbox = Sandbox::new();
    let server = Protected::start(&sandbox);
    let mut host = Host::connect(&sandbox, &replies(), &server.flags(), named(json!({})));
    until_status(&mut host, "needs-auth");
    let begin = json!({ "subtype": "mcp_authenticate", "serverName": "kb",
        "redirectUri": "http://localhost:7777/back" });
    let issuer = server.config.split('"').find(|text| text.starts_with("http://")).unwrap();
    let issuer = issuer.strip_suffix("/mcp").unwrap();
    type Changed = fn(&str, &str) -> String;
    let answers: [(&str, Changed); 4] = [
        ("repeats `iss`", |url, issuer| format!("{url}&iss={issuer}&iss={issuer}")),
        ("repeats `iss`", |url, issuer| format!("{url}&iss={issuer}&iss=http://elsewhere.example")),
        ("another type than Bearer", |url, _| url.replace("good-code", "mac-code")),
        ("invalid_grant", |url, _| url.replace("good-code", "loud-code")),
    ];
    for (expected, changed) in answers {
        let begun = host.request(&begin).unwrap();
        let url = changed(&granted(begun["authUrl"].as_str().unwrap()), issuer);
        let submit =
            json!({ "subtype": "mcp_submit_oauth_callback_url", "serverName": "kb", "callbackUrl": url });
        let problem = host.request(&submit).unwrap_err();
        assert!(problem.contains(expected), "{url}: {problem}");
        assert!(!problem.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}']), "{problem:?}");
        assert_eq!(status(&mut host)["status"], "needs-auth", "{url}");
    }
}
