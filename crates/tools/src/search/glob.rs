//! The Glob tool: finds files by the shape of their path, newest first.
//!
//! The literal directories at the start of a pattern are split off and become the place where the walk begins, so that
//! absolute patterns, `~/` and `..` work, little is walked, and the declared access is the directory that is read.

use std::cmp::Reverse;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::DirEntry;
use qoder_core::ports::{Access, Hidden, Outputs, ToolContext, ToolOutcome};
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ToolSettings;
use crate::call::blocking::{StopFlag, off_thread};
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::interrupted;
use crate::files::paths;
use crate::output::bounds;
use crate::search::walk::{FileWalk, out_of_scope};

/// The name the model calls.
const NAME: &str = "Glob";
/// The most paths that are listed.
const LISTED: usize = 100;

/// Finds files by a pattern for their path, such as `**/*.rs` or `src/**/*.{ts,tsx}`.
///
/// - `*` and `?` stay within one directory, `**` goes through any number of directories, `{a,b}` offers choices and
///   `[a-z]` a class of characters. `*.rs` finds only files directly in the directory; use `**/*.rs` for all below it.
/// - Returns absolute paths of files, most recently changed first, at most 100. Hidden files are included; what
///   .gitignore names and the .git directory are not.
/// - Use it to find files by name, and Grep to find them by content. Several patterns can be tried in several calls at
///   once.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GlobInput {
    /// The pattern for the path, relative to `path` or absolute.
    pattern: String,
    /// The directory to search in. Leave it out for the working directory.
    path: Option<String>,
}

/// See [`GlobInput`].
#[derive(Debug, Clone)]
pub(crate) struct GlobTool {
    respect_gitignore: bool,
}

impl GlobTool {
    pub(crate) fn new(settings: &ToolSettings) -> Self {
        Self { respect_gitignore: settings.respect_gitignore }
    }
}

impl BuiltIn for GlobTool {
    const NAME: &'static str = NAME;
    const FACTS: Facts =
        Facts { read_only: true, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = GlobInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        let Some(pattern) = input.get("pattern").and_then(Value::as_str) else { return vec![Access::Other] };
        let base = input.get("path").and_then(Value::as_str);
        vec![Access::Read(PathBuf::from(split(pattern, base).0))]
    }

    async fn run(self: Arc<Self>, input: GlobInput, context: ToolContext) -> ToolOutcome {
        let search = match Search::prepare(&input, &context, self.respect_gitignore) {
            Ok(search) => search,
            Err(text) => return ToolOutcome::failed(text),
        };
        off_thread(context.cancelled.clone(), move |stop| search.run(stop, &context.outputs)).await
    }
}

/// Splits the literal directories off the start of `pattern`: the directory to walk, as yet unresolved, and the rest.
fn split(pattern: &str, base: Option<&str>) -> (String, String) {
    let anchored = pattern.starts_with('/') || pattern.starts_with("~/");
    let mut directory = if anchored { String::new() } else { base.unwrap_or(".").to_owned() };
    let mut rest = pattern;
    if let Some(stripped) = pattern.strip_prefix('/') {
        directory.push('/');
        rest = stripped;
    }
    while let Some((first, behind)) = rest.split_once('/') {
        if first.contains(['*', '?', '[', ']', '{', '}', '\\', '!']) {
            break;
        }
        if !first.is_empty() && first != "." {
            if !directory.is_empty() && !directory.ends_with('/') {
                directory.push('/');
            }
            directory.push_str(first);
        }
        rest = behind;
    }
    // A directory alone means everything below it.
    let rest = match rest {
        "" => "**",
        "." | ".." => {
            directory.push('/');
            directory.push_str(rest);
            "**"
        }
        rest => rest,
    };
    (directory, rest.to_owned())
}

/// How deep a match can lie; `None` when it can be anywhere.
fn depth(pattern: &str) -> Option<usize> {
    (!pattern.contains("**") && !pattern.contains('{')).then(|| pattern.split('/').count())
}

struct Search {
    root: PathBuf,
    pattern: GlobSet,
    depth: Option<usize>,
    respect_gitignore: bool,
    hidden: Option<Hidden>,
}

/// A match with its age, sorted newest first and then by path.
type Match = (Reverse<SystemTime>, PathBuf);

impl Search {
    fn prepare(input: &GlobInput, context: &ToolContext, respect_gitignore: bool) -> Result<Self, String> {
        if input.pattern.is_empty() {
            return Err(format!("Invalid input for {NAME}: field `pattern` is empty."));
        }
        if input.pattern.contains('\0') {
            return Err(format!("Invalid input for {NAME}: field `pattern` contains a NUL byte."));
        }
        let (directory, rest) = split(&input.pattern, input.path.as_deref());
        if rest.split('/').any(|part| part == "..") {
            return Err("The pattern has `..` behind a wildcard. Put it in front, or use `path`.".to_owned());
        }
        let glob = GlobBuilder::new(&rest)
            .literal_separator(true)
            .build()
            .map_err(|error| format!("The pattern is not valid: {error}."))?;
        let pattern = GlobSetBuilder::new()
            .add(glob)
            .build()
            .map_err(|error| format!("The pattern is not valid: {error}."))?;
        let root = paths::resolve(&context.cwd, &directory)
            .map_err(|error| format!("Cannot search: {error}."))?
            .real;
        match std::fs::metadata(&root) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(format!("{} is not a directory. Use Read to see a file.", root.display())),
            Err(error) => {
                return Err(format!(
                    "Cannot search {}: {error}. The working directory is {}.",
                    root.display(),
                    context.cwd.display()
                ));
            }
        }
        let hidden = context.hidden.clone();
        Ok(Self { root, pattern, depth: depth(&rest), respect_gitignore, hidden })
    }

    fn run(&self, stop: &StopFlag, outputs: &Outputs) -> ToolOutcome {
        let mut matches = self.collect(stop);
        if stop.is_raised() {
            return interrupted();
        }
        let total = matches.len();
        let truncated = total > LISTED;
        if truncated {
            // Only the newest are listed: the others need no order.
            matches.select_nth_unstable(LISTED);
            matches.truncate(LISTED);
        }
        matches.sort_unstable();
        let files: Vec<String> =
            matches.into_iter().map(|(_, path)| path.to_string_lossy().into_owned()).collect();
        let mut text = if files.is_empty() { "No files found.".to_owned() } else { files.join("\n") };
        if truncated {
            text.push_str(&format!(
                "\n\n[The {LISTED} most recently changed of {total} files are listed. Use a narrower pattern or path.]"
            ));
        }
        let (text, _) = bounds::bounded(text, bounds::RESULT_CHARACTERS, outputs, "glob");
        ToolOutcome::completed(text, json!({ "files": files, "totalMatches": total, "truncated": truncated }))
    }

    fn collect(&self, stop: &StopFlag) -> Vec<Match> {
        let mut walk = FileWalk::new(&self.root, self.respect_gitignore, stop);
        walk.builder().max_depth(self.depth);
        let all: Arc<Mutex<Vec<Match>>> = Arc::default();
        let prefix = self.root.as_os_str().len() + usize::from(self.root != Path::new("/"));
        walk.visit(out_of_scope(self.hidden.as_ref()), || {
            let mut collector = Collector { all: all.clone(), own: Vec::new() };
            move |entry| {
                if let Some(found) = self.examine(entry, prefix) {
                    collector.own.push(found);
                }
            }
        });
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }

    fn examine(&self, entry: &DirEntry, prefix: usize) -> Option<Match> {
        let relative = entry.path().as_os_str().as_bytes().get(prefix..)?;
        let candidate = Candidate::new(Path::new(std::ffi::OsStr::from_bytes(relative)));
        if !self.pattern.is_match_candidate(&candidate) {
            return None;
        }
        let is_link = entry.path_is_symlink();
        let metadata = if is_link { std::fs::metadata(entry.path()).ok()? } else { entry.metadata().ok()? };
        if metadata.is_dir() {
            return None;
        }
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some((Reverse(modified), entry.path().to_path_buf()))
    }
}

/// Gathers the matches of one thread and hands them over when the thread ends.
struct Collector {
    all: Arc<Mutex<Vec<Match>>>,
    own: Vec<Match>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_directories_are_split_off() {
        let check = |pattern: &str, base: Option<&str>, directory: &str, rest: &str| {
            assert_eq!(split(pattern, base), (directory.to_owned(), rest.to_owned()), "{pattern}");
        };
        check("**/*.rs", None, ".", "**/*.rs");
        check("src/a/*.rs", None, "./src/a", "*.rs");
        check("src/*.rs", Some("/w"), "/w/src", "*.rs");
        check("/etc/*.conf", Some("/w"), "/etc", "*.conf");
        check("/*", None, "/", "*");
        check("~/x/*", Some("/w"), "~/x", "*");
        check("../lib/**", None, "./../lib", "**");
        check("Cargo.toml", Some("/w"), "/w", "Cargo.toml");
        check("src/", None, "./src", "**");
        check("{a,b}/c", None, ".", "{a,b}/c");
        check("..", Some("/w"), "/w/..", "**");
    }
}
