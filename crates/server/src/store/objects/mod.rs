//! An object store: a folder, S3, Google Cloud Storage or Azure. Every node reaches it, so blobs, files and workspaces that are kept
//! there are everywhere. Objects never change; what is not finished is not there.

mod blobs;
mod connect;
mod url;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

pub(in crate::store) use blobs::ObjectBlobs;
pub use url::{ObjectStoreUrl, ObjectStoreUrlError};
pub use writer::ObjectWriter;

use super::blobs::BlobReader;
use super::error::DbError;
use crate::model::ids::{self, hex};

/// How long trying out a store may take.
const TRIAL: Duration = Duration::from_secs(30);
/// Names the database whose content a store keeps.
const OWNER: &str = "owner";

/// A store that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectsError {
    /// It cannot be reached or written.
    #[error("the object store {place} cannot be used: {problem}")]
    Unusable {
        /// Its address.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// It keeps the content of another database.
    #[error("the object store {place} belongs to another database")]
    Foreign {
        /// Its address.
        place: String,
    },
    /// The content of the database is in a store, and none is configured.
    #[error("the database keeps content in an object store, and none is configured")]
    Missing,
}

impl ObjectsError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => "object_store",
            Self::Foreign { .. } => "object_store_foreign",
            Self::Missing => "object_store_missing",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => {
                "check `--object-store`, the store's variables (AWS_…, GOOGLE_…, AZURE_…) and that the bucket may be written"
            }
            Self::Foreign { .. } => "give each database a bucket or a prefix of its own",
            Self::Missing => "give `--object-store` as before",
        }
    }
}

/// An object store.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    place: Arc<str>,
    secrets: Arc<[String]>,
}

impl Objects {
    /// The store at an address; nothing is sent yet.
    ///
    /// # Errors
    /// When the settings of the store cannot be used.
    pub fn connect(
        url: &ObjectStoreUrl,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ObjectsError> {
        let (place, secrets) = (url.describe(), connect::secrets(environment));
        let store = connect::connect(url, environment).map_err(|error| ObjectsError::Unusable {
            problem: redacted(&error, &secrets),
            place: place.clone(),
        })?;
        Ok(Self { store, prefix: url.prefix(), place: place.into(), secrets: secrets.into() })
    }

    /// Its address, for people.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Writes, reads and removes an object.
    ///
    /// # Errors
    /// When that does not work.
    pub async fn try_out(&self) -> Result<(), ObjectsError> {
        let name = format!("trial/{}", hex(&ids::random()));
        let content = Bytes::from(name.clone());
        let trial = async {
            self.put(&name, content.clone()).await?;
            let read = self.get(&name).await?;
            self.remove(&name).await?;
            Ok::<_, DbError>(read)
        };
        let problem = match tokio::time::timeout(TRIAL, trial).await {
            Ok(Ok(Some(read))) if read == content => return Ok(()),
            Ok(Ok(_)) => "what was written cannot be read".to_owned(),
            Ok(Err(error)) => self.without_place(&error),
            Err(_) => format!("no answer within {} s", TRIAL.as_secs()),
        };
        Err(ObjectsError::Unusable { place: self.place.to_string(), problem })
    }

    /// Makes the store the one of a database, by the database's name.
    ///
    /// # Errors
    /// When it is another database's, or cannot be used.
    pub async fn belong_to(&self, database: &[u8]) -> Result<(), ObjectsError> {
        let unusable = |error: DbError| ObjectsError::Unusable {
            place: self.place.to_string(),
            problem: self.without_place(&error),
        };
        match self.get(OWNER).await.map_err(unusable)? {
            Some(owner) if owner == hex(database) => Ok(()),
            Some(_) => Err(ObjectsError::Foreign { place: self.place.to_string() }),
            None => self.put(OWNER, Bytes::from(hex(database))).await.map_err(unusable),
        }
    }

    fn without_place(&self, error: &DbError) -> String {
        let text = error.to_string();
        text.rsplit_once(&format!("{}: ", self.place)).map_or(text.clone(), |(_, problem)| problem.to_owned())
    }

    fn path(&self, name: &str) -> Result<Path, DbError> {
        let full = if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        Path::parse(full)
            .map_err(|error| DbError::Corrupt(format!("`{name}` cannot be the name of an object: {error}")))
    }

    fn fault(&self, error: &object_store::Error) -> DbError {
        DbError::Unavailable(format!("the object store {}: {}", self.place, redacted(error, &self.secrets)))
    }

    /// Keeps an object. It is durable afterwards.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn put(&self, name: &str, content: Bytes) -> Result<(), DbError> {
        let put = self.store.put(&self.path(name)?, PutPayload::from_bytes(content)).await;
        put.map(drop).map_err(|error| self.fault(&error))
    }

    /// The content of an object; `None` when it does not exist.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, DbError> {
        match self.store.get(&self.path(name)?).await {
            Ok(found) => found.bytes().await.map(Some).map_err(|error| self.fault(&error)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// The same in pieces.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open(&self, name: &str) -> Result<Option<BlobReader>, DbError> {
        let found = match self.store.get(&self.path(name)?).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.fault(&error)),
        };
        let objects = self.clone();
        Ok(Some(found.into_stream().map_err(move |error| objects.fault(&error)).boxed()))
    }

    /// Begins an object that is written in pieces.
    ///
    /// # Errors
    /// When the name cannot be one.
    pub fn begin(&self, name: &str) -> Result<ObjectWriter, DbError> {
        Ok(ObjectWriter::new(self.clone(), self.path(name)?))
    }

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<(), DbError> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// Removes everything whose name begins with this folder.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn remove_folder(&self, folder: &str) -> Result<(), DbError> {
        let found = self.store.list(Some(&self.path(folder)?)).map_ok(|object| object.location).boxed();
        let mut removed = self.store.delete_stream(found);
        while let Some(outcome) = removed.next().await {
            match outcome {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.fault(&error)),
            }
        }
        Ok(())
    }
}

/// What a store says, without what must not be shown.
fn redacted(error: &object_store::Error, secrets: &[String]) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    for secret in secrets {
        text = text.replace(secret, "[redacted]");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
