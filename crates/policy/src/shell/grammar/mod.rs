//! The grammar of bash: from the text of a line to the simple commands that it could execute.

mod ansi_quotes;
mod builtin;
pub(crate) mod collector;
pub(crate) mod condition;
mod expansion;
mod heredoc;
mod lexer;
pub(crate) mod nested;
mod parameter;
pub(crate) mod places;
pub(crate) mod reader;
mod script;
mod simple;
