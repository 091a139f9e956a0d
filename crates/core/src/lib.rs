//! The brain: pure functions from a session's records to what happens next. No IO and no async runtime.
//!
//! [`fold`] turns records into a [`state::State`], [`mod@next`] returns the next step, [`render`] makes the model request,
//! [`recover`] closes an unfinished call, [`timeline`] measures what took how long, [`redact`] removes secrets, and
//! [`ports`] holds the traits that the outside implements.

pub mod fold;
pub mod images;
pub mod next;
mod option_names;
pub mod permissions;
pub mod ports;
pub mod recover;
pub mod redact;
pub mod render;
pub mod state;
pub mod timeline;

pub use next::{Exhausted, Limits, Step, next};
pub use option_names::OptionNames;
pub use state::{State, call_ids, structured};
