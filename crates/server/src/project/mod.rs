//! From records to events. The projector is a pure fold over the log of a session: what it makes of a record is stored once, and
//! a later process that folds the same log knows everything that later events refer to.

mod bodies;
mod calls;
mod previews;
mod projector;
#[cfg(test)]
mod tests;
mod threads;

pub use previews::{PreviewFrame, Previews};
pub use projector::{Projected, Projector, Resting};
pub use threads::ThreadPlace;
