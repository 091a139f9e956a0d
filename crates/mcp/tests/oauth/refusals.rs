//! Authorizations that must not succeed: foreign callbacks, liars, servers without PKCE, and people who say no.

use qoder_mcp::authorization::{AuthorizationError, Authorizer, Callback};

use crate::oauth::support::{Guarded, REDIRECT, begun, browse};

/// Goes as far as the callback.
async fn ended(options: &[&str]) -> AuthorizationError {
    let server = Guarded::start(options);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    let challenge = server.ask(None).await;
    let error = match authorizer.begin(Some(challenge), Some(REDIRECT.to_owned())).await {
        Ok(begin) => {
            let callback = browse(&begun(begin).0).await;
            authorizer.finish(Callback::Url(callback)).await.unwrap_err()
        }
        Err(error) => error,
    };
    assert!(authorizer.token().await.unwrap().is_none());
    assert_eq!(server.seen().await["codes"], 0);
    error
}

#[tokio::test]
async fn a_callback_with_another_state_is_refused() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    let challenge = server.ask(None).await;
    let begin = authorizer.begin(Some(challenge), Some(REDIRECT.to_owned())).await.unwrap();
    let (auth_url, state) = begun(begin);
    let callback = browse(&auth_url).await;

    let wrong = callback.replace(&state, "another");
    let error = authorizer.finish(Callback::Url(wrong)).await.unwrap_err();
    assert_eq!(error.code(), "mcp_oauth_foreign_callback");
    assert_eq!(server.seen().await["codes"], 0);
    authorizer.finish(Callback::Url(callback.clone())).await.unwrap();
    // Each state is good for one use.
    let error = authorizer.finish(Callback::Url(callback)).await.unwrap_err();
    assert_eq!(error.code(), "mcp_oauth_foreign_callback");
    assert_eq!(server.seen().await["codes"], 1);
}

#[tokio::test]
async fn a_callback_at_another_address_is_refused() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    let begin = authorizer.begin(None, Some(REDIRECT.to_owned())).await.unwrap();
    let callback = browse(&begun(begin).0).await.replace("localhost:3000", "localhost:3001");
    let error = authorizer.finish(Callback::Url(callback)).await.unwrap_err();
    assert_eq!(error.code(), "mcp_oauth_foreign_callback");
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    let error = ended(&["--metadata-issuer", "https://elsewhere.example"]).await;
    assert_eq!(error.code(), "mcp_oauth_failed");
    assert!(!error.to_string().contains("elsewhere.example"), "{error}");
}

#[tokio::test]
async fn a_callback_of_another_issuer_is_refused() {
    let error = ended(&["--callback-issuer", "https://elsewhere.example"]).await;
    assert!(error.to_string().contains("another issuer"), "{error}");
    assert!(!error.to_string().contains("elsewhere.example"), "{error}");
    let error = ended(&["--deny", "--callback-issuer", "https://elsewhere.example"]).await;
    assert!(!error.to_string().contains("access_denied"), "{error}");
}

#[tokio::test]
async fn a_promised_issuer_must_come() {
    let error = ended(&["--promise-issuer"]).await;
    assert!(error.to_string().contains("does not name its issuer"), "{error}");
}

#[tokio::test]
async fn a_server_without_pkce_is_refused() {
    let error = ended(&["--no-pkce"]).await;
    assert!(error.to_string().contains("PKCE"), "{error}");
}

#[tokio::test]
async fn a_person_may_say_no() {
    assert_eq!(ended(&["--deny"]).await.code(), "mcp_oauth_denied");
}

#[tokio::test]
async fn redirect_addresses_that_would_run_something_are_refused() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    for address in ["javascript:alert(1)", "http://example.com/callback", "nonsense", "https://h/#f"] {
        assert!(authorizer.begin(None, Some(address.to_owned())).await.is_err(), "{address}");
    }
    assert_eq!(server.seen().await["registrations"], 0);
}
