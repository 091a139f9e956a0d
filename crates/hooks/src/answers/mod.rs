//! What hooks answer: reading the output of one, joining those of one event, and what their verdict makes of a ruling of
//! the gate.

pub(crate) mod event_fields;
pub(crate) mod join;
pub(crate) mod output;
pub(crate) mod ruling;
