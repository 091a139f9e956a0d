//! Tokens that a host brings and takes away.

use std::sync::{Arc, Mutex};

use qoder_mcp::authorization::{Authorizer, Callback, OAuthToken};
use secrecy::ExposeSecret;

use crate::oauth::support::{Guarded, REDIRECT, begun, browse};

fn token(text: &str) -> OAuthToken {
    serde_json::from_value(serde_json::json!({"access_token": text, "expires_in": 3600})).unwrap()
}

#[tokio::test]
async fn an_injected_token_is_sent_and_kept() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let learned = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&learned);
    let authorizer = server.authorizer(root.path()).with_secret_sink(Arc::new(move |secret| {
        sink.lock().unwrap().push(secret.expose_secret().to_owned());
    }));
    authorizer.inject(token("from-the-host")).await.unwrap();
    assert_eq!(authorizer.token().await.unwrap().unwrap().expose_secret(), "from-the-host");
    assert_eq!(*learned.lock().unwrap(), ["from-the-host"]);
    let next = server.authorizer(root.path());
    assert_eq!(next.token().await.unwrap().unwrap().expose_secret(), "from-the-host");
    // It cannot be renewed, so a person has to act.
    let sent = next.token().await.unwrap().unwrap();
    let challenge = server.ask(Some(&sent)).await;
    assert_eq!(challenge.status, 401);
    assert!(!next.refused(Some(sent), challenge).await.unwrap());
}

#[tokio::test]
async fn tokens_that_no_header_can_carry_are_refused() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    for text in ["", "two words", "line\nbreak", "ünï"] {
        let error = authorizer.inject(token(text)).await.unwrap_err();
        assert_eq!(error.code(), "mcp_oauth_failed", "{text:?}");
    }
    let mut other = token("fine");
    other.token_type = Some("DPoP".to_owned());
    assert!(authorizer.inject(other).await.is_err());
    assert!(authorizer.token().await.unwrap().is_none());
}

#[tokio::test]
async fn clearing_forgets_tokens_registrations_and_what_was_begun() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    server.authorize(&authorizer).await;
    let challenge = server.ask(None).await;
    assert!(authorizer.token().await.unwrap().is_some());
    let begin = authorizer.begin(Some(challenge), Some(REDIRECT.to_owned())).await.unwrap();
    let callback = browse(&begun(begin).0).await;
    authorizer.clear().await.unwrap();
    assert!(authorizer.token().await.unwrap().is_none());
    assert!(authorizer.finish(Callback::Url(callback)).await.is_err());
    let kept = std::fs::read_to_string(root.path().join("mcp-oauth-tokens.json")).unwrap();
    assert!(!kept.contains("access-") && !kept.contains("client_id"), "{kept}");
    assert!(server.authorizer(root.path()).token().await.unwrap().is_none());
}
