//! Environments: where the tools of a session run. `local` is a folder of this machine and the sandbox of the runtime.

mod local;
mod mounts;
mod repository;
mod text_folder;
pub mod workspace;

pub use local::{LocalEnvironments, Places};
pub use mounts::MountPoint;
pub use repository::{Checkout, CloneError, RepositoryClone};
pub use text_folder::{FoundText, Stamp, TextFolder};
