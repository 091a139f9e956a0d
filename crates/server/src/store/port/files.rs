//! Files in the database. Their content is in blobs, which are there before a row names them and removed after no row does.

use crate::model::files::{File, FileBody};
use crate::model::ids::{FileId, SessionId, TenantId};
use crate::model::time::Time;

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// A file whose content is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Whose.
    pub tenant: TenantId,
    /// The file.
    pub id: FileId,
    /// What is kept of it.
    pub body: FileBody,
    /// The session that made it.
    pub session: Option<SessionId>,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// The most bytes that all files of the tenant may have.
    pub quota: u64,
}

/// Which files are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// Of this name.
    pub name: Option<String>,
    /// Made by this session.
    pub session: Option<SessionId>,
    /// At the present time.
    pub now: Time,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundFile {
    /// It is there.
    There(File),
    /// Its time is over.
    Expired,
    /// It was deleted.
    Deleted,
    /// The tenant never had it.
    Unknown,
}

/// A blob that no file needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedFile {
    /// Whose.
    pub tenant: TenantId,
    /// The file.
    pub id: FileId,
    /// Its blob.
    pub blob: String,
}

/// Files.
pub trait FilesDb {
    /// Keeps a file, unless the tenant has no room for it.
    fn create_file(&self, new: NewFile, once: Once<File>) -> DbFuture<'_, Done<File>>;
    /// A file of a tenant.
    fn file(&self, tenant: TenantId, id: FileId) -> DbFuture<'_, FoundFile>;
    /// A file of any tenant, for those who have its link.
    fn linked_file(&self, id: FileId) -> DbFuture<'_, Option<(TenantId, File)>>;
    /// Files, the newest first.
    fn list_files(&self, query: FileQuery) -> DbFuture<'_, ListedPage<File>>;
    /// Deletes a file.
    fn delete_file(&self, tenant: TenantId, id: FileId, once: Once<()>) -> DbFuture<'_, Done<()>>;
    /// Files that were deleted or are over, and whose blobs are still there.
    fn unused_files(&self, now: Time, limit: usize) -> DbFuture<'_, Vec<UnusedFile>>;
    /// The blob of such a file is gone.
    fn forget_content(&self, id: FileId) -> DbFuture<'_, ()>;
}
