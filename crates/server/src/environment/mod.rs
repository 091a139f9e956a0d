//! Environments: where the tools of a session run. `local` is a folder of this machine and the sandbox of the runtime;
//! `container` runs the same folder in a container.

mod container;
mod local;
mod local_host;
mod mounts;
mod repository;
mod text_folder;
pub mod workspace;

pub use container::{ContainerEngine, ContainerLauncher};
pub use local::{LocalEnvironments, Places};
pub use local_host::LocalLauncher;
pub use mounts::MountPoint;
pub use repository::{Checkout, CloneError, RepositoryClone};
pub use text_folder::{FoundText, Stamp, TextFolder};
