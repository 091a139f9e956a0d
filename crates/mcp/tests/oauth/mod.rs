//! Credentials of remote servers, against a server made with the official Python package and behind its own
//! authorization server. `QODER_TEST_MCP` names the folder whose `venv/` has that package.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connection;
mod full_flow;
mod host_tokens;
mod refusals;
mod renewal;
mod support;
mod token_file;
