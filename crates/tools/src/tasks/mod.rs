//! Background tasks: their life, the register of a session, and the tools that look at them and stop them.

pub(crate) mod agent;
pub(crate) mod lifecycle;
pub(crate) mod output;
pub(crate) mod register;
pub(crate) mod stop;
pub(crate) mod text;
pub(crate) mod todo;
