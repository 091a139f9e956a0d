//! The seam: a front opens a session here, holds a [`SessionHandle`] and sees nothing else of the engine. There is one
//! bring-up for all fronts, and one rule for a turn that an earlier process left unfinished.

mod client;
mod drive;
mod handle;
mod live;
mod log_events;
mod mail;
mod open;
mod opening;
pub mod requests;
pub mod retention;
mod sign_ins;
mod stop;
mod subscribe;
mod suggestion;
mod title;

pub use crate::driver::ContextUsage;
pub use crate::session::{Mirror, new_id, timestamp};
pub use drive::Finished;
pub use handle::{Finishing, PermissionTool, SessionHandle};
pub use log_events::LogEvents;
pub use open::{FirstPrompt, OpenError, OpenRequest, OpenedSession, Sessions};
pub use opening::{BadChoice, SessionChoice};
pub use qoder_protocol::{InterruptReceipt, RequestError, SessionEvent, SessionState, SessionView};
pub use requests::{PROTOCOL_VERSION, Request};
pub use stop::{Stopped, Stopper};
pub use subscribe::Subscription;
