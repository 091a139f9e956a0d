//! Credentials of vaults, opened: tokens that are over are renewed and kept, and a credential can be tried out.

mod renewal;
mod validation;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::auth::{Auth, Secrets};
use crate::model::happening::Happening;
use crate::model::ids::{CredentialId, TenantId, VaultId};
use crate::model::time::Time;
use crate::model::vault::Credential;
use crate::outgoing::Outgoing;
use crate::secrets::{DataKey, SealError};
use crate::store::{CredentialQuery, CredentialRow, DbError, Store};

pub use renewal::RenewalError;

/// A token is renewed this long before it ends.
const EARLY_MS: i64 = 60 * 1000;

/// A credential whose secrets are open.
#[derive(Debug, Clone)]
pub struct OpenedCredential {
    /// The row.
    row: CredentialRow,
    /// What is secret of it.
    pub secrets: Secrets,
}

impl OpenedCredential {
    /// The credential.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.row.credential
    }

    /// True when its token is over, or nearly.
    fn is_over(&self) -> bool {
        match &self.credential().body.auth {
            Auth::McpOauth { expires_at, .. } => {
                expires_at.is_some_and(|at| Time(at) <= Time::now().after(EARLY_MS))
            }
            Auth::StaticBearer { .. } | Auth::EnvironmentVariable { .. } => false,
        }
    }
}

/// Opens and renews credentials.
#[derive(Debug)]
pub struct Credentials {
    store: Store,
    outgoing: Outgoing,
    /// Those that are being renewed: a refresh token may work once.
    renewing: Mutex<HashMap<CredentialId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Credentials {
    /// Of a store.
    #[must_use]
    pub fn new(store: Store, outgoing: Outgoing) -> Self {
        Self { store, outgoing, renewing: Mutex::default() }
    }

    /// Opens what is secret of a credential.
    ///
    /// # Errors
    /// When another key sealed it.
    pub fn open(key: &DataKey, row: CredentialRow) -> Result<OpenedCredential, SealError> {
        let opened = key.open("credentials", &row.credential.id.to_string(), &row.sealed)?;
        let secrets = serde_json::from_slice(&opened).map_err(|_| SealError::Unreadable)?;
        Ok(OpenedCredential { row, secrets })
    }

    /// Seals what is secret of a credential.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn seal(key: &DataKey, id: CredentialId, secrets: &Secrets) -> Result<Vec<u8>, SealError> {
        let content = serde_json::to_vec(secrets).map_err(|_| SealError::Unreadable)?;
        key.seal("credentials", &id.to_string(), &content)
    }

    /// The credentials of vaults that can be opened, in the order of the vaults.
    ///
    /// # Errors
    /// When the database does not work.
    pub async fn of_vaults(
        &self,
        tenant: TenantId,
        vaults: Vec<VaultId>,
        key: &DataKey,
    ) -> Result<Vec<OpenedCredential>, DbError> {
        if vaults.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.store.db.usable_credentials(tenant, vaults).await?;
        Ok(rows.into_iter().filter_map(|row| Self::open(key, row).ok()).collect())
    }

    /// The credential with a token that is not over: it is renewed when that is needed.
    ///
    /// # Errors
    /// When it has to be renewed and cannot be.
    pub async fn current(
        &self,
        tenant: TenantId,
        key: &DataKey,
        opened: OpenedCredential,
    ) -> Result<OpenedCredential, RenewalError> {
        if opened.is_over() { self.renew(tenant, key, opened).await } else { Ok(opened) }
    }

    /// Renews the token of a credential and keeps it. Of several that ask at once, one does it.
    ///
    /// # Errors
    /// When it cannot be renewed.
    async fn renew(
        &self,
        tenant: TenantId,
        key: &DataKey,
        opened: OpenedCredential,
    ) -> Result<OpenedCredential, RenewalError> {
        let (id, vault) = (opened.credential().id, opened.credential().vault);
        let turn =
            Arc::clone(self.renewing.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default());
        let _turn = turn.lock().await;
        let stored = |error: DbError| RenewalError::Store(error.to_string());
        let row = self.store.db.credential(CredentialQuery { tenant, vault, id }).await.map_err(stored)?;
        let sealed = |error: SealError| RenewalError::Store(error.to_string());
        if row.sealed != opened.row.sealed {
            // Another one has renewed or replaced it meanwhile.
            return Self::open(key, row).map_err(sealed);
        }
        let renewed = renewal::renewed(&self.outgoing, &row.credential.body.auth, &opened.secrets).await;
        if renewed.is_err() {
            let failed = Happening::new("vault_credential.refresh_failed", id).in_vault(vault);
            self.store.db.notify(tenant, failed).await.map_err(stored)?;
        }
        let (auth, secrets) = renewed?;
        let mut body = row.credential.body.clone();
        body.auth = auth;
        let content = Self::seal(key, id, &secrets).map_err(sealed)?;
        self.store.db.keep_renewed(row.clone(), body.clone(), content.clone()).await.map_err(stored)?;
        let credential = Credential { body, ..row.credential };
        Ok(OpenedCredential { row: CredentialRow { credential, sealed: content }, secrets })
    }
}
