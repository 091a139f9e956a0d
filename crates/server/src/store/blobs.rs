//! Blobs: content that is too long for a row, named by its hash, and the content of files, named by the file. A folder here; other
//! places implement the same trait.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use qoder_store::blob;

use super::error::DbError;
use crate::model::ids::{TenantId, hex};

/// Bodies from this length on are kept as blobs.
pub const SPILL: usize = 64 * 1024;
/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// Keeps blobs. They never change, and are durable when they are named.
pub trait Blobs: std::fmt::Debug + Send + Sync {
    /// Keeps content; answers with its name. The same content has the same name.
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>>;
    /// Reads content; `None` when no content has this name.
    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>>;
    /// Begins content under a name that no other content has; it is there when it is finished, and not before.
    fn begin(&self, tenant: TenantId, name: &str)
    -> BoxFuture<'static, Result<Box<dyn BlobWriter>, DbError>>;
    /// Opens content that was begun; `None` when no content has this name.
    fn open(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<BlobReader>, DbError>>;
    /// Removes content that was begun, if it is there.
    fn remove(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<(), DbError>>;
}

/// Content in pieces.
pub type BlobReader = BoxStream<'static, Result<Bytes, DbError>>;

/// Takes content in pieces. Dropped before it is finished, it leaves nothing.
pub trait BlobWriter: Send {
    /// Takes the next piece.
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), DbError>>;
    /// Makes the content durable under its name.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), DbError>>;
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

    /// Where content with a name of its own is; `None` when that is not a plain name.
    fn named(&self, tenant: TenantId, name: &str) -> Option<PathBuf> {
        is_plain(name).then(|| self.folder(tenant).join(name))
    }
}

/// True for a name that a file or an archive has, and no hash.
pub(super) fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&name.len()) && name.bytes().all(is_plain) && name.contains('_')
}

/// A file that gets its name when it is complete.
struct FolderWriter {
    temporary: PathBuf,
    path: PathBuf,
    /// Taken while a piece is written, and when it is finished.
    file: Option<File>,
}

impl Drop for FolderWriter {
    fn drop(&mut self) {
        // After it was finished, no such file exists.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

impl BlobWriter for FolderWriter {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), DbError>> {
        async move {
            let Some(mut file) = self.file.take() else {
                return Err(DbError::Unavailable("a blob: an earlier piece could not be written".to_owned()));
            };
            let written = blocking(move || match file.write_all(&piece) {
                Ok(()) => Ok(file),
                Err(error) => Err(fault(&error)),
            });
            self.file = Some(written.await?);
            Ok(())
        }
        .boxed()
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, Result<(), DbError>> {
        blocking(move || {
            let Some(file) = self.file.take() else {
                return Err(DbError::Unavailable("a blob: a piece could not be written".to_owned()));
            };
            let finish = || -> std::io::Result<()> {
                file.sync_all()?;
                std::fs::rename(&self.temporary, &self.path)?;
                File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
            };
            finish().map_err(|error| fault(&error))
        })
        .boxed()
    }
}

/// The pieces of an open file.
fn pieces(file: File) -> BlobReader {
    let read = |state: Option<File>| async move {
        let mut file = state?;
        let piece = blocking(move || {
            let mut piece = vec![0; PIECE];
            let length = file.read(&mut piece).map_err(|error| fault(&error))?;
            piece.truncate(length);
            Ok((Bytes::from(piece), file))
        });
        match piece.await {
            Ok((piece, _)) if piece.is_empty() => None,
            Ok((piece, file)) => Some((Ok(piece), Some(file))),
            Err(error) => Some((Err(error), None)),
        }
    };
    futures::stream::unfold(Some(file), read).boxed()
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

    fn begin(
        &self,
        tenant: TenantId,
        name: &str,
    ) -> BoxFuture<'static, Result<Box<dyn BlobWriter>, DbError>> {
        let Some(path) = self.named(tenant, name) else {
            return std::future::ready(Err(DbError::Corrupt(format!("`{name}` is not the name of a blob"))))
                .boxed();
        };
        blocking(move || {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let open = || {
                std::fs::create_dir_all(folder)?;
                let temporary = path.with_extension("part");
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
                Ok((temporary, file))
            };
            let (temporary, file) = open().map_err(|error: std::io::Error| fault(&error))?;
            let writer: Box<dyn BlobWriter> = Box::new(FolderWriter { temporary, path, file: Some(file) });
            Ok(writer)
        })
        .boxed()
    }

    fn open(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<BlobReader>, DbError>> {
        let Some(path) = self.named(tenant, name) else { return std::future::ready(Ok(None)).boxed() };
        blocking(move || match File::open(&path) {
            Ok(file) => Ok(Some(pieces(file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(&error)),
        })
        .boxed()
    }

    fn remove(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<(), DbError>> {
        let Some(path) = self.named(tenant, name) else { return std::future::ready(Ok(())).boxed() };
        blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(fault(&error)),
            _ => Ok(()),
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn content_is_there_once_it_is_finished_and_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FolderBlobs::new(folder.path());
        let (tenant, other) = (TenantId([1; 16]), TenantId([2; 16]));
        let mut writer = blobs.begin(tenant, "file_1").await.unwrap();
        writer.write(Bytes::from_static(b"one ")).await.unwrap();
        assert!(blobs.open(tenant, "file_1").await.unwrap().is_none(), "not finished");
        writer.write(Bytes::from(vec![b'x'; 2 * PIECE])).await.unwrap();
        writer.finish().await.unwrap();
        assert!(blobs.open(other, "file_1").await.unwrap().is_none(), "of another tenant");
        let mut reader = blobs.open(tenant, "file_1").await.unwrap().unwrap();
        let mut read = Vec::new();
        while let Some(piece) = reader.next().await {
            read.extend_from_slice(&piece.unwrap());
        }
        assert_eq!((&read[..5], read.len()), (&b"one x"[..], 4 + 2 * PIECE));
        drop(blobs.begin(tenant, "file_2").await.unwrap());
        let left: Vec<_> = std::fs::read_dir(blobs.folder(tenant)).unwrap().collect();
        assert_eq!(left.len(), 1, "what is not finished leaves nothing");
        blobs.remove(tenant, "file_1").await.unwrap();
        blobs.remove(tenant, "file_1").await.unwrap();
        assert!(blobs.open(tenant, "file_1").await.unwrap().is_none());
        for wrong in ["", "../file_1", "file_1/x", "a.b_c"] {
            assert!(blobs.begin(tenant, wrong).await.is_err(), "{wrong}");
        }
    }
}
