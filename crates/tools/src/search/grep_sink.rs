//! What a search keeps of a file, and of all files together.
//!
//! A file contributes at most as many entries as could be shown. Of all files only the first by path are kept, as many
//! as are needed: what is beyond is counted and dropped while the search continues.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use qoder_process::output::first_characters;

use crate::call::blocking::StopFlag;
use crate::search::grep::OutputMode;

/// Longer lines are cut.
const LINE_CHARACTERS: usize = 500;

/// One line of the result, with its number when numbers are wanted.
#[derive(Debug)]
pub(crate) enum Entry {
    Match(Option<u64>, String),
    Context(Option<u64>, String),
    Break,
    Count(u64),
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(crate) struct FileMatches {
    entries: Vec<Entry>,
    matches: u64,
    dropped: bool,
}

/// Takes what the searcher finds in one file.
pub(crate) struct FileSink<'a> {
    mode: OutputMode,
    matcher: &'a RegexMatcher,
    only_matching: bool,
    most: u64,
    stop: &'a StopFlag,
    found: FileMatches,
    binary: bool,
}

impl<'a> FileSink<'a> {
    pub(crate) fn new(
        mode: OutputMode,
        matcher: &'a RegexMatcher,
        only_matching: bool,
        most: u64,
        stop: &'a StopFlag,
    ) -> Self {
        Self { mode, matcher, only_matching, most, stop, found: FileMatches::default(), binary: false }
    }

    /// What was found; `None` when nothing was, or when the file turned out to be binary.
    pub(crate) fn finish(mut self) -> Option<FileMatches> {
        if self.binary || self.found.matches == 0 {
            return None;
        }
        if self.mode == OutputMode::Count {
            self.found.entries.push(Entry::Count(self.found.matches));
        }
        Some(self.found)
    }

    fn push(&mut self, entry: Entry) {
        if (self.found.entries.len() as u64) < self.most {
            self.found.entries.push(entry);
        } else {
            self.found.dropped = true;
        }
    }

    /// Shows every matching part of the lines.
    fn push_parts(&mut self, bytes: &[u8], number: Option<u64>) -> io::Result<()> {
        let mut parts = Vec::new();
        self.matcher
            .find_iter(bytes, |part| {
                parts.push(line_text(&bytes[part]));
                (parts.len() as u64) < self.most
            })
            .map_err(io::Error::other)?;
        for part in parts {
            self.push(Entry::Match(number, part));
        }
        Ok(())
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.mode {
            OutputMode::FilesWithMatches => {
                self.found.matches = 1;
                return Ok(false);
            }
            OutputMode::Count => self.found.matches += found.lines().count() as u64,
            OutputMode::Content if self.only_matching => {
                self.found.matches += 1;
                self.push_parts(found.bytes(), found.line_number())?;
            }
            OutputMode::Content => {
                let mut number = found.line_number();
                for line in found.lines() {
                    self.found.matches += 1;
                    self.push(Entry::Match(number, line_text(line)));
                    number = number.map(|number| number + 1);
                }
            }
        }
        Ok(!self.stop.is_raised())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(Entry::Context(context.line_number(), line_text(context.bytes())));
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.push(Entry::Break);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A line without its end, cut, and with invalid bytes replaced.
fn line_text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    // Four bytes per character bound what has to be looked at of a very long line.
    let start = &bytes[..bytes.len().min(LINE_CHARACTERS * 4 + 4)];
    let text = String::from_utf8_lossy(start);
    match first_characters(&text, LINE_CHARACTERS) {
        (cut, true) => format!("{cut} [line cut]"),
        (_, false) => text.into_owned(),
    }
}

/// What was found in all files.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) by_path: BTreeMap<PathBuf, Vec<Entry>>,
    pub(crate) matches: u64,
    pub(crate) files: u64,
    pub(crate) dropped: bool,
    needed: u64,
    kept: u64,
}

impl Collected {
    /// Keeps at least `needed` entries, when there are as many.
    pub(crate) fn new(needed: u64) -> Self {
        Self { by_path: BTreeMap::new(), matches: 0, files: 0, dropped: false, needed, kept: 0 }
    }

    /// Adds what was found in the file `path`.
    pub(crate) fn add(&mut self, path: &Path, found: FileMatches) {
        self.matches += found.matches;
        self.files += 1;
        self.dropped |= found.dropped;
        self.kept += found.entries.len() as u64;
        self.by_path.insert(path.to_path_buf(), found.entries);
        while let Some(last) = self.by_path.last_entry() {
            let length = last.get().len() as u64;
            if self.kept.saturating_sub(length) < self.needed {
                break;
            }
            last.remove();
            self.kept -= length;
            self.dropped = true;
        }
    }
}
