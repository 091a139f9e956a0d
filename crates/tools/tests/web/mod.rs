//! Tools that reach the web.

mod fetch;
mod fetch_bad_servers;
mod fetch_hosts;
mod fetch_redirects;
mod search;
