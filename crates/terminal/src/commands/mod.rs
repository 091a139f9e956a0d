//! Commands of the front: what each is called and what it comes to. A line that begins with `/` and names none of them goes to
//! the session, which knows its own. Panels offer nothing but such lines.

mod manage;
#[cfg(test)]
pub(crate) mod page;
mod perform;
mod table;
mod whole;

pub(crate) use perform::{CommandContext, KnownFacts, Outcome, perform};
pub(crate) use table::{COMMANDS, Command, CommandRow, parse};
pub(crate) use whole::whole_conversation;
