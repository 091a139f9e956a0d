//! The seam: a front opens a session here, holds a [`SessionHandle`] and sees nothing else of the engine. There is one
//! bring-up for all fronts, and one rule for a turn that an earlier process left unfinished.

mod drive;
mod handle;
mod live;
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
pub use crate::events::SessionState;
pub use drive::Finished;
pub use handle::{Finishing, InterruptReceipt, PermissionTool, RequestError, SessionHandle, SessionView};
pub use open::{FirstPrompt, OpenError, OpenRequest, OpenedSession, Sessions};
pub use opening::{BadChoice, SessionChoice};
pub use requests::{PROTOCOL_VERSION, Request};
pub use stop::{Stopped, Stopper};
pub use subscribe::{SessionEvent, Subscription};
