//! Stores, inboxes, leases and followed logs, from outside.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod conformance;
mod follow;
mod inbox;
mod lease;
