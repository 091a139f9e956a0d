//! The Read tool: text with line numbers, images, PDF pages and notebooks.
//!
//! What a file is follows from its content, not its name. Small files are read where the call runs; what can take long
//! goes to a blocking thread. Every read yields the observation that later edits are checked against.

mod notebook;
pub(crate) mod pdf;
pub(crate) mod picture;
mod text;

use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::{Observation, ReplayClass};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::blocking::{INLINE_BYTES, off_thread};
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::Refusal;
use crate::call::schema::{Whole, path_field};
use crate::files::open::{self, FileError};
use crate::files::paths::{self, ResolvedPath};
use text::Window;

/// How many lines are shown when the model names no number.
const DEFAULT_LINES: u64 = 2_000;

/// Reads a file and returns its content with line numbers.
///
/// - `file_path` should be absolute. Reading a path that does not exist is harmless: you get an error.
/// - Up to 2000 lines from the start are returned; lines longer than 2000 characters are cut, and one call returns at
///   most 256 KiB. Use `offset` and `limit` to see other parts of long files.
/// - Each line is shown as its number, a tab, and its text. The number and the tab are not part of the file: leave
///   them out when you use the text in Edit.
/// - Images (PNG, JPEG, GIF, WebP) are shown to you as images. PDF files are returned as text by page; give `pages` for
///   documents with more than 10 pages. Notebooks (.ipynb) are returned as cells with their outputs.
/// - Only files can be read: list directories with Glob or with ls in Bash.
/// - A file must have been read before Edit or Write may change it. Reading the same unchanged part again returns a
///   short notice only.
/// - Several files that may be useful can be read with several calls at once.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadInput {
    /// Absolute path of the file.
    file_path: String,
    /// The first line to show, from 1. Only for files that are too long to read at once.
    offset: Option<Whole>,
    /// How many lines to show. Only for files that are too long to read at once.
    limit: Option<Whole>,
    /// Pages of a PDF file, such as "3" or "1-5"; at most 20 per call.
    pages: Option<String>,
}

/// See [`ReadInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadTool;

impl BuiltIn for ReadTool {
    const NAME: &'static str = "Read";
    const FACTS: Facts =
        Facts { read_only: true, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = ReadInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![path_field(input, "file_path").map_or(Access::Other, Access::Read)]
    }

    async fn run(self: Arc<Self>, input: ReadInput, context: ToolContext) -> ToolOutcome {
        let path = match paths::resolve(&context.cwd, &input.file_path) {
            Ok(path) => path,
            Err(error) => return ToolOutcome::failed(format!("Cannot read: {error}.")),
        };
        let request = Request { window: window(&input), pages: input.pages, path };
        match request.open(&context) {
            Ok(Opened::Small(file, metadata)) => request.read(file, &metadata, &context),
            Ok(Opened::Long(file, metadata)) => {
                let cancelled = context.cancelled.clone();
                off_thread(cancelled, move |_| request.read(file, &metadata, &context)).await
            }
            Err(refusal) => *refusal,
        }
    }
}

fn window(input: &ReadInput) -> Window {
    Window {
        offset: input.offset.map_or(1, |whole| whole.0.max(1)),
        // Some models write 0 for "as usual".
        limit: input.limit.map(|whole| whole.0).filter(|limit| *limit > 0).unwrap_or(DEFAULT_LINES),
    }
}

/// An open file and where it is to be read.
enum Opened {
    Small(File, Metadata),
    Long(File, Metadata),
}

/// One read, resolved.
struct Request {
    path: ResolvedPath,
    window: Window,
    pages: Option<String>,
}

impl Request {
    fn open(&self, context: &ToolContext) -> Result<Opened, Refusal> {
        let shown = &self.path.lexical;
        let (file, metadata) = match open::open_regular(&self.path.real, shown) {
            Ok(opened) => opened,
            Err(error @ FileError::NotFound(_)) => return Err(not_found(&error, shown, &context.cwd).into()),
            Err(error) => return Err(error.refusal()),
        };
        // Small files are read and compared by content: two writes can fall into one tick of the clock. For large ones
        // the stamp must do.
        if metadata.len() > INLINE_BYTES
            && self.pages.is_none()
            && let Some(observed) = (context.observed)(&self.path.real)
            && self.is_repetition(&observed)
            && open::same_stamp(&metadata, &observed)
        {
            return Err(self.unchanged(observed).into());
        }
        let long = metadata.len() > INLINE_BYTES || is_slow_kind(shown);
        Ok(if long { Opened::Long(file, metadata) } else { Opened::Small(file, metadata) })
    }

    fn is_repetition(&self, observed: &Observation) -> bool {
        observed.range == Some((self.window.offset, self.window.limit))
    }

    fn unchanged(&self, observed: Observation) -> ToolOutcome {
        let message =
            "The file has not changed since you last read this part of it; use what you already have.";
        let mut outcome = ToolOutcome::completed(
            message,
            json!({ "type": "file_unchanged", "file_path": self.path.lexical, "message": message }),
        );
        outcome.observations.push(observed);
        outcome
    }

    fn read(&self, mut file: File, metadata: &Metadata, context: &ToolContext) -> ToolOutcome {
        let shown = &self.path.lexical;
        let mut start = [0_u8; 16];
        let length = match read_start(&mut file, &mut start) {
            Ok(length) => length,
            Err(error) => return FileError::from_system(shown, error).outcome(),
        };
        let start = &start[..length];
        if let Some(kind) = picture::kind(start) {
            return self.whole(file, metadata, start, context, |bytes| picture::read(bytes, kind, shown));
        }
        if start.starts_with(b"%PDF-") {
            return self.whole(file, metadata, start, context, |bytes| {
                pdf::read(bytes, self.pages.as_deref(), shown, &context.outputs)
            });
        }
        if self.pages.is_some() {
            return ToolOutcome::failed(format!("`pages` is for PDF files; {} is none.", shown.display()));
        }
        if shown.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb")) {
            return self.whole(file, metadata, start, context, |bytes| notebook::read(bytes, shown));
        }
        let scan = match text::scan(file, start, metadata.len(), self.window) {
            Ok(scan) => scan,
            Err(error) => return FileError::from_system(shown, error).outcome(),
        };
        let mut observation = open::observation(&self.path.real, metadata, scan.size, scan.sha256.clone());
        observation.range = Some((self.window.offset, self.window.limit));
        let observed = (context.observed)(&self.path.real).filter(|known| known.sha256 == scan.sha256);
        if observed.as_ref().is_some_and(|known| self.is_repetition(known)) {
            observation.partial = observed.is_some_and(|known| known.partial);
            return self.unchanged(observation);
        }
        // A session that has seen all of this content before has still seen all of it after looking at a part again.
        let seen_before = observed.is_some_and(|known| !known.partial);
        observation.partial = !scan.is_complete(self.window) && !seen_before;
        let mut outcome = scan.outcome(self.window, shown);
        if outcome.outcome == qoder_types::CallOutcome::Completed {
            outcome.observations.push(observation);
        }
        outcome
    }

    /// Reads a file that is only useful as a whole.
    fn whole(
        &self,
        mut file: File,
        metadata: &Metadata,
        start: &[u8],
        context: &ToolContext,
        show: impl FnOnce(&[u8]) -> ToolOutcome,
    ) -> ToolOutcome {
        let mut bytes = start.to_vec();
        match open::read_all(&mut file, metadata, &self.path.lexical) {
            Ok(rest) => bytes.extend_from_slice(&rest),
            Err(error) => return error.outcome(),
        }
        let sha256 = open::sha256(&bytes);
        let known = (context.observed)(&self.path.real).filter(|known| known.sha256 == sha256);
        if let Some(known) = known.filter(|known| self.pages.is_none() && self.is_repetition(known)) {
            return self.unchanged(known);
        }
        let mut outcome = show(&bytes);
        if outcome.outcome == qoder_types::CallOutcome::Completed {
            let mut observation = open::observation(&self.path.real, metadata, bytes.len() as u64, sha256);
            observation.range = self.pages.is_none().then_some((self.window.offset, self.window.limit));
            outcome.observations.push(observation);
        }
        outcome
    }
}

/// Fills `start` as far as the file goes.
fn read_start(file: &mut File, start: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..])? {
            0 => break,
            count => length += count,
        }
    }
    Ok(length)
}

/// Whether the name promises something that takes long to decode.
fn is_slow_kind(path: &Path) -> bool {
    const SLOW: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "pdf"];
    path.extension().is_some_and(|extension| SLOW.iter().any(|slow| extension.eq_ignore_ascii_case(slow)))
}

fn not_found(error: &FileError, shown: &Path, cwd: &Path) -> ToolOutcome {
    let mut text = format!("{error}. The working directory is {}.", cwd.display());
    if let Some(similar) = open::similar_name(shown) {
        text.push_str(&format!(" Did you mean {}?", similar.display()));
    }
    let mut outcome = ToolOutcome::failed(text.clone());
    outcome.structured = json!({ "error": text, "code": error.code() });
    outcome
}
