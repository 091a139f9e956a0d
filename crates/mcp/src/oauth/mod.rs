//! Credentials of remote servers by OAuth 2: how they are got, renewed and kept. Nothing here runs before a server with
//! an address needs it: no connection, no keychain, no TLS at start.
//!
//! * [`ServerAuthorizer`]: the credentials of one server. * [`Vault`]: where tokens are kept, one transaction at a time
//!   across processes. * [`TokenStore`]: a place for them: the [`FileStore`], and the keychain when built with it.

mod authorizer;
mod callback;
mod exchange;
mod file;
mod flow;
mod http;
#[cfg(feature = "keychain")]
mod keychain;
mod listener;
mod lock;
mod problem;
mod registration;
mod renew;
mod store;
mod vault;

pub use authorizer::{ClientIdentity, SecretSink, ServerAuthorizer};
pub use file::FileStore;
pub(crate) use http::OAuthHttp;
#[cfg(feature = "keychain")]
pub use keychain::Keychain;
pub use lock::{LockFolder, Locked};
pub use store::{Entry, KeptToken, Registration, StoreError, TokenStore};
pub use vault::Vault;
