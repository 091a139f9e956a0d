//! The thread that sends. What is to be sent waits in a bounded backlog; what does not fit is dropped and counted, so a
//! collector that is slow, dead or refuses costs a session nothing. The thread begins with the first thing to send.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Client;

use crate::attributes::{Attribute, pair};
use crate::configuration::{Configuration, Encoding, Target};
use crate::metrics::{Measurement, Meter};
use crate::otlp::{Field, Node, each, json, message, one, protobuf};

/// What may wait.
const MOST_WAITING: usize = 4096;
/// Spans of one request.
const MOST_TOGETHER: usize = 512;

/// Something to send.
#[derive(Debug)]
pub(crate) enum Item {
    /// A span, as the fields of its message.
    Span(Vec<Field>),
    /// A measurement.
    Measurement(Measurement),
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    started: bool,
    closed: bool,
    /// How often a caller asked to send everything, and how often that was done.
    wanted: u64,
    sent: u64,
    dropped: u64,
    problem: Option<String>,
}

/// What waits, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    state: Mutex<State>,
    changed: Condvar,
}

impl Backlog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something in line; it never waits.
    pub(crate) fn push(self: &Arc<Self>, item: Item, configuration: &Arc<Configuration>) {
        let mut state = self.lock();
        if state.items.len() >= MOST_WAITING {
            state.dropped += 1;
            return;
        }
        state.items.push_back(item);
        if state.started {
            // The thread looks by itself in time; only a full batch is worth waking it for.
            if state.items.len() >= MOST_TOGETHER {
                self.changed.notify_all();
            }
            return;
        }
        state.started = true;
        let (backlog, configuration) = (Arc::clone(self), Arc::clone(configuration));
        let thread = std::thread::Builder::new().name("telemetry".to_owned());
        if thread.spawn(move || Exporter::run(&backlog, &configuration)).is_err() {
            state.problem = Some("no thread could be started".to_owned());
        }
    }

    /// Sends everything that waits, for no longer than `patience`. The answer is what went wrong since the start.
    pub(crate) fn flush(&self, patience: Duration) -> Option<String> {
        let mut state = self.lock();
        if !state.started {
            return None;
        }
        state.wanted += 1;
        let wanted = state.wanted;
        self.changed.notify_all();
        let waits = |state: &mut State| state.sent < wanted;
        let (mut state, waited) =
            self.changed.wait_timeout_while(state, patience, waits).unwrap_or_else(PoisonError::into_inner);
        let late = waited
            .timed_out()
            .then(|| format!("the collector did not answer within {} s", patience.as_secs()));
        let problem = state.problem.take().or(late);
        let dropped = std::mem::take(&mut state.dropped);
        match (problem, dropped) {
            (None, 0) => None,
            (None, dropped) => {
                Some(format!("{dropped} spans and measurements were dropped: too many waited"))
            }
            (Some(problem), 0) => Some(problem),
            (Some(problem), dropped) => {
                Some(format!("{problem}; {dropped} spans and measurements were dropped"))
            }
        }
    }

    /// Takes no more items; the thread sends what is left and ends.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

struct Exporter<'a> {
    backlog: &'a Backlog,
    configuration: &'a Configuration,
    runtime: tokio::runtime::Runtime,
    client: Client,
    meter: Meter,
    start_nanos: u64,
}

impl Exporter<'_> {
    fn run(backlog: &Backlog, configuration: &Configuration) {
        let ready = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
            .and_then(|runtime| client(configuration).map(|client| (runtime, client)));
        match ready {
            Ok((runtime, client)) => {
                let meter = Meter::default();
                Exporter { backlog, configuration, runtime, client, meter, start_nanos: now_nanos() }.work();
            }
            Err(problem) => {
                let mut state = backlog.lock();
                state.problem = Some(problem);
                // Callers must not wait for what cannot be sent.
                state.sent = u64::MAX;
                backlog.changed.notify_all();
            }
        }
    }

    fn work(&mut self) {
        let mut measured = Instant::now();
        loop {
            let (items, wanted, closed) = self.next();
            let mut spans = Vec::new();
            for item in items {
                match item {
                    Item::Span(fields) => spans.push(each(2, "spans", Node::Message(fields))),
                    Item::Measurement(measurement) => self.meter.add(measurement),
                }
            }
            for batch in spans.chunks(MOST_TOGETHER) {
                self.send(self.configuration.traces.as_ref(), batch, ("resourceSpans", "scopeSpans"));
            }
            let last = closed || wanted.is_some();
            if (last || measured.elapsed() >= self.configuration.metric_interval) && !self.meter.is_empty() {
                measured = Instant::now();
                let metrics = self.meter.fields(self.start_nanos, now_nanos());
                self.send(self.configuration.metrics.as_ref(), &metrics, ("resourceMetrics", "scopeMetrics"));
            }
            if let Some(wanted) = wanted {
                self.backlog.lock().sent = wanted;
                self.backlog.changed.notify_all();
            }
            if closed {
                return;
            }
        }
    }

    /// Waits until there is a batch, the time has come, or a caller asks to send everything.
    fn next(&self) -> (VecDeque<Item>, Option<u64>, bool) {
        let patience = self.configuration.span_delay.min(self.configuration.metric_interval);
        let waits = |state: &mut State| {
            !state.closed && state.wanted <= state.sent && state.items.len() < MOST_TOGETHER
        };
        let waited = self.backlog.changed.wait_timeout_while(self.backlog.lock(), patience, waits);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let wanted = (state.wanted > state.sent).then_some(state.wanted);
        (std::mem::take(&mut state.items), wanted, state.closed)
    }

    fn send(&self, target: Option<&Target>, fields: &[Field], names: (&'static str, &'static str)) {
        let Some(target) = target else { return };
        let resource = self.configuration.resource.iter();
        let resource = resource.map(|(name, value)| {
            each(1, "attributes", Node::Message(pair(name, &Attribute::Text(value.clone()))))
        });
        let scope = vec![
            one(1, "name", Node::Text("qoder".to_owned())),
            one(2, "version", Node::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ];
        let mut scoped = vec![message(1, "scope", scope)];
        scoped.extend(fields.iter().cloned());
        let body = vec![each(
            1,
            names.0,
            Node::Message(vec![
                message(1, "resource", resource.collect()),
                each(2, names.1, Node::Message(scoped)),
            ]),
        )];
        let (kind, body) = match self.configuration.encoding {
            Encoding::Protobuf => ("application/x-protobuf", protobuf(&body)),
            Encoding::Json => ("application/json", json(&body).to_string().into_bytes()),
        };
        let request = self.client.post(target.address.clone()).headers(target.headers.clone());
        let request = request.header("content-type", kind).body(body).timeout(self.configuration.timeout);
        let problem = match self.runtime.block_on(async { request.send().await }) {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector answered {}", response.status().as_u16())),
            Err(error) => Some(format!("the collector cannot be reached: {}", innermost(&error))),
        };
        if let Some(problem) = problem {
            let mut state = self.backlog.lock();
            state.problem.get_or_insert(problem);
        }
    }
}

/// One client for both places: either all of them are on this machine, and no proxy is asked, or none counts as such.
fn client(configuration: &Configuration) -> Result<Client, String> {
    let targets = || configuration.traces.iter().chain(&configuration.metrics).map(|target| &target.address);
    let elsewhere = targets().find(|address| !qoder_http::is_loopback(address));
    // A client that was begun for https has certificates, which an address without TLS does not mind.
    let secure = targets().find(|address| address.scheme() == "https");
    let Some(first) = secure.or(elsewhere).or_else(|| targets().next()) else {
        return Err("there is no collector".to_owned());
    };
    qoder_http::builder(first, &configuration.network)
        .map_err(|error| error.to_string())?
        .connect_timeout(configuration.timeout)
        .build()
        .map_err(|error| format!("cannot set up HTTP: {}", innermost(&error)))
}

/// The innermost cause; the outer ones repeat the address, which may hold a key.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() { "no answer in time".to_owned() } else { qoder_http::innermost(error) }
}

fn now_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
