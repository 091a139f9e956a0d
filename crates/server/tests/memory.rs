//! Memory stores, memories and their versions.

use qoder_server::model::ids::{MemoryId, MemoryStoreId, TenantId};
use qoder_server::model::memories::{Actor, Memory, MemoryUpdate, NewMemory, Operation};
use qoder_server::model::memory_store::MemoryStoreBody;
use qoder_server::store::{DbError, ListQuery, MemoryChange, MemoryVersionQuery};

use super::support::{Stage, behaviours, is_conflict, is_not_found, now, plain};

behaviours!(
    stores_are_listed_archived_and_deleted,
    memories_have_paths_that_do_not_clash,
    changes_are_versions_that_can_be_redacted,
    of_many_changes_of_one_content_one_counts,
);

async fn store(stage: &Stage, name: &str) -> MemoryStoreId {
    let body =
        MemoryStoreBody { name: name.to_owned(), description: "d".to_owned(), metadata: Default::default() };
    now(stage.db.create_memory_store(stage.tenant, body, plain()).await.unwrap()).id
}

fn change(stage: &Stage, store: MemoryStoreId) -> MemoryChange {
    MemoryChange { tenant: stage.tenant, store, by: Actor::Token("t".to_owned()), quota: 1_000 }
}

async fn create(stage: &Stage, store: MemoryStoreId, path: &str, text: &str) -> Result<Memory, DbError> {
    let new = NewMemory { path: path.to_owned(), content: text.to_owned(), metadata: Default::default() };
    Ok(now(stage.db.create_memory(change(stage, store), new, plain()).await?))
}

fn content(text: &str, expected: Option<&str>) -> MemoryUpdate {
    let expected = expected.map(str::to_owned);
    MemoryUpdate { path: None, content: Some(text.to_owned()), metadata: None, expected }
}

async fn stores_are_listed_archived_and_deleted(stage: Stage) {
    let (tenant, one) = (stage.tenant, store(&stage, "one").await);
    let two = store(&stage, "two").await;
    create(&stage, one, "/a.md", "12345").await.unwrap();
    let found = stage.db.memory_store(tenant, one).await.unwrap();
    assert_eq!((found.count, found.size, found.body.name.as_str()), (1, 5, "one"));
    assert!(is_not_found(&stage.db.memory_store(TenantId::random(), one).await));
    let rename: qoder_server::store::MemoryStoreChange =
        Box::new(|store| Ok(MemoryStoreBody { name: "three".to_owned(), ..store.body.clone() }));
    now(stage.db.update_memory_store(tenant, two, rename, plain()).await.unwrap());
    let named = stage.db.list_memory_stores(stage.list(), Some("three".to_owned())).await.unwrap().items;
    assert_eq!(named.iter().map(|store| store.id).collect::<Vec<_>>(), [two]);
    now(stage.db.archive_memory_store(tenant, one, plain()).await.unwrap());
    assert!(is_conflict(&create(&stage, one, "/b.md", "x").await));
    assert_eq!(stage.db.list_memory_stores(stage.list(), None).await.unwrap().items.len(), 1);
    assert_eq!(stage.db.memories(tenant, one, "/".to_owned(), false).await.unwrap().len(), 1);
    now(stage.db.delete_memory_store(tenant, one, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.memories(tenant, one, "/".to_owned(), false).await));
}

async fn memories_have_paths_that_do_not_clash(stage: Stage) {
    let (tenant, id) = (stage.tenant, store(&stage, "one").await);
    for path in ["/notes/a.md", "/notes/B.md", "/Other.md", "/notes-2.md"] {
        create(&stage, id, path, path).await.unwrap();
    }
    for taken in ["/notes/a.md", "/notes", "/notes/a.md/x"] {
        assert!(is_conflict(&create(&stage, id, taken, "x").await), "{taken}");
    }
    let paths = |prefix: &'static str| {
        let stage = stage.clone();
        async move {
            let found = stage.db.memories(tenant, id, prefix.to_owned(), false).await.unwrap();
            found.into_iter().map(|memory| memory.path).collect::<Vec<_>>()
        }
    };
    assert_eq!(
        paths("/").await,
        ["/Other.md", "/notes-2.md", "/notes/B.md", "/notes/a.md"],
        "by their bytes"
    );
    assert_eq!(paths("/notes/").await, ["/notes/B.md", "/notes/a.md"]);
    let with = stage.db.memories(tenant, id, "/Other".to_owned(), true).await.unwrap();
    assert_eq!(with[0].content.as_deref(), Some("/Other.md"));
    let move_to =
        MemoryUpdate { path: Some("/notes/a.md".to_owned()), content: None, metadata: None, expected: None };
    let clash = stage.db.update_memory(change(&stage, id), with[0].id, move_to, plain()).await;
    assert!(is_conflict(&clash));
    assert!(is_not_found(&stage.db.memory(tenant, id, MemoryId::random()).await));
}

async fn changes_are_versions_that_can_be_redacted(stage: Stage) {
    let (tenant, id) = (stage.tenant, store(&stage, "one").await);
    let first = create(&stage, id, "/a.md", "one").await.unwrap();
    let update = content("two", Some(&first.sha256));
    let second = now(stage.db.update_memory(change(&stage, id), first.id, update, plain()).await.unwrap());
    assert_ne!(second.version, first.version);
    let stale = stage
        .db
        .update_memory(change(&stage, id), first.id, content("x", Some(&first.sha256)), plain())
        .await;
    assert!(stale.is_err(), "the content is another one");
    let same = now(stage
        .db
        .update_memory(change(&stage, id), first.id, content("two", None), plain())
        .await
        .unwrap());
    assert_eq!(same.version, second.version, "an equal content is no version");
    let query = MemoryVersionQuery {
        list: ListQuery { include_archived: true, ..stage.list() },
        store: id,
        memory: Some(first.id),
        operation: None,
        by: Vec::new(),
    };
    let versions = stage.db.list_memory_versions(query.clone()).await.unwrap().items;
    assert_eq!(
        versions.iter().map(|version| version.id).collect::<Vec<_>>(),
        [second.version, first.version]
    );
    assert!(is_conflict(&stage.db.redact_memory_version(change(&stage, id), second.version, plain()).await));
    let redacted =
        now(stage.db.redact_memory_version(change(&stage, id), first.version, plain()).await.unwrap());
    assert!(redacted.content.is_none() && redacted.redacted_at.is_some() && redacted.redacted_by.is_some());
    assert_eq!(stage.db.memory_version(tenant, id, first.version).await.unwrap(), redacted);
    now(stage.db.delete_memory(change(&stage, id), first.id, None, plain()).await.unwrap());
    assert!(is_not_found(&stage.db.memory(tenant, id, first.id).await));
    let deleted = MemoryVersionQuery { operation: Some(Operation::Deleted), ..query.clone() };
    assert_eq!(stage.db.list_memory_versions(deleted).await.unwrap().items.len(), 1);
    let stranger = MemoryVersionQuery { by: vec![Actor::Token("other".to_owned())], ..query };
    assert!(stage.db.list_memory_versions(stranger).await.unwrap().items.is_empty());
    create(&stage, id, "/a.md", "again").await.unwrap();
}

async fn of_many_changes_of_one_content_one_counts(stage: Stage) {
    let id = store(&stage, "one").await;
    let memory = create(&stage, id, "/a.md", "one").await.unwrap();
    let changes = (0..6).map(|number| {
        let (stage, hash) = (stage.clone(), memory.sha256.clone());
        tokio::spawn(async move {
            let update = content(&format!("text {number}"), Some(&hash));
            stage.db.update_memory(change(&stage, id), memory.id, update, plain()).await.is_ok()
        })
    });
    let done = futures::future::join_all(changes).await;
    assert_eq!(done.into_iter().filter(|done| *done.as_ref().unwrap()).count(), 1);
}
