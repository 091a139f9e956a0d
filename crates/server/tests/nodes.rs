//! Nodes: one a home, beats, what each holds, and hints.

use std::time::Duration;

use qoder_server::model::ids::NodeId;
use qoder_server::store::{Hint, LeaseRow};

use super::support::{Stage, behaviours, node_row, now, plain};

behaviours!(
    a_node_replaces_its_predecessor,
    what_a_node_holds_and_sessions_have_is_known,
    hints_reach_those_who_listen
);

async fn a_node_replaces_its_predecessor(stage: Stage) {
    let (home, first, second) = (NodeId::random(), NodeId::random(), NodeId::random());
    stage.db.register_node(node_row(first, home)).await.unwrap();
    assert!(stage.db.beat(first).await.unwrap());
    stage.db.register_node(node_row(second, home)).await.unwrap();
    assert!(!stage.db.beat(first).await.unwrap(), "it was replaced");
    assert!(stage.db.beat(second).await.unwrap());
    stage.db.drain_node(second).await.unwrap();
    let nodes = stage.db.list_nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[0].id, nodes[0].is_draining), (1, second, true));
    assert_eq!(nodes[0].address, "127.0.0.1:1");
    if stage.db.is_shared() {
        let (other, elsewhere) = (NodeId::random(), NodeId::random());
        stage.db.register_node(node_row(other, elsewhere)).await.unwrap();
        assert_eq!(stage.db.list_nodes().await.unwrap().len(), 2);
        assert!(stage.db.beat(second).await.unwrap() && stage.db.beat(other).await.unwrap());
        stage.db.remove_node(other).await.unwrap();
    }
    stage.db.remove_node(second).await.unwrap();
    assert!(stage.db.list_nodes().await.unwrap().is_empty());
    assert!(!stage.db.beat(second).await.unwrap());
}

async fn what_a_node_holds_and_sessions_have_is_known(stage: Stage) {
    let (session, claim, node) = stage.claimed().await;
    let lease = LeaseRow { key: claim.key, fence: claim.fence, inbox_seq: 1 };
    assert_eq!(stage.db.leases(node).await.unwrap(), [lease]);
    let (_, other) = stage.session().await;
    let mut newest = stage.db.newest_events(vec![claim.key, other, 999_999]).await.unwrap();
    newest.sort_unstable();
    assert_eq!(newest, [(claim.key, 2), (other, 0)]);
    now(stage.db.delete_session(stage.tenant, session, plain()).await.unwrap());
    assert_eq!(stage.db.newest_events(vec![claim.key]).await.unwrap(), [], "it was deleted");
    assert!(stage.db.leases(node).await.unwrap().is_empty());
    assert_eq!(stage.db.events_after(claim.key, 0, 1).await.unwrap(), None);
}

async fn hints_reach_those_who_listen(stage: Stage) {
    let (node, other) = (NodeId::random(), NodeId::random());
    let listening = stage.db.listen(node).await.unwrap();
    assert_eq!(listening.is_some(), stage.db.is_shared());
    let events = Hint::Events { key: 7, seq: 9 };
    let hints = vec![events, Hint::Wake, Hint::Inbox { node: other, key: 5 }, Hint::Inbox { node, key: 6 }];
    stage.db.announce(hints).await.unwrap();
    stage.db.announce(Vec::new()).await.unwrap();
    let Some(mut listening) = listening else { return };
    let mut heard = Vec::new();
    while heard.len() < 3 {
        heard.push(tokio::time::timeout(Duration::from_secs(30), listening.recv()).await.unwrap().unwrap());
    }
    for hint in [events, Hint::Wake, Hint::Inbox { node, key: 6 }] {
        assert!(heard.contains(&hint), "{heard:?}");
    }
}
