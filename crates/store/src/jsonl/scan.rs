//! Reading a log from its start: every line goes to a visitor, numbers are checked, a torn tail is reported and a bad
//! line before another record is corruption. Nothing is written.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::notes::Notes;
use super::{line, tear};
use crate::error::StoreError;
use crate::layout::SessionPaths;

/// What reading a log came to.
#[derive(Debug, Default)]
pub struct Scan {
    /// Number of the last record.
    pub last_seq: u64,
    /// Lines read.
    pub lines: u64,
    /// Bytes of intact lines, up to a record that was never completed.
    pub intact: u64,
    /// Bytes of such a record behind them.
    pub torn: u64,
    /// Bytes behind that: lines that other programs appended after the tear.
    pub after_tear: u64,
    /// True when the last intact line has no newline.
    pub open_end: bool,
    /// Titles and tags.
    pub notes: Notes,
    /// The first line that a later release wrote, and its version of the schema.
    pub later: Option<(u64, u32)>,
}

impl Scan {
    /// The offset of the first byte that was not looked at.
    fn end(&self) -> u64 {
        self.intact + self.torn + self.after_tear
    }

    fn corrupt(paths: &SessionPaths, line: u64, problem: String) -> StoreError {
        StoreError::Corrupt { path: paths.log.clone(), line, problem }
    }

    /// Takes a line that was read well, and that begins at the end so far.
    fn take(&mut self, decoded: &line::Line, text: &[u8], length: u64) -> Result<(), String> {
        match decoded {
            line::Line::Record(record) if record.seq != self.last_seq + 1 => {
                return Err(format!("record {} follows record {}", record.seq, self.last_seq));
            }
            line::Line::Record(record) => self.last_seq = record.seq,
            line::Line::Foreign(body) => self.notes.see(line::kind(body), text, self.end()),
        }
        self.pass(length);
        Ok(())
    }

    /// Passes over bytes that are in order.
    fn pass(&mut self, length: u64) {
        if self.torn > 0 {
            self.after_tear += length;
        } else {
            self.intact += length;
        }
    }
}

/// Reads a log from the start and hands every line to `visit`. A record that was never completed is a torn tail and
/// reported in the [`Scan`], also when other programs have appended lines of theirs behind it; a bad line before another
/// record is an error that names it.
pub fn scan(paths: &SessionPaths, mut visit: impl FnMut(line::Line)) -> Result<Scan, StoreError> {
    let unreadable = |error: std::io::Error| StoreError::io("read", &paths.log, &error);
    let file = File::open(&paths.log).map_err(unreadable)?;
    let mut reader = BufReader::with_capacity(256 * 1024, file);
    let blobs = paths.blobs();
    let mut scan = Scan::default();
    // The bad line, which is only a torn tail if no record follows.
    let mut bad: Option<(u64, String)> = None;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let read = reader.read_until(b'\n', &mut buffer).map_err(unreadable)? as u64;
        if read == 0 {
            return Ok(scan);
        }
        let text = buffer.trim_ascii();
        if text.is_empty() {
            scan.pass(read);
            continue;
        }
        scan.lines += 1;
        let problem = match (line::decode(text, &blobs), &bad) {
            (Ok(line::Line::Record(_)), Some((line, problem))) => {
                return Err(Scan::corrupt(paths, *line, problem.clone()));
            }
            (Ok(decoded), _) => {
                scan.take(&decoded, text, read)
                    .map_err(|problem| Scan::corrupt(paths, scan.lines, problem))?;
                if scan.later.is_none() {
                    scan.later = line::later_version(text).map(|version| (scan.lines, version));
                }
                visit(decoded);
                scan.open_end = buffer.last() != Some(&b'\n');
                continue;
            }
            (Err(problem @ (line::LineError::NotJson(_) | line::LineError::Checksum)), None) => {
                problem.to_string()
            }
            (Err(problem), _) => return Err(Scan::corrupt(paths, scan.lines, problem.to_string())),
        };
        bad = Some((scan.lines, problem));
        scan.open_end = false;
        // A program that appends a line of its own appends it to the torn one.
        let (torn, joined) = buffer.split_at(tear::foreign_suffix(&buffer).unwrap_or(buffer.len()));
        match line::decode(joined.trim_ascii(), &blobs) {
            Ok(decoded) => {
                scan.torn = torn.len() as u64;
                scan.take(&decoded, joined.trim_ascii(), joined.len() as u64)
                    .map_err(|problem| Scan::corrupt(paths, scan.lines, problem))?;
                visit(decoded);
                scan.open_end = !joined.ends_with(b"\n");
            }
            Err(_) => scan.torn = read,
        }
    }
}
