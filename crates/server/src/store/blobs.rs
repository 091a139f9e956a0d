//! Blobs: content that is too long for a row, named by its hash. A folder here; other places implement the same trait.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_store::blob;

use super::error::DbError;
use crate::model::ids::{TenantId, hex};

/// Bodies from this length on are kept as blobs.
pub const SPILL: usize = 64 * 1024;

/// Keeps blobs. They never change, and are durable when they are named.
pub trait Blobs: std::fmt::Debug + Send + Sync {
    /// Keeps content; answers with its name. The same content has the same name.
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>>;
    /// Reads content; `None` when no content has this name.
    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>>;
}

/// Blobs in a folder, one below it a tenant.
#[derive(Debug, Clone)]
pub struct FolderBlobs(PathBuf);

impl FolderBlobs {
    /// In this folder, which is made when it is needed.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_path_buf())
    }

    fn folder(&self, tenant: TenantId) -> PathBuf {
        self.0.join(hex(&tenant.0))
    }
}

fn fault(error: &std::io::Error) -> DbError {
    DbError::Unavailable(format!("a blob: {error}"))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(DbError::Unavailable(error.to_string())))
}

impl Blobs for FolderBlobs {
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>> {
        let folder = self.folder(tenant);
        blocking(move || blob::put(&folder, &content).map_err(|error| fault(&error))).boxed()
    }

    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>> {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_name {
            return std::future::ready(Ok(None)).boxed();
        }
        let path = self.folder(tenant).join(name);
        blocking(move || match std::fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(&error)),
        })
        .boxed()
    }
}
