//! The mechanisms of Linux: namespaces, Landlock and seccomp, in the order in which a fresh child applies them to itself,
//! and the places that it finds as they are.

pub(crate) mod child;
pub(crate) mod notify;
pub(crate) mod placeholder;
pub(crate) mod protected;
pub(crate) mod read_only;
pub(crate) mod rules;
pub(crate) mod seccomp;
pub(crate) mod steps;
pub(crate) mod trial;
