//! Memory stores, memories and their versions in the database. A memory and the version that made it what it is are written together.

use crate::model::ids::{MemoryId, MemoryStoreId, MemoryVersionId, TenantId};
use crate::model::memories::{Actor, Memory, MemoryUpdate, MemoryVersion, NewMemory, Operation};
use crate::model::memory_store::{MemoryStore, MemoryStoreBody};
use crate::model::refusal::Refusal;

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// Makes the next body of a memory store from the present one.
pub type MemoryStoreChange = Box<dyn FnOnce(&MemoryStore) -> Result<MemoryStoreBody, Refusal> + Send>;

/// Who changes memories of which store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryChange {
    /// Whose.
    pub tenant: TenantId,
    /// Of which store.
    pub store: MemoryStoreId,
    /// Who.
    pub by: Actor,
    /// The most bytes that the tenant may keep.
    pub quota: u64,
}

/// Which versions are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryVersionQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// Of which store.
    pub store: MemoryStoreId,
    /// Of this memory.
    pub memory: Option<MemoryId>,
    /// With this operation.
    pub operation: Option<Operation>,
    /// Made by one of these.
    pub by: Vec<Actor>,
}

/// Memory stores, memories and versions.
pub trait MemoryDb {
    /// Creates a memory store.
    fn create_memory_store(
        &self,
        tenant: TenantId,
        body: MemoryStoreBody,
        once: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>>;
    /// A memory store.
    fn memory_store(&self, tenant: TenantId, id: MemoryStoreId) -> DbFuture<'_, MemoryStore>;
    /// Changes a memory store.
    fn update_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        change: MemoryStoreChange,
        once: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>>;
    /// Archives a memory store: its memories can be read and deleted, and no longer changed.
    fn archive_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        once: Once<MemoryStore>,
    ) -> DbFuture<'_, Done<MemoryStore>>;
    /// Deletes a memory store with everything in it.
    fn delete_memory_store(
        &self,
        tenant: TenantId,
        id: MemoryStoreId,
        once: Once<()>,
    ) -> DbFuture<'_, Done<()>>;
    /// Memory stores, of this name when one is given.
    fn list_memory_stores(
        &self,
        query: ListQuery,
        name: Option<String>,
    ) -> DbFuture<'_, ListedPage<MemoryStore>>;
    /// Creates a memory, unless its path is taken or above or below that of another.
    fn create_memory(
        &self,
        change: MemoryChange,
        new: NewMemory,
        once: Once<Memory>,
    ) -> DbFuture<'_, Done<Memory>>;
    /// A memory with its content.
    fn memory(&self, tenant: TenantId, store: MemoryStoreId, id: MemoryId) -> DbFuture<'_, Memory>;
    /// The memories of a store whose paths begin like this, by their paths; with their content when it is wanted.
    fn memories(
        &self,
        tenant: TenantId,
        store: MemoryStoreId,
        prefix: String,
        with_content: bool,
    ) -> DbFuture<'_, Vec<Memory>>;
    /// Changes a memory.
    fn update_memory(
        &self,
        change: MemoryChange,
        id: MemoryId,
        update: MemoryUpdate,
        once: Once<Memory>,
    ) -> DbFuture<'_, Done<Memory>>;
    /// Deletes a memory, if it has the expected content.
    fn delete_memory(
        &self,
        change: MemoryChange,
        id: MemoryId,
        expected: Option<String>,
        once: Once<()>,
    ) -> DbFuture<'_, Done<()>>;
    /// Versions of the memories of a store, the newest first.
    fn list_memory_versions(&self, query: MemoryVersionQuery) -> DbFuture<'_, ListedPage<MemoryVersion>>;
    /// A version.
    fn memory_version(
        &self,
        tenant: TenantId,
        store: MemoryStoreId,
        id: MemoryVersionId,
    ) -> DbFuture<'_, MemoryVersion>;
    /// Removes what a version contains. The version that a memory has stays as it is.
    fn redact_memory_version(
        &self,
        change: MemoryChange,
        id: MemoryVersionId,
        once: Once<MemoryVersion>,
    ) -> DbFuture<'_, Done<MemoryVersion>>;
}
