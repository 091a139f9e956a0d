//! Titles and tags that other programs append to a log. Programs that list sessions read only the end of a log, so the
//! newest of each kind is appended again, byte for byte, when the log has grown past it. What others appended while the
//! log is open is found by its length: it is longer than what was written here, and only the new part is read back.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Deserialize;

/// A note that starts further from the end than this is appended again. Listings read the last 64 KiB.
const NEAR: u64 = 48 * 1024;
/// Longer notes are left where they are: a few of them would fill the end of the log by themselves.
const NOTE_CAP: usize = 8 * 1024;
/// How often the end is looked at again when another program writes at the same moment.
const TRIES: u32 = 4;

/// The kinds of lines that listings look for.
const KINDS: [&str; 3] = ["custom-title", "ai-title", "tag"];

#[derive(Debug)]
struct Note {
    /// The line with its newline.
    line: Vec<u8>,
    /// Where it starts in the log.
    start: u64,
}

/// The newest title and tag lines of a log, and how much of the log is known.
#[derive(Debug, Default)]
pub struct Notes {
    newest: [Option<Note>; KINDS.len()],
    /// Everything before this offset was looked at.
    looked: u64,
    /// Bytes written here since then.
    written: u64,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: std::borrow::Cow<'a, str>,
    seq: Option<serde::de::IgnoredAny>,
}

impl Notes {
    /// Takes a line without number, if it is a note. `line` has no newline.
    pub fn see(&mut self, kind: &str, line: &[u8], start: u64) {
        let Some(index) = KINDS.iter().position(|known| *known == kind) else { return };
        self.newest[index] = (line.len() < NOTE_CAP).then(|| Note { line: [line, b"\n"].concat(), start });
    }

    /// The log is known up to here.
    pub fn start_at(&mut self, offset: u64) {
        self.looked = offset;
        self.written = 0;
    }

    /// So many bytes of records were appended.
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes as u64;
    }

    /// Appends the notes again that are too far from the end of `log`, which is open as `file`. True when anything was
    /// written.
    pub fn keep_near_end(&mut self, file: &mut File, log: &Path) -> std::io::Result<bool> {
        let mut length = self.catch_up(file, log, &[])?;
        let mut overtaken = [false; KINDS.len()];
        let mut any = false;
        for _ in 0..TRIES {
            let due = |index: &usize| overtaken[*index] || self.is_far(*index, length);
            let again: Vec<usize> = (0..KINDS.len()).filter(due).collect();
            if again.is_empty() {
                break;
            }
            let lines = self.append(&again, file, length)?;
            any = true;
            length = self.catch_up(file, log, &lines)?;
            // A newer note that came just before its predecessor was repeated must come last once more.
            overtaken = std::array::from_fn(|index| {
                let line = self.newest[index].as_ref().map(|note| &note.line);
                again.contains(&index) && line.is_some_and(|line| !lines.contains(line))
            });
        }
        Ok(any)
    }

    fn is_far(&self, index: usize, length: u64) -> bool {
        self.newest[index].as_ref().is_some_and(|note| length.saturating_sub(note.start) > NEAR)
    }

    fn append(&mut self, which: &[usize], file: &mut File, length: u64) -> std::io::Result<Vec<Vec<u8>>> {
        let mut buffer = Vec::new();
        let mut lines = Vec::new();
        for index in which {
            if let Some(note) = &mut self.newest[*index] {
                note.start = length + buffer.len() as u64;
                buffer.extend_from_slice(&note.line);
                lines.push(note.line.clone());
            }
        }
        file.write_all(&buffer)?;
        self.wrote(buffer.len());
        Ok(lines)
    }

    /// Looks at what others appended, if anything, and returns the length of the log. `repeated` are lines just appended
    /// here, which are no news.
    fn catch_up(&mut self, file: &File, log: &Path, repeated: &[Vec<u8>]) -> std::io::Result<u64> {
        let length = file.metadata()?.len();
        if length <= self.looked + self.written {
            self.start_at(length);
            return Ok(length);
        }
        let mut repeated: Vec<&[u8]> = repeated.iter().map(Vec::as_slice).collect();
        let mut reader = BufReader::with_capacity(64 * 1024, File::open(log)?);
        reader.seek(SeekFrom::Start(self.looked))?;
        let mut offset = self.looked;
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let known = repeated.iter().position(|known| *known == line);
            match known {
                Some(known) => drop(repeated.swap_remove(known)),
                None => self.look(line.trim_ascii(), offset),
            }
            offset += line.len() as u64;
            line.clear();
        }
        // A line that is not complete yet is looked at the next time.
        self.start_at(offset);
        Ok(length.max(offset))
    }

    fn look(&mut self, line: &[u8], start: u64) {
        if let Ok(Head { kind, seq: None }) = serde_json::from_slice(line) {
            self.see(&kind, line, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Log {
        _folder: tempfile::TempDir,
        path: std::path::PathBuf,
        file: File,
        notes: Notes,
    }

    impl Log {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let file = File::options().create(true).append(true).open(&path).unwrap();
            Self { _folder: folder, path, file, notes: Notes::default() }
        }

        fn foreign(&self, text: &str) {
            File::options().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
        }

        fn own(&mut self, bytes: usize) {
            let line = format!("{{\"type\":\"tag\",\"seq\":1,\"x\":\"{}\"}}\n", "x".repeat(bytes));
            self.file.write_all(line.as_bytes()).unwrap();
            self.notes.wrote(line.len());
        }

        fn keep(&mut self) -> bool {
            self.notes.keep_near_end(&mut self.file, &self.path).unwrap()
        }

        fn text(&self) -> String {
            std::fs::read_to_string(&self.path).unwrap()
        }
    }

    #[test]
    fn the_newest_of_each_kind_stays_near_the_end() {
        let mut log = Log::new();
        log.foreign(
            "{\"type\":\"custom-title\",\"customTitle\":\"old\"}\n{\"type\": \"tag\", \"tag\": \"t\"}\n",
        );
        log.own(40_000);
        assert!(!log.keep(), "they are near enough");
        log.foreign("{\"type\":\"custom-title\",\"customTitle\":\"new\"}\n");
        log.own(60_000);
        let before = log.text();
        assert!(log.keep());
        let added = log.text().strip_prefix(&before).unwrap().to_owned();
        assert_eq!(
            added,
            "{\"type\":\"custom-title\",\"customTitle\":\"new\"}\n{\"type\": \"tag\", \"tag\": \"t\"}\n"
        );
        assert!(!log.keep(), "once is enough");
        assert_eq!(log.text(), before + &added);
    }

    #[test]
    fn nothing_is_read_or_written_without_notes() {
        let mut log = Log::new();
        log.own(100_000);
        let missing = log.path.with_extension("missing");
        assert!(!log.notes.keep_near_end(&mut log.file, &missing).unwrap(), "the log is not even opened");
        log.foreign("{\"type\":\"something\"}\n");
        log.own(100_000);
        assert!(!log.keep());
    }

    #[test]
    fn a_line_that_is_not_complete_is_looked_at_later() {
        let mut log = Log::new();
        log.foreign("{\"type\":\"ai-title\",");
        assert!(!log.keep());
        log.foreign("\"aiTitle\":\"a\"}\n");
        log.own(60_000);
        assert!(log.keep());
        assert!(log.text().ends_with("\n{\"type\":\"ai-title\",\"aiTitle\":\"a\"}\n"));
    }

    #[test]
    fn a_huge_note_is_not_repeated() {
        let mut log = Log::new();
        log.foreign(&format!("{{\"type\":\"tag\",\"tag\":\"{}\"}}\n", "x".repeat(100_000)));
        assert!(!log.keep());
    }

    #[test]
    fn a_note_that_came_while_an_older_one_was_repeated_wins() {
        let mut log = Log::new();
        let (old, new) = ("{\"type\":\"tag\",\"tag\":\"old\"}\n", "{\"type\":\"tag\",\"tag\":\"new\"}\n");
        log.foreign(old);
        log.own(60_000);
        let length = log.notes.catch_up(&log.file, &log.path, &[]).unwrap();
        log.foreign(new);
        let lines = log.notes.append(&[2], &mut log.file, length).unwrap();
        log.notes.catch_up(&log.file, &log.path, &lines).unwrap();
        assert_eq!(log.notes.newest[2].as_ref().unwrap().line, new.as_bytes());
    }
}
