//! Connections to a PostgreSQL server: where it is, how it is reached, its schema, and what its errors mean.

mod migrate;
mod url;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) use migrate::{migrate, version};
pub use url::{DatabaseUrl, DatabaseUrlError};

use crate::model::problem::Problem;
use crate::store::error::DbError;
use crate::store::migrations::{MigrationState, POSTGRES};

/// Connections of a pool; a node has two pools and a listener.
const CONNECTIONS: usize = 8;
/// How long a request waits for a connection, and how long connecting may take.
const WAIT: Duration = Duration::from_secs(5);

/// Connections that are made when they are needed.
pub(super) fn pool(url: &DatabaseUrl) -> Result<Pool, DbError> {
    let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let config = url.config();
    let manager = match config.get_ssl_mode() {
        SslMode::Disable => Manager::from_config(config, NoTls, settings),
        _ => Manager::from_config(config, MakeRustlsConnect::new(tls(url)?), settings),
    };
    Pool::builder(manager)
        .max_size(CONNECTIONS)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(WAIT))
        .build()
        .map_err(|error| DbError::Unavailable(error.to_string()))
}

/// TLS that proves who the server is: by the certificates that the address names, else by those of the system.
pub(super) fn tls(url: &DatabaseUrl) -> Result<ClientConfig, DbError> {
    let wrong = |problem: String| DbError::Unavailable(format!("TLS cannot be set up: {problem}"));
    let Some(path) = &url.root_certificates else {
        let environment = std::env::vars().collect();
        return qoder_http::platform_tls(&environment).map_err(|error| wrong(error.to_string()));
    };
    let mut roots = RootCertStore::empty();
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    for certificate in read.map_err(|error| wrong(format!("{}: {error}", path.display())))? {
        roots.add(certificate).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
    }
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(roots).with_no_client_auth())
        .map_err(|error| wrong(error.to_string()))
}

/// How far a database is, without changing it.
///
/// # Errors
/// When it cannot be reached.
pub async fn migration_state(url: &DatabaseUrl) -> Result<MigrationState, DbError> {
    let connection = super::checkout(&pool(url)?).await?;
    let known = POSTGRES.last().map_or(0, |migration| migration.number);
    let client: &tokio_postgres::Client = &connection;
    Ok(MigrationState { found: version(client).await?, known })
}

/// What an error of the server or of a connection means.
pub(super) fn fault(error: &tokio_postgres::Error) -> DbError {
    let Some(reported) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return DbError::Unavailable(format!("{error}{cause}"));
    };
    let code = reported.code();
    if *code == SqlState::CHARACTER_NOT_IN_REPERTOIRE || *code == SqlState::UNTRANSLATABLE_CHARACTER {
        return Problem::whole("A text of the request contains U+0000, which cannot be stored.").into();
    }
    let text = format!("{} ({})", reported.message(), code.code());
    if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED {
        return DbError::Corrupt(text);
    }
    DbError::Unavailable(text)
}

/// Why there is no connection.
pub(super) fn describe_pool(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => match fault(error) {
            DbError::Unavailable(text) => text,
            other => other.to_string(),
        },
        PoolError::Timeout(_) => format!("no connection within {} s", WAIT.as_secs()),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => error.to_string(),
    }
}
