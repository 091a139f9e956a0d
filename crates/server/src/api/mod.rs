//! The routes: one file a resource. Every route is served at both prefixes and in both dialects.

mod agents;
mod app;
mod credentials;
mod environments;
mod events;
mod files;
mod memory;
mod models;
mod router;
mod session_resources;
mod sessions;
mod skills;
mod status;
mod vaults;

pub use app::{App, Readiness};
pub use models::ModelCatalog;
pub use router::router;
