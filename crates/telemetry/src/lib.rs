//! OpenTelemetry traces and metrics of sessions, made from their records and sent as OTLP over HTTP. Off unless the
//! environment says otherwise: then nothing is built, opened or started. A session is never slowed or failed by it.
//!
//! [`Telemetry`] is what a process has, [`SessionObserver`] what watches one session. Both encodings of the protocol are
//! written here, because the few messages that are sent need less code than a library for all of them.

mod attributes;
mod configuration;
mod exporter;
mod metrics;
mod observer;
mod otlp;
mod spans;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use configuration::Configuration;
use exporter::{Backlog, Item};
use metrics::Measurement;
use otlp::Field;

pub use configuration::SWITCH;
pub use observer::{Clean, SessionObserver};

/// How long the end of a process waits for a collector.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Variables that may hold keys of a collector.
pub const SECRET_VARIABLES: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"];

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) sampled: bool,
}

/// The turn of a session that runs, and the calls in it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) turn: SpanContext,
    pub(crate) calls: BTreeMap<String, [u8; 8]>,
    /// The session of the person.
    pub(crate) conversation: String,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) configuration: Arc<Configuration>,
    backlog: Arc<Backlog>,
    /// By session: agents find the call that started them here.
    running: Mutex<BTreeMap<String, Running>>,
}

impl Inner {
    pub(crate) fn span(&self, fields: Vec<Field>) {
        if self.configuration.traces.is_some() {
            self.backlog.push(Item::Span(fields), &self.configuration);
        }
    }

    pub(crate) fn measure(&self, measurement: Measurement) {
        if self.configuration.metrics.is_some() {
            self.backlog.push(Item::Measurement(measurement), &self.configuration);
        }
    }

    pub(crate) fn with_running<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Running>) -> T) -> T {
        work(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.backlog.close();
    }
}

/// A variable of the environment that telemetry cannot use; the text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TelemetryError(String);

/// The telemetry of a process.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Inner>);

impl Telemetry {
    /// What the environment asks for: nothing unless it names a collector or sets [`SWITCH`]. The error is for people; a
    /// session continues without telemetry.
    ///
    /// # Errors
    /// When a variable cannot be used.
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Result<Option<Self>, TelemetryError> {
        let configuration = configuration::read(environment).map_err(TelemetryError)?;
        Ok(configuration.map(|configuration| {
            Self(Arc::new(Inner {
                configuration: Arc::new(configuration),
                backlog: Arc::default(),
                running: Mutex::default(),
            }))
        }))
    }

    /// Values that must not be shown anywhere.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        &self.0.configuration.secrets
    }

    /// Watches a session. `clean` takes secrets out of texts.
    #[must_use]
    pub fn session(&self, session_id: &str, clean: Clean) -> SessionObserver {
        SessionObserver::new(Arc::clone(&self.0), session_id, clean)
    }

    /// Watches the session of an agent, under the call that started it.
    #[must_use]
    pub fn agent(
        &self,
        (agent_id, agent_type): (&str, &str),
        (parent_session, tool_use_id): (&str, &str),
        clean: Clean,
    ) -> SessionObserver {
        SessionObserver::new(Arc::clone(&self.0), agent_id, clean).of_agent(
            agent_type,
            parent_session,
            tool_use_id,
        )
    }

    /// Sends what waits, for no longer than [`PATIENCE`]. The answer is what went wrong since the start, for people.
    #[must_use]
    pub fn flush(&self) -> Option<String> {
        self.0.backlog.flush(PATIENCE)
    }
}
