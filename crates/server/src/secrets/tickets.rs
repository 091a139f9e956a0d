//! Tickets by which nodes recognise each other: signed with the cluster's key for one node and one session, and soon over.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::ClusterKey;
use crate::model::ids::NodeId;
use crate::model::time::Time;

/// How long a ticket opens something, with room for clocks that differ.
const LIFETIME_MS: i64 = 5 * 60 * 1000;
/// What a ticket begins with in the header.
const SCHEME: &str = "Qoder-Node ";

/// Makes and checks tickets.
#[derive(Debug, Clone)]
pub struct NodeTickets(ClusterKey);

impl NodeTickets {
    /// Signed with this key.
    #[must_use]
    pub fn new(key: ClusterKey) -> Self {
        Self(key)
    }

    fn signed(to: NodeId, session: i64, until: &str) -> String {
        format!("node-pieces/{to}/{session}/{until}")
    }

    /// The header by which a node lets another one read the pieces of a session.
    #[must_use]
    pub fn make(&self, to: NodeId, session: i64) -> String {
        let until = (Time::now().after(LIFETIME_MS).0 / 1_000_000).to_string();
        let signature = URL_SAFE_NO_PAD.encode(self.0.hash(&Self::signed(to, session, &until)));
        format!("{SCHEME}{until}.{signature}")
    }

    /// True when a header is a ticket for this node and session that is not over.
    #[must_use]
    pub fn opens(&self, header: &str, node: NodeId, session: i64) -> bool {
        let parts = header.strip_prefix(SCHEME).and_then(|ticket| ticket.split_once('.'));
        let Some((until, signature)) = parts else { return false };
        let (Ok(seconds), Ok(signature)) = (until.parse::<i64>(), URL_SAFE_NO_PAD.decode(signature)) else {
            return false;
        };
        self.0.fits(&Self::signed(node, session, until), &signature)
            && Time(seconds.saturating_mul(1_000_000)) > Time::now()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keys, MasterKey, MasterSource};
    use super::*;

    #[test]
    fn a_ticket_is_for_one_node_and_one_session() {
        let keys = Keys::new(MasterKey::load(&MasterSource::Variable("ab".repeat(32))).unwrap());
        let cluster = || keys.cluster_key(&keys.new_cluster_key().unwrap()).unwrap();
        let (tickets, foreign) = (NodeTickets::new(cluster()), NodeTickets::new(cluster()));
        let (node, other) = (NodeId([1; 16]), NodeId([2; 16]));
        let ticket = tickets.make(node, 7);
        assert!(tickets.opens(&ticket, node, 7));
        assert!(!tickets.opens(&ticket, other, 7) && !tickets.opens(&ticket, node, 8));
        assert!(!foreign.opens(&ticket, node, 7), "of another cluster");
        let past = "Qoder-Node 1000.".to_owned()
            + &URL_SAFE_NO_PAD.encode(tickets.0.hash(&NodeTickets::signed(node, 7, "1000")));
        for wrong in ["", "Bearer x", "Qoder-Node ", "Qoder-Node 1", "Qoder-Node 99999999999.AAAA", &past] {
            assert!(!tickets.opens(wrong, node, 7), "{wrong}");
        }
    }
}
