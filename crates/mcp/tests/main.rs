//! MCP servers: hostile and real ones, and OAuth.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod hostile;
mod oauth;
mod real;
#[cfg(test)]
mod support;
