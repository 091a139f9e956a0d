//! Vaults: named sets of credentials that sessions use. What is secret of a credential is kept apart and sealed, and never shown.

pub mod auth;
pub mod vault;
