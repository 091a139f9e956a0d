//! Tools that put something to a person: questions, and the plan to be approved.

pub(crate) mod plan;
pub(crate) mod question;
