//! Numbers for Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// A number that is read when it is asked for.
pub type ReadNumber = Box<dyn Fn() -> i64 + Send + Sync>;

/// Numbers of a server.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    times: Family<RouteLabels, Histogram>,
    /// Streams that are open.
    pub streams: Gauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// Numbers that are read when they are asked for.
struct Reading {
    gauges: Vec<(&'static str, &'static str, ReadNumber)>,
    counters: Vec<(&'static str, &'static str, Arc<AtomicU64>)>,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Reading({} numbers)", self.gauges.len() + self.counters.len())
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, read) in &self.gauges {
            let gauge = ConstGauge::new(read());
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        for (name, help, value) in &self.counters {
            let counter = ConstCounter::new(value.load(std::sync::atomic::Ordering::Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        Ok(())
    }
}

/// A client can make any method up, and every new one would be a row of its own for ever.
fn known(method: &Method) -> &str {
    match method.as_str() {
        name @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => name,
        _ => "other",
    }
}

/// What a server counts besides requests.
#[derive(Default)]
pub struct Counted {
    /// Counters by name and help.
    pub counters: Vec<(&'static str, &'static str, Counter)>,
    /// Counters that others keep.
    pub shared: Vec<(&'static str, &'static str, Arc<AtomicU64>)>,
    /// Numbers that are read when they are asked for.
    pub gauges: Vec<(&'static str, &'static str, ReadNumber)>,
}

impl Metrics {
    /// Numbers of a server, all of them zero.
    #[must_use]
    pub fn new(counted: Counted) -> Self {
        let mut registry = Registry::with_prefix("qoder");
        let requests = Family::<RequestLabels, Counter>::default();
        let times = Family::<RouteLabels, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.000_5, 2.0, 16))
        });
        let streams = Gauge::default();
        registry.register("http_requests", "Requests by route and code", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from a request to its answer",
            Unit::Seconds,
            times.clone(),
        );
        registry.register("streams", "Streams that are open", streams.clone());
        for (name, help, counter) in counted.counters {
            registry.register(name, help, counter);
        }
        registry.register_collector(Box::new(Reading { gauges: counted.gauges, counters: counted.shared }));
        Self { registry, requests, times, streams }
    }

    /// Counts a request.
    pub fn request(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let (method, route) = (known(method).to_owned(), route.to_owned());
        let labels = RequestLabels { method, route: route.clone(), code: status.as_u16() };
        self.requests.get_or_create(&labels).inc();
        self.times.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    }

    /// The numbers as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
