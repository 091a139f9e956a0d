//! Log stores: where a session's records are kept. [`line`] is the text of a record, [`jsonl`] the file store with its
//! lock and recovery, [`blob`] large content, [`notes`] titles and tags, [`memory`] a store that forgets.
//! `tear` takes records out that were never completed, and `folders` syncs the folders of new files.

pub mod blob;
pub(crate) mod folders;
pub mod jsonl;
pub mod line;
pub mod memory;
pub mod notes;
mod tear;
