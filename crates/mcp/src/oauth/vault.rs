//! All places for tokens together: the keychain first, where there is one, else the file. Whatever changes what is kept
//! for a server holds that server's lock over reading, asking and writing, whichever place is used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::file::{FileStore, lock_folder};
use super::lock::{LockFolder, Locked};
use super::store::{Entry, StoreError, TokenStore};

/// Longer than a token endpoint may take to answer whoever holds the lock.
const PATIENCE: Duration = Duration::from_secs(45);
/// A server that changes its issuer all the time does not fill the store.
const MOST_ENTRIES: usize = 4;

/// Where the credentials of a person's servers are kept.
#[derive(Clone)]
pub struct Vault {
    preferred: Option<Arc<dyn TokenStore>>,
    file: Arc<dyn TokenStore>,
    locks: LockFolder,
}

impl Vault {
    /// The vault of a configuration folder. Nothing is opened before it is used.
    #[must_use]
    pub fn new(config_root: &Path) -> Self {
        Self {
            preferred: None,
            file: Arc::new(FileStore::new(config_root)),
            locks: LockFolder::new(lock_folder(config_root), PATIENCE),
        }
    }

    /// Uses another place first; whatever goes wrong there, the file serves.
    #[must_use]
    pub fn preferring(mut self, store: Arc<dyn TokenStore>) -> Self {
        self.preferred = Some(store);
        self
    }

    /// Waits another time for locks.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.locks = self.locks.patient(patience);
        self
    }

    /// Everything kept for a server.
    pub(super) async fn entries(&self, server: &str) -> Result<Vec<Entry>, StoreError> {
        let (vault, server) = (self.clone(), server.to_owned());
        blocking(move || vault.read(&server)).await
    }

    /// Waits until nobody else changes what is kept for a server.
    pub async fn lock(&self, server: &str) -> Result<Locked, StoreError> {
        self.locks.lock(server).await
    }

    /// Keeps an entry in place of the one with its issuer. Tokens of other issuers are dropped: a server has one
    /// authorization server at a time.
    pub(super) async fn keep(&self, _locked: &Locked, entry: Entry) -> Result<(), StoreError> {
        let vault = self.clone();
        blocking(move || {
            let mut entries = vault.read(&entry.server)?;
            entries.retain(|other| other.issuer != entry.issuer && other.client.is_some());
            entries.iter_mut().for_each(|other| other.token = None);
            entries.truncate(MOST_ENTRIES - 1);
            let server = entry.server.clone();
            entries.insert(0, entry);
            vault.write(&server, &entries)
        })
        .await
    }

    /// Forgets everything kept for a server.
    pub(super) async fn forget(&self, _locked: &Locked, server: &str) -> Result<(), StoreError> {
        let (vault, server) = (self.clone(), server.to_owned());
        blocking(move || vault.write(&server, &[])).await
    }

    fn read(&self, server: &str) -> Result<Vec<Entry>, StoreError> {
        if let Some(preferred) = &self.preferred
            && let Ok(entries) = preferred.entries(server)
            && !entries.is_empty()
        {
            return Ok(entries);
        }
        self.file.entries(server)
    }

    fn write(&self, server: &str, entries: &[Entry]) -> Result<(), StoreError> {
        let kept = self.preferred.as_ref().is_some_and(|store| store.replace(server, entries).is_ok());
        // What the preferred place has must not be in the file as well, where it would grow old.
        self.file.replace(server, if kept { &[] } else { entries })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(StoreError(format!("the stored credentials cannot be reached: {error}"))))
}
