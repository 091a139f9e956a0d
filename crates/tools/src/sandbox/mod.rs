//! The sandbox for commands: what a confined command may read, write and reach, and the machinery that enforces it.
//!
//! A [`Sandbox`] belongs to a session. For each command it makes a [`SandboxPlan`]; [`Confinement::prepare`] turns that
//! into something a fresh child process applies to itself by system calls alone. A restriction that cannot be enforced
//! here is an error and the command does not run: not available is not off.

mod commands;
mod confinement;
mod error;
mod hosts;
mod plan;
mod probe;
mod protected;
mod proxy;
mod proxy_request;
mod scratch;
mod seatbelt;
mod settings;
mod tool;
mod wrapper;

#[cfg(target_os = "linux")]
mod broker;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod notify;
#[cfg(target_os = "linux")]
mod placeholder;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod steps;
#[cfg(target_os = "linux")]
mod trial;

pub use commands::{is_excluded, leaves_sandbox};
pub use confinement::Confinement;
pub use error::SandboxError;
pub use hosts::HostRules;
pub use plan::{NetworkPlan, Sandbox, SandboxPlaces, SandboxPlan};
pub use probe::{Check, SandboxReport, report};
pub use proxy::{Resolver, system_resolver};
pub use scratch::Scratch;
pub use settings::{FilesystemSettings, IgnoredViolations, NetworkSettings, SandboxSettings};

pub(crate) use commands::choose;
#[cfg(target_os = "linux")]
pub(crate) use confinement::ChildPart;
pub(crate) use confinement::Running;
pub(crate) use tool::{annotate, confine, refused};
