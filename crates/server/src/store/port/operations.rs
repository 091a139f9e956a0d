//! Tokens, tenants and the care of the database.

use std::path::PathBuf;

use crate::model::ids::TenantId;
use crate::model::time::Time;

use super::DbFuture;

/// A token that is about to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Its public part.
    pub id: String,
    /// Whose things it reaches, by name.
    pub tenant: String,
    /// Who has it.
    pub user: String,
    /// What is kept of it.
    pub hash: Vec<u8>,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Time>,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public part.
    pub id: String,
    /// Whose things it reaches.
    pub tenant: TenantRow,
    /// Who has it.
    pub user: String,
    /// What is kept of it.
    pub hash: Vec<u8>,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it was created.
    pub created_at: Time,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// When it was last used, to a minute.
    pub used_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRow {
    /// The tenant.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// Its key, sealed.
    pub data_key: Vec<u8>,
}

/// Numbers for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions by status, those that are quarantined, and actions that are open.
    pub sessions: Vec<(String, u64)>,
    /// Microseconds since the session was due that waits longest for a node.
    pub due_micros: u64,
    /// Microseconds since the oldest action was asked that is open.
    pub pending_micros: u64,
    /// Bytes of the files of all tenants.
    pub file_bytes: u64,
}

/// Makes the sealed key of a new tenant.
pub type MakeDataKey = Box<dyn FnOnce(TenantId) -> Vec<u8> + Send>;

/// Tokens, tenants and the care of the database.
pub trait OperationsDb {
    /// A value of the database as a whole; `make` gives it when it has none. The first one counts.
    fn meta_or(&self, name: &'static str, make: Vec<u8>) -> DbFuture<'_, Vec<u8>>;
    /// Replaces a value of the database as a whole.
    fn set_meta(&self, name: &'static str, value: Vec<u8>) -> DbFuture<'_, ()>;
    /// Creates a token, and its tenant unless it exists.
    fn create_token(&self, token: NewToken, make_key: MakeDataKey) -> DbFuture<'_, TokenRow>;
    /// A token by its public part.
    fn token(&self, id: String) -> DbFuture<'_, Option<TokenRow>>;
    /// Every token, the oldest first.
    fn list_tokens(&self) -> DbFuture<'_, Vec<TokenRow>>;
    /// Revokes a token. False when no active token has this ID.
    fn revoke_token(&self, id: String) -> DbFuture<'_, bool>;
    /// Notes that tokens were used.
    fn touch_tokens(&self, used: Vec<(String, Time)>) -> DbFuture<'_, ()>;
    /// Every tenant.
    fn list_tenants(&self) -> DbFuture<'_, Vec<TenantRow>>;
    /// Replaces the sealed keys of tenants.
    fn set_data_keys(&self, keys: Vec<(TenantId, Vec<u8>)>) -> DbFuture<'_, ()>;
    /// Tries whether the database can be written.
    fn probe(&self) -> DbFuture<'_, ()>;
    /// The version of the schema.
    fn schema(&self) -> DbFuture<'_, u32>;
    /// Looks for damage; answers with what was found.
    fn check(&self) -> DbFuture<'_, Vec<String>>;
    /// Copies the database to a file while it is in use.
    fn backup(&self, to: PathBuf) -> DbFuture<'_, ()>;
    /// Removes what no one needs: rows of deleted sessions, answers that no one can ask for again. Answers with how many.
    fn clean(&self, now: Time) -> DbFuture<'_, u64>;
    /// Numbers for metrics.
    fn counts(&self) -> DbFuture<'_, Counts>;
}
