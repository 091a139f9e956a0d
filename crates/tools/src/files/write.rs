//! The Write tool: creates a file or replaces all of it.
//!
//! A file that exists must have been read and be unchanged, so that nothing is lost that the model never saw. Missing
//! parent directories are created; the content appears in one step.

use std::borrow::Cow;
use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::blocking::change;
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, refusal};
use crate::call::schema::path_field;
use crate::files::atomic::Place;
use crate::files::edit::{require_read, require_unchanged};
use crate::files::encoding;
use crate::files::open::{self, FileError};
use crate::files::paths::{self, ResolvedPath};
use crate::files::restore::keep_before;

/// Writes a file, replacing what was there.
///
/// - A file that exists must have been read with Read in this conversation first.
/// - To change a part of a file use Edit: it is shorter and safer. Use Write for new files and complete rewrites.
/// - `file_path` should be absolute; missing directories are created.
/// - A file that exists keeps its encoding, permissions and kind of line ends; write `\n`.
/// - Do not create documentation or README files unless the person asks for them.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteInput {
    /// Absolute path of the file.
    file_path: String,
    /// The complete new content.
    content: String,
}

/// See [`WriteInput`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteTool;

impl BuiltIn for WriteTool {
    const NAME: &'static str = "Write";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: false, replay: ReplayClass::Effectful };
    type Input = WriteInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        vec![path_field(input, "file_path").map_or(Access::Other, Access::Edit)]
    }

    async fn run(self: Arc<Self>, input: WriteInput, context: ToolContext) -> ToolOutcome {
        let size = open::size_hint(&context.cwd, &input.file_path);
        change(size, move || write(&input, &context).unwrap_or_else(|refusal| *refusal)).await
    }
}

/// Writes; the error is a refusal for the model.
fn write(input: &WriteInput, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let path = paths::resolve(&context.cwd, &input.file_path)
        .map_err(|error| refusal(format!("Cannot write: {error}.")))?;
    let shown = path.lexical.as_path();
    let mut content = input.content.as_bytes();
    let kept;
    let (written, text) = match open::open_regular(&path.real, shown) {
        Ok((mut file, metadata)) => {
            let observed = require_read(context, &path)?;
            let bytes = open::read_all(&mut file, &metadata, shown).map_err(|error| error.refusal())?;
            require_unchanged(&bytes, &observed, shown)?;
            kept = in_the_manner_of(&bytes, &input.content);
            content = &kept;
            keep_before(context, &path, Some((&bytes, &metadata)), content)?;
            let written = Place::open(&path.real, shown)
                .and_then(|place| place.replace(content, Some(&metadata)))
                .map_err(|error| error.refusal())?;
            (written, format!("The file {} has been overwritten.", shown.display()))
        }
        Err(FileError::NotFound(_)) => {
            keep_before(context, &path, None, content)?;
            let written = create_file(&path, content).map_err(|error| error.refusal())?;
            (written, format!("The file {} has been created.", shown.display()))
        }
        Err(error) => return Err(error.refusal()),
    };
    let structured = json!({ "success": true, "file_path": shown, "bytesWritten": content.len() });
    let mut outcome = ToolOutcome::completed(text, structured);
    outcome.observations.push(open::observation(
        &path.real,
        &written,
        content.len() as u64,
        open::sha256(content),
    ));
    Ok(outcome)
}

/// The new content with the encoding and the line ends of the old one. A file whose every line ends as on Windows keeps
/// that; an encoding that lacks one of the new characters gives way to UTF-8.
fn in_the_manner_of(old: &[u8], content: &str) -> Vec<u8> {
    let Some((encoding, text)) = encoding::decode(old) else { return content.as_bytes().to_vec() };
    let lines = text.matches('\n').count();
    let windows = lines > 0 && text.matches("\r\n").count() == lines && !content.contains('\r');
    let content = if windows { Cow::Owned(content.replace('\n', "\r\n")) } else { Cow::Borrowed(content) };
    encoding::encode(&content, encoding).unwrap_or_else(|| content.as_bytes().to_vec())
}

/// Creates a file that does not exist, and the directories in which it is to be.
pub(crate) fn create_file(path: &ResolvedPath, content: &[u8]) -> Result<Metadata, FileError> {
    let shown = path.lexical.as_path();
    if let Some(parent) = path.real.parent() {
        std::fs::create_dir_all(parent).map_err(|error| unusable_parent(shown, parent, error))?;
    }
    Place::open(&path.real, shown)?.replace(content, None)
}

fn unusable_parent(shown: &Path, parent: &Path, error: std::io::Error) -> FileError {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotADirectory => FileError::System {
            path: shown.to_path_buf(),
            source: std::io::Error::other(format!("{} is not a directory", parent.display())),
        },
        _ => FileError::from_system(shown, error),
    }
}
