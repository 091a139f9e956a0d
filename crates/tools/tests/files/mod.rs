//! Tools that read, find and change files.

mod edit;
mod glob;
mod grep;
mod keep_before;
mod notebook_edit;
mod path_resolution;
mod read_media;
mod read_refusals;
mod read_text;
mod write;
