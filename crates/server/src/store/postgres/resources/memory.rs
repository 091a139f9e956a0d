//! The port of memory stores, memories and versions.

use super::{memories, memory_stores};
use crate::model::ids::{MemoryId, MemoryStoreId, MemoryVersionId, TenantId};
use crate::model::memories::{Memory, MemoryUpdate, MemoryVersion, NewMemory};
use crate::model::memory_store::{MemoryStore, MemoryStoreBody};
use crate::store::port::{
    DbFuture, Done, ListQuery, ListedPage, MemoryChange, MemoryDb, MemoryStoreChange, MemoryVersionQuery,
    Once,
};
use crate::store::postgres::PostgresDb;
use crate::store::postgres::once::once;

impl MemoryDb for PostgresDb {
    fn create_memory_store(
        &self,
        tenant: TenantId,
        body: MemoryStoreBody,
        done: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memory_stores::create(transaction, tenant, body)))
        })
    }

    fn memory_store(&self, tenant: TenantId, id: MemoryStoreId) -> DbFuture<'_, MemoryStore> {
        self.read(move |connection| Box::pin(memory_stores::find(connection, tenant, id)))
    }

    fn update_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        change: MemoryStoreChange,
        done: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memory_stores::update(transaction, tenant, id, change)))
        })
    }

    fn archive_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        done: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memory_stores::archive(transaction, tenant, id)))
        })
    }

    fn delete_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memory_stores::delete(transaction, tenant, id)))
        })
    }

    fn list_memory_stores(
        &self,
        query: ListQuery,
        name: Option<String>,
    ) -> DbFuture<'_, ListedPage<MemoryStore>> {
        self.read(move |connection| Box::pin(memory_stores::list(connection, query, name)))
    }

    fn create_memory(
        &self,
        change: MemoryChange,
        new: NewMemory,
        done: Once<Memory>,
    ) -> DbFuture<'_, Done<Memory>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memories::create(transaction, change, new)))
        })
    }

    fn memory(&self, tenant: TenantId, store: MemoryStoreId, id: MemoryId) -> DbFuture<'_, Memory> {
        self.read(move |connection| Box::pin(memories::find(connection, tenant, store, id)))
    }

    fn memories(
        &self,
        tenant: TenantId,
        store: MemoryStoreId,
        prefix: String,
        with_content: bool,
    ) -> DbFuture<'_, Vec<Memory>> {
        self.read(move |connection| Box::pin(memories::list(connection, tenant, store, prefix, with_content)))
    }

    fn update_memory(
        &self,
        change: MemoryChange,
        id: MemoryId,
        update: MemoryUpdate,
        done: Once<Memory>,
    ) -> DbFuture<'_, Done<Memory>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memories::update(transaction, change, id, update)))
        })
    }

    fn delete_memory(
        &self,
        change: MemoryChange,
        id: MemoryId,
        expected: Option<String>,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memories::delete(transaction, change, id, expected)))
        })
    }

    fn list_memory_versions(&self, query: MemoryVersionQuery) -> DbFuture<'_, ListedPage<MemoryVersion>> {
        self.read(move |connection| Box::pin(memories::list_versions(connection, query)))
    }

    fn memory_version(
        &self,
        tenant: TenantId,
        store: MemoryStoreId,
        id: MemoryVersionId,
    ) -> DbFuture<'_, MemoryVersion> {
        self.read(move |connection| Box::pin(memories::find_version(connection, tenant, store, id)))
    }

    fn redact_memory_version(
        &self,
        change: MemoryChange,
        id: MemoryVersionId,
        done: Once<MemoryVersion>,
    ) -> DbFuture<'_, Done<MemoryVersion>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, memories::redact(transaction, change, id)))
        })
    }
}
