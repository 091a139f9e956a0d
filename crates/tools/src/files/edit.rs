//! The Edit tool: replaces exact text in a file that the model has read.
//!
//! The checks come in a fixed order: read before, unchanged since, a real difference, found, unique. Line ends, encoding
//! and permission bits stay as they were. What is compared and what is replaced is the same open file.

use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_process::output::first_characters;
use qoder_types::{Observation, ReplayClass};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::blocking::change;
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, refusal};
use crate::call::schema::{Flag, is_set, path_field};
use crate::files::atomic::Place;
use crate::files::difference;
use crate::files::encoding::{self, Encoding};
use crate::files::near_miss;
use crate::files::open::{self, FileError};
use crate::files::paths::{self, ResolvedPath};
use crate::files::restore::keep_before;
use crate::output::bounds::RESULT_CHARACTERS;

/// Lines shown around a change.
const SNIPPET_CONTEXT: usize = 4;
/// Larger files are edited without a diff in the result: making it would take longer than the edit.
const LARGEST_DIFFED: usize = 4 * 1024 * 1024;

/// Replaces exact text in a file.
///
/// - The file must have been read with Read in this conversation, and must not have changed since.
/// - `old_string` must be the text exactly as it is in the file, with its indentation and without the line numbers
///   that Read puts in front. It must occur exactly once: add neighbouring lines until it does, or set `replace_all` to
///   change every occurrence, for example to rename something.
/// - `new_string` replaces it and must differ from it.
/// - Prefer changing existing files to writing new ones. An empty `old_string` with a path that does not exist yet
///   creates the file.
/// - Line ends (LF or CRLF), encoding and permissions of the file are kept; write `\n` in both strings.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EditInput {
    /// Absolute path of the file.
    file_path: String,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence instead of exactly one. Default false.
    replace_all: Option<Flag>,
}

/// See [`EditInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct EditTool;

impl BuiltIn for EditTool {
    const NAME: &'static str = "Edit";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: false, replay: ReplayClass::Effectful };
    type Input = EditInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        match path_field(input, "file_path") {
            Some(path) => vec![Access::Read(path.clone()), Access::Edit(path)],
            None => vec![Access::Other],
        }
    }

    async fn run(self: Arc<Self>, input: EditInput, context: ToolContext) -> ToolOutcome {
        let size = open::size_hint(&context.cwd, &input.file_path);
        change(size, move || edit(&input, &context).unwrap_or_else(|refusal| *refusal)).await
    }
}

/// Edits; the error is a refusal for the model.
fn edit(input: &EditInput, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let path = paths::resolve(&context.cwd, &input.file_path)
        .map_err(|error| refusal(format!("Cannot edit: {error}.")))?;
    let shown = path.lexical.as_path();
    if shown.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb")) {
        return Err(refusal(format!(
            "{} is a notebook; its cells cannot be edited as text. Use NotebookEdit, or Write to replace all of it.",
            shown.display()
        )));
    }
    let (mut file, metadata) = match open::open_regular(&path.real, shown) {
        Ok(opened) => opened,
        Err(FileError::NotFound(_)) if input.old_string.is_empty() => return create(input, &path, context),
        Err(error @ FileError::NotFound(_)) => return Err(missing(&error, shown, &context.cwd)),
        Err(error) => return Err(error.refusal()),
    };
    let observed = require_read(context, &path)?;
    let bytes = open::read_all(&mut file, &metadata, shown).map_err(|error| error.refusal())?;
    require_unchanged(&bytes, &observed, shown)?;
    let change = Change::find(input, &bytes, &observed, shown)?;
    let content = encoding::encode(&change.after, change.encoding).ok_or_else(|| {
        refusal(format!(
            "{} is stored in windows-1252, which lacks some characters of `new_string`. Use characters it has, or \
             convert the file to UTF-8 first.",
            shown.display()
        ))
    })?;
    keep_before(context, &path, Some((&bytes, &metadata)), &content)?;
    let written = Place::open(&path.real, shown)
        .and_then(|place| place.replace(&content, Some(&metadata)))
        .map_err(|error| error.refusal())?;
    let mut observation =
        open::observation(&path.real, &written, content.len() as u64, open::sha256(&content));
    observation.partial = observed.partial;
    Ok(change.outcome(shown, observation))
}

fn missing(error: &FileError, shown: &Path, cwd: &Path) -> Refusal {
    let mut text = format!("{error}. The working directory is {}.", cwd.display());
    if let Some(similar) = open::similar_name(shown) {
        text.push_str(&format!(" Did you mean {}?", similar.display()));
    }
    refusal(text)
}

/// What the model saw of the file; the error asks it to read first.
pub(crate) fn require_read(context: &ToolContext, path: &ResolvedPath) -> Result<Observation, Refusal> {
    (context.observed)(&path.real).ok_or_else(|| {
        refusal(format!("{} has not been read yet. Read it first, then change it.", path.lexical.display()))
    })
}

/// Refuses a file whose content is not what the model saw. The content is at hand, so it is compared and not its
/// time: two writes can fall into one tick of the file system's clock.
pub(crate) fn require_unchanged(bytes: &[u8], observed: &Observation, shown: &Path) -> Result<(), Refusal> {
    if bytes.len() as u64 == observed.size && open::sha256(bytes) == observed.sha256 {
        return Ok(());
    }
    Err(refusal(format!(
        "{} has changed since it was read, by a person or a program. Read it again before you change it.",
        shown.display()
    )))
}

/// Creates the file that an edit with an empty `old_string` names.
fn create(input: &EditInput, path: &ResolvedPath, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let shown = path.lexical.as_path();
    if input.new_string.is_empty() {
        return Err(refusal("`old_string` and `new_string` are the same: there is nothing to change."));
    }
    let content = input.new_string.as_bytes();
    keep_before(context, path, None, content)?;
    let written = crate::files::write::create_file(path, content).map_err(|error| error.refusal())?;
    let observation = open::observation(&path.real, &written, content.len() as u64, open::sha256(content));
    let mut outcome = ToolOutcome::completed(
        format!("The file {} has been created.", shown.display()),
        json!({ "success": true, "file_path": shown, "diff": unified("", &input.new_string, shown) }),
    );
    outcome.observations.push(observation);
    Ok(outcome)
}

/// A change that passed all checks.
#[derive(Debug)]
struct Change {
    encoding: Encoding,
    before: String,
    after: String,
    first: usize,
    new_length: usize,
    count: usize,
    partial: bool,
}

impl Change {
    fn find(input: &EditInput, bytes: &[u8], observed: &Observation, shown: &Path) -> Result<Self, Refusal> {
        let refuse = |text: String| Err(refusal(text));
        if input.old_string == input.new_string {
            return refuse(
                "`old_string` and `new_string` are the same: there is nothing to change.".to_owned(),
            );
        }
        let Some((encoding, before)) = encoding::decode(bytes) else {
            return refuse(format!("{} is a binary file and cannot be edited as text.", shown.display()));
        };
        if input.old_string.is_empty() {
            if !before.is_empty() {
                return refuse(format!(
                    "`old_string` is empty but {} has content. Give the text to replace, or use Write.",
                    shown.display()
                ));
            }
            let after = input.new_string.clone();
            let new_length = after.len();
            return Ok(Self {
                encoding,
                before: String::new(),
                after,
                first: 0,
                new_length,
                count: 1,
                partial: false,
            });
        }
        let (old, new) = with_line_ends(&before, &input.old_string, &input.new_string);
        let count = before.matches(old.as_str()).count();
        let Some(first) = before.find(old.as_str()) else {
            return refuse(format!(
                "`old_string` was not found in {}. {}",
                shown.display(),
                near_miss::explain(&before, &input.old_string)
            ));
        };
        if count > 1 && !is_set(input.replace_all) {
            return refuse(format!(
                "`old_string` occurs {count} times in {}. Add neighbouring lines to make it unique, or set replace_all.",
                shown.display()
            ));
        }
        if count > 1 && observed.partial {
            return refuse(format!(
                "Only a part of {} has been read, and `old_string` occurs {count} times in it. Read the rest before \
                 replacing all of them.",
                shown.display()
            ));
        }
        let after = before.replace(old.as_str(), &new);
        let before = before.into_owned();
        Ok(Self { encoding, before, after, first, new_length: new.len(), count, partial: observed.partial })
    }

    fn outcome(&self, shown: &Path, observation: Observation) -> ToolOutcome {
        let mut text = format!("The file {} has been updated.", shown.display());
        if self.count > 1 {
            text.push_str(&format!(" {} occurrences were replaced; the first one now reads:", self.count));
        }
        if self.partial {
            text.push_str(
                " Only a part of the file had been read; the text to replace occurred exactly once.",
            );
        }
        text.push('\n');
        text.push_str(&snippet(&self.after, self.first, self.new_length));
        let mut structured = json!({ "success": true, "file_path": shown });
        if self.before.len().max(self.after.len()) <= LARGEST_DIFFED {
            structured["diff"] = json!(unified(&self.before, &self.after, shown));
        }
        let mut outcome = ToolOutcome::completed(text, structured);
        outcome.observations.push(observation);
        outcome
    }
}

/// Gives both strings the line ends of the file. Text that matches as it is written is left as it is.
fn with_line_ends(text: &str, old: &str, new: &str) -> (String, String) {
    let windows = |part: &str| part.replace("\r\n", "\n").replace('\n', "\r\n");
    let returns = text.matches("\r\n").count();
    let mostly_windows = returns > 0 && returns * 2 > memchr::memchr_iter(b'\n', text.as_bytes()).count();
    if text.contains(old) {
        let new = if mostly_windows { windows(new) } else { new.to_owned() };
        return (old.to_owned(), new);
    }
    if returns > 0 && text.contains(&windows(old)) {
        return (windows(old), windows(new));
    }
    (old.to_owned(), new.to_owned())
}

/// The changed lines with some around them, numbered as Read does.
fn snippet(text: &str, start: usize, length: usize) -> String {
    let first_line = memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count();
    let changed = memchr::memchr_iter(b'\n', &text.as_bytes()[start..start + length]).count() + 1;
    let from = first_line.saturating_sub(SNIPPET_CONTEXT);
    // A long new text needs no echo: the model wrote it.
    let count = first_line - from + changed.min(40) + SNIPPET_CONTEXT;
    let mut shown = String::new();
    for (index, line) in text.lines().enumerate().skip(from).take(count) {
        let (line, cut) = first_characters(line, 500);
        shown.push_str(&format!("{:>6}\t{line}{}\n", index + 1, if cut { " [line cut]" } else { "" }));
    }
    shown
}

/// The difference in unified form, bounded.
fn unified(before: &str, after: &str, shown: &Path) -> String {
    let name = shown.display().to_string();
    let diff = difference::unified(before, after, &name);
    let (short, cut) = first_characters(&diff, RESULT_CHARACTERS);
    if cut { format!("{short}\n[diff cut]\n") } else { diff }
}
