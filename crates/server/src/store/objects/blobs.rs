//! Blobs in an object store. What was kept before the store was configured is still found where it was.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::{ObjectWriter, Objects};
use crate::model::ids::{TenantId, hex};
use crate::store::blobs::{BlobReader, BlobWriter, Blobs, is_plain};
use crate::store::error::DbError;

/// Keeps blobs in an object store.
#[derive(Debug, Clone)]
pub(in crate::store) struct ObjectBlobs {
    objects: Objects,
    /// Where blobs were kept before.
    before: Arc<dyn Blobs>,
}

impl ObjectBlobs {
    pub(in crate::store) fn new(objects: Objects, before: Arc<dyn Blobs>) -> Self {
        Self { objects, before }
    }
}

fn object(tenant: TenantId, name: &str) -> String {
    format!("blobs/{}/{name}", hex(&tenant.0))
}

/// True for the name of content that was put.
fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl BlobWriter for ObjectWriter {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), DbError>> {
        self.write(piece).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<(), DbError>> {
        (*self).finish().boxed()
    }
}

impl Blobs for ObjectBlobs {
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>> {
        let objects = self.objects.clone();
        async move {
            let name = hex(&Sha256::digest(&content));
            objects.put(&object(tenant, &name), Bytes::from(content)).await?;
            Ok(name)
        }
        .boxed()
    }

    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>> {
        if !is_hash(name) {
            return std::future::ready(Ok(None)).boxed();
        }
        let (objects, before, name) = (self.objects.clone(), Arc::clone(&self.before), name.to_owned());
        async move {
            match objects.get(&object(tenant, &name)).await? {
                Some(content) => Ok(Some(content.into())),
                None => before.get(tenant, &name).await,
            }
        }
        .boxed()
    }

    fn begin(
        &self,
        tenant: TenantId,
        name: &str,
    ) -> BoxFuture<'static, Result<Box<dyn BlobWriter>, DbError>> {
        let begun = if is_plain(name) {
            self.objects.begin(&object(tenant, name)).map(|writer| Box::new(writer) as Box<dyn BlobWriter>)
        } else {
            Err(DbError::Corrupt(format!("`{name}` is not the name of a blob")))
        };
        std::future::ready(begun).boxed()
    }

    fn open(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<BlobReader>, DbError>> {
        if !is_plain(name) {
            return std::future::ready(Ok(None)).boxed();
        }
        let (objects, before, name) = (self.objects.clone(), Arc::clone(&self.before), name.to_owned());
        async move {
            match objects.open(&object(tenant, &name)).await? {
                Some(content) => Ok(Some(content)),
                None => before.open(tenant, &name).await,
            }
        }
        .boxed()
    }

    fn remove(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<(), DbError>> {
        if !is_plain(name) {
            return std::future::ready(Ok(())).boxed();
        }
        let (objects, before, name) = (self.objects.clone(), Arc::clone(&self.before), name.to_owned());
        async move {
            objects.remove(&object(tenant, &name)).await?;
            before.remove(tenant, &name).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::StreamExt;

    use super::*;
    use crate::store::{FolderBlobs, ObjectStoreUrl};

    async fn read(blobs: &dyn Blobs, tenant: TenantId, name: &str) -> Option<Vec<u8>> {
        let mut reader = blobs.open(tenant, name).await.unwrap()?;
        let mut content = Vec::new();
        while let Some(piece) = reader.next().await {
            content.extend_from_slice(&piece.unwrap());
        }
        Some(content)
    }

    #[tokio::test]
    async fn content_is_kept_by_tenant_and_what_was_elsewhere_before_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let before = Arc::new(FolderBlobs::new(&folder.path().join("before")));
        let (tenant, other) = (TenantId([1; 16]), TenantId([2; 16]));
        let old = before.put(tenant, b"old".to_vec()).await.unwrap();
        let url = ObjectStoreUrl::parse(&format!("file://{}/objects", folder.path().display())).unwrap();
        let objects = Objects::connect(&url, &BTreeMap::new()).unwrap();
        objects.try_out().await.unwrap();
        let blobs = ObjectBlobs::new(objects, before);
        assert_eq!(blobs.get(tenant, &old).await.unwrap().as_deref(), Some(&b"old"[..]));
        let new = blobs.put(tenant, b"new".to_vec()).await.unwrap();
        assert_eq!(blobs.get(tenant, &new).await.unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(blobs.get(other, &new).await.unwrap(), None, "of another tenant");
        let long = vec![b'x'; 20 * 1024 * 1024];
        let mut writer = blobs.begin(tenant, "file_1").await.unwrap();
        writer.write(Bytes::from(long.clone())).await.unwrap();
        assert_eq!(read(&blobs, tenant, "file_1").await, None, "not finished");
        writer.finish().await.unwrap();
        assert_eq!(read(&blobs, tenant, "file_1").await, Some(long));
        blobs.remove(tenant, "file_1").await.unwrap();
        blobs.remove(tenant, "file_1").await.unwrap();
        assert_eq!(read(&blobs, tenant, "file_1").await, None);
        for wrong in ["", "../file_1", "file_1/x", "a.b_c"] {
            assert!(blobs.begin(tenant, wrong).await.is_err(), "{wrong}");
        }
    }
}
