//! A whole connection on top: it reports when credentials are wanted, uses them, and does not notice a renewal.

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use qoder_mcp::authorization::{Authorizer, Callback};
use qoder_mcp::oauth::{ServerAuthorizer, Vault};
use qoder_mcp::questions::NoAnswerer;
use qoder_mcp::remote::{PeerContext, peer};
use qoder_mcp::{McpPeer, PeerError, ToolCall};
use qoder_types::server::{NamedServer, OAuthConfig, Scope, ServerConfig, Transport};
use serde_json::json;

use crate::oauth::support::{Guarded, REDIRECT, begun, browse};

fn described(url: String) -> NamedServer {
    let config = ServerConfig {
        transport: Transport::Http { url, headers: [].into() },
        policies: Vec::new(),
        include_tools: None,
        exclude_tools: Vec::new(),
        sampling: false,
        timeout: None,
        enabled: true,
        oauth: OAuthConfig::default(),
        shown: json!(null),
    };
    NamedServer { name: "guarded".to_owned(), config, scope: Scope::Flag }
}

fn connection(server: &Guarded, root: &Path) -> (Arc<dyn McpPeer>, ServerAuthorizer) {
    let named = described(server.url());
    let authorizer = ServerAuthorizer::for_server(&named, &Vault::in_file(root)).unwrap().unwrap();
    let mut context = PeerContext::new(root, Arc::new(NoAnswerer));
    context.authorizer = Some(Arc::new(authorizer.clone()));
    (peer(&named, &context), authorizer)
}

async fn echo(peer: &Arc<dyn McpPeer>) -> Result<String, PeerError> {
    let never = std::future::pending().boxed().shared();
    let result = peer.call(ToolCall::new("echo", json!({"text": "hello"}), never)).await?;
    Ok(result.content[0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_refused_connection_says_what_it_needs_and_works_with_it() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    let (peer, authorizer) = connection(&server, root.path());
    let error = peer.connect(Arc::new(|_| {})).await.unwrap_err();
    let PeerError::NeedsAuth(challenge) = error else { panic!("{error:?}") };
    assert_eq!(challenge.status, 401);

    let begin = authorizer.begin(Some(challenge), Some(REDIRECT.to_owned())).await.unwrap();
    let callback = browse(&begun(begin).0).await;
    authorizer.finish(Callback::Url(callback)).await.unwrap();
    let greeting = peer.connect(Arc::new(|_| {})).await.unwrap();
    assert_eq!(greeting.tools[0].name, "echo");
    assert_eq!(echo(&peer).await.unwrap(), "hello");
    peer.close().await;
}

#[tokio::test]
async fn a_token_that_is_refused_in_the_middle_is_renewed_unseen() {
    let server = Guarded::start(&[]);
    let root = tempfile::tempdir().unwrap();
    server.authorize(&server.authorizer(root.path())).await;
    let (peer, authorizer) = connection(&server, root.path());
    peer.connect(Arc::new(|_| {})).await.unwrap();
    server.expire().await;
    assert_eq!(echo(&peer).await.unwrap(), "hello");
    assert_eq!(server.seen().await["refreshes"], 1);
    authorizer.clear().await.unwrap();
    let error = echo(&peer).await.unwrap_err();
    assert!(matches!(error, PeerError::NeedsAuth(_)), "{error:?}");
    peer.close().await;
}
