//! What every database of the server has to do: the same behaviours, on SQLite and on PostgreSQL.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod appending;
mod automation;
mod claiming;
mod inputs;
mod lists;
mod memory;
mod nodes;
mod once;
mod operations;
mod races;
mod resources;
mod sessions;
mod simulation;
mod support;
mod threads;
