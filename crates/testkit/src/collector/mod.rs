//! A collector of traces and metrics: a real HTTP server that understands both encodings of the OpenTelemetry protocol,
//! written from its definition and not from the code that sends, and remembers what it was given.

mod protobuf;

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Result, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::server::http;

/// How a collector treats those who come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorManner {
    /// It takes everything.
    Accepts,
    /// It answers with this status.
    Refuses(u16),
    /// It takes requests and never answers.
    Silent,
}

/// A span that a collector was given.
#[derive(Debug, Clone)]
pub struct ReceivedSpan {
    /// The trace.
    pub trace_id: String,
    /// The span.
    pub span_id: String,
    /// The span above; empty at the top.
    pub parent_id: String,
    /// Its name.
    pub name: String,
    /// 1 is internal, 3 is a client.
    pub kind: u64,
    /// Nanoseconds since 1970.
    pub began: u64,
    /// Nanoseconds since 1970.
    pub ended: u64,
    /// True when its status is an error.
    pub is_error: bool,
    /// Its attributes.
    pub attributes: BTreeMap<String, Value>,
}

/// A data point of a metric that a collector was given.
#[derive(Debug, Clone)]
pub struct ReceivedMetric {
    /// The metric.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How many values a histogram has; 1 for a sum.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The attributes of the point.
    pub attributes: BTreeMap<String, Value>,
}

#[derive(Debug)]
struct ReceivedBody {
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

#[derive(Debug, Default)]
struct Received {
    connections: usize,
    requests: Vec<ReceivedBody>,
    open: Vec<TcpStream>,
}

/// A collector on a free port of the loopback address.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
    stopping: Arc<AtomicBool>,
}

impl Collector {
    /// Starts a collector.
    ///
    /// # Panics
    /// When the loopback address has no free port.
    #[expect(clippy::expect_used, reason = "a test without a server cannot continue")]
    #[must_use]
    pub fn start(manner: CollectorManner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback address has a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let received: Arc<Mutex<Received>> = Arc::default();
        let stopping = Arc::new(AtomicBool::new(false));
        let (all, stops) = (Arc::clone(&received), Arc::clone(&stopping));
        std::thread::spawn(move || {
            for connection in listener.incoming().filter_map(Result::ok) {
                if stops.load(Ordering::Relaxed) {
                    return;
                }
                let mut state = all.lock().unwrap_or_else(PoisonError::into_inner);
                state.connections += 1;
                state.open.extend(connection.try_clone());
                drop(state);
                let all = Arc::clone(&all);
                // A client that goes away in the middle is part of what is tested.
                std::thread::spawn(move || serve(&connection, &all, manner).ok());
            }
        });
        Self { address, received, stopping }
    }

    /// The address without a path, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn received<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many connections were opened so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.received(|received| received.connections)
    }

    /// The header of this name on every request so far; empty where it is missing.
    #[must_use]
    pub fn headers(&self, name: &str) -> Vec<String> {
        let header = |headers: &Vec<(String, String)>| {
            let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        self.received(|received| received.requests.iter().map(|request| header(&request.headers)).collect())
    }

    /// Everything that came to a path, as JSON of the protocol.
    #[must_use]
    pub fn bodies(&self, path: &str) -> Vec<Value> {
        self.received(|received| {
            let of_path = received.requests.iter().filter(|request| request.path == path);
            of_path.map(|request| request.body.clone()).collect()
        })
    }

    /// Every span so far.
    #[must_use]
    pub fn spans(&self) -> Vec<ReceivedSpan> {
        let bodies = self.bodies("/v1/traces");
        let spans = bodies.iter().flat_map(|body| list(body, "resourceSpans"));
        let spans = spans.flat_map(|resource| list(resource, "scopeSpans"));
        spans.flat_map(|scope| list(scope, "spans")).map(span).collect()
    }

    /// Every data point of the last word about metrics.
    #[must_use]
    pub fn metrics(&self) -> Vec<ReceivedMetric> {
        let Some(body) = self.bodies("/v1/metrics").pop() else { return Vec::new() };
        let scopes =
            list(&body, "resourceMetrics").iter().flat_map(|resource| list(resource, "scopeMetrics"));
        scopes.flat_map(|scope| list(scope, "metrics")).flat_map(points).collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        for connection in self.received.lock().unwrap_or_else(PoisonError::into_inner).open.drain(..) {
            // It may be closed already.
            connection.shutdown(Shutdown::Both).ok();
        }
        // Wakes the acceptor, which then sees that the server stops.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(connection: &TcpStream, received: &Mutex<Received>, manner: CollectorManner) -> Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = BufWriter::new(connection.try_clone()?);
    while let Some(request) = http::read_request(&mut reader)? {
        let kind = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let body = match kind.map(|(_, kind)| kind.as_str()) {
            Some("application/json") => serde_json::from_slice(&request.body).unwrap_or(Value::Null),
            Some(_) | None => protobuf::read(&request.path, &request.body),
        };
        let mut all = received.lock().unwrap_or_else(PoisonError::into_inner);
        all.requests.push(ReceivedBody { path: request.path, headers: request.headers, body });
        drop(all);
        match manner {
            CollectorManner::Accepts => http::write_answer(&mut writer, 200, &[], "application/json", b"{}")?,
            CollectorManner::Refuses(status) => {
                http::write_answer(&mut writer, status, &[], "text/plain", b"no")?
            }
            CollectorManner::Silent => continue,
        }
        writer.flush()?;
    }
    Ok(())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn span(value: &Value) -> ReceivedSpan {
    ReceivedSpan {
        trace_id: text(&value["traceId"]),
        span_id: text(&value["spanId"]),
        parent_id: text(&value["parentSpanId"]),
        name: text(&value["name"]),
        kind: number(&value["kind"]),
        began: number(&value["startTimeUnixNano"]),
        ended: number(&value["endTimeUnixNano"]),
        is_error: number(&value["status"]["code"]) == 2,
        attributes: attributes(value),
    }
}

fn points(metric: &Value) -> Vec<ReceivedMetric> {
    let histogram = list(&metric["histogram"], "dataPoints");
    let sums = list(&metric["sum"], "dataPoints");
    let point = |point: &Value| ReceivedMetric {
        name: text(&metric["name"]),
        unit: text(&metric["unit"]),
        count: if point["count"].is_null() { 1 } else { number(&point["count"]) },
        sum: point["sum"].as_f64().or_else(|| point["asDouble"].as_f64()).unwrap_or(0.0),
        attributes: attributes(point),
    };
    histogram.iter().chain(sums).map(point).collect()
}

fn attributes(value: &Value) -> BTreeMap<String, Value> {
    let pair = |pair: &Value| {
        let value = &pair["value"];
        let plain = match value.as_object().and_then(|value| value.iter().next()) {
            Some((kind, number)) if kind == "intValue" => {
                Value::from(number.as_str().and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0))
            }
            Some((kind, list)) if kind == "arrayValue" => list["values"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| item["stringValue"].clone())
                .collect(),
            Some((_, plain)) => plain.clone(),
            None => Value::Null,
        };
        (text(&pair["key"]), plain)
    };
    list(value, "attributes").iter().map(pair).collect()
}
