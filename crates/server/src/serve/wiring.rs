//! Puts the parts of a server together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use tokio::sync::{mpsc, watch};

use super::foundation::{Foundation, ServeError};
use crate::api::{App, ModelCatalog, Readiness, router};
use crate::config::Config;
use crate::credentials::Credentials;
use crate::drive::{Node, NodeSettings, Peers, RuntimeSettings};
use crate::environment::{ContainerEngine, LocalEnvironments};
use crate::fanout::Hub;
use crate::http::{Authenticator, Edge, FileLinks, HostRules, LinkBase, RateLimiter};
use crate::observe::{Counted, Log, Metrics};
use crate::outgoing::{Outgoing, Webhooks};
use crate::secrets::NodeTickets;
use crate::store::Hint;

/// The parts of a server.
pub(super) struct Parts {
    pub(super) node: Arc<Node>,
    pub(super) tokens: Arc<Authenticator>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    /// Hints for other nodes, where there can be some.
    pub(super) hints: Option<mpsc::UnboundedReceiver<Hint>>,
}

/// A hub, and the hints that it gives to other nodes.
fn hub(foundation: &Foundation) -> (Arc<Hub>, Option<mpsc::UnboundedReceiver<Hint>>) {
    if !foundation.store.db.is_shared() {
        return (Arc::new(Hub::default()), None);
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Hub::among_others(sender)), Some(receiver))
}

pub(super) fn wire(
    config: &Config,
    foundation: &Foundation,
    stop: watch::Receiver<bool>,
    log: Log,
) -> Result<Parts, ServeError> {
    let (hub, hints) = hub(foundation);
    let runtime = runtime_settings(config)?;
    let models = ModelCatalog::new(runtime.clone());
    let settings = NodeSettings {
        runtime,
        private_addresses: config.private_addresses.clone(),
        most_seats: config.most_seats,
        drives: config.roles.drive,
        storage_quota: config.storage_quota,
        home: foundation.home,
        shares_workspaces: config.are_workspaces_named,
    };
    let outgoing = Outgoing::new(config.environment.clone(), config.private_addresses.clone());
    let credentials = Arc::new(Credentials::new(foundation.store.clone(), outgoing.clone()));
    let node = Node::new(
        foundation.store.clone(),
        Arc::clone(&hub),
        (foundation.keys.clone(), Arc::clone(&credentials)),
        (LocalEnvironments::new(&config.workspaces), containers(config, &log)),
        settings,
        log.clone(),
    );
    let webhooks = Webhooks::new(
        foundation.store.clone(),
        foundation.keys.clone(),
        outgoing,
        config.webhooks,
        (node.id(), log.clone()),
    );
    let metrics = Arc::new(Metrics::new(counted(foundation, &node, &hub, &webhooks)));
    let tokens = Authenticator::new(foundation.store.clone(), foundation.cluster.clone());
    let readiness = Arc::new(Readiness::default());
    let edge = Arc::new(Edge {
        hosts: HostRules::new(config.public_url.as_ref(), &config.allow_hosts, &config.allow_origins),
        tokens: Arc::clone(&tokens),
        rates: RateLimiter::new(config.rates),
        trusted_proxies: config.trusted_proxies.clone(),
        log,
        metrics: Arc::clone(&metrics),
    });
    let app = App {
        store: foundation.store.clone(),
        hub,
        node: Arc::clone(&node),
        keys: foundation.keys.clone(),
        edge,
        metrics,
        models,
        credit_usd: config.credit_usd,
        credentials,
        links: FileLinks::new(
            foundation.cluster.clone(),
            LinkBase {
                public_url: config.public_url.clone(),
                is_tls: config.tls.is_some() || config.behind_proxy,
            },
        ),
        tickets: NodeTickets::new(foundation.cluster.clone()),
        storage_quota: config.storage_quota,
        has_containers: config.container.is_some(),
        private_addresses: config.private_addresses.clone(),
        readiness: Arc::clone(&readiness),
        stop,
        streams: Mutex::new(HashMap::new()),
    };
    let app = Arc::new(app);
    let router = router(Arc::clone(&app), config.roles.api);
    Ok(Parts { node, tokens, readiness, webhooks, app, router, hints })
}

/// What runs containers, where the configuration wants them. What an earlier run left is removed.
fn containers(config: &Config, log: &Log) -> Option<Arc<ContainerEngine>> {
    let engine = ContainerEngine::new(config.container.clone()?, &config.environment, &config.data_dir);
    if config.roles.drive {
        let (engine, log) = (Arc::clone(&engine), log.clone());
        tokio::spawn(async move {
            match engine.remove_leftovers().await {
                Ok(0) => {}
                Ok(count) => log.info("containers_removed", &[("count", &count.to_string())]),
                Err(error) => log.error("containers_unusable", &[("error", &error.to_string())]),
            }
        });
    }
    Some(engine)
}

/// How other nodes are reached: as this one, because all nodes serve alike.
pub(super) fn peers(config: &Config, foundation: &Foundation) -> Peers {
    let name = || config.public_url.as_ref().and_then(|url| url.host_str()).map(str::to_owned);
    Peers {
        tickets: NodeTickets::new(foundation.cluster.clone()),
        tls: config.tls.is_some().then(name),
        environment: config.environment.clone(),
    }
}

/// What every session is opened with.
fn runtime_settings(config: &Config) -> Result<RuntimeSettings, ServeError> {
    let mut settings = RuntimeSettings {
        environment: config.environment.clone(),
        config_root: config.runtime_root(),
        settings: config.settings.clone(),
        is_offline: false,
        credit_usd: config.credit_usd,
    };
    let wrong = |error: String| ServeError::Settings(error);
    let options = settings.model_options("auto").map_err(|error| wrong(error.to_string()))?;
    let model = qoder_models::resolve(&options).map_err(|error| wrong(error.to_string()))?;
    settings.is_offline = model.facts().provider == "offline";
    Ok(settings)
}

fn counted(foundation: &Foundation, node: &Arc<Node>, hub: &Arc<Hub>, webhooks: &Webhooks) -> Counted {
    let statistics = &node.statistics;
    let health = &foundation.health;
    let (running, resting) = (Arc::clone(node), Arc::clone(node));
    let (watched, lagging) = (Arc::clone(hub), Arc::clone(hub));
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Counted {
        counters: vec![
            ("session_claims", "Sessions that were claimed", statistics.claims.clone()),
            ("session_wakes", "Sessions that were opened", statistics.wakes.clone()),
            ("session_warm_wakes", "Sessions that were still open", statistics.warm_wakes.clone()),
            ("session_parks", "Sessions that came to rest", statistics.parks.clone()),
            ("session_takeovers", "Sessions whose node was gone", statistics.takeovers.clone()),
            ("fenced_appends", "Commits that another node had overtaken", statistics.fenced.clone()),
            ("webhooks_delivered", "Notices that endpoints took", webhooks.statistics.delivered.clone()),
            ("webhooks_failed", "Notices that failed", webhooks.statistics.failed.clone()),
            (
                "contact_losses",
                "Times that the node lost contact with the database",
                statistics.losses.clone(),
            ),
            ("session_failures", "Sessions whose seat failed", statistics.failures.clone()),
            ("session_quarantines", "Sessions that were given up", statistics.quarantines.clone()),
            ("barrier_waits", "Times that a session waited for a commit", statistics.barriers.clone()),
            ("barrier_wait_microseconds", "Microseconds that they waited", statistics.barrier_micros.clone()),
            ("input_tokens", "Tokens that models read", statistics.tokens_read.clone()),
            ("output_tokens", "Tokens that models wrote", statistics.tokens_written.clone()),
            ("cost_microdollars", "Millionths of a dollar at list prices", statistics.cost_micros.clone()),
        ],
        shared: vec![
            ("commits", "Transactions that were committed", Arc::clone(&health.commits)),
            ("commit_microseconds", "Microseconds that they took", Arc::clone(&health.commit_micros)),
        ],
        gauges: vec![
            ("seats_running", "Sessions that run", Box::new(move || number(running.seat_counts().0))),
            (
                "seats_warm",
                "Sessions that rest and are still open",
                Box::new(move || number(resting.seat_counts().1)),
            ),
            (
                "stream_lag_events",
                "Most events that a stream was behind since this was last read",
                Box::new(move || i64::try_from(lagging.take_lag()).unwrap_or(i64::MAX)),
            ),
            ("watched_sessions", "Sessions with subscribers", Box::new(move || number(watched.watched()))),
        ],
    }
}
