//! What all routes share: connections and their limits, who calls, how errors look, pages, and requests that count once.

mod address;
mod answer;
mod auth;
mod body;
mod connection;
mod edge;
mod errors;
mod hosts;
mod once;
mod pages;
mod query;
mod rates;
mod request;
mod timed_io;
mod tls;

pub use answer::{json, rendered};
pub use auth::{Authenticator, Principal, Scope, TokenText};
pub use connection::{Acceptor, serve_connections};
pub use edge::{Edge, pass};
pub use errors::ApiError;
pub use hosts::HostRules;
pub use once::{kept, once};
pub use pages::{Cursor, PageRequest, page, page_of_ids};
pub use query::Query;
pub use rates::RateLimiter;
pub use request::ApiRequest;
pub use tls::{TlsError, acceptor};
