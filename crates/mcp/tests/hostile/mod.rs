//! Servers and networks that do what they must not: every outcome is a readable error or a success, within time and
//! memory, and never a hang, a panic or a token in the wrong hands.

use crate::support;

#[cfg(test)]
mod bad_answers;
#[cfg(test)]
mod bad_http;
#[cfg(test)]
mod bad_lists;
#[cfg(test)]
mod bad_starts;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod faulty_messages;
#[cfg(test)]
mod pooled;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod web;

/// The description of the scripted server on pipes.
#[cfg(test)]
fn scripted(start: &str) -> qoder_types::server::NamedServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/server.py");
    support::child(&support::program("venv/bin/python"), &["-u", script, start])
}
