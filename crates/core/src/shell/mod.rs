//! Reading shell commands as bash does: a real grammar, everything that can execute collected as simple commands, words
//! with what is known of them, and what a known program would read and change. Reading never decides anything; the
//! policy does. What cannot be read is reported as not proven, and what is not proven is never automatic.

pub mod knowledge;
mod word;

pub use word::{Piece, Word};
