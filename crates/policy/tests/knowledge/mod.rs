//! What is known about commands, as tables: command lines on one side, what they touch and whether they are proven to
//! only read on the other. Every use that is proven is tested beside dangerous neighbours that are not.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod effects;
mod flags;
mod git;
mod line;
mod properties;
mod read_only;
mod suggestions;
