//! The terminal layer: what is drawn and how, taking the terminal and giving it back. Relative moves on the main screen, so that
//! its history stays the terminal's own; the alternate screen for overlays alone.

mod clipboard;
mod pen;
mod record;
mod sheet;
mod size;
mod surface;
mod take;
mod writer;

pub(crate) use clipboard::clipboard_sequence;
pub(crate) use record::Recording;
pub(crate) use sheet::Sheet;
pub(crate) use size::terminal_size;
pub(crate) use surface::{Frame, Surface};
pub(crate) use take::{
    closing_for_others, enter_overlay, give_back, give_back_on_panic, leave_overlay, take,
};
pub(crate) use writer::Writer;
