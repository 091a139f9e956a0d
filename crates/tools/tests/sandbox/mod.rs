//! What the sandbox keeps a command from, and what it does not.

mod elsewhere;
mod escapes;
mod files;
mod network;
mod ordinary;
mod other_processes;
mod outlives_the_call;
mod protected_depth;
