//! Reading text in one pass: hash, line count and the wanted lines together, whatever the size of the file.
//!
//! Only the window is kept in memory, and of a very long line only its start. UTF-16 is the exception: it is decoded as
//! a whole, because its line ends cannot be found byte by byte.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use qoder_core::ports::ToolOutcome;
use qoder_process::output::first_characters;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::files::encoding::{self, Encoding};
use crate::files::open;

/// Longer lines are cut.
const LINE_CHARACTERS: usize = 2_000;
/// Of a line this many bytes are kept: enough for the characters above, four bytes each, and one more.
const LINE_BYTES: usize = LINE_CHARACTERS * 4 + 4;
/// The most text one call returns.
const WINDOW_BYTES: usize = 256 * 1024;
/// What is appended to a cut line.
const CUT_MARK: &str = " [line cut]";

/// The lines that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first line, from 1.
    pub(crate) offset: u64,
    /// How many.
    pub(crate) limit: u64,
}

/// What one pass over a file found.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) size: u64,
    pub(crate) sha256: String,
    total_lines: u64,
    lines: Vec<Line>,
    full: bool,
    binary: bool,
}

/// A line of the window, without its end.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

/// Reads the rest of `file`, of which `start` was read already.
pub(crate) fn scan(mut file: File, start: &[u8], size: u64, window: Window) -> io::Result<Scan> {
    if matches!(encoding::marked(start), Some((Encoding::Utf16Little | Encoding::Utf16Big, _))) {
        let mut bytes = start.to_vec();
        file.take(open::LARGEST_FILE).read_to_end(&mut bytes)?;
        return Ok(scan_utf16(&bytes, window));
    }
    let mut scanner = Scanner::new(window);
    scanner.take(start);
    let capacity = usize::try_from(size).unwrap_or(usize::MAX).clamp(4096, 256 * 1024);
    let mut buffer = vec![0_u8; capacity];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => scanner.take(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(scanner.finish())
}

fn scan_utf16(bytes: &[u8], window: Window) -> Scan {
    let mut scanner = Scanner::new(window);
    let decoded = encoding::decode(bytes);
    if let Some((_, text)) = &decoded {
        scanner.take(text.as_bytes());
    }
    let mut scan = scanner.finish();
    scan.size = bytes.len() as u64;
    scan.sha256 = open::sha256(bytes);
    scan.binary = decoded.is_none();
    scan
}

struct Scanner {
    window: Window,
    hash: Sha256,
    size: u64,
    line: u64,
    ends_open: bool,
    lines: Vec<Line>,
    kept: usize,
    full: bool,
    binary: bool,
}

impl Scanner {
    fn new(window: Window) -> Self {
        Self {
            window,
            hash: Sha256::new(),
            size: 0,
            line: 1,
            ends_open: false,
            lines: Vec::new(),
            kept: 0,
            full: false,
            binary: false,
        }
    }

    fn take(&mut self, mut chunk: &[u8]) {
        if chunk.is_empty() {
            return;
        }
        self.hash.update(chunk);
        self.binary |= memchr::memchr(0, chunk).is_some();
        if self.size == 0 {
            let mark = encoding::marked(chunk).map_or(0, |(_, length)| length);
            self.size = mark as u64;
            chunk = &chunk[mark..];
        }
        self.size += chunk.len() as u64;
        while !chunk.is_empty() {
            if self.is_past_window() {
                self.line += memchr::memchr_iter(b'\n', chunk).count() as u64;
                self.ends_open = chunk.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', chunk);
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            if self.line >= self.window.offset {
                self.keep(part);
            }
            match end {
                Some(_) => {
                    self.line += 1;
                    self.ends_open = false;
                    chunk = &rest[1..];
                }
                None => {
                    self.ends_open = true;
                    chunk = rest;
                }
            }
        }
    }

    fn is_past_window(&self) -> bool {
        let beyond = self.line >= self.window.offset.saturating_add(self.window.limit);
        beyond || self.full
    }

    /// Appends a part of the current line.
    fn keep(&mut self, part: &[u8]) {
        if !self.ends_open || self.lines.is_empty() {
            if self.kept >= WINDOW_BYTES {
                self.full = true;
                return;
            }
            self.lines.push(Line::default());
        }
        let Some(line) = self.lines.last_mut() else { return };
        let room = LINE_BYTES.saturating_sub(line.bytes.len()).min(part.len());
        line.bytes.extend_from_slice(&part[..room]);
        line.cut |= room < part.len();
        self.kept += room + 1;
    }

    fn finish(self) -> Scan {
        Scan {
            size: self.size,
            sha256: open::hex(&self.hash.finalize()),
            total_lines: self.line - u64::from(!self.ends_open),
            lines: self.lines,
            full: self.full,
            binary: self.binary,
        }
    }
}

impl Scan {
    /// Whether the model sees all of the file.
    pub(crate) fn is_complete(&self, window: Window) -> bool {
        let all = window.offset == 1 && self.lines.len() as u64 == self.total_lines;
        all && !self.full && !self.lines.iter().any(|line| line.cut || is_overlong(&line.bytes))
    }

    /// The result for the model.
    pub(crate) fn outcome(&self, window: Window, shown: &Path) -> ToolOutcome {
        let decoder = match self.decoder() {
            Some(decoder) => decoder,
            None => {
                return ToolOutcome::failed(format!(
                    "{} is a binary file and cannot be shown as text. Use Bash with a program that understands it \
                     (file, strings, xxd).",
                    shown.display()
                ));
            }
        };
        if self.total_lines == 0 {
            return self.notice("The file exists but is empty.".to_owned(), shown);
        }
        if self.lines.is_empty() {
            return self.notice(
                format!(
                    "The file has {} lines; offset {} is beyond its end. Read it with a smaller offset.",
                    self.total_lines, window.offset
                ),
                shown,
            );
        }
        let mut numbered = String::new();
        let mut plain = String::new();
        for (number, line) in (window.offset..).zip(&self.lines) {
            let text = decoder(&line.bytes);
            let text = text.strip_suffix('\r').unwrap_or(&text);
            let (text, cut) = first_characters(text, LINE_CHARACTERS);
            let mark = if cut || line.cut { CUT_MARK } else { "" };
            numbered.push_str(&format!("{number:>6}\t{text}{mark}\n"));
            plain.push_str(text);
            plain.push_str(mark);
            plain.push('\n');
        }
        let last = window.offset + self.lines.len() as u64 - 1;
        if last < self.total_lines {
            numbered.push_str(&format!(
                "\n[Lines {} to {last} of {} are shown. Use offset {} to read on.]\n",
                window.offset,
                self.total_lines,
                last + 1
            ));
        }
        ToolOutcome::completed(
            numbered,
            json!({ "type": "text", "text": plain, "file_path": shown, "totalLines": self.total_lines }),
        )
    }

    fn notice(&self, text: String, shown: &Path) -> ToolOutcome {
        ToolOutcome::completed(
            text,
            json!({ "type": "text", "text": "", "file_path": shown, "totalLines": self.total_lines }),
        )
    }

    /// How the bytes of the window become text; `None` when they are none.
    fn decoder(&self) -> Option<fn(&[u8]) -> String> {
        if self.binary {
            return None;
        }
        if self.lines.iter().all(is_utf8) {
            return Some(|bytes| String::from_utf8_lossy(bytes).into_owned());
        }
        let control = self.lines.iter().any(|line| line.bytes.iter().copied().any(encoding::is_control));
        (!control).then_some(|bytes| encoding::windows_1252(bytes).into_owned())
    }
}

/// Whether the line is UTF-8, apart from a character that our own cut went through.
fn is_utf8(line: &Line) -> bool {
    match std::str::from_utf8(&line.bytes) {
        Ok(_) => true,
        Err(error) => line.cut && error.error_len().is_none(),
    }
}

fn is_overlong(bytes: &[u8]) -> bool {
    bytes.len() > LINE_CHARACTERS && String::from_utf8_lossy(bytes).chars().count() > LINE_CHARACTERS
}
