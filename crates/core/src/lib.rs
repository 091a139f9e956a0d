//! The brain: pure functions from a session's records to what happens next. No IO and no async runtime.
//!
//! [`fold`] turns records into a [`state::State`], [`mod@next`] says what to do, [`render`] makes the model request,
//! [`recover`] says what an unfinished call means, [`policy`] decides about calls, [`timeline`] says what
//! took how long, [`display`] what a terminal may show, [`redact`] takes secrets out, and [`ports`] holds the traits that the outside implements.

pub mod call_ids;
mod cut;
pub mod display;
pub mod fold;
pub mod images;
pub mod next;
mod option_names;
pub mod permissions;
pub mod policy;
pub mod ports;
pub mod recover;
pub mod redact;
pub mod render;
pub mod shell;
pub mod spelling;
pub mod state;
pub mod structured;
mod tasks;
pub mod timeline;

pub use next::{Exhausted, Limits, Step, next};
pub use option_names::OptionNames;
pub use state::State;
