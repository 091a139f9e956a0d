//! Following a log that another process writes: from a record's number on, and then live, without gap or repeat. It reads
//! one line at a time, waits for the end of one that is only half written, and needs no lease.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::error::StoreError;
use crate::jsonl::line::{self, Line, LineError};
use crate::jsonl::tear;
use crate::layout::SessionPaths;
use crate::watch::{Wanted, Watch};

/// How much is read at once.
const PIECE: usize = 64 * 1024;
/// The longest line that is read. Ours are far shorter.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// What comes next in a log.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one is made at a time and taken apart at once")]
pub enum Followed {
    /// A line.
    Line(Line),
    /// Nothing yet.
    Nothing,
    /// The session was deleted.
    Deleted,
}

/// Reads a log and follows it.
#[derive(Debug)]
pub struct Follow {
    paths: SessionPaths,
    file: File,
    /// Where the next line begins.
    offset: u64,
    /// Bytes from there on that were read.
    buffer: Vec<u8>,
    /// How much of the buffer is behind.
    used: usize,
    lines: u64,
    last_seq: u64,
    /// Records up to this one are passed over, and what is before it.
    after: u64,
    watch: Option<Watch>,
}

impl Follow {
    /// Begins behind the record `after`, or at the start.
    pub fn open(paths: &SessionPaths, after: Option<u64>) -> Result<Self, StoreError> {
        let file = File::open(&paths.log).map_err(|error| StoreError::io("read", &paths.log, &error))?;
        Ok(Self {
            paths: paths.clone(),
            file,
            offset: 0,
            buffer: Vec::new(),
            used: 0,
            lines: 0,
            last_seq: 0,
            after: after.unwrap_or(0),
            watch: None,
        })
    }

    /// The next line; waits for it. `None` when the session was deleted.
    pub async fn next(&mut self) -> Result<Option<Line>, StoreError> {
        loop {
            match self.try_next()? {
                Followed::Line(line) => return Ok(Some(line)),
                Followed::Deleted => return Ok(None),
                Followed::Nothing => {}
            }
            match &self.watch {
                Some(watch) => watch.changed().await,
                // What was written before the watch began is read first.
                None => self.watch = Some(Watch::new(&self.paths.log, Wanted::Content)),
            }
        }
    }

    /// The next line, if there is one.
    pub fn try_next(&mut self) -> Result<Followed, StoreError> {
        loop {
            let Some(length) = self.fill()? else { return self.at_end() };
            let text = self.buffer[self.used..self.used + length].trim_ascii();
            if text.is_empty() {
                self.pass(length);
                continue;
            }
            if self.last_seq < self.after
                && let Ok(number) = line::number(text)
                && number.is_none_or(|number| number <= self.after)
            {
                self.count(number)?;
                self.pass(length);
                continue;
            }
            match line::decode(text, &self.paths.blobs()) {
                Ok(line) => {
                    self.count(number_of(&line))?;
                    self.pass(length);
                    return Ok(Followed::Line(line));
                }
                Err(LineError::NotJson(problem)) => {
                    if let Some(line) = self.behind_tear(length, &problem)? {
                        return Ok(line);
                    }
                }
                Err(problem @ LineError::Checksum) => {
                    if let Some(line) = self.behind_tear(length, &problem.to_string())? {
                        return Ok(line);
                    }
                }
                Err(problem @ (LineError::Blob(_) | LineError::Shape { .. })) => {
                    return Err(self.corrupt(problem.to_string()));
                }
            }
        }
    }

    /// What follows a record that was never completed: a line of another program that was appended to it, or nothing until
    /// the next process has repaired the log. `None` when it has meanwhile.
    fn behind_tear(&mut self, length: usize, problem: &str) -> Result<Option<Followed>, StoreError> {
        let torn = self.buffer[self.used..self.used + length].to_vec();
        if let Some(at) = tear::foreign_suffix(&torn)
            && let Ok(line) = line::decode(torn[at..].trim_ascii(), &self.paths.blobs())
        {
            self.pass(length);
            return Ok(Some(Followed::Line(line)));
        }
        // It may have been repaired since it was read.
        self.forget();
        let again = self.fill()?.map(|length| self.buffer[self.used..self.used + length].to_vec());
        if again.as_ref() != Some(&torn) {
            return Ok(None);
        }
        if self.has_record_behind(length)? {
            return Err(self.corrupt(problem.to_owned()));
        }
        self.forget();
        self.at_end().map(Some)
    }

    /// True when a record follows the next line.
    fn has_record_behind(&self, length: usize) -> Result<bool, StoreError> {
        let mut behind = Self::open(&self.paths, None)?;
        behind.offset = self.offset + length as u64;
        while let Some(length) = behind.fill()? {
            let text = behind.buffer[behind.used..behind.used + length].trim_ascii();
            if matches!(line::number(text), Ok(Some(_))) {
                return Ok(true);
            }
            behind.pass(length);
        }
        Ok(false)
    }

    /// Reads the next line into the buffer; answers with its length, newline included. `None` when it is not complete.
    fn fill(&mut self) -> Result<Option<usize>, StoreError> {
        if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.used..]) {
            return Ok(Some(end + 1));
        }
        // What was read of a line that was not complete may have been cut off since.
        self.forget();
        loop {
            let length = self.buffer.len();
            self.buffer.resize(length + PIECE, 0);
            let read = self.file.read_at(&mut self.buffer[length..], self.offset + length as u64);
            let read = read.map_err(|error| StoreError::io("read", &self.paths.log, &error))?;
            self.buffer.truncate(length + read);
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[length..]) {
                return Ok(Some(length + end + 1));
            }
            if read == 0 {
                self.forget();
                return Ok(None);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(self.corrupt(format!("it has more than {LONGEST_LINE} bytes")));
            }
        }
    }

    fn forget(&mut self) {
        // A long line must not keep its room for good.
        if self.buffer.capacity() > 4 * PIECE {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        self.used = 0;
    }

    fn pass(&mut self, length: usize) {
        self.used += length;
        self.offset += length as u64;
        self.lines += 1;
    }

    fn count(&mut self, number: Option<u64>) -> Result<(), StoreError> {
        match number {
            Some(number) if number != self.last_seq + 1 => {
                Err(self.corrupt(format!("record {number} follows record {}", self.last_seq)))
            }
            Some(number) => {
                self.last_seq = number;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn at_end(&self) -> Result<Followed, StoreError> {
        let found = self.file.metadata().map_err(|error| StoreError::io("read", &self.paths.log, &error))?;
        if found.nlink() == 0 {
            return Ok(Followed::Deleted);
        }
        if found.len() < self.offset {
            return Err(self.corrupt("the log has become shorter".to_owned()));
        }
        Ok(Followed::Nothing)
    }

    fn corrupt(&self, problem: String) -> StoreError {
        StoreError::Corrupt { path: self.paths.log.clone(), line: self.lines + 1, problem }
    }
}

fn number_of(line: &Line) -> Option<u64> {
    match line {
        Line::Record(record) => Some(record.seq),
        Line::Foreign(_) => None,
    }
}
