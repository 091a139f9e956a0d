//! The control protocol: the handshake, requests of both sides, and their answers.

mod channel;
mod error;
mod handshake;
mod hooks;
mod serve;
mod servers;

pub(crate) use channel::Channel;
pub use error::HandshakeError;
pub(crate) use handshake::declared;
pub(crate) use serve::answer;
