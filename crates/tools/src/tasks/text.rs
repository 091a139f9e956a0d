//! Reading the file of a task: what is new in it, and its last lines. Whatever its size, only a bounded part is read.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use qoder_process::output::unfinished_tail;
use qoder_process::output::{Clipped, clip, first_characters, join_clipped};

use crate::files::open::open_regular;

/// The most characters of output that one look at a task gives the model.
const CHARACTERS: usize = 30_000;
/// No more bytes than this make so many characters.
const BYTES: u64 = 4 * CHARACTERS as u64;

/// What is in the file from `from` on, bounded, and where it ends. While the task runs, a character of which only a
/// part has come waits for the rest.
pub(crate) fn since(path: &Path, from: u64, ended: bool) -> io::Result<(String, u64)> {
    let (mut file, size) = open(path)?;
    let from = from.min(size);
    let mut bytes = part(&mut file, from, (size - from).min(2 * BYTES))?;
    if size - from > 2 * BYTES {
        let tail = part(&mut file, size - BYTES, BYTES)?;
        let (head, tail) = (String::from_utf8_lossy(&bytes), String::from_utf8_lossy(whole(&tail)));
        let (head, _) = first_characters(&head, CHARACTERS / 2);
        let tail = clip(&tail, CHARACTERS).map_or(&*tail, |clipped| clipped.tail);
        return Ok((join_clipped(&Clipped { head, tail }, size - from, Some(path)), size));
    }
    if !ended {
        bytes.truncate(bytes.len() - unfinished_tail(&bytes));
    }
    let end = from + bytes.len() as u64;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match clip(&text, CHARACTERS) {
        Some(clipped) => (join_clipped(&clipped, text.len() as u64, Some(path)), end),
        None => (text.into_owned(), end),
    })
}

/// The last `lines` lines of the file in at most `characters` characters; nothing when it cannot be read.
#[must_use]
pub fn last_lines(path: &Path, lines: usize, characters: usize) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let (mut file, size) = open(path)?;
        let wanted = size.min(4 * characters as u64 + 4);
        part(&mut file, size - wanted, wanted)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(whole(&bytes));
    let text = text.trim_end();
    let start = text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(index, _)| index + 1);
    let text = &text[start..];
    let cut = text.char_indices().rev().nth(characters.saturating_sub(1)).map_or(0, |(index, _)| index);
    text[cut..].to_owned()
}

fn open(path: &Path) -> io::Result<(std::fs::File, u64)> {
    let real = path.canonicalize()?;
    let (file, metadata) = open_regular(&real, path).map_err(io::Error::other)?;
    Ok((file, metadata.len()))
}

fn part(file: &mut std::fs::File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A piece that may start inside a character, from the first whole one on.
fn whole(bytes: &[u8]) -> &[u8] {
    let inside = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[inside..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        std::fs::write(&path, content).unwrap();
        (directory, path)
    }

    #[test]
    fn a_half_character_waits_for_its_rest() {
        let (_directory, path) = file("ab€".as_bytes());
        let bytes = "ab€".as_bytes();
        std::fs::write(&path, &bytes[..4]).unwrap();
        assert_eq!(since(&path, 0, false).unwrap(), ("ab".to_owned(), 2));
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(since(&path, 2, false).unwrap(), ("€".to_owned(), 5));
        assert_eq!(since(&path, 5, true).unwrap(), (String::new(), 5));
        assert_eq!(since(&path, 500, true).unwrap(), (String::new(), 5));
    }

    #[test]
    fn a_long_piece_keeps_both_ends() {
        let middle = "€".repeat(300_000);
        let (_directory, path) = file(format!("first {middle} last").as_bytes());
        let (text, end) = since(&path, 0, true).unwrap();
        assert!(text.starts_with("first ") && text.ends_with(" last"), "{} bytes", text.len());
        assert!(text.chars().count() < CHARACTERS + 500 && !text.contains('\u{FFFD}'));
        assert_eq!(end, 900_011);
    }

    #[test]
    fn the_last_lines_are_bounded_in_both_ways() {
        let (_directory, path) = file("one\ntwo\nthree\n".as_bytes());
        assert_eq!(last_lines(&path, 2, 100), "two\nthree");
        assert_eq!(last_lines(&path, 9, 100), "one\ntwo\nthree");
        assert_eq!(last_lines(&path, 9, 4), "hree");
        let (_directory, path) = file("€".repeat(1_000).as_bytes());
        assert_eq!(last_lines(&path, 1, 10), "€".repeat(10));
        assert_eq!(last_lines(Path::new("/nowhere/at/all"), 1, 10), "");
    }
}
