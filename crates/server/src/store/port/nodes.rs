//! Nodes in the database: who is there, what each holds, and how they hear of each other. A hint saves time and nothing else: what it
//! says is also found by asking, and one that is lost harms nothing.

use tokio::sync::mpsc;

use super::DbFuture;
use crate::model::ids::NodeId;
use crate::model::time::Time;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The run of the process.
    pub id: NodeId,
    /// The data directory of the process. A process that starts there again replaces its predecessor.
    pub home: NodeId,
    /// Where it listens.
    pub address: String,
    /// Its version.
    pub version: String,
    /// Since when.
    pub started_at: Time,
    /// Until when it counts as alive.
    pub expires_at: Time,
    /// True while it takes no more work.
    pub is_draining: bool,
}

/// A session that a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRow {
    /// The session.
    pub key: i64,
    /// The lease.
    pub fence: i64,
    /// The last entry that was ever left for it.
    pub inbox_seq: u64,
}

/// Who drives a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The session.
    pub key: i64,
    /// The node.
    pub node: NodeId,
    /// Where it listens.
    pub address: String,
}

/// What nodes tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// A session has events up to this one.
    Events {
        /// The session.
        key: i64,
        /// Its newest event.
        seq: u64,
    },
    /// A session was deleted.
    Deleted {
        /// The session.
        key: i64,
    },
    /// A session is due.
    Wake,
    /// Something was left for a session that this node holds.
    Inbox {
        /// Which node.
        node: NodeId,
        /// The session.
        key: i64,
    },
}

/// Hints of all nodes, until the connection is lost.
pub type Hints = mpsc::Receiver<Hint>;

/// Nodes, and how they hear of each other.
pub trait NodesDb {
    /// True when several nodes may use the database.
    fn is_shared(&self) -> bool;
    /// Says that a node is there. One that had its home before is gone.
    fn register_node(&self, node: NodeRow) -> DbFuture<'_, ()>;
    /// Says that a node is still there. False when it counts as gone, so that others may have taken its sessions.
    fn beat(&self, id: NodeId) -> DbFuture<'_, bool>;
    /// Says that a node takes no more work.
    fn drain_node(&self, id: NodeId) -> DbFuture<'_, ()>;
    /// Says that a node is gone.
    fn remove_node(&self, id: NodeId) -> DbFuture<'_, ()>;
    /// Every node.
    fn list_nodes(&self) -> DbFuture<'_, Vec<NodeRow>>;
    /// The sessions that a node holds.
    fn leases(&self, node: NodeId) -> DbFuture<'_, Vec<LeaseRow>>;
    /// The newest events of sessions; one that was deleted is left out.
    fn newest_events(&self, keys: Vec<i64>) -> DbFuture<'_, Vec<(i64, u64)>>;
    /// Which nodes drive sessions, and where they listen; sessions that rest are left out.
    fn drivers(&self, keys: Vec<i64>) -> DbFuture<'_, Vec<Driver>>;
    /// Gives hints to other nodes.
    fn announce(&self, hints: Vec<Hint>) -> DbFuture<'_, ()>;
    /// Listens for the hints of other nodes to this one; `None` when no other node can use the database.
    fn listen(&self, node: NodeId) -> DbFuture<'_, Option<Hints>>;
}
