//! What one reading has gathered so far, and its bounds: how many commands, how deep, how much text. Nested scripts (as
//! in `bash -c`) gather into the same collector, so the bounds hold for all of them together.

use crate::shell::reading::{Directory, Doubt, DoubtKind, Reading, SimpleCommand, Wrapped};

/// The longest text that is read.
pub(crate) const LONGEST: usize = 64 * 1024;
/// How deep constructs may nest.
pub(crate) const DEEPEST: usize = 64;
/// How many simple commands are collected.
pub(crate) const MOST_COMMANDS: usize = 4096;
/// How deep commands inside commands are followed.
pub(crate) const DEEPEST_WRAPPER: usize = 8;
/// How many doubts are kept; one is enough to decide, more only explain.
const MOST_DOUBTS: usize = 64;
/// How much of the text a doubt shows.
const DOUBT_TEXT: usize = 120;

/// What has been found so far.
#[derive(Default)]
pub(crate) struct Collector {
    /// The result.
    pub reading: Reading,
    /// How many commands enclose the one being read.
    pub wrapper_depth: usize,
    /// The command that runs the script being read.
    pub outer: Option<usize>,
    /// How deep the constructs of the text being read are nested.
    pub depth: usize,
    /// Bytes of nested scripts read so far.
    pub nested_bytes: usize,
    /// Words of commands inside commands so far.
    pub nested_words: usize,
    /// True while what is read may be no command at all.
    pub guessing: bool,
}

impl Collector {
    /// Records a doubt about a part of the text.
    pub fn doubt(&mut self, kind: DoubtKind, text: &str) {
        if self.reading.doubts.len() >= MOST_DOUBTS {
            return;
        }
        let mut end = text.len().min(DOUBT_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let doubt = Doubt { kind, text: text.get(..end).unwrap_or_default().to_owned() };
        if !self.reading.doubts.contains(&doubt) {
            self.reading.doubts.push(doubt);
        }
    }

    /// Adds a command and returns its position; `None` when the bound is reached.
    pub fn push(&mut self, mut command: SimpleCommand) -> Option<usize> {
        let at = self.reading.commands.len();
        if at >= MOST_COMMANDS {
            if !self.reading.doubts.iter().any(|doubt| doubt.kind == DoubtKind::TooMany) {
                // The row of doubts may be full; the bound must show all the same.
                let doubt = Doubt { kind: DoubtKind::TooMany, text: String::new() };
                self.reading.doubts.push(doubt);
            }
            return None;
        }
        if command.wrapped.is_none()
            && let Some(outer) = self.outer
        {
            command.wrapped = Some(Wrapped { outer, transparent: false });
        }
        self.reading.commands.push(command);
        Some(at)
    }

    /// The directories of a command, as a start for a script inside it.
    pub fn directories_of(&self, at: usize) -> Vec<Directory> {
        self.reading.commands.get(at).map_or_else(|| vec![Directory::Unknown], |it| it.directories.clone())
    }
}
