//! Tokens of remote servers: sent with every request, renewed once after a refusal, and asked for when that does not help.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_mcp::PeerError;
use qoder_mcp::authorization::{AuthorizationError, Authorizer, Begun, Callback, OAuthToken};
use qoder_mcp::peer::Challenge;
use qoder_types::server::NamedServer;
use secrecy::SecretString;
use serde_json::json;

use crate::hostile::support::{Tested, context, http, sse};
use crate::hostile::web::{Reply, Seen, Web};

/// Tokens `t0`, `t1` and so on; a refusal brings the next one as long as there are some.
#[derive(Default)]
struct Tokens {
    number: AtomicUsize,
    most: usize,
    refusals: Mutex<Vec<Challenge>>,
}

impl Authorizer for Tokens {
    fn token(&self) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizationError>> {
        let token = format!("t{}", self.number.load(Ordering::SeqCst));
        std::future::ready(Ok(Some(SecretString::from(token)))).boxed()
    }

    fn refused(
        &self,
        _: Option<SecretString>,
        challenge: Challenge,
    ) -> BoxFuture<'static, Result<bool, AuthorizationError>> {
        self.refusals.lock().unwrap().push(challenge);
        let another = self.number.load(Ordering::SeqCst) < self.most;
        if another {
            self.number.fetch_add(1, Ordering::SeqCst);
        }
        std::future::ready(Ok(another)).boxed()
    }

    fn begin(
        &self,
        _: Option<Challenge>,
        _: Option<String>,
    ) -> BoxFuture<'static, Result<Begun, AuthorizationError>> {
        unreachable!("a connection never begins an authorization")
    }

    fn finish(&self, _: Callback) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        unreachable!("a connection never begins an authorization")
    }

    fn inject(&self, _: OAuthToken) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        unreachable!("a connection brings no token")
    }

    fn clear(&self) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        unreachable!("a connection forgets no token")
    }
}

fn with_tokens(server: &NamedServer, most: usize) -> (Tested, Arc<Tokens>) {
    let tokens = Arc::new(Tokens { most, ..Tokens::default() });
    let mut context = context(Arc::default());
    context.authorizer = Some(Arc::clone(&tokens) as Arc<dyn Authorizer>);
    (Tested::new(server, &context), tokens)
}

fn refusal() -> Reply {
    Reply::new("401 Unauthorized", "WWW-Authenticate: Bearer resource_metadata=\"http://m\"\r\n", "")
}

fn challenge() -> Challenge {
    Challenge { status: 401, www_authenticate: Some("Bearer resource_metadata=\"http://m\"".to_owned()) }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let web = Web::start(|seen: &Seen| match seen.header("authorization") {
        Some("Bearer t1") => Reply::usual(seen),
        _ => refusal(),
    })
    .await;
    let (tested, tokens) = with_tokens(&http(&web.url()), 1);
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({})).await, "said");
    assert_eq!(*tokens.refusals.lock().unwrap(), [challenge()]);
}

#[tokio::test]
async fn without_another_token_credentials_are_needed() {
    let web = Web::start(|_: &Seen| refusal()).await;
    for server in [http(&web.url()), sse(&web.url())] {
        let (tested, _) = with_tokens(&server, 0);
        assert_eq!(tested.connect().await.unwrap_err(), PeerError::NeedsAuth(challenge()));
        // One that is refused as well is not followed by a third.
        let (tested, tokens) = with_tokens(&server, 9);
        assert_eq!(tested.connect().await.unwrap_err(), PeerError::NeedsAuth(challenge()));
        assert_eq!(tokens.refusals.lock().unwrap().len(), 1);
        let nobody = Tested::plain(&server).connect().await.unwrap_err();
        assert_eq!(nobody, PeerError::NeedsAuth(challenge()));
    }
    let web = Web::start(|_: &Seen| Reply::new("401 Unauthorized", "", "")).await;
    let bare = Tested::plain(&http(&web.url())).connect().await.unwrap_err();
    assert_eq!(bare, PeerError::NeedsAuth(Challenge { status: 401, www_authenticate: None }));
}

#[tokio::test]
async fn a_refusal_in_the_middle_is_told_to_the_caller() {
    let web = Web::start(|seen: &Seen| match seen.asks() {
        "tools/call" => refusal(),
        _ => Reply::usual(seen),
    })
    .await;
    let (tested, _) = with_tokens(&http(&web.url()), 0);
    tested.connect().await.unwrap();
    assert_eq!(tested.call("echo", json!({})).await.unwrap_err(), PeerError::NeedsAuth(challenge()));
    // The connection is still good for what needs no other token.
    assert_eq!(tested.peer.list_tools().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_lack_of_scope_is_told_apart() {
    let header = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let web = Web::start(move |seen: &Seen| match seen.asks() {
        "tools/call" => Reply::new("403 Forbidden", &format!("WWW-Authenticate: {header}\r\n"), ""),
        _ => Reply::usual(seen),
    })
    .await;
    let (tested, tokens) = with_tokens(&http(&web.url()), 5);
    tested.connect().await.unwrap();
    let needed = Challenge { status: 403, www_authenticate: Some(header.to_owned()) };
    assert_eq!(tested.call("echo", json!({})).await.unwrap_err(), PeerError::NeedsAuth(needed));
    assert!(tokens.refusals.lock().unwrap().is_empty());
}
