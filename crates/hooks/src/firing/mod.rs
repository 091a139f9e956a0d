//! Calling hooks: which of them an event concerns, running each kind, reporting the runs, and what comes after the caller
//! has continued.

pub(crate) mod announce;
pub(crate) mod background;
pub(crate) mod command;
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod matcher;
pub(crate) mod prompt;
pub(crate) mod run;
pub(crate) mod set;
