//! TLS of the server's own: a certificate chain and its key in PEM files, read once at the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// TLS that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("cannot use {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Certificate and key do not fit.
    #[error("cannot set up TLS: {0}")]
    Setup(String),
}

impl TlsError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "tls_file",
            Self::Setup(_) => "tls_setup",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "give a certificate chain and its private key as PEM files"
    }
}

/// Accepts TLS with a certificate chain and its key.
///
/// # Errors
/// When a file cannot be read, or the two do not fit.
pub fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let wrong = |path: &Path, problem: String| TlsError::File { path: path.to_path_buf(), problem };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(certificates, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificates, "it holds no certificate".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| TlsError::Setup(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
