//! Taking in the output of a command: bounded in memory, whole in a bounded file when it does not fit.
//!
//! A stream keeps its first and its last half MiB. As soon as it has more, everything goes into a file as well. People
//! see the output while it comes, up to a limit, in pieces that never split a character.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::{ProgressSink, ToolProgress};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use crate::bounds::{self, Clipped, FILE_BYTES, OutputFile};

/// Half of what one stream keeps in memory.
const HALF_BYTES: usize = 512 * 1024;
/// The most output that is shown while a command runs.
const SHOWN_BYTES: usize = 1024 * 1024;

/// What one stream said.
#[derive(Debug)]
pub(crate) struct Capture {
    directory: PathBuf,
    stem: String,
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: bool,
    total: u64,
    file: Option<OutputFile>,
}

impl Capture {
    /// An empty stream whose overflow goes to `directory`.
    pub(crate) fn new(directory: &Path, stem: &str) -> Self {
        Self {
            directory: directory.to_path_buf(),
            stem: stem.to_owned(),
            head: Vec::new(),
            tail: Vec::new(),
            dropped: false,
            total: 0,
            file: None,
        }
    }

    /// Takes in `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = HALF_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        if let Some(file) = &mut self.file {
            // A full disk ends the copy, not the command: the ends are still in memory.
            drop(file.append(rest));
        } else if self.tail.len() + rest.len() > HALF_BYTES && !self.dropped {
            self.start_file(rest);
        }
        self.tail.extend_from_slice(rest);
        if self.tail.len() > HALF_BYTES {
            self.dropped = true;
            let surplus = self.tail.len() - HALF_BYTES / 2;
            self.tail.drain(..surplus);
        }
    }

    fn start_file(&mut self, rest: &[u8]) {
        let Ok(mut file) = OutputFile::create(&self.directory, &self.stem, FILE_BYTES) else { return };
        let written =
            [self.head.as_slice(), self.tail.as_slice(), rest].iter().all(|part| file.append(part).is_ok());
        if written {
            self.file = Some(file);
        }
    }

    /// Whether nothing came.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// How many characters there are, at most.
    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.total).unwrap_or(usize::MAX)
    }

    /// The text in at most `limit` characters, and the file with all of it when it had to be cut.
    pub(crate) fn text(&mut self, limit: usize) -> (String, Option<PathBuf>) {
        if !self.dropped {
            self.head.append(&mut self.tail);
            let text = String::from_utf8_lossy(&self.head).into_owned();
            return bounds::bounded(text, limit, &self.directory, &self.stem);
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        let (head, _) = bounds::first_characters(&head, limit / 2);
        let tail = match bounds::clip(&tail, limit) {
            Some(clipped) => clipped.tail,
            None => &tail,
        };
        let path = self.file.as_ref().map(|file| file.path().to_path_buf());
        (bounds::join_clipped(&Clipped { head, tail }, self.total, path.as_deref()), path)
    }
}

/// Shows output while it comes, up to a limit.
pub(crate) struct Viewer {
    sink: ProgressSink,
    shown: usize,
}

impl Viewer {
    /// Shows to `sink`.
    pub(crate) fn new(sink: ProgressSink) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { sink, shown: 0 }))
    }

    fn show(&mut self, text: String) {
        if self.shown >= SHOWN_BYTES || text.is_empty() {
            return;
        }
        self.shown += text.len();
        (self.sink)(ToolProgress::Output(text));
        if self.shown >= SHOWN_BYTES {
            (self.sink)(ToolProgress::Output(
                "\n[further output is not shown while the command runs]\n".to_owned(),
            ));
        }
    }
}

/// When output last came, in milliseconds since the command started.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    start: Instant,
    last: Arc<AtomicU64>,
}

impl Activity {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), last: Arc::default() }
    }

    fn note(&self) {
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
    }

    /// When output last came.
    pub(crate) fn last(&self) -> Instant {
        self.start + std::time::Duration::from_millis(self.last.load(Ordering::Relaxed))
    }
}

/// Reads `stream` to its end into `capture` and shows it.
pub(crate) async fn pump<R: AsyncRead + Unpin>(
    mut stream: R,
    capture: Arc<Mutex<Capture>>,
    viewer: Arc<Mutex<Viewer>>,
    activity: Activity,
) {
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut whole_characters = WholeCharacters::default();
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        activity.note();
        capture.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
        let text = whole_characters.push(&buffer[..count]);
        viewer.lock().unwrap_or_else(PoisonError::into_inner).show(text);
    }
}

/// Reads `stream` to its end into `file`.
pub(crate) async fn pump_to_file<R: AsyncRead + Unpin>(mut stream: R, mut file: OutputFile) {
    let mut buffer = vec![0_u8; 16 * 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            // A full disk must not stop the task: the stream is read on and the rest is lost.
            Ok(count) => drop(file.append(&buffer[..count])),
        }
    }
}

/// Holds back the bytes of a character until all of them are there.
#[derive(Debug, Default)]
struct WholeCharacters(Vec<u8>);

impl WholeCharacters {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&self.0) {
            Ok(_) => self.0.len(),
            // Only an unfinished character at the very end can become valid; everything else is shown replaced.
            Err(_) => self.0.len() - unfinished_tail(&self.0),
        };
        let rest = self.0.split_off(complete);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

/// How many bytes at the end start a character that is not complete.
fn unfinished_tail(bytes: &[u8]) -> usize {
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
    fn characters_are_never_split() {
        let mut whole = WholeCharacters::default();
        assert_eq!(whole.push(b"a\xE2\x82"), "a");
        assert_eq!(whole.push(b"\xACb"), "€b");
        assert_eq!(whole.push(b"\xFFx"), "\u{FFFD}x");
    }

    #[test]
    fn a_long_stream_keeps_both_ends_in_memory_and_all_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(directory.path(), "out");
        capture.push(b"first ");
        for _ in 0..300 {
            capture.push(&[b'x'; 10_000]);
        }
        capture.push(b" last");
        assert!(capture.head.len() + capture.tail.len() <= 2 * HALF_BYTES);
        let (text, file) = capture.text(1_000);
        assert!(text.starts_with("first ") && text.ends_with(" last") && text.len() < 1_500);
        assert_eq!(std::fs::metadata(file.unwrap()).unwrap().len(), 3_000_011);
    }
}
