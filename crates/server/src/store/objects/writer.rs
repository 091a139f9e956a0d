//! An object that is written in pieces: a short one at once, a long one in parts. One that is dropped before its end leaves nothing.

use bytes::{Bytes, BytesMut};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};

use super::Objects;
use crate::store::error::DbError;

/// Bytes of a part. Stores take parts of 5 MiB and more, and 10,000 of them.
const PART: usize = 8 * 1024 * 1024;

/// Writes one object.
pub struct ObjectWriter {
    objects: Objects,
    path: Path,
    waiting: BytesMut,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl ObjectWriter {
    pub(super) fn new(objects: Objects, path: Path) -> Self {
        Self { objects, path, waiting: BytesMut::new(), upload: None }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), DbError> {
        self.waiting.extend_from_slice(&piece);
        while self.waiting.len() > PART {
            let part = self.waiting.split_to(PART).freeze();
            self.send(part).await?;
        }
        Ok(())
    }

    async fn send(&mut self, part: Bytes) -> Result<(), DbError> {
        let upload = match self.upload.take() {
            Some(upload) => upload,
            None => {
                let begun = self.objects.store.put_multipart(&self.path).await;
                begun.map_err(|error| self.objects.fault(&error))?
            }
        };
        let upload = self.upload.insert(upload);
        let sent = upload.put_part(PutPayload::from_bytes(part)).await;
        sent.map_err(|error| self.objects.fault(&error))
    }

    /// Makes the object durable under its name.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn finish(mut self) -> Result<(), DbError> {
        let last = self.waiting.split().freeze();
        if self.upload.is_none() {
            let put = self.objects.store.put(&self.path, PutPayload::from_bytes(last)).await;
            return put.map(drop).map_err(|error| self.objects.fault(&error));
        }
        if !last.is_empty() {
            self.send(last).await?;
        }
        if let Some(upload) = &mut self.upload {
            upload.complete().await.map_err(|error| self.objects.fault(&error))?;
        }
        self.upload = None;
        Ok(())
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        // Without a runtime the store's own rule for uploads that were given up removes the parts.
        if let Some(mut upload) = self.upload.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { drop(upload.abort().await) });
        }
    }
}
