//! The web: fetching pages, searching, and the hosts that may be reached.

mod cache;
mod client;
pub(crate) mod error;
pub(crate) mod fetch;
pub(crate) mod hosts;
mod html;
mod page;
pub(crate) mod post;
pub(crate) mod request;
pub(crate) mod search;
pub(crate) mod search_provider;
