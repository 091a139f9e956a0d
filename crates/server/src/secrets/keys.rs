//! The keys that the master key seals: the cluster's, by which tokens are recognised, and one a tenant, for what it owns.

use ring::hmac;

use super::master::MasterKey;
use super::seal::{self, KEY_LENGTH, SealError, Sealed};
use crate::model::ids::TenantId;

const CLUSTER_PLACE: &str = "meta/cluster_key";

/// Recognises tokens.
#[derive(Clone)]
pub struct ClusterKey(hmac::Key);

impl std::fmt::Debug for ClusterKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ClusterKey")
    }
}

impl ClusterKey {
    /// What is kept of a token.
    #[must_use]
    pub fn hash(&self, token: &str) -> Vec<u8> {
        hmac::sign(&self.0, token.as_bytes()).as_ref().to_vec()
    }

    /// True when the hash is the token's; takes the same time whatever they are.
    #[must_use]
    pub fn fits(&self, token: &str, hash: &[u8]) -> bool {
        hmac::verify(&self.0, token.as_bytes(), hash).is_ok()
    }
}

/// Seals what one tenant owns.
#[derive(Clone)]
pub struct DataKey {
    tenant: TenantId,
    key: [u8; KEY_LENGTH],
}

impl std::fmt::Debug for DataKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "DataKey({})", self.tenant)
    }
}

impl DataKey {
    fn place(&self, table: &str, row: &str) -> String {
        format!("{}/{table}/{row}", self.tenant)
    }

    /// Seals bytes for a row of a table.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn seal(&self, table: &str, row: &str, content: &[u8]) -> Result<Sealed, SealError> {
        seal::seal(&self.key, 0, &self.place(table, row), content)
    }

    /// Opens bytes that were sealed for a row of a table.
    ///
    /// # Errors
    /// When they were sealed by another key or for another row, or were changed.
    pub fn open(&self, table: &str, row: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        seal::open(&self.key, &self.place(table, row), sealed)
    }
}

/// What the master key seals and opens.
#[derive(Debug, Clone)]
pub struct Keys(MasterKey);

impl Keys {
    /// With this master key.
    #[must_use]
    pub fn new(master: MasterKey) -> Self {
        Self(master)
    }

    /// A new cluster key, sealed.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new_cluster_key(&self) -> Result<Sealed, SealError> {
        self.0.seal(CLUSTER_PLACE, &seal::random::<KEY_LENGTH>()?)
    }

    /// Opens the cluster key.
    ///
    /// # Errors
    /// When another master key sealed it.
    pub fn cluster_key(&self, sealed: &[u8]) -> Result<ClusterKey, SealError> {
        let key = self.0.open(CLUSTER_PLACE, sealed)?;
        Ok(ClusterKey(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// A new key of a tenant, sealed.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new_data_key(&self, tenant: TenantId) -> Result<Sealed, SealError> {
        self.0.seal(&tenant_place(tenant), &seal::random::<KEY_LENGTH>()?)
    }

    /// Opens the key of a tenant.
    ///
    /// # Errors
    /// When another master key sealed it.
    pub fn data_key(&self, tenant: TenantId, sealed: &[u8]) -> Result<DataKey, SealError> {
        let key = self.0.open(&tenant_place(tenant), sealed)?;
        let key = key.try_into().map_err(|_| SealError::Unreadable)?;
        Ok(DataKey { tenant, key })
    }

    /// The cluster key, sealed by the newest generation; `None` when it is.
    ///
    /// # Errors
    /// When no generation opens it.
    pub fn reseal_cluster_key(&self, sealed: &[u8]) -> Result<Option<Sealed>, SealError> {
        self.reseal(CLUSTER_PLACE, sealed)
    }

    /// The key of a tenant, sealed by the newest generation; `None` when it is.
    ///
    /// # Errors
    /// When no generation opens it.
    pub fn reseal_data_key(&self, tenant: TenantId, sealed: &[u8]) -> Result<Option<Sealed>, SealError> {
        self.reseal(&tenant_place(tenant), sealed)
    }

    fn reseal(&self, place: &str, sealed: &[u8]) -> Result<Option<Sealed>, SealError> {
        if self.0.is_newest(sealed) {
            return Ok(None);
        }
        let content = self.0.open(place, sealed)?;
        self.0.seal(place, &content).map(Some)
    }
}

fn tenant_place(tenant: TenantId) -> String {
    format!("tenants/{tenant}")
}

#[cfg(test)]
mod tests {
    use super::super::master::MasterSource;
    use super::*;

    #[test]
    fn tokens_are_recognised_and_secrets_stay_with_their_tenant() {
        let master = MasterKey::load(&MasterSource::Variable("ab".repeat(32))).unwrap();
        let keys = Keys::new(master);
        let cluster = keys.cluster_key(&keys.new_cluster_key().unwrap()).unwrap();
        let hash = cluster.hash("pt-a-b");
        assert!(cluster.fits("pt-a-b", &hash) && !cluster.fits("pt-a-c", &hash));
        let (one, other) = (TenantId([1; 16]), TenantId([2; 16]));
        let sealed = keys.new_data_key(one).unwrap();
        assert!(keys.data_key(other, &sealed).is_err(), "another tenant's row");
        let key = keys.data_key(one, &sealed).unwrap();
        let secret = key.seal("sessions", "s1", b"v").unwrap();
        assert_eq!(key.open("sessions", "s1", &secret).unwrap(), b"v");
        assert!(key.open("sessions", "s2", &secret).is_err());
    }
}
