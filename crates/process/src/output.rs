//! Bounded output: a private file that takes a limited amount, and texts whose middle is cut out.
//!
//! The directory is created 0700 and its files 0600 with names that cannot be guessed. A file takes at most 64 MiB and never
//! the last of the disk, which belongs to the session's log; what comes after that is counted and dropped, and the file
//! says so at its end.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most bytes an output file takes.
pub const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What output files leave free of the disk.
const RESERVE: u64 = 16 * 1024 * 1024;

/// After how many bytes the room on the disk is looked at again. All tasks together stay far within the reserve.
const LOOK_EVERY: u64 = 256 * 1024;

/// A private file that takes a bounded amount of output.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    written: u64,
    limit: u64,
    /// What is left free of the disk.
    reserve: u64,
    /// How many bytes may be written before the room on the disk is looked at.
    unlooked: u64,
    full: bool,
}

impl OutputFile {
    /// Creates a file in `directory` whose name starts with `stem`.
    pub fn create(directory: &Path, stem: &str, limit: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("{stem}-{}.txt", uuid::Uuid::new_v4().simple()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self::of(file, path, limit))
    }

    fn of(file: File, path: PathBuf, limit: u64) -> Self {
        Self { file, path, written: 0, limit, reserve: RESERVE, unlooked: 0, full: false }
    }

    /// An empty file of exactly this name, where an earlier process may have left one.
    pub fn anew(directory: &Path, name: &str, limit: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self::of(file, path, limit))
    }

    /// Appends `bytes`; what exceeds the limit is dropped and the file says so once.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.limit.saturating_sub(self.written);
        let fitting = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, dropped) = bytes.split_at(fitting);
        for piece in kept.chunks(usize::try_from(LOOK_EVERY).unwrap_or(usize::MAX)) {
            if self.full {
                return Ok(());
            }
            if !self.has_room(piece.len() as u64) {
                return self.end_with("the disk is almost full");
            }
            self.file.write_all(piece)?;
            self.written += piece.len() as u64;
        }
        if dropped.is_empty() || self.full {
            return Ok(());
        }
        let limit = format!("limit of {} bytes", self.limit);
        self.end_with(&limit)
    }

    /// Drops everything from here on.
    fn end_with(&mut self, reason: &str) -> io::Result<()> {
        self.full = true;
        self.file.write_all(format!("\n[output is cut here: {reason}]\n").as_bytes())
    }

    /// True when the disk has room for so many bytes beside the reserve. A disk that cannot say has.
    fn has_room(&mut self, length: u64) -> bool {
        if let Some(rest) = self.unlooked.checked_sub(length) {
            self.unlooked = rest;
            return true;
        }
        self.unlooked = LOOK_EVERY.saturating_sub(length);
        rustix::fs::fstatvfs(&self.file).map_or(true, |disk| {
            disk.f_bavail.saturating_mul(disk.f_frsize) >= self.reserve.saturating_add(length)
        })
    }

    /// A file on a disk without room.
    #[cfg(test)]
    pub(crate) fn on_full_disk() -> Self {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        Self { reserve: 0, ..Self::of(file, path, FILE_BYTES) }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The first and last characters of a text that is too long.
#[derive(Debug)]
pub struct Clipped<'a> {
    /// The first characters.
    pub head: &'a str,
    /// The last characters.
    pub tail: &'a str,
}

/// Cuts the middle out of `text` so that `limit` characters remain; `None` when it fits.
pub fn clip(text: &str, limit: usize) -> Option<Clipped<'_>> {
    // Bytes bound characters from above: most texts need no counting.
    if text.len() <= limit || text.chars().count() <= limit {
        return None;
    }
    let head_length = limit / 2;
    let tail_length = limit - head_length;
    let head_end = text.char_indices().nth(head_length).map_or(text.len(), |(index, _)| index);
    let last = tail_length.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last));
    let tail_start = last.map_or(text.len(), |(index, _)| index);
    Some(Clipped { head: &text[..head_end], tail: &text[tail_start.max(head_end)..] })
}

/// Joins what is left of a long text with a notice of what is missing and where all of it is.
pub fn join_clipped(clipped: &Clipped<'_>, total_bytes: u64, file: Option<&Path>) -> String {
    let omitted = total_bytes.saturating_sub((clipped.head.len() + clipped.tail.len()) as u64);
    let place = match file {
        Some(path) => format!("full output in {}", path.display()),
        None => "the full output could not be kept".to_owned(),
    };
    format!("{}\n\n[... {omitted} bytes left out; {place} ...]\n\n{}", clipped.head, clipped.tail)
}

/// `text` when it fits into `limit` characters; otherwise its ends, with the whole in a file of `directory`. Secrets are
/// taken out by `redact` before anything is cut or kept: half of one would no longer be recognised.
#[must_use]
pub fn bounded(
    text: String,
    limit: usize,
    directory: &Path,
    stem: &str,
    redact: impl FnOnce(&str) -> String,
) -> (String, Option<PathBuf>) {
    if clip(&text, limit).is_none() {
        return (text, None);
    }
    let text = redact(&text);
    let Some(clipped) = clip(&text, limit) else { return (text, None) };
    let file = store(directory, stem, text.as_bytes());
    (join_clipped(&clipped, text.len() as u64, file.as_deref()), file)
}

/// Keeps `bytes` in a new file; `None` when the system does not let us.
pub fn store(directory: &Path, stem: &str, bytes: &[u8]) -> Option<PathBuf> {
    let mut file = OutputFile::create(directory, stem, FILE_BYTES).ok()?;
    file.append(bytes).ok()?;
    if file.written == 0 && file.full {
        // A file that holds nothing is no help, and one that stays harms nothing.
        let _ = std::fs::remove_file(&file.path);
        return None;
    }
    Some(file.path)
}

/// The first `limit` characters of `text`, and whether something was cut.
pub fn first_characters(text: &str, limit: usize) -> (&str, bool) {
    if text.len() <= limit {
        return (text, false);
    }
    match text.char_indices().nth(limit) {
        Some((index, _)) => (&text[..index], true),
        None => (text, false),
    }
}

/// How many bytes at the end start a character that is not complete.
pub fn unfinished_tail(bytes: &[u8]) -> usize {
    for length in 1..=bytes.len().min(3) {
        let tail = &bytes[bytes.len() - length..];
        if let Err(error) = std::str::from_utf8(tail)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return length;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_counts_characters_and_keeps_both_ends() {
        assert!(clip("äöü", 3).is_none());
        let clipped = clip("äöüßé", 3).unwrap();
        assert_eq!((clipped.head, clipped.tail), ("ä", "ßé"));
        let clipped = clip("abc", 0).unwrap();
        assert_eq!((clipped.head, clipped.tail), ("", ""));
    }

    #[test]
    fn the_last_of_the_disk_is_left_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = OutputFile::create(directory.path(), "x", FILE_BYTES).unwrap();
        file.append(b"first").unwrap();
        file.reserve = u64::MAX;
        let long = vec![b'y'; usize::try_from(2 * LOOK_EVERY).unwrap()];
        file.append(&long).unwrap();
        file.append(b"last").unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, "first\n[output is cut here: the disk is almost full]\n");
    }

    #[test]
    fn a_full_file_drops_the_rest_and_says_so_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = OutputFile::create(directory.path(), "x", 4).unwrap();
        for _ in 0..3 {
            file.append(b"abc").unwrap();
        }
        assert!(file.full);
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, "abca\n[output is cut here: limit of 4 bytes]\n");
    }
}
