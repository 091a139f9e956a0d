//! What a person types: bytes of the terminal become keys, pastes and changes of focus. Pure but for the thread that reads.

mod csi;
mod key;
mod parser;
mod reader;
mod signals;

pub(crate) use key::{Key, KeyCode};
pub(crate) use parser::Input;
pub(crate) use reader::{Reader, Typed};
pub(crate) use signals::{Sign, Signals};
