//! What all routes share: connections and their limits, who calls, how errors look, pages, and requests that count once.

mod address;
mod answer;
mod auth;
mod connection;
mod edge;
mod errors;
mod hosts;
mod links;
mod once;
mod pages;
mod rates;
mod request;
mod timed_io;
mod tls;
mod workers;

pub use answer::{bytes, json, rendered};
pub use auth::{Authenticator, Principal, Scope, TokenText};
pub use connection::{Acceptor, serve_connections};
pub use edge::{Edge, pass};
pub use errors::ApiError;
pub use hosts::HostRules;
pub use links::{FileLinks, LinkBase};
pub use once::{kept, once};
pub use pages::{Cursor, PageRequest, page, page_of_ids};
pub use rates::RateLimiter;
pub use request::{ApiRequest, FormPart, FormReader, Query, form};
pub use tls::{TlsError, acceptor};
pub use workers::{ENVIRONMENT_SCOPE, WorkItem, WorkToken, Worker};
