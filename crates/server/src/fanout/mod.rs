//! Events to subscribers. A subscriber is a cursor and not a queue: it takes frames from a ring that all share, and reads from the
//! store what the ring no longer has. A slow one delays no other.

mod frame;
mod hub;

pub use frame::{Frame, comment, retry};
pub use hub::{Deltas, Hub, Next, Subscription};
