//! What a driver asks models: the replies of a turn, summaries, side questions, and what the request carries.

pub(super) mod call;
mod compact;
mod memory;
mod side;
mod turn_model;
