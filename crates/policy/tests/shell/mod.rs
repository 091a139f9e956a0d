//! Reading shell commands: everything that can execute is found, words say what is known of them, places are tracked,
//! wrappers are looked through, and what is not proven is doubted. One module per behaviour; the differential test runs
//! generated scripts under real bash.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod characters;
mod constructs;
mod differential;
mod doubts;
mod mutation;
mod places;
mod properties;
mod redirections;
mod words;
mod wrappers;

use qoder_policy::shell::{DoubtKind, Reading, read};

/// The names of the commands found, in order; `?` for one that is not known.
fn names(reading: &Reading) -> Vec<&str> {
    let named = reading.commands.iter().filter(|command| !command.words.is_empty());
    named.map(|command| command.name().unwrap_or("?")).collect()
}

/// The kinds of doubts about a line.
fn kinds(line: &str) -> Vec<DoubtKind> {
    read(line).doubts.iter().map(|doubt| doubt.kind).collect()
}
