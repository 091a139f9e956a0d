//! From a server that refuses to one that answers: what is asked, what is kept, and that nothing is asked twice.

use qoder_mcp::authorization::{Authorizer, Begun};
use secrecy::ExposeSecret;

use crate::oauth::support::{Guarded, browse, client};

#[tokio::test]
async fn a_browser_comes_back_to_the_loopback_address() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    assert!(authorizer.token().await.unwrap().is_none());
    let challenge = server.ask(None).await;
    assert_eq!(challenge.status, 401);
    assert!(!authorizer.refused(None, challenge.clone()).await.unwrap());

    let Begun::Redirect { auth_url, state, scopes, resource_metadata_url, returned } =
        authorizer.begin(Some(challenge), None).await.unwrap()
    else {
        panic!("nothing is kept yet");
    };
    assert_eq!(scopes, ["use"]);
    assert!(resource_metadata_url.unwrap().ends_with("/.well-known/oauth-protected-resource/mcp"));
    assert!(auth_url.contains("code_challenge_method=S256") && auth_url.contains(&state));
    let waiting = tokio::spawn(returned.unwrap());
    let callback = browse(&auth_url).await;
    assert!(callback.starts_with("http://127.0.0.1:"), "{callback}");
    let page = client().get(&callback).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Access was granted"), "{page}");
    waiting.await.unwrap().unwrap();

    let token = authorizer.token().await.unwrap().unwrap();
    assert_eq!(server.ask(Some(&token)).await.status, 200);
    let seen = server.seen().await;
    assert_eq!(seen["resources"][0], server.url());
    assert_eq!(seen["registrations"], 1);
    assert!(!format!("{authorizer:?}").contains(token.expose_secret()));
    assert_eq!(authorizer.secrets().len(), 3, "two tokens, and the secret of the client");
}

#[tokio::test]
async fn the_next_program_finds_the_token_and_asks_nobody() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    server.authorize(&server.authorizer(root.path())).await;
    let before = server.seen().await;

    let next = server.authorizer(root.path());
    let token = next.token().await.unwrap().unwrap();
    assert_eq!(server.ask(Some(&token)).await.status, 200);
    assert!(matches!(next.begin(None, None).await.unwrap(), Begun::Silent));
    assert_eq!(server.seen().await, before);
}

#[tokio::test]
async fn a_registration_is_used_again_for_the_same_callback() {
    let server = Guarded::start(&["--secret"]);
    let root = tempfile::tempdir().unwrap();
    let authorizer = server.authorizer(root.path());
    server.authorize(&authorizer).await;
    server.expire().await;
    // Refused although it was just sent: a person must grant access anew.
    assert!(authorizer.token().await.unwrap().is_some());
    server.authorize(&authorizer).await;
    let seen = server.seen().await;
    assert_eq!((&seen["registrations"], &seen["codes"]), (&1.into(), &2.into()));
}

#[tokio::test]
async fn another_address_does_not_inherit_a_token() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    server.authorize(&server.authorizer(root.path())).await;
    let other = qoder_mcp::oauth::ServerAuthorizer::new(
        &format!("{}/other", server.base),
        &qoder_types::server::OAuthConfig::default(),
        qoder_mcp::oauth::Vault::in_file(root.path()),
    )
    .unwrap();
    assert!(other.token().await.unwrap().is_none());
}
