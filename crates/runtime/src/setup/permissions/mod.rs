//! What a setup says about permissions: the gate with its rules and mode, the sandbox, secrets, and what an untrusted folder
//! does not bring.

mod gate;
pub(in crate::setup) mod mode;
pub mod sandbox;
mod secrets;
mod untrusted;
