//! From a configuration to a server that runs, and to its end.

mod foundation;
mod wiring;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use foundation::{Foundation, ServeError, Use};

use crate::config::Config;
use crate::drive::Node;
use crate::http::{Acceptor, Authenticator, serve_connections};
use crate::model::ids::NodeId;
use crate::model::time::Time;
use crate::observe::Log;
use crate::store::{NodeRow, Store};

/// How often it is noted which tokens were used, and removed what no one needs.
const CARE: Duration = Duration::from_secs(60);
/// How long the server waits for more sessions to close before it gives their memory back.
const TIDY_PAUSE: Duration = Duration::from_secs(2);

/// Serves until `shutdown` completes; then ends what runs and returns. `listening` gets the address as soon as the server accepts.
/// `tidy` is called after sessions were closed: it gives their memory back to the system.
///
/// # Errors
/// When the server cannot start.
pub async fn serve(
    config: Config,
    listening: impl FnOnce(&str),
    tidy: fn(),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let log = Log::to_stderr(config.log_level);
    let foundation = Foundation::lay(&config, Use::Serve).await?;
    let acceptor = match &config.tls {
        Some((certificate, key)) => Acceptor::Tls(crate::http::acceptor(certificate, key)?),
        None => Acceptor::Plain,
    };
    let listener = TcpListener::bind(config.listen).await.map_err(|error| ServeError::Listen {
        address: config.listen.to_string(),
        problem: error.to_string(),
    })?;
    let address = listener.local_addr().map_or(config.listen, |address| address);
    let (stop, stops) = watch::channel(false);
    let parts = wiring::wire(&config, &foundation, stops.clone(), log.clone())?;
    let store = foundation.store.clone();
    store.db.register_node(node_row(&parts.node, foundation.home, &address.to_string())).await?;
    parts.node.take_over().await?;
    let claiming = tokio::spawn(Arc::clone(&parts.node).claim_due());
    let caring = tokio::spawn(care(store.clone(), Arc::clone(&parts.tokens), log.clone()));
    let tidying = tokio::spawn(tidy_up(Arc::clone(&parts.node), tidy));
    let accepting = tokio::spawn(serve_connections(listener, acceptor, parts.router, stops, log.clone()));
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    log.info("listening", &[("address", &address.to_string()), ("scheme", scheme)]);
    listening(&format!("{scheme}://{address}"));
    shutdown.await;
    log.info("stopping", &[]);
    parts.readiness.drain();
    // The receivers live as long as the server.
    let _ = stop.send(true);
    parts.node.stop().await;
    claiming.abort();
    caring.abort();
    tidying.abort();
    // Requests that were being answered have been; what still runs is cut off.
    drop(accepting.await);
    drop(parts.tokens.note_used().await);
    drop(store.db.remove_node(parts.node.id).await);
    log.info("stopped", &[]);
    Ok(())
}

fn node_row(node: &Node, home: NodeId, address: &str) -> NodeRow {
    let now = Time::now();
    NodeRow {
        id: node.id,
        home,
        address: address.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: now,
        // The lock on the data folder says whether the process is there; this is for people.
        expires_at: now,
        is_draining: false,
    }
}

/// Gives the memory of closed sessions back while the server runs.
async fn tidy_up(node: Arc<Node>, tidy: fn()) {
    loop {
        node.session_closed().await;
        tokio::time::sleep(TIDY_PAUSE).await;
        // One that panics has given nothing back, which harms no session.
        drop(tokio::task::spawn_blocking(tidy).await);
    }
}

/// Takes care of the database while the server runs.
async fn care(store: Store, tokens: Arc<Authenticator>, log: Log) {
    loop {
        tokio::time::sleep(CARE).await;
        let mut cleaned = Ok(1);
        // A few deleted sessions at a time, so that no transaction is long.
        while matches!(cleaned, Ok(count) if count > 0) {
            cleaned = store.db.clean(Time::now()).await;
        }
        let mut removed = Ok(1);
        while matches!(removed, Ok(count) if count > 0) {
            removed = store.clean_files(Time::now()).await;
        }
        let mut dropped = Ok(1);
        while matches!(dropped, Ok(count) if count > 0) {
            dropped = store.clean_archives().await;
        }
        let noted = tokens.note_used().await;
        if let Err(error) = cleaned.map(drop).and(removed.map(drop)).and(dropped.map(drop)).and(noted) {
            log.warn("care_failed", &[("error", &error.to_string())]);
        }
    }
}
