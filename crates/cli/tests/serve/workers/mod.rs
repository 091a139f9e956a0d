//! Self-hosted environments: the queue of work, and sessions whose tools workers run.

mod program;
mod queue;
mod sessions;
mod support;
