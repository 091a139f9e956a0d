//! Links that a line makes itself. Where a path leads is looked up before the line runs, so whatever goes through a
//! name that the line turns into a link, or may, leads to a place that is not known.

use std::path::PathBuf;

use crate::accesses::find::{Known, Place};
use crate::shell::Reading;

/// How many such names are looked at one by one; with more, every path is doubtful.
const MOST_NAMES: usize = 64;

/// Marks the commands that go through a name which another command of the line may turn into a link.
pub(crate) fn mark(reading: &Reading, known: &mut [Known]) {
    let mut made: Vec<(usize, PathBuf)> = Vec::new();
    for (at, command) in reading.commands.iter().enumerate() {
        let makes = match command.base_name() {
            Some("ln") => true,
            // They take a link along as it is.
            Some("cp" | "mv" | "rsync" | "install") => known[at].reads.iter().any(is_link),
            _ => false,
        };
        if makes {
            made.extend(known[at].edits.iter().map(|place| (at, place.lexical.clone())));
        }
    }
    if made.is_empty() {
        return;
    }
    for (at, one) in known.iter_mut().enumerate() {
        let places = one.reads.iter().chain(&one.edits).chain(&one.outputs).chain(&one.mentions);
        let mut places = places.map(|place| &place.lexical);
        one.follows_new_link = made.len() > MOST_NAMES
            || places.any(|path| made.iter().any(|(maker, name)| *maker != at && path.starts_with(name)));
    }
}

fn is_link(place: &Place) -> bool {
    place.lexical != place.real
}
