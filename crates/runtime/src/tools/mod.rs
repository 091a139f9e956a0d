//! Tools that need the session itself, and the toolbox in which the model finds all of them.

pub(crate) mod config;
pub mod skill;
pub(crate) mod structured;
pub mod toolbox;
