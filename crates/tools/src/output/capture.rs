//! Taking in the output of a command: bounded in memory, whole in a bounded file when it does not fit.
//!
//! A stream keeps its first and its last half MiB. As soon as it has more, everything goes into a file as well. People
//! see the output while it comes, up to a limit, in pieces that never split a character. The output of a task goes into
//! its file alone; a command that becomes a task changes over between two bytes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::{Outputs, ProgressSink, ToolProgress};
use qoder_core::redact::{RedactedStream, Redactor, Secrets};
use qoder_process::TaskFile;
use qoder_process::output::{
    Clipped, FILE_BYTES, OutputFile, clip, first_characters, join_clipped, unfinished_tail,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use crate::output::bounds;

/// Half of what one stream keeps in memory.
const HALF_BYTES: usize = 512 * 1024;
/// The most output that is shown while a command runs.
const SHOWN_BYTES: usize = 1024 * 1024;

/// What one stream said.
#[derive(Debug)]
pub(crate) struct Capture {
    outputs: Outputs,
    stem: String,
    /// Takes secrets out of what comes.
    redacted: RedactedStream,
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: bool,
    total: u64,
    file: Option<OutputFile>,
    /// What takes the rest, once the command is a task.
    rest: Option<TaskFile>,
}

impl Capture {
    /// An empty stream whose overflow goes to a file.
    pub(crate) fn new(outputs: &Outputs, stem: &str) -> Self {
        Self {
            outputs: outputs.clone(),
            stem: stem.to_owned(),
            redacted: outputs.redactor.stream(Secrets::All),
            head: Vec::new(),
            tail: Vec::new(),
            dropped: false,
            total: 0,
            file: None,
            rest: None,
        }
    }

    /// Takes in `bytes`; answers with what there is to show: nothing when they belong to a task already.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let clean = self.redacted.push(bytes);
        self.take(clean)
    }

    /// Nothing more comes: what was held back, because it could have been the beginning of a secret, is not one.
    fn finish(&mut self) -> Vec<u8> {
        let clean = self.redacted.finish();
        self.take(clean)
    }

    fn take(&mut self, clean: Vec<u8>) -> Vec<u8> {
        if let Some(rest) = &self.rest {
            rest.append(&clean);
            return Vec::new();
        }
        self.keep(&clean);
        clean
    }

    /// Lets everything that comes from now on go to `file`. A character of which only a part has come goes there whole.
    pub(crate) fn move_to(&mut self, file: &TaskFile) {
        if self.file.is_none() {
            let end = if self.tail.is_empty() { &mut self.head } else { &mut self.tail };
            let unfinished = end.split_off(end.len() - unfinished_tail(end));
            self.total -= unfinished.len() as u64;
            file.append(&unfinished);
        }
        self.rest = Some(file.clone());
    }

    fn keep(&mut self, bytes: &[u8]) {
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
        let Ok(mut file) = OutputFile::create(&self.outputs.directory, &self.stem, FILE_BYTES) else {
            return;
        };
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
        // A stream that is still open continues as a task, which gets what is held back.
        if self.rest.is_none() {
            drop(self.finish());
        }
        if !self.dropped {
            self.head.append(&mut self.tail);
            let text = String::from_utf8_lossy(&self.head).into_owned();
            return bounds::bounded(text, limit, &self.outputs, &self.stem);
        }
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        let (head, _) = first_characters(&head, limit / 2);
        let tail = match clip(&tail, limit) {
            Some(clipped) => clipped.tail,
            None => &tail,
        };
        let path = self.file.as_ref().map(|file| file.path().to_path_buf());
        (join_clipped(&Clipped { head, tail }, self.total, path.as_deref()), path)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // The task gets what was held back, also when its stream was not read to the end.
        if let Some(rest) = &self.rest {
            rest.append(&self.redacted.finish());
        }
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

    fn pass_on(&mut self, text: String) {
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
        let clean = capture.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
        let text = whole_characters.push(&clean);
        viewer.lock().unwrap_or_else(PoisonError::into_inner).pass_on(text);
    }
    let clean = capture.lock().unwrap_or_else(PoisonError::into_inner).finish();
    let text = whole_characters.push(&clean);
    viewer.lock().unwrap_or_else(PoisonError::into_inner).pass_on(text);
}

/// Reads `stream` to its end into `file`, without secrets.
pub(crate) async fn pump_to_file<R: AsyncRead + Unpin>(mut stream: R, file: TaskFile, redactor: Redactor) {
    let mut buffer = vec![0_u8; 16 * 1024];
    let mut clean = CleanFile { redacted: redactor.stream(Secrets::All), file };
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => clean.file.append(&clean.redacted.push(&buffer[..count])),
        }
    }
}

/// Writes what is held back also when the stream is not read to its end.
struct CleanFile {
    redacted: RedactedStream,
    file: TaskFile,
}

impl Drop for CleanFile {
    fn drop(&mut self) {
        self.file.append(&self.redacted.finish());
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const KEY: &str = "my-own-secret-value";

    fn outputs(directory: &Path) -> Outputs {
        Outputs { directory: directory.to_path_buf(), redactor: Redactor::new([KEY.to_owned()]) }
    }

    #[tokio::test]
    async fn a_key_is_found_wherever_a_stream_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("it is {KEY}, {KEY}; my-own-");
        let clean = "it is [redacted], [redacted]; my-own-";
        for at in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            let stream = || in_two_pieces(left.to_vec(), right.to_vec());
            let shown = Arc::new(Mutex::new(String::new()));
            let sink = Arc::clone(&shown);
            let viewer = Viewer::new(Arc::new(move |progress| {
                if let ToolProgress::Output(text) = progress {
                    sink.lock().unwrap().push_str(&text);
                }
            }));
            let capture = Arc::new(Mutex::new(Capture::new(&outputs(directory.path()), "out")));
            pump(stream(), capture.clone(), viewer, Activity::start()).await;
            assert_eq!(capture.lock().unwrap().text(1_000).0, clean, "cut at {at}");
            assert_eq!(*shown.lock().unwrap(), clean, "cut at {at}");
            let file = TaskFile::new(OutputFile::create(directory.path(), "task", FILE_BYTES).unwrap());
            pump_to_file(stream(), file.clone(), Redactor::new([KEY.to_owned()])).await;
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), clean, "cut at {at}");
        }
    }

    /// A stream that gives two pieces.
    fn in_two_pieces(left: Vec<u8>, right: Vec<u8>) -> impl AsyncRead + Unpin {
        AsyncReadExt::chain(std::io::Cursor::new(left), std::io::Cursor::new(right))
    }

    #[test]
    fn a_key_that_is_cut_where_a_command_becomes_a_task_is_found() {
        let directory = tempfile::tempdir().unwrap();
        for at in 0..=KEY.len() {
            let file = TaskFile::new(OutputFile::create(directory.path(), "task", FILE_BYTES).unwrap());
            let mut capture = Capture::new(&outputs(directory.path()), "out");
            let (left, right) = KEY.as_bytes().split_at(at);
            drop(capture.push(left));
            capture.move_to(&file);
            let before = capture.text(1_000).0;
            drop(capture.push(right));
            drop(capture.finish());
            let all = before + &std::fs::read_to_string(file.path()).unwrap();
            assert_eq!(all, "[redacted]", "cut at {at}");
        }
    }

    #[test]
    fn characters_are_never_split() {
        let mut whole = WholeCharacters::default();
        assert_eq!(whole.push(b"a\xE2\x82"), "a");
        assert_eq!(whole.push(b"\xACb"), "€b");
        assert_eq!(whole.push(b"\xFFx"), "\u{FFFD}x");
    }

    #[test]
    fn what_comes_after_the_move_goes_to_the_task_alone_and_no_character_is_split() {
        let directory = tempfile::tempdir().unwrap();
        let file = TaskFile::new(OutputFile::create(directory.path(), "task", FILE_BYTES).unwrap());
        let mut capture = Capture::new(&outputs(directory.path()), "out");
        assert!(!capture.push(b"one \xE2\x82").is_empty());
        capture.move_to(&file);
        assert!(capture.push(b"\xAC two").is_empty());
        assert_eq!(capture.text(1_000).0, "one ");
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "€ two");
        assert_eq!((file.taken(), file.problem()), (7, None));
    }

    #[test]
    fn a_long_stream_keeps_both_ends_in_memory_and_all_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = Capture::new(&outputs(directory.path()), "out");
        drop(capture.push(b"first "));
        for _ in 0..300 {
            drop(capture.push(&[b'x'; 10_000]));
        }
        drop(capture.push(b" last"));
        assert!(capture.head.len() + capture.tail.len() <= 2 * HALF_BYTES);
        let (text, file) = capture.text(1_000);
        assert!(text.starts_with("first ") && text.ends_with(" last") && text.len() < 1_500);
        assert_eq!(std::fs::metadata(file.unwrap()).unwrap().len(), 3_000_011);
    }
}
