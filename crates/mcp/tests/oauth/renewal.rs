//! Tokens are renewed before they end and after they were refused, once for all processes.

use std::process::{Command, Stdio};

use qoder_mcp::authorization::Authorizer;
use qoder_mcp::oauth::{ServerAuthorizer, Vault};
use qoder_types::server::OAuthConfig;
use secrecy::ExposeSecret;

use crate::oauth::support::Guarded;

#[tokio::test]
async fn a_refused_token_is_renewed() {
    let server = Guarded::start(&["--secret"]);
    let root = tempfile::tempdir().unwrap();
    server.authorize(&server.authorizer(root.path())).await;
    // Another program, which knows the client and its secret only from the store.
    let authorizer = server.authorizer(root.path());
    let first = authorizer.token().await.unwrap().unwrap();
    server.expire().await;
    let challenge = server.ask(Some(&first)).await;
    assert_eq!(challenge.status, 401);
    assert!(authorizer.refused(Some(first.clone()), challenge).await.unwrap());
    let second = authorizer.token().await.unwrap().unwrap();
    assert_ne!(first.expose_secret(), second.expose_secret());
    assert_eq!(server.ask(Some(&second)).await.status, 200);
    assert_eq!(server.seen().await["refreshes"], 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let server = Guarded::start(&["--lifetime", "1"]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    server.authorize(&authorizer).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    // All requests of a program share one renewal.
    let tokens = futures::future::join_all((0..5).map(|_| authorizer.token())).await;
    let distinct: std::collections::BTreeSet<String> =
        tokens.into_iter().map(|token| token.unwrap().unwrap().expose_secret().to_owned()).collect();
    let seen = server.seen().await;
    assert!(seen["refreshes"].as_u64().unwrap() >= 1, "{seen}");
    assert_eq!(distinct.len() as u64, seen["refreshes"].as_u64().unwrap());
    assert_eq!(seen["reused"], 0);
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_is_forgotten() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    server.authorize(&authorizer).await;
    let token = authorizer.token().await.unwrap().unwrap();
    let file = root.path().join("mcp-oauth-tokens.json");
    let text = std::fs::read_to_string(&file).unwrap().replace("refresh-", "unknown-");
    std::fs::write(&file, text).unwrap();
    server.expire().await;
    let challenge = server.ask(Some(&token)).await;
    assert!(!authorizer.refused(Some(token), challenge).await.unwrap());
    assert!(authorizer.token().await.unwrap().is_none());
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains("unknown-") && kept.contains("client_id"), "{kept}");
}

/// Names the server for the processes that this test starts of itself.
const SERVER: &str = "QODER_TEST_RENEW_SERVER";
const ROOT: &str = "QODER_TEST_RENEW_ROOT";

#[tokio::test]
async fn two_processes_use_a_rotated_refresh_token_once() {
    if let Ok(url) = std::env::var(SERVER) {
        let vault = Vault::in_file(std::env::var_os(ROOT).unwrap().as_ref());
        let authorizer = ServerAuthorizer::new(&url, &OAuthConfig::default(), vault).unwrap();
        assert!(authorizer.token().await.unwrap().is_some());
        return;
    }
    let server = Guarded::start(&["--slow-refresh", "0.5"]);
    let root = tempfile::tempdir().unwrap();
    server.authorize(&server.authorizer(root.path())).await;
    // As if an hour had passed.
    let file = root.path().join("mcp-oauth-tokens.json");
    let mut kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["entries"][0]["token"]["expires_at"] = 1.into();
    std::fs::write(&file, kept.to_string()).unwrap();

    let processes: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "oauth::renewal::two_processes_use_a_rotated_refresh_token_once"])
                .env(SERVER, server.url())
                .env(ROOT, root.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let seen = server.seen().await;
    assert_eq!((&seen["refreshes"], &seen["reused"]), (&1.into(), &0.into()), "{seen}");
}
