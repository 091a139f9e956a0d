//! Connections: accepting them, their limits, and their end when the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::edge::Peer;
use super::timed_io::{Serving, TimeLimits, TimedIo};
use crate::observe::Log;

/// The most bytes of a request's head.
const LARGEST_HEAD: usize = 32 * 1024;
/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(120);
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The most connections.
const MOST_CONNECTIONS: usize = 20_000;
/// How long the server waits when it cannot accept, for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How connections begin.
#[derive(Clone)]
pub enum Acceptor {
    /// With HTTP.
    Plain,
    /// With TLS.
    Tls(TlsAcceptor),
}

/// Serves connections until `stop` says otherwise; then answers what was asked and closes them.
pub async fn serve_connections(
    listener: TcpListener,
    acceptor: Acceptor,
    router: Router,
    mut stop: watch::Receiver<bool>,
    log: Log,
) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stops| *stops) => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                log.warn("accept_failed", &[("error", &error.to_string())]);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        tokio::spawn(async move {
            connect(stream, peer, acceptor, router, stop).await;
            drop(permit);
        });
    }
}

async fn connect(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Acceptor,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    // Frames of streams are small and wanted at once.
    let _ = stream.set_nodelay(true);
    match acceptor {
        Acceptor::Plain => serve(stream, peer, router, stop).await,
        Acceptor::Tls(acceptor) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                serve(stream, peer, router, stop).await;
            }
        }
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let serving = Serving::default();
    let io = TokioIo::new(TimedIo::new(stream, serving.clone(), TimeLimits::SERVED));
    let service = service_fn(move |request: Request<Incoming>| {
        let served = serving.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer.ip()));
        let mut router = router.clone();
        async move {
            let response = router.call(request).await?;
            // The request is served until its answer is written.
            let response = response.map(|body| {
                body.map_frame(move |frame| {
                    let _ = &served;
                    frame
                })
            });
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(io, service);
    tokio::pin!(connection);
    tokio::select! {
        // Whatever ends a connection ends nothing else.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stops| *stops) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
