//! From a configuration to a server that runs, and to its end.

mod address;
mod care;
mod foundation;
mod wiring;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use foundation::{Foundation, ServeError, Use};

use crate::api::run_schedules;
use crate::config::Config;
use crate::drive::{Membership, Node, Peers, announce};
use crate::http::{Acceptor, serve_connections};
use crate::observe::Log;
use crate::store::{Hint, Store};

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
    let member = Membership { home: foundation.home, address: address::of_node(&config, address).await };
    parts.node.join(&member).await?;
    let peers = wiring::peers(&config, &foundation);
    let mut running = run_node(&config, &parts.node, (member, peers), &store, parts.hints);
    if config.roles.sweep {
        running.push(tokio::spawn(run_schedules(Arc::clone(&parts.app))));
        running.push(tokio::spawn(Arc::clone(&parts.webhooks).deliver()));
    }
    running.push(tokio::spawn(care::care(
        Arc::clone(&parts.app),
        Arc::clone(&parts.tokens),
        config.retention.clone(),
        log.clone(),
    )));
    running.push(tokio::spawn(tidy_up(Arc::clone(&parts.node), tidy)));
    let accepting = tokio::spawn(serve_connections(listener, acceptor, parts.router, stops, log.clone()));
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    log.info("listening", &[("address", &address.to_string()), ("scheme", scheme)]);
    listening(&format!("{scheme}://{address}"));
    shutdown.await;
    log.info("stopping", &[]);
    parts.readiness.drain();
    // The receivers live as long as the server.
    let _ = stop.send(true);
    drop(store.db.drain_node(parts.node.id()).await);
    parts.node.stop().await;
    running.iter().for_each(JoinHandle::abort);
    // Requests that were being answered have been; what still runs is cut off.
    drop(accepting.await);
    drop(parts.tokens.note_used().await);
    drop(store.db.remove_node(parts.node.id()).await);
    log.info("stopped", &[]);
    Ok(())
}

/// Starts what a node does beside answering clients.
fn run_node(
    config: &Config,
    node: &Arc<Node>,
    (member, peers): (Membership, Peers),
    store: &Store,
    hints: Option<mpsc::UnboundedReceiver<Hint>>,
) -> Vec<JoinHandle<()>> {
    let mut running = Vec::new();
    if config.roles.drive {
        running.push(tokio::spawn(Arc::clone(node).claim_due()));
    }
    let Some(hints) = hints else { return running };
    running.push(tokio::spawn(Arc::clone(node).beat(member)));
    running.push(tokio::spawn(Arc::clone(node).follow_others()));
    running.push(tokio::spawn(Arc::clone(node).relay_pieces(peers)));
    running.push(tokio::spawn(announce(Arc::clone(&store.db), hints)));
    if config.roles.sweep {
        running.push(tokio::spawn(Arc::clone(node).sweep()));
    }
    running
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
