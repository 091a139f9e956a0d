//! The routes: one file a resource. Every route is served at both prefixes and in both dialects.

mod agents;
mod app;
mod automation;
mod credentials;
mod environments;
mod events;
mod files;
mod memory;
mod models;
mod routes;
mod session_resources;
mod sessions;
mod skills;
mod status;
mod vaults;

pub use app::{App, Readiness};
pub use automation::run_schedules;
pub use models::ModelCatalog;
pub use routes::{openapi, router};
