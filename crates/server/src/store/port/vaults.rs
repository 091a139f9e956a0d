//! Vaults and credentials in the database. What is secret of a credential is a sealed column; it is emptied when the credential or
//! its vault is archived or deleted.

use crate::model::ids::{CredentialId, TenantId, VaultId};
use crate::model::refusal::Refusal;
use crate::model::vault::{Credential, CredentialBody, Vault, VaultBody};

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// Makes the next body of a vault from the present one.
pub type VaultChange = Box<dyn FnOnce(&Vault) -> Result<VaultBody, Refusal> + Send>;

/// A credential with what is sealed of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRow {
    /// The credential.
    pub credential: Credential,
    /// What is sealed of it.
    pub sealed: Vec<u8>,
}

/// A credential that is about to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCredential {
    /// Whose.
    pub tenant: TenantId,
    /// In which vault.
    pub vault: VaultId,
    /// The credential.
    pub id: CredentialId,
    /// What is kept of it.
    pub body: CredentialBody,
    /// What is sealed of it.
    pub sealed: Vec<u8>,
}

/// Which credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialQuery {
    /// Whose.
    pub tenant: TenantId,
    /// In which vault.
    pub vault: VaultId,
    /// Which.
    pub id: CredentialId,
}

/// Makes the next state of a credential, with what is sealed of it, from the present one.
pub type CredentialChange =
    Box<dyn FnOnce(&CredentialRow) -> Result<(CredentialBody, Vec<u8>), Refusal> + Send>;

/// Vaults and credentials.
pub trait VaultsDb {
    /// Creates a vault.
    fn create_vault(&self, tenant: TenantId, body: VaultBody, once: Once<Vault>)
    -> DbFuture<'_, Done<Vault>>;
    /// A vault.
    fn vault(&self, tenant: TenantId, id: VaultId) -> DbFuture<'_, Vault>;
    /// Changes a vault.
    fn update_vault(
        &self,
        tenant: TenantId,
        id: VaultId,
        change: VaultChange,
        once: Once<Vault>,
    ) -> DbFuture<'_, Done<Vault>>;
    /// Archives a vault and everything in it.
    fn archive_vault(&self, tenant: TenantId, id: VaultId, once: Once<Vault>) -> DbFuture<'_, Done<Vault>>;
    /// Deletes a vault and everything in it.
    fn delete_vault(&self, tenant: TenantId, id: VaultId, once: Once<()>) -> DbFuture<'_, Done<()>>;
    /// Vaults, of this name when one is given.
    fn list_vaults(&self, query: ListQuery, name: Option<String>) -> DbFuture<'_, ListedPage<Vault>>;
    /// Creates a credential. A vault has one for each server and each variable.
    fn create_credential(&self, new: NewCredential, once: Once<Credential>)
    -> DbFuture<'_, Done<Credential>>;
    /// A credential.
    fn credential(&self, query: CredentialQuery) -> DbFuture<'_, CredentialRow>;
    /// Changes a credential.
    fn update_credential(
        &self,
        query: CredentialQuery,
        change: CredentialChange,
        once: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>>;
    /// Archives a credential.
    fn archive_credential(
        &self,
        query: CredentialQuery,
        once: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>>;
    /// Deletes a credential.
    fn delete_credential(&self, query: CredentialQuery, once: Once<()>) -> DbFuture<'_, Done<()>>;
    /// Credentials of a vault, of this name when one is given.
    fn list_credentials(
        &self,
        vault: VaultId,
        query: ListQuery,
        name: Option<String>,
    ) -> DbFuture<'_, ListedPage<Credential>>;
    /// Credentials that sessions with these vaults can use, in the order of the vaults.
    fn usable_credentials(&self, tenant: TenantId, vaults: Vec<VaultId>) -> DbFuture<'_, Vec<CredentialRow>>;
    /// Keeps a token that was renewed, unless the credential was changed meanwhile. False when it was.
    fn keep_renewed(
        &self,
        before: CredentialRow,
        body: CredentialBody,
        sealed: Vec<u8>,
    ) -> DbFuture<'_, bool>;
}
