//! Connections that sessions share: one handshake for a server that keeps no sessions, one for each session otherwise, and
//! never across credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use qoder_mcp::remote::ConnectionPool;
use qoder_mcp::{PeerError, PeerEvent};
use qoder_types::server::{NamedServer, Transport};
use serde_json::json;

use crate::hostile::support::{Tested, context, http, until};
use crate::hostile::web::{Reply, Seen, Web};

fn pooled(pool: &ConnectionPool, server: &NamedServer) -> Tested {
    Tested { peer: pool.peer(server, &context(Arc::default())), heard: Arc::default() }
}

fn asked(web: &Web, method: &str) -> usize {
    web.seen().iter().filter(|seen| seen.asks() == method).count()
}

fn with_token(url: &str, token: &str) -> NamedServer {
    let mut server = http(url);
    if let Transport::Http { headers, .. } = &mut server.config.transport {
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    server
}

#[tokio::test]
async fn sessions_share_the_connection_to_a_server_that_keeps_none() {
    let web = Web::start(Reply::usual).await;
    let pool = ConnectionPool::default();
    let server = http(&web.url());
    let (first, second) = (pooled(&pool, &server), pooled(&pool, &server));
    let greeting = first.connect().await.unwrap();
    assert_eq!(second.connect().await.unwrap(), greeting);
    assert_eq!(first.said("echo", json!({})).await, "said");
    first.close().await;
    assert_eq!(second.said("echo", json!({})).await, "said", "one leaves, the other continues");
    second.close().await;
    // A session that wakes finds it again.
    let third = pooled(&pool, &server);
    third.connect().await.unwrap();
    assert_eq!(third.said("echo", json!({})).await, "said");
    assert_eq!((asked(&web, "initialize"), asked(&web, "tools/list")), (1, 1));
    assert_eq!(pool.len(), 1);
}

#[tokio::test]
async fn a_server_that_keeps_sessions_has_one_for_each() {
    let web = Web::start(|seen: &Seen| match seen.asks() {
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" } });
            let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result }).to_string();
            Reply::new("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: one\r\n", &body)
        }
        _ => Reply::usual(seen),
    })
    .await;
    let pool = ConnectionPool::default();
    let server = http(&web.url());
    let (first, second) = (pooled(&pool, &server), pooled(&pool, &server));
    first.connect().await.unwrap();
    second.connect().await.unwrap();
    assert_eq!(asked(&web, "initialize"), 2);
    assert!(pool.is_empty());
    first.close().await;
    assert_eq!(second.said("echo", json!({})).await, "said");
    assert!(matches!(first.call("echo", json!({})).await, Err(PeerError::NotConnected(_))));
}

#[tokio::test]
async fn another_credential_is_another_connection() {
    let web = Web::start(Reply::usual).await;
    let pool = ConnectionPool::default();
    for token in ["one", "two", "one"] {
        let session = pooled(&pool, &with_token(&web.url(), token));
        session.connect().await.unwrap();
        session.said("echo", json!({})).await;
        session.close().await;
    }
    let seen = web.seen();
    let tokens = |method: &str| -> Vec<String> {
        let of_method = seen.iter().filter(|seen| seen.asks() == method);
        of_method.filter_map(|seen| seen.header("authorization")).map(str::to_owned).collect()
    };
    assert_eq!(tokens("initialize"), ["Bearer one", "Bearer two"]);
    assert_eq!(tokens("tools/call"), ["Bearer one", "Bearer two", "Bearer one"]);
}

#[tokio::test]
async fn old_lists_are_listed_anew_and_old_connections_end() {
    let web = Web::start(Reply::usual).await;
    let pool = ConnectionPool::keeping(Duration::from_secs(60), Duration::ZERO);
    let server = http(&web.url());
    for _ in 0..2 {
        let session = pooled(&pool, &server);
        session.connect().await.unwrap();
        session.close().await;
    }
    assert_eq!((asked(&web, "initialize"), asked(&web, "tools/list")), (1, 2));
    let pool = ConnectionPool::keeping(Duration::ZERO, Duration::ZERO);
    for _ in 0..2 {
        let session = pooled(&pool, &server);
        session.connect().await.unwrap();
        session.close().await;
    }
    assert_eq!(asked(&web, "initialize"), 3);
}

#[tokio::test]
async fn a_credential_that_is_refused_later_is_told_and_not_kept() {
    let refuses = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&refuses);
    let web = Web::start(move |seen: &Seen| {
        if told.load(Ordering::SeqCst) { Reply::new("401 Unauthorized", "", "") } else { Reply::usual(seen) }
    })
    .await;
    let pool = ConnectionPool::default();
    let server = with_token(&web.url(), "one");
    let session = pooled(&pool, &server);
    session.connect().await.unwrap();
    refuses.store(true, Ordering::SeqCst);
    assert!(session.call("echo", json!({})).await.is_err());
    until(|| pool.is_empty()).await;
    let other = pooled(&pool, &server);
    assert!(matches!(other.connect().await, Err(PeerError::NeedsAuth(_))));
    assert!(!other.heard(|event| matches!(event, PeerEvent::Closed(_))));
}
