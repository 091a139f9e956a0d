//! The Bash tool.

mod background;
mod ending;
mod environment;
mod moved;
mod output;
mod script;
