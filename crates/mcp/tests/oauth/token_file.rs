//! The file of tokens: only its owner's, never through a link, never silently replaced, and changed by one at a time.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use qoder_mcp::authorization::{AuthorizationError, Authorizer, OAuthToken};
use qoder_mcp::oauth::{ServerAuthorizer, Vault};
use qoder_types::server::OAuthConfig;
use secrecy::ExposeSecret;

const SERVER: &str = "https://mcp.example.com/mcp";

fn authorizer(root: &Path) -> ServerAuthorizer {
    ServerAuthorizer::new(SERVER, &OAuthConfig::default(), Vault::in_file(root)).unwrap()
}

fn token() -> OAuthToken {
    serde_json::from_value(serde_json::json!({"access_token": "very-secret-token"})).unwrap()
}

fn file(root: &Path) -> PathBuf {
    root.join("mcp-oauth-tokens.json")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn refused(root: &Path) -> String {
    let read = authorizer(root).token().await.unwrap_err();
    let written = authorizer(root).inject(token()).await.unwrap_err();
    assert!(matches!(written, AuthorizationError::Store(_)), "{written}");
    let text = format!("{read} {written}");
    assert!(!text.contains("very-secret-token"), "{text}");
    text
}

#[tokio::test]
async fn it_is_private_and_so_is_its_folder() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("config");
    assert!(authorizer(&root).token().await.unwrap().is_none());
    assert!(!root.exists(), "looking makes nothing");
    std::fs::create_dir(&root).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    authorizer(&root).inject(token()).await.unwrap();
    assert_eq!((mode(&root), mode(&file(&root))), (0o700, 0o600));
    let others: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn links_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("target");
    std::fs::write(&target, "{\"version\":1,\"entries\":[]}").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, file(root.path())).unwrap();
    assert!(refused(root.path()).await.contains("is a link"));
    std::fs::remove_file(file(root.path())).unwrap();
    std::fs::hard_link(&target, file(root.path())).unwrap();
    assert!(refused(root.path()).await.contains("hard link"));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "{\"version\":1,\"entries\":[]}");
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused() {
    let root = tempfile::tempdir().unwrap();
    authorizer(root.path()).inject(token()).await.unwrap();
    std::fs::set_permissions(file(root.path()), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(root.path()).await.contains("set its mode to 600"));
}

#[tokio::test]
async fn a_broken_file_is_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    authorizer(root.path()).inject(token()).await.unwrap();
    let broken = "{\"version\":1,\"entries\":[\"very-secret-token\"]}";
    std::fs::write(file(root.path()), broken).unwrap();
    assert!(refused(root.path()).await.contains("is not readable"));
    assert_eq!(std::fs::read_to_string(file(root.path())).unwrap(), broken);
    std::fs::write(file(root.path()), "{\"version\":2,\"entries\":[]}").unwrap();
    assert!(refused(root.path()).await.contains("version 2"));
}

#[tokio::test]
async fn a_lock_that_does_not_come_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let held = Vault::in_file(root.path()).lock(SERVER).await.unwrap();
    let vault = Vault::in_file(root.path()).with_patience(Duration::from_millis(100));
    let waiting = ServerAuthorizer::new(SERVER, &OAuthConfig::default(), vault).unwrap();
    let error = waiting.inject(token()).await.unwrap_err();
    assert!(error.to_string().contains("holds the lock"), "{error}");
    assert!(!file(root.path()).exists());
    drop(held);
    waiting.inject(token()).await.unwrap();
    assert!(file(root.path()).exists());
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let name = |number: usize| format!("https://mcp{number}.example.com/");
    let make = |number: usize| {
        ServerAuthorizer::new(&name(number), &OAuthConfig::default(), Vault::in_file(root.path())).unwrap()
    };
    let writes = (0..20).map(|number| make(number).inject(token()));
    for outcome in futures::future::join_all(writes).await {
        outcome.unwrap();
    }
    for number in 0..20 {
        let kept = make(number).token().await.unwrap().unwrap();
        assert_eq!(kept.expose_secret(), "very-secret-token");
    }
}
