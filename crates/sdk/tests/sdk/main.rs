//! The SDK from the outside: each file is about one behaviour, against the engine in process with a scripted model.
//! The files `external_*` drive a program instead: a small script that plays its part, or the real one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent_text;
mod catalog;
mod checkpoints;
mod client;
mod documents;
mod environment;
mod examples;
mod external_real;
mod external_script;
mod hooks;
mod limits;
mod main_agent;
mod messages;
mod model_policy;
mod model_policy_custom;
mod model_policy_purposes;
mod options;
mod permissions;
mod plugins;
mod query;
mod resumed_at;
mod retention;
mod samples;
mod scenarios;
mod servers;
mod session_store;
mod side_calls;
mod skills;
mod slow_reader;
mod store_conformance;
mod stored_sessions;
mod support;
mod surroundings;
mod telemetry;
mod tools;
