//! Reading shell commands as bash does: a real grammar, everything that can execute collected as simple commands, words
//! with what is known of them, and what a known program would read and change. Reading never decides anything; the
//! policy does. What cannot be read is reported as not proven, and what is not proven is never automatic.
//!
//! Two grammars read every line: our own reader, which knows the value of each word, and a maintained parser whose tree
//! must name the same commands at the same places ([`read`] reports a doubt otherwise).

mod braces;
mod grammar;
mod handover;
pub mod knowledge;
mod plain;
mod reading;
mod variables;
mod witness;
mod word;
mod wrapper;

pub use braces::{Unexpanded, alternatives};
pub use handover::hands_over;
pub use reading::{
    Assignment, Directory, Doubt, DoubtKind, Reading, Redirection, RedirectionKind, SimpleCommand, Wrapped,
};
pub use variables::is_skippable_variable;
pub use word::{Piece, Word};
pub use wrapper::is_privilege_wrapper;

use grammar::collector::{Collector, LONGEST};
use grammar::places::Places;

/// Reads a command line. Total over any text, with bounded time and memory; what is beyond a bound is a doubt, and the
/// commands found up to there are still in the list.
#[must_use]
pub fn read(command: &str) -> Reading {
    let mut out = Collector::default();
    let mut length = command.len().min(LONGEST);
    while !command.is_char_boundary(length) {
        length -= 1;
    }
    let text = command.get(..length).unwrap_or_default();
    if length < command.len() {
        out.doubt(DoubtKind::TooLong, "");
    }
    grammar::nested::text(&mut out, text, Places::start());
    out.reading
}
