//! Markdown as it streams: lines become parts that can be shown by themselves and never change again, and what is not complete
//! is the tail. How a text was cut into pieces makes no difference to its parts.

mod blocks;
mod highlight;
mod inline;
mod lines;
mod render;
mod table;

pub(crate) use blocks::{Part, Splitter};
pub(crate) use inline::plain;
pub(crate) use render::Renderer;
