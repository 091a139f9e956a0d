//! What a confined command may reach: the rules about hosts, the proxy that applies them, and on Linux the sockets that lead
//! from the command's own network to that proxy.

#[cfg(target_os = "linux")]
pub(crate) mod doors;
pub(crate) mod hosts;
pub(crate) mod proxy;
mod proxy_request;
mod socket;

pub use hosts::HostRules;
pub use proxy::{Resolver, system_resolver};
pub use socket::{SocketProxy, loopback_to_socket};
