//! The decision: rules, mode and knowledge compared with what a call would touch, with the reason and with suggestions.

mod disguise;
mod explain;
mod isolation;
mod judge;
mod line;
mod matching;
mod suggest;

pub use judge::{Confinement, Question, Ruling, decide};
