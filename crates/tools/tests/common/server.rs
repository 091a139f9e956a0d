//! Servers on this machine for trying the tools that reach the web: well-behaved ones and others.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Serves `router` for as long as the test runs.
pub async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// What a server does after its answer.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    /// Closes the connection.
    Close,
    /// Never says anything more.
    Hang,
    /// Sends this byte for ever.
    Repeat(u8),
}

/// Answers every request with these bytes, whatever they are.
pub async fn serve_raw(answer: Vec<u8>, then: Then) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0_u8; 8192];
                drop(stream.read(&mut request).await);
                drop(stream.write_all(&answer).await);
                match then {
                    Then::Close => {}
                    Then::Hang => std::future::pending::<()>().await,
                    Then::Repeat(byte) => while stream.write_all(&[byte; 65_536]).await.is_ok() {},
                }
            });
        }
    });
    address
}
