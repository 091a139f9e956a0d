//! The ImageGen tool: pictures that a model makes, and the files that they go to.

mod files;
pub(crate) mod generate;
