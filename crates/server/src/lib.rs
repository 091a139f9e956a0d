//! `qodercli serve`: the cloud agents API on one's own machines. Sessions of the runtime behind HTTP, kept in SQL.
//!
//! * [`config`]: options, file and environment. * [`serve`]: wiring, from a configuration to a server that runs.
//! * `http`, `api`: what is said on the wire. * `model`: rules without IO. * `store`: rows and blobs.
//! * `outgoing`: requests to servers of tenants. * `credentials`: what vaults hold, opened and renewed.
//! * `drive`: sessions that run. * `project`: records to events. * `fanout`: events to subscribers.

pub mod admin;
pub mod api;
pub mod config;
pub mod credentials;
pub mod drive;
pub mod environment;
pub mod fanout;
pub mod http;
pub mod model;
pub mod observe;
pub mod outgoing;
pub mod project;
pub mod secrets;
pub mod serve;
pub mod store;
