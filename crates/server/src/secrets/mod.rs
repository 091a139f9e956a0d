//! Secrets at rest. A master key, from the environment, a file or a command, seals the cluster's key and one key a tenant; those
//! seal everything else. Sealed bytes are bound to where they are kept, so that they cannot be moved to another row.

mod keys;
mod master;
mod seal;
mod tickets;

pub use keys::{ClusterKey, DataKey, Keys};
pub use master::{MasterKey, MasterSource, SecretsError};
pub use seal::{SealError, Sealed};
pub use tickets::NodeTickets;
