//! Events to subscribers. A subscriber is a cursor and not a queue: it takes frames from a ring that all share, and reads from the
//! store what the ring no longer has. A slow one delays no other.

mod channel;
mod frame;
mod hub;
mod pieces;

pub use frame::{Frame, comment, retry};
pub use hub::{Deltas, Hub, Next, Subscription};
pub use pieces::{Pieces, read_piece};
