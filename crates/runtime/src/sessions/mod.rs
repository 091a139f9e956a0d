//! The seam: a front opens a session here, holds a [`SessionHandle`] and sees nothing else of the engine. There is one
//! bring-up for all fronts, and one rule for a turn that an earlier process left unfinished.

mod client;
mod context_usage;
mod drive;
mod handle;
mod live;
mod log_events;
mod mail;
mod open;
pub mod requests;
mod sign_ins;
mod state;
mod stop;
mod subscribe;
mod suggestion;
mod title;

pub use context_usage::ContextUsage;
pub use drive::Finished;
pub(crate) use handle::InnerHandle;
pub use handle::{Finishing, PermissionTool, SessionHandle};
pub(crate) use live::{Arrival, Inbox};
pub use log_events::LogEvents;
pub use open::{FirstPrompt, OpenError, OpenRequest, OpenedSession, Sessions};
pub use qoder_protocol::{InterruptReceipt, RequestError, SessionEvent, SessionState, SessionView};
pub use requests::{PROTOCOL_VERSION, Request};
pub(crate) use sign_ins::SigningIn;
pub(crate) use state::tell_state;
pub use stop::{Stopped, Stopper};
pub use subscribe::Subscription;
