//! What operators do beside a server, on the same data folder: tokens, checks, backups and keys. All of it works while the
//! server runs, and before it was ever started.

mod doctor;
mod postgres_checks;
mod tokens;

use std::path::Path;

pub use doctor::{Checked, doctor};
pub use tokens::{NewTokenOptions, create_token, parse_lifetime};

use crate::config::Config;
use crate::model::ids::SessionId;
use crate::serve::{Foundation, ServeError, Use};
use crate::store::migrations::MigrationState;
use crate::store::postgres;
use crate::store::sqlite::{self, SqliteDb};
use crate::store::{NodeRow, Stranded, TokenRow};

/// Every token, the oldest first.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn list_tokens(config: &Config) -> Result<Vec<TokenRow>, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    Ok(foundation.store.db.list_tokens().await?)
}

/// Revokes a token. False when no active token has this ID.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn revoke_token(config: &Config, id: &str) -> Result<bool, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    let id = id.strip_prefix("pt-").unwrap_or(id).to_owned();
    Ok(foundation.store.db.revoke_token(id).await?)
}

/// How far the database is, without changing it.
///
/// # Errors
/// When it cannot be read.
pub async fn migration(config: &Config) -> Result<MigrationState, ServeError> {
    match &config.database_url {
        None => Ok(sqlite::migration_state(&config.database())?),
        Some(url) => Ok(postgres::migration_state(url).await?),
    }
}

/// Brings the database up to date.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn migrate(config: &Config) -> Result<MigrationState, ServeError> {
    Foundation::lay(config, Use::Command).await?;
    migration(config).await
}

/// Copies the database to a file, while the server runs.
///
/// # Errors
/// When the data folder cannot be used, the file cannot be written, or the database is not in the data folder.
pub async fn backup(config: &Config, to: &Path) -> Result<(), ServeError> {
    if config.database_url.is_some() {
        return Err(ServeError::Backup);
    }
    if to.exists() {
        return Err(ServeError::BackupExists { path: to.to_path_buf() });
    }
    let foundation = Foundation::lay(config, Use::Command).await?;
    foundation.store.db.backup(to.to_path_buf()).await?;
    let copied = SqliteDb::open(to)?;
    drop(copied);
    Ok(())
}

/// Sessions that are quarantined.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn quarantined(config: &Config) -> Result<Vec<Stranded>, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    Ok(foundation.store.db.quarantined().await?)
}

/// Lets a quarantined session continue. False when it is not quarantined.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn release(config: &Config, id: &str) -> Result<bool, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    match SessionId::parse(id) {
        Some(id) => Ok(foundation.store.db.release_quarantined(id).await?),
        None => Ok(false),
    }
}

/// The log of a session, one line a record. `None` when there is no such session.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn export(config: &Config, id: &str) -> Result<Option<Vec<Vec<u8>>>, ServeError> {
    let Some(id) = SessionId::parse(id) else { return Ok(None) };
    let foundation = Foundation::lay(config, Use::Command).await?;
    let exported = match foundation.store.db.export(id).await {
        Ok(exported) => exported,
        Err(crate::store::DbError::Refused(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (tenant, mut records) = exported;
    foundation.store.fill_records(tenant, &mut records).await?;
    Ok(Some(records.into_iter().map(|record| record.line).collect()))
}

/// Nodes that serve.
///
/// # Errors
/// When the data folder cannot be used.
pub async fn nodes(config: &Config) -> Result<Vec<NodeRow>, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    Ok(foundation.store.db.list_nodes().await?)
}

/// Replaces the master key by a new one. Answers with how many keys it seals.
///
/// # Errors
/// When the key is not the server's to replace, or the data folder cannot be used.
pub async fn rotate_keys(config: &Config) -> Result<usize, ServeError> {
    let foundation = Foundation::lay(config, Use::Command).await?;
    let keys = foundation.rotate_master_key(config).await?;
    foundation.reseal(&keys).await
}
