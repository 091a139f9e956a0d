//! The test kit: a scripted model server that speaks three wire protocols, a sandbox to run the program in, a builder
//! for well-formed logs, a collector of traces and metrics, a conformance suite for session stores, a private PostgreSQL server, and a stable text form
//! of what the model saw. Made for this repository's tests and benchmarks and for everybody who tests an agent of their own. Functions here panic when the set-up itself is broken: in a test
//! that is the clearest report.

mod collector;
mod images;
mod log_builder;
mod postgres;
mod prompt_text;
mod ran;
mod reply;
mod sandbox;
mod script;
mod server;
mod store_conformance;

pub use collector::{Collector, CollectorManner, ReceivedMetric, ReceivedSpan};
pub use images::{FormFile, ImageCall, ImageReply};
pub use log_builder::LogBuilder;
pub use postgres::PostgresServer;
pub use prompt_text::prompt_text;
pub use ran::Ran;
pub use reply::Reply;
pub use sandbox::Sandbox;
pub use script::{Script, assistant_count};
pub use server::{ReceivedRequest, ScriptedServer};
pub use store_conformance::{Awaited, StoreConformance};
