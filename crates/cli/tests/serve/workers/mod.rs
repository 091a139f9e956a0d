//! Self-hosted environments: the queue of work, and sessions whose tools workers run.

mod queue;
mod sessions;
mod support;
