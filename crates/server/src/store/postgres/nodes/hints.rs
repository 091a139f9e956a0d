//! Hints as notifications: many on one, and never in a transaction with something else, because a commit that notifies holds a lock
//! on the whole instance.

use std::collections::BTreeMap;

use deadpool_postgres::Object;

use crate::model::ids::{NodeId, hex};
use crate::store::error::DbError;
use crate::store::port::Hint;

/// Channels that every node listens to.
pub(super) const EVENTS: &str = "qoder_events";
pub(super) const WAKE: &str = "qoder_wake";
/// In place of the newest event of a session that was deleted.
const DELETED: &str = "deleted";
/// The most bytes of a notification.
const MOST_BYTES: usize = 7_900;

/// The channel of one node.
pub(super) fn channel(node: NodeId) -> String {
    format!("qoder_node_{}", hex(&node.0))
}

/// The notifications that carry hints: a channel and a text each.
fn notifications(hints: Vec<Hint>) -> Vec<(String, String)> {
    let mut newest: BTreeMap<i64, u64> = BTreeMap::new();
    let mut parts: Vec<(String, String)> = Vec::new();
    for hint in hints {
        match hint {
            Hint::Events { key, seq } => {
                let known = newest.entry(key).or_default();
                *known = seq.max(*known);
            }
            Hint::Deleted { key } => parts.push((EVENTS.to_owned(), format!("{key}:{DELETED}"))),
            Hint::Wake => parts.push((WAKE.to_owned(), String::new())),
            Hint::Inbox { node, key } => parts.push((channel(node), key.to_string())),
        }
    }
    parts.extend(newest.into_iter().map(|(key, seq)| (EVENTS.to_owned(), format!("{key}:{seq}"))));
    parts.sort_unstable();
    parts.dedup();
    let mut joined: Vec<(String, String)> = Vec::new();
    for (channel, part) in parts {
        match joined.last_mut() {
            Some((last, text)) if *last == channel && text.len() + part.len() < MOST_BYTES => {
                text.push(',');
                text.push_str(&part);
            }
            _ => joined.push((channel, part)),
        }
    }
    joined
}

/// What a notification on a channel says to a node. Parts that cannot be read are left out: a newer node may have sent them.
pub(super) fn read(node: NodeId, on: &str, text: &str) -> Vec<Hint> {
    if on == WAKE {
        return vec![Hint::Wake];
    }
    let is_own = on == channel(node);
    let part = |part: &str| match part.split_once(':') {
        Some((key, DELETED)) if on == EVENTS => Some(Hint::Deleted { key: key.parse().ok()? }),
        Some((key, seq)) if on == EVENTS => {
            Some(Hint::Events { key: key.parse().ok()?, seq: seq.parse().ok()? })
        }
        None if is_own => Some(Hint::Inbox { node, key: part.parse().ok()? }),
        Some(_) | None => None,
    };
    text.split(',').filter_map(part).collect()
}

pub(super) async fn announce(connection: &Object, hints: Vec<Hint>) -> Result<(), DbError> {
    let (channels, texts): (Vec<String>, Vec<String>) = notifications(hints).into_iter().unzip();
    if channels.is_empty() {
        return Ok(());
    }
    let sql = "SELECT pg_notify(u.channel, u.text) FROM unnest($1::text[], $2::text[]) AS u (channel, text)";
    let statement = connection.prepare_cached(sql).await?;
    connection.query(&statement, &[&channels, &texts]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_is_read_and_many_hints_share_a_notification() {
        let (node, other) = (NodeId([1; 16]), NodeId([2; 16]));
        let mut hints: Vec<Hint> = (0..5_000).map(|key| Hint::Events { key, seq: 7 }).collect();
        hints.extend([
            Hint::Wake,
            Hint::Events { key: 3, seq: 9 },
            Hint::Wake,
            Hint::Inbox { node, key: 4 },
            Hint::Inbox { node: other, key: 5 },
            Hint::Deleted { key: 8 },
        ]);
        let sent = notifications(hints);
        assert!(sent.len() < 12 && sent.iter().all(|(_, text)| text.len() < 8_000), "{}", sent.len());
        let read: Vec<Hint> = sent.iter().flat_map(|(on, text)| read(node, on, text)).collect();
        assert_eq!(read.iter().filter(|hint| **hint == Hint::Wake).count(), 1);
        assert!(read.contains(&Hint::Events { key: 3, seq: 9 }), "the newest one counts");
        assert!(!read.contains(&Hint::Events { key: 3, seq: 7 }));
        assert!(read.contains(&Hint::Deleted { key: 8 }));
        assert_eq!(read.len(), 5_000 + 3, "another node's inbox is not ours");
        assert!(super::read(node, EVENTS, "junk,1:x,5").is_empty());
    }
}
