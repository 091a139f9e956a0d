//! The output of calls: bounded for the model, whole in a private file, without secrets.

pub(crate) mod bounds;
pub(crate) mod capture;
