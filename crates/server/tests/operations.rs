//! Tokens, keys, blobs and the care of the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use qoder_server::model::ids::{NodeId, TenantId};
use qoder_server::model::time::Time;
use qoder_server::store::{NewToken, ObjectStoreUrl, Objects, Store, WorkspaceChange, workspace_folder};

use super::support::{Stage, behaviours, keyed, message, now, plain};

behaviours!(
    tokens_are_created_used_and_revoked,
    values_of_the_whole_are_made_once,
    blobs_are_read_as_they_were_written,
    what_was_deleted_is_removed,
    what_is_kept_of_a_workspace_goes_a_day_after_its_session,
    the_database_says_how_it_is,
);

async fn tokens_are_created_used_and_revoked(stage: Stage) {
    let token = |id: &str, tenant: &str| NewToken {
        id: id.to_owned(),
        tenant: tenant.to_owned(),
        user: "bob".to_owned(),
        hash: vec![2],
        scopes: vec!["read".to_owned(), "run".to_owned()],
        expires_at: Some(Time(5)),
    };
    let bob = stage.db.create_token(token("b", "bob"), Box::new(|_| vec![9])).await.unwrap();
    assert_ne!(bob.tenant.id, stage.tenant);
    let second = stage.db.create_token(token("c", "bob"), Box::new(|_| vec![1])).await.unwrap();
    assert_eq!((second.tenant.id, second.tenant.data_key), (bob.tenant.id, vec![9]), "the tenant is there");
    stage.db.touch_tokens(vec![("c".to_owned(), Time(3)), ("b".to_owned(), Time(4))]).await.unwrap();
    let found = stage.db.token("b".to_owned()).await.unwrap().unwrap();
    assert_eq!((found.used_at, found.expires_at), (Some(Time(4)), Some(Time(5))));
    assert_eq!((found.scopes, found.user), (vec!["read".to_owned(), "run".to_owned()], "bob".to_owned()));
    assert!(stage.db.revoke_token("b".to_owned()).await.unwrap());
    assert!(!stage.db.revoke_token("b".to_owned()).await.unwrap());
    assert!(stage.db.token("b".to_owned()).await.unwrap().unwrap().revoked_at.is_some());
    assert!(stage.db.token("z".to_owned()).await.unwrap().is_none());
    assert_eq!(stage.db.list_tokens().await.unwrap().len(), 3);
    stage.db.set_data_keys(vec![(bob.tenant.id, vec![4])]).await.unwrap();
    let tenants = stage.db.list_tenants().await.unwrap();
    assert_eq!(tenants.len(), 2);
    assert_eq!(tenants.iter().find(|tenant| tenant.name == "bob").unwrap().data_key, [4]);
}

async fn values_of_the_whole_are_made_once(stage: Stage) {
    assert_eq!(stage.db.meta_or("x", vec![1]).await.unwrap(), [1]);
    assert_eq!(stage.db.meta_or("x", vec![2]).await.unwrap(), [1]);
    stage.db.set_meta("x", vec![3]).await.unwrap();
    assert_eq!(stage.db.meta_or("x", vec![2]).await.unwrap(), [3]);
}

async fn blobs_are_read_as_they_were_written(stage: Stage) {
    for content in [Vec::new(), vec![0_u8, 255, 10], vec![7; 3 * 1024 * 1024 + 5]] {
        let name = stage.blobs.put(stage.tenant, content.clone()).await.unwrap();
        assert_eq!(stage.blobs.put(stage.tenant, content.clone()).await.unwrap(), name);
        assert_eq!(stage.blobs.get(stage.tenant, &name).await.unwrap(), Some(content));
        assert_eq!(stage.blobs.get(TenantId::random(), &name).await.unwrap(), None, "of another tenant");
    }
}

async fn what_was_deleted_is_removed(stage: Stage) {
    let (id, claim, _) = stage.claimed().await;
    stage.db.append(stage.append(&claim, 0, 3)).await.unwrap();
    let (kept, _) = stage.session().await;
    now(stage.db.delete_session(stage.tenant, id, plain()).await.unwrap());
    let sending = stage.sending(kept, &[message("go")], None);
    stage.db.send_inputs(sending, keyed("k", "d", "a")).await.unwrap();
    assert_eq!(stage.db.clean(Time::now()).await.unwrap(), 1);
    assert_eq!(stage.db.clean(Time::now()).await.unwrap(), 0);
    assert!(stage.db.export(id).await.is_err() && stage.db.export(kept).await.is_ok());
    let tomorrow = Time::now().after(25 * 60 * 60 * 1000);
    assert_eq!(stage.db.clean(tomorrow).await.unwrap(), 1, "the answer that was kept");
    assert!(stage.db.check().await.unwrap().is_empty());
}

async fn what_is_kept_of_a_workspace_goes_a_day_after_its_session(stage: Stage) {
    let folder = tempfile::tempdir().unwrap();
    let url = ObjectStoreUrl::parse(&format!("file://{}", folder.path().display())).unwrap();
    let objects = Objects::connect(&url, &BTreeMap::new()).unwrap();
    let store = Store { db: Arc::clone(&stage.db), blobs: Arc::clone(&stage.blobs), objects: None };
    let store = store.with_objects(objects.clone());
    let (id, claim, _) = stage.claimed().await;
    let home = Some(NodeId::random());
    let mut append = stage.append(&claim, 0, 1);
    append.workspace = Some(WorkspaceChange { reference: "kept".to_owned(), home });
    stage.db.append(append).await.unwrap();
    stage.db.append(stage.append(&claim, 1, 1)).await.unwrap();
    let seat = stage.db.seat(claim.key).await.unwrap();
    assert_eq!((seat.workspace.as_deref(), seat.home), (Some("kept"), home), "until it changes");
    let object = format!("{}/files/x", workspace_folder(stage.tenant, id));
    objects.put(&object, Bytes::from_static(b"x")).await.unwrap();
    now(stage.db.delete_session(stage.tenant, id, plain()).await.unwrap());
    assert_eq!(store.clean_workspaces(Time::now()).await.unwrap(), 0);
    assert_eq!(stage.db.clean(Time::now()).await.unwrap(), 0, "only the row says that something is kept");
    let tomorrow = Time::now().after(25 * 60 * 60 * 1000);
    assert_eq!(store.clean_workspaces(tomorrow).await.unwrap(), 1);
    assert_eq!(objects.get(&object).await.unwrap(), None);
    assert_eq!(stage.db.clean(Time::now()).await.unwrap(), 1);
    assert_eq!(store.clean_workspaces(tomorrow).await.unwrap(), 0);
}

async fn the_database_says_how_it_is(stage: Stage) {
    stage.db.probe().await.unwrap();
    assert!(stage.db.schema().await.unwrap() >= 1);
    let (_, claim, _) = stage.claimed().await;
    stage.session().await;
    stage.asks(&claim, "ask").await;
    let counts = stage.db.counts().await.unwrap();
    for (status, count) in [("idle", 2), ("pending", 1), ("quarantined", 0)] {
        assert!(counts.sessions.contains(&(status.to_owned(), count)), "{counts:?}");
    }
    assert!(counts.pending_micros > 0 && counts.due_micros == 0, "{counts:?}");
    let (id, _) = stage.session().await;
    stage.send(id, &[message("go")]).await.unwrap();
    let counts = stage.db.counts().await.unwrap();
    assert!(counts.due_micros > 0 && counts.file_bytes == 0, "{counts:?}");
    assert!(stage.db.check().await.unwrap().is_empty());
}
