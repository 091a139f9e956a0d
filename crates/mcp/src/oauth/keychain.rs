//! Tokens in the system's keychain (Secret Service on Linux), one item a server. A keychain that cannot be reached, is
//! locked, or does not answer in time is an error of this place only; the file is used then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use keyring::{Entry as Item, Error};

use super::store::{Entry, StoreError, TokenStore};

const SERVICE: &str = "qodercli-mcp-oauth";
/// A keychain may want to ask a person who is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The system's keychain. Nothing is opened before it is used.
#[derive(Debug, Default)]
pub struct Keychain {
    /// Once it did not answer, it is not asked again by this process.
    silent: AtomicBool,
}

impl Keychain {
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> keyring::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unreachable = || StoreError("the keychain does not answer".to_owned());
        if self.silent.load(Ordering::Relaxed) {
            return Err(unreachable());
        }
        let (sender, answer) = mpsc::sync_channel(1);
        // A thread of its own, because nothing else can leave a call that waits for a person.
        std::thread::Builder::new()
            .name("keychain".to_owned())
            .spawn(move || {
                // The receiver is gone when it took too long.
                let _ = sender.send(question());
            })
            .map_err(|error| StoreError(format!("the keychain cannot be asked: {error}")))?;
        match answer.recv_timeout(PATIENCE) {
            Ok(Ok(value)) => Ok(value),
            // Its words may hold what was to be kept.
            Ok(Err(_)) => Err(StoreError("the keychain cannot be used".to_owned())),
            Err(_) => {
                self.silent.store(true, Ordering::Relaxed);
                Err(unreachable())
            }
        }
    }
}

impl TokenStore for Keychain {
    fn entries(&self, server: &str) -> Result<Vec<Entry>, StoreError> {
        let name = server.to_owned();
        let secret = self.ask(move || match Item::new(SERVICE, &name)?.get_secret() {
            Ok(secret) => Ok(Some(secret)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        })?;
        let Some(secret) = secret else { return Ok(Vec::new()) };
        let entries: Vec<Entry> = serde_json::from_slice(&secret)
            .map_err(|_| StoreError("the item of the keychain is not readable".to_owned()))?;
        Ok(entries.into_iter().filter(|entry| entry.server == server).collect())
    }

    fn replace(&self, server: &str, entries: &[Entry]) -> Result<(), StoreError> {
        let name = server.to_owned();
        if entries.is_empty() {
            return self.ask(move || match Item::new(SERVICE, &name)?.delete_credential() {
                Ok(()) | Err(Error::NoEntry) => Ok(()),
                Err(error) => Err(error),
            });
        }
        let secret = serde_json::to_vec(entries)
            .map_err(|_| StoreError("the credentials cannot be put together".to_owned()))?;
        self.ask(move || Item::new(SERVICE, &name)?.set_secret(&secret))
    }
}
