//! The SDK from the outside: each file is about one behaviour, against the engine in process with a scripted model.
//! The files `external_*` drive a program instead: a small script that plays its part, or the real one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod catalog;
mod client;
mod documents;
mod examples;
mod external_real;
mod external_script;
mod hooks;
mod messages;
mod model_policy;
mod options;
mod permissions;
mod query;
mod samples;
mod scenarios;
mod servers;
mod support;
mod tools;
