//! Where everything is kept: rows in a database, long content in blobs. [`Store`] is what the rest of the server uses; it reads
//! what a row keeps in a blob.

mod blobs;
mod error;
mod head;
mod health;
mod lines;
pub mod migrations;
mod parts;
mod port;
pub mod postgres;
pub mod sqlite;

use std::sync::Arc;

pub use blobs::{Blobs, FolderBlobs, SPILL};
pub use error::DbError;
pub use health::Health;
pub use lines::{decode, encode};
pub use port::*;

use crate::model::event::{Event, NewEvent};
use crate::model::ids::TenantId;
use crate::model::inputs::Input;

/// A database with its blobs.
#[derive(Debug, Clone)]
pub struct Store {
    /// Rows.
    pub db: Arc<dyn Db>,
    /// Long content.
    pub blobs: Arc<dyn Blobs>,
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

    async fn blob(&self, tenant: TenantId, name: &str) -> Result<Vec<u8>, DbError> {
        let content = self.blobs.get(tenant, name).await?;
        content.ok_or_else(|| DbError::Corrupt(format!("the blob {name} is missing")))
    }
}
