//! Notebooks: their cells as text, and the tool that edits them.

pub(crate) mod edit;
mod text;
