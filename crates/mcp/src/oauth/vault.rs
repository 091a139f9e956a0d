//! All places for tokens together: the keychain first, where there is one, else the file. Whatever changes what is kept
//! for a server holds that server's lock over reading, asking and writing, whichever place is used.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::file::{FileStore, lock_folder};
use super::lock::{LockFolder, Locked};
use super::store::{Entry, StoreError, TokenStore};

/// Longer than a token endpoint may take to answer the holder of the lock.
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
    /// The vault of a configuration folder, with the keychain before it where that is built in. Nothing is opened
    /// before it is used.
    #[must_use]
    pub fn new(config_root: &Path) -> Self {
        let vault = Self::in_file(config_root);
        #[cfg(feature = "keychain")]
        let vault = vault.preferring(Arc::new(super::keychain::Keychain::default()));
        vault
    }

    /// Only the file of a configuration folder.
    #[must_use]
    pub fn in_file(config_root: &Path) -> Self {
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

    /// Waits until no other process changes what is kept for a server.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::oauth::{KeptToken, Registration};

    const SERVER: &str = "https://mcp.example.com/";

    /// A place that can be out of order.
    #[derive(Default)]
    struct Fake {
        entries: Mutex<Vec<Entry>>,
        broken: AtomicBool,
    }

    impl Fake {
        fn works(&self) -> Result<(), StoreError> {
            let broken = self.broken.load(Ordering::Relaxed);
            if broken { Err(StoreError("out of order".to_owned())) } else { Ok(()) }
        }
    }

    impl TokenStore for Fake {
        fn entries(&self, _: &str) -> Result<Vec<Entry>, StoreError> {
            self.works()?;
            Ok(self.entries.lock().unwrap().clone())
        }

        fn replace(&self, _: &str, entries: &[Entry]) -> Result<(), StoreError> {
            self.works()?;
            *self.entries.lock().unwrap() = entries.to_vec();
            Ok(())
        }
    }

    fn entry(issuer: &str) -> Entry {
        let token = KeptToken {
            access_token: format!("token-of-{issuer}").into(),
            refresh_token: None,
            scopes: Vec::new(),
            received_at: 0,
            expires_at: None,
        };
        let client = Registration {
            client_id: issuer.to_owned(),
            client_secret: None,
            redirect_uri: String::new(),
            auth_method: None,
        };
        Entry {
            server: SERVER.to_owned(),
            issuer: Some(issuer.to_owned()),
            client: Some(client),
            token: Some(token),
        }
    }

    #[tokio::test]
    async fn whatever_goes_wrong_with_the_keychain_the_file_serves() {
        let root = tempfile::tempdir().unwrap();
        let keychain = Arc::new(Fake::default());
        let file = Vault::in_file(root.path());
        let vault = file.clone().preferring(keychain.clone());
        let locked = vault.lock(SERVER).await.unwrap();

        keychain.broken.store(true, Ordering::Relaxed);
        vault.keep(&locked, entry("a")).await.unwrap();
        assert_eq!(file.entries(SERVER).await.unwrap().len(), 1);
        keychain.broken.store(false, Ordering::Relaxed);
        assert_eq!(vault.entries(SERVER).await.unwrap().len(), 1, "the keychain has nothing yet");

        vault.keep(&locked, entry("a")).await.unwrap();
        assert_eq!(keychain.entries.lock().unwrap().len(), 1);
        assert!(file.entries(SERVER).await.unwrap().is_empty(), "one place at a time");
        vault.forget(&locked, SERVER).await.unwrap();
        assert!(vault.entries(SERVER).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn one_issuer_has_the_token_and_others_are_remembered_as_clients() {
        let root = tempfile::tempdir().unwrap();
        let vault = Vault::in_file(root.path());
        let locked = vault.lock(SERVER).await.unwrap();
        for issuer in ["a", "b", "c", "d", "e", "f"] {
            vault.keep(&locked, entry(issuer)).await.unwrap();
        }
        let kept = vault.entries(SERVER).await.unwrap();
        assert_eq!(kept.len(), MOST_ENTRIES);
        let with_token: Vec<_> = kept.iter().filter(|entry| entry.token.is_some()).collect();
        assert_eq!(with_token.len(), 1);
        assert_eq!(with_token[0].issuer.as_deref(), Some("f"));
    }
}
