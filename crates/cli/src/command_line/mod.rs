//! The command line of a run and what commands share of it: flags, where to look, the nearest known word, the environment.

pub mod arguments;
pub mod environment;
pub mod nearest;
pub mod place;
pub mod repeated;
