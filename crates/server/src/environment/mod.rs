//! Environments: where the tools of a session run. `local` is a folder of this machine and the sandbox of the runtime.

mod local;
mod mounts;

pub use local::{LocalEnvironments, Places};
pub use mounts::MountPoint;
