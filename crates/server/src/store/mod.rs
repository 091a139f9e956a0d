//! Where everything is kept: rows in a database, long content in blobs. [`Store`] is what the rest of the server uses; it reads
//! what a row keeps in a blob.

mod archive;
mod blobs;
mod error;
mod head;
mod health;
mod lines;
pub mod migrations;
mod objects;
mod port;
pub mod postgres;
mod record_parts;
pub mod sqlite;

use std::sync::Arc;

use futures::StreamExt;

pub use archive::{pack, unpack, write_files};
pub use blobs::{BlobReader, BlobWriter, Blobs, FolderBlobs, SPILL};
pub use error::DbError;
pub use health::Health;
pub use lines::{decode, encode};
pub use objects::{ObjectStoreUrl, ObjectStoreUrlError, ObjectWriter, Objects, ObjectsError};
pub use port::*;

use crate::model::event::{Event, NewEvent};
use crate::model::ids::{SessionId, TenantId, hex};
use crate::model::inputs::Input;
use crate::model::time::Time;

/// Files whose content is removed at a time.
const CLEANED_TOGETHER: usize = 100;
/// Milliseconds for which the workspace of a deleted session is kept, for a database that is restored from a backup.
const KEPT_WORKSPACE: i64 = 24 * 60 * 60 * 1000;

/// A database with its blobs.
#[derive(Debug, Clone)]
pub struct Store {
    /// Rows.
    pub db: Arc<dyn Db>,
    /// Long content.
    pub blobs: Arc<dyn Blobs>,
    /// Where blobs and workspaces are, when every node reaches it.
    pub objects: Option<Objects>,
}

/// The folder of what is kept of a session's workspace.
#[must_use]
pub fn workspace_folder(tenant: TenantId, session: SessionId) -> String {
    format!("workspaces/{}/{}", hex(&tenant.0), hex(&session.0))
}

impl Store {
    /// Keeps what is too long for a row in a blob, before the row.
    ///
    /// # Errors
    /// When a blob cannot be written.
    pub async fn spill_inputs(&self, tenant: TenantId, inputs: &mut [Input]) -> Result<(), DbError> {
        for input in inputs.iter_mut().filter(|input| input.body.len() > SPILL) {
            input.blob = Some(self.blobs.put(tenant, input.body.clone().into_bytes()).await?);
        }
        Ok(())
    }

    /// The same for events.
    ///
    /// # Errors
    /// When a blob cannot be written.
    pub async fn spill_events(&self, tenant: TenantId, events: &mut [NewEvent]) -> Result<(), DbError> {
        for event in events.iter_mut().filter(|event| event.body.len() > SPILL) {
            event.blob = Some(self.blobs.put(tenant, event.body.clone().into_bytes()).await?);
        }
        Ok(())
    }

    /// The same for records.
    ///
    /// # Errors
    /// When a blob cannot be written.
    pub async fn spill_records(&self, tenant: TenantId, records: &mut [NewRecord]) -> Result<(), DbError> {
        for record in records.iter_mut().filter(|record| record.body.len() > SPILL) {
            let body = std::mem::take(&mut record.body);
            record.blob = Some(self.blobs.put(tenant, body).await?);
        }
        Ok(())
    }

    /// Reads the bodies of events that are kept in blobs.
    ///
    /// # Errors
    /// When a blob is missing or cannot be read.
    pub async fn fill_events(&self, tenant: TenantId, events: &mut [Event]) -> Result<(), DbError> {
        for event in events.iter_mut().filter(|event| event.body.is_empty()) {
            let Some(name) = &event.blob else { continue };
            event.body = String::from_utf8_lossy(&self.blob(tenant, name).await?).into_owned();
        }
        Ok(())
    }

    /// Reads the lines of records that are kept in blobs.
    ///
    /// # Errors
    /// When a blob is missing or cannot be read.
    pub async fn fill_records(&self, tenant: TenantId, records: &mut [RecordRow]) -> Result<(), DbError> {
        for record in records.iter_mut().filter(|record| record.line.is_empty()) {
            let Some(name) = &record.blob else { continue };
            record.line = self.blob(tenant, name).await?;
        }
        Ok(())
    }

    /// Everything of a file's content.
    ///
    /// # Errors
    /// When it is missing or cannot be read.
    pub async fn read_file(&self, tenant: TenantId, name: &str) -> Result<Vec<u8>, DbError> {
        let reader = self.blobs.open(tenant, name).await?;
        let mut reader = reader.ok_or_else(|| DbError::Corrupt(format!("the blob {name} is missing")))?;
        let mut content = Vec::new();
        while let Some(piece) = reader.next().await {
            content.extend_from_slice(&piece?);
        }
        Ok(content)
    }

    /// Removes the content of files that were deleted or are over. Answers with how many there were.
    ///
    /// # Errors
    /// When the database or a blob cannot be changed.
    pub async fn clean_files(&self, now: Time) -> Result<usize, DbError> {
        let unused = self.db.unused_files(now, CLEANED_TOGETHER).await?;
        for file in &unused {
            self.blobs.remove(file.tenant, &file.blob).await?;
            self.db.forget_content(file.id).await?;
        }
        Ok(unused.len())
    }

    /// Keeps blobs in an object store from now on.
    #[must_use]
    pub fn with_objects(self, objects: Objects) -> Self {
        let blobs = Arc::new(objects::ObjectBlobs::new(objects.clone(), self.blobs));
        Self { db: self.db, blobs, objects: Some(objects) }
    }

    /// Removes what is kept of the workspaces of sessions that were deleted a day ago. Answers with how many there were.
    ///
    /// # Errors
    /// When the database or the object store cannot be changed.
    pub async fn clean_workspaces(&self, now: Time) -> Result<usize, DbError> {
        let before = if self.objects.is_some() { now.after(-KEPT_WORKSPACE) } else { now };
        let unused = self.db.unused_workspaces(before, CLEANED_TOGETHER).await?;
        for workspace in &unused {
            if let Some(objects) = &self.objects {
                objects.remove_folder(&workspace_folder(workspace.tenant, workspace.session)).await?;
            }
            self.db.forget_workspace(workspace.key).await?;
        }
        Ok(unused.len())
    }

    /// Removes the archives of versions that were deleted. Answers with how many there were.
    ///
    /// # Errors
    /// When the database or a blob cannot be changed.
    pub async fn clean_archives(&self) -> Result<usize, DbError> {
        let unused = self.db.unused_archives(CLEANED_TOGETHER).await?;
        for archive in &unused {
            self.blobs.remove(archive.tenant, &archive.blob).await?;
            self.db.forget_archive(archive.id).await?;
        }
        Ok(unused.len())
    }

    async fn blob(&self, tenant: TenantId, name: &str) -> Result<Vec<u8>, DbError> {
        let content = self.blobs.get(tenant, name).await?;
        content.ok_or_else(|| DbError::Corrupt(format!("the blob {name} is missing")))
    }
}
