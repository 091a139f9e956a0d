//! Vaults: credentials are sealed, used by sessions and renewed, and never shown.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::mcp_server::McpServer;
use super::support::{Server, bash, id, kind, result_text, toolset};

const TOKEN: &str = "bearer-token-of-a-vault";

/// Every byte that the server keeps.
fn kept(server: &Server) -> Vec<u8> {
    let files = ["server.db", "server.db-wal"];
    files.iter().flat_map(|name| std::fs::read(server.data().join(name)).unwrap_or_default()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn vault(server: &Server) -> String {
    id(&server.post("/v1/vaults", &json!({ "display_name": "Ana's", "metadata": { "team": "docs" } })).ok())
}

fn bearer(url: &str, token: &str) -> Value {
    json!({ "auth": { "type": "static_bearer", "mcp_server_url": url, "token": token }, "display_name": "weather" })
}

/// An agent with the tools of an MCP server, allowed, and a session of it with a vault.
fn session(server: &Server, mcp: &str, vault: &str) -> String {
    let tools = json!([{ "type": "mcp_toolset", "mcp_server_name": "weather",
        "default_config": { "permission_policy": { "type": "always_allow" } } }, toolset(&[])]);
    let agent = json!({ "name": "a", "model": "auto", "tools": tools,
        "mcp_servers": [{ "type": "url", "name": "weather", "url": mcp }] });
    let agent = id(&server.post("/v1/agents", &agent).ok());
    let body = json!({ "agent": agent, "environment_id": server.environment(), "vault_ids": [vault] });
    let created = server.post("/v1/sessions", &body).ok();
    assert_eq!(created["vault_ids"], json!([vault]));
    id(&created)
}

/// A server whose model calls the MCP tool once.
fn calling() -> Server {
    Server::scripted(Script::by_assistant_count(vec![
        Reply::tool("mcp__weather__get_forecast", json!({})),
        Reply::text("done"),
    ]))
}

#[test]
fn vaults_and_credentials_are_kept_and_never_show_what_is_secret() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let vault = vault(&server);
    let path = format!("/v1/vaults/{vault}");
    let credentials = format!("{path}/credentials");
    let created = server.post(&credentials, &bearer("https://mcp.example.com/", TOKEN)).ok();
    let credential = format!("{credentials}/{}", id(&created));
    assert_eq!(
        created["auth"],
        json!({ "type": "static_bearer", "mcp_server_url": "https://mcp.example.com/" })
    );
    assert_eq!((&created["vault_id"], &created["type"]), (&json!(vault), &json!("vault_credential")));
    let twice = server.post(&credentials, &bearer("https://MCP.example.com", "other"));
    assert_eq!(twice.error(409).0, "conflict_error");
    let fixed = server
        .post(&credential, &json!({ "auth": { "type": "static_bearer", "mcp_server_url": "https://x" } }));
    assert!(fixed.error(400).1.contains("auth.mcp_server_url"));
    let changed =
        json!({ "metadata": { "k": "v" }, "auth": { "type": "static_bearer", "token": "another-secret" } });
    assert_eq!(server.post(&credential, &changed).ok()["metadata"]["k"], "v");
    for answer in [server.get(&credential), server.get(&credentials), server.get("/v1/vaults")] {
        assert!(!contains(&answer.body, TOKEN) && !contains(&answer.body, "another-secret"));
    }
    assert!(
        !contains(&kept(&server), TOKEN) && !contains(&kept(&server), "another-secret"),
        "sealed at rest"
    );
    assert_eq!(server.get("/v1/vaults?name=Ana%27s").ok()["data"][0]["id"], json!(vault));
    assert_eq!(server.get("/v1/vaults?name=x").ok()["data"], json!([]));
    let renamed = server.post(&path, &json!({ "display_name": "Team", "metadata": { "team": null } })).ok();
    assert_eq!((&renamed["display_name"], &renamed["metadata"]), (&json!("Team"), &json!({})));
    assert!(server.post(&format!("{credential}/archive"), &json!({})).ok()["archived_at"].is_string());
    assert_eq!(server.post(&credential, &changed).error(409).0, "conflict_error");
    assert_eq!(server.get(&credentials).ok()["data"], json!([]));
    assert_eq!(
        server.get(&format!("{credentials}?include_archived=true")).ok()["data"].as_array().unwrap().len(),
        1
    );
    server.post(&credentials, &bearer("https://mcp.example.com/", TOKEN)).ok();
    assert!(server.post(&format!("{path}/archive"), &json!({})).ok()["archived_at"].is_string());
    assert_eq!(server.post(&credentials, &bearer("https://b", TOKEN)).error(409).0, "conflict_error");
    let body = json!({ "agent": server.agent(&json!([])), "environment_id": server.environment(), "vault_ids": [vault] });
    assert_eq!(server.post("/v1/sessions", &body).error(400).0, "invalid_request_error");
    assert_eq!(server.delete(&path).ok()["type"], "vault_deleted");
    assert_eq!(server.get(&path).error(404).0, "not_found_error");
    assert_eq!(server.post("/v1/sessions", &body).error(404).0, "not_found_error");
    let other = server.token(&["--user", "ben", "--scopes", "read,run"]);
    let headers = [("authorization", format!("Bearer {other}"))];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(server.bare("POST", "/v1/vaults", &headers, b"{}").error(403).0, "permission_error");
}

#[test]
fn a_session_reaches_a_server_with_the_token_of_its_vault() {
    let mcp = McpServer::guarded(TOKEN, "");
    let server = calling();
    let vault = vault(&server);
    server.post(&format!("/v1/vaults/{vault}/credentials"), &bearer(&format!("{}/", mcp.url), TOKEN)).ok();
    let session = session(&server, &mcp.url, &vault);
    server.ask(&session, "go");
    assert_eq!(mcp.calls().len(), 1, "{:?}", server.events(&session));
    assert!(!server.events(&session).iter().any(|event| event.to_string().contains(TOKEN)));
    assert!(!contains(&kept(&server), TOKEN), "not in the log either");
}

#[test]
fn a_token_that_is_over_is_renewed_and_kept() {
    let mcp = McpServer::guarded("no-one-has-this", "refresh-secret-1");
    let server = calling();
    let vault = vault(&server);
    let auth = json!({ "type": "mcp_oauth", "mcp_server_url": mcp.url, "access_token": "old-access-token",
        "expires_at": "2020-01-01T00:00:00Z", "refresh": { "client_id": "c", "refresh_token": "refresh-secret-1",
        "token_endpoint": mcp.token_endpoint(),
        "token_endpoint_auth": { "type": "client_secret_post", "client_secret": "cs-secret-1" } } });
    let credentials = format!("/v1/vaults/{vault}/credentials");
    let created = server.post(&credentials, &json!({ "auth": auth })).ok();
    assert_eq!(created["auth"]["refresh"]["token_endpoint_auth"], json!({ "type": "client_secret_post" }));
    let one = session(&server, &mcp.url, &vault);
    server.ask(&one, "go");
    assert_eq!((mcp.calls().len(), mcp.renewals()), (1, 1), "{:?}", server.events(&one));
    let other = session(&server, &mcp.url, &vault);
    server.ask(&other, "go");
    assert_eq!((mcp.calls().len(), mcp.renewals()), (2, 1), "the new token is kept");
    let credential = format!("{credentials}/{}", id(&created));
    let validated = server.post(&format!("{credential}/mcp_oauth_validate"), &json!({})).ok();
    assert_eq!((&validated["status"], &validated["refresh"]), (&json!("valid"), &Value::Null));
    assert_eq!(
        (&validated["has_refresh_token"], &validated["mcp_probe"]["method"]),
        (&json!(true), &json!("initialize"))
    );
    let wrong = json!({ "auth": { "type": "mcp_oauth", "access_token": "a-wrong-token" } });
    server.post(&credential, &wrong).ok();
    let validated = server.post(&format!("{credential}/mcp_oauth_validate"), &json!({})).ok();
    assert_eq!(
        (&validated["status"], &validated["refresh"]["status"]),
        (&json!("valid"), &json!("succeeded"))
    );
    let wrong = json!({ "auth": { "type": "mcp_oauth", "access_token": "a-wrong-token",
        "refresh": { "refresh_token": "a-wrong-refresh" } } });
    server.post(&credential, &wrong).ok();
    let validated = server.post(&format!("{credential}/mcp_oauth_validate"), &json!({})).ok();
    assert_eq!(
        (&validated["status"], &validated["refresh"]["status"]),
        (&json!("invalid"), &json!("failed"))
    );
    assert!(
        !validated.to_string().contains("a-wrong-token"),
        "what the server repeats is redacted: {validated}"
    );
    let over = json!({ "auth": { "type": "mcp_oauth", "expires_at": "2020-01-01T00:00:00Z" } });
    server.post(&credential, &over).ok();
    let failing = session(&server, &mcp.url, &vault);
    server.ask(&failing, "go");
    let events = server.events(&failing);
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    assert_eq!(error["error"]["type"], "mcp_authentication_failed_error", "{error}");
}

#[test]
fn commands_have_the_variables_of_a_vault_and_results_do_not_show_them() {
    let server = Server::scripted(Script::by_assistant_count(vec![
        bash("echo length ${#API_ACCESS}; echo value $API_ACCESS; echo limited ${#LIMITED_ACCESS}"),
        Reply::text("done"),
    ]));
    let vault = vault(&server);
    let variable = |name: &str, networking: Value| json!({ "auth": { "type": "environment_variable", "secret_name": name, "secret_value": TOKEN, "networking": networking } });
    let credentials = format!("/v1/vaults/{vault}/credentials");
    let created = server.post(&credentials, &variable("API_ACCESS", json!({ "type": "unrestricted" }))).ok();
    assert_eq!(created["auth"]["injection_location"], json!({ "header": true, "body": false }));
    let limited = json!({ "type": "limited", "allowed_hosts": ["api.example.com"] });
    server.post(&credentials, &variable("LIMITED_ACCESS", limited)).ok();
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": server.environment(),
        "vault_ids": [vault] });
    let session = id(&server.post("/v1/sessions", &body).ok());
    server.ask(&session, "go");
    let events = server.events(&session);
    let result = events.iter().find(|event| kind(event) == "agent.tool_result").map(result_text).unwrap();
    assert!(result.contains(&format!("length {}", TOKEN.len())), "{result}");
    assert!(!result.contains(TOKEN), "{result}");
    assert!(result.contains("limited 0"), "not given where it could reach other hosts: {result}");
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    assert_eq!(error["error"]["type"], "credential_host_unreachable_error", "{error}");
    assert!(!contains(&kept(&server), TOKEN));
}
