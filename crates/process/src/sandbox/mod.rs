//! The sandbox for commands: what a confined command may read, write and reach, and the machinery that enforces it.
//!
//! A [`Sandbox`] belongs to a session. For each command it makes a [`SandboxPlan`]; [`Confinement::prepare`] turns that
//! into something a fresh child process applies to itself by system calls alone. A restriction that cannot be enforced
//! here is an error and the command does not run: not available is not off.

mod confinement;
mod error;
mod network;
mod plan;
mod probe;
mod scratch;
mod seatbelt;
mod settings;
pub(crate) mod start;
mod wrapper;

#[cfg(target_os = "linux")]
mod broker;
#[cfg(target_os = "linux")]
mod linux;

pub use confinement::Confinement;
pub use error::SandboxError;
pub use network::{HostRules, Resolver, SocketProxy, loopback_to_socket, system_resolver};
pub use plan::{NetworkPlan, Sandbox, SandboxPlaces, SandboxPlan};
pub use probe::{Check, SandboxReport, report};
pub use scratch::Scratch;
pub use settings::{FilesystemSettings, IgnoredViolations, NetworkSettings, SandboxSettings};

pub(crate) use confinement::Running;
