//! The Grep tool: searches the content of files with a regular expression.
//!
//! Files are visited and searched in parallel, one searcher per thread. The order of the result does not depend on the
//! order of the search, and no more is kept in memory than can be shown.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use qoder_core::ports::{Access, Hidden, Outputs, ToolContext, ToolOutcome};
use qoder_process::output::first_characters;
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ToolSettings;
use crate::call::blocking::{StopFlag, off_thread};
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::interrupted;
use crate::call::schema::{Flag, Whole, is_set};
use crate::files::open::is_system_tree;
use crate::files::paths;
use crate::output::bounds::{self, RESULT_CHARACTERS};
use crate::search::grep_sink::{Collected, Entry, FileSink};
use crate::search::walk::{FileWalk, out_of_scope};

/// How many results are shown when the model names no number.
const DEFAULT_RESULTS: u64 = 250;
/// How many results can be shown at all: each takes at least two characters of the text.
const MOST_RESULTS: u64 = (RESULT_CHARACTERS / 2) as u64;
/// The largest compiled expression.
const REGEX_BYTES: usize = 1024 * 1024;
/// The most memory a searcher may use for one line, or for one file in multiline mode.
const SEARCHER_BYTES: usize = 64 * 1024 * 1024;
/// The most lines around a match.
const MOST_CONTEXT: u64 = 1_000;

/// Searches the content of files with a regular expression.
///
/// - Use it for every search in files; do not run grep or rg in Bash.
/// - The syntax is that of ripgrep: `log.*Error`, `fn\s+\w+`. Braces that are meant literally need a backslash:
///   `interface\{\}`. There are no back-references and no look-around.
/// - `glob` ("*.js", "**/*.tsx") and `type` ("rust", "py") restrict the files.
/// - `output_mode` "files_with_matches" (default) lists files, newest first; "content" shows matching lines; "count"
///   shows how many lines match per file.
/// - A match lies within one line unless `multiline` is true: then `.` matches line ends too.
/// - What .gitignore names and binary files are left out; a file given as `path` is always searched.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GrepInput {
    /// The regular expression.
    pattern: String,
    /// File or directory to search in. Default: the working directory.
    path: Option<String>,
    /// Only files whose path matches this pattern, such as "*.js" or "*.{ts,tsx}"; `!` in front excludes.
    glob: Option<String>,
    /// Only files of this type, such as js, py, rust, go, java.
    #[serde(rename = "type")]
    file_type: Option<String>,
    /// What to show. Default: files_with_matches.
    output_mode: Option<OutputMode>,
    /// Show at most this many lines or files. Default 250; 0 for as many as fit.
    head_limit: Option<Whole>,
    /// Leave out this many lines or files at the start. Default 0.
    offset: Option<Whole>,
    /// Lines to show before and after each match, in content mode.
    context: Option<Whole>,
    /// Lines to show after each match, in content mode.
    #[serde(rename = "-A")]
    after: Option<Whole>,
    /// Lines to show before each match, in content mode.
    #[serde(rename = "-B")]
    before: Option<Whole>,
    /// Same as `context`.
    #[serde(rename = "-C")]
    around: Option<Whole>,
    /// Ignore case.
    #[serde(rename = "-i")]
    ignore_case: Option<Flag>,
    /// Show line numbers, in content mode. Default true.
    #[serde(rename = "-n")]
    line_numbers: Option<Flag>,
    /// Show only the matching part of each line, in content mode.
    #[serde(rename = "-o")]
    only_matching: Option<Flag>,
    /// Let matches span lines, and `.` match line ends. Default false.
    multiline: Option<Flag>,
}

/// What a search shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputMode {
    Content,
    FilesWithMatches,
    Count,
}

/// See [`GrepInput`].
#[derive(Debug, Clone)]
pub(crate) struct GrepTool {
    respect_gitignore: bool,
}

impl GrepTool {
    pub(crate) fn new(settings: &ToolSettings) -> Self {
        Self { respect_gitignore: settings.respect_gitignore }
    }
}

impl BuiltIn for GrepTool {
    const NAME: &'static str = "Grep";
    const FACTS: Facts =
        Facts { read_only: true, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = GrepInput;

    fn accesses(&self, input: &Value) -> Vec<Access> {
        let path = input.get("path").and_then(Value::as_str).unwrap_or(".");
        vec![Access::Read(PathBuf::from(path))]
    }

    async fn run(self: Arc<Self>, input: GrepInput, context: ToolContext) -> ToolOutcome {
        off_thread(context.cancelled.clone(), move |stop| {
            match Search::prepare(input, &context, self.respect_gitignore) {
                Ok(search) => search.run(stop, &context.outputs),
                Err(text) => ToolOutcome::failed(text),
            }
        })
        .await
    }
}

/// A search that is ready to start.
struct Search {
    input: GrepInput,
    mode: OutputMode,
    root: PathBuf,
    cwd: PathBuf,
    matcher: RegexMatcher,
    respect_gitignore: bool,
    hidden: Option<Hidden>,
    offset: u64,
    limit: u64,
}

impl Search {
    fn prepare(input: GrepInput, context: &ToolContext, respect_gitignore: bool) -> Result<Self, String> {
        let root = paths::resolve(&context.cwd, input.path.as_deref().unwrap_or("."))
            .map_err(|error| format!("Cannot search: {error}."))?
            .real;
        let metadata = std::fs::metadata(&root).map_err(|error| {
            format!(
                "Cannot search {}: {error}. The working directory is {}.",
                root.display(),
                context.cwd.display()
            )
        })?;
        if is_system_tree(&root) || !(metadata.is_dir() || metadata.is_file()) {
            return Err(format!("{} is neither a regular file nor a directory.", root.display()));
        }
        let multiline = is_set(input.multiline);
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(is_set(input.ignore_case))
            .multi_line(true)
            .dot_matches_new_line(multiline)
            .line_terminator(if multiline { None } else { Some(b'\n') })
            .size_limit(REGEX_BYTES)
            .build(&input.pattern)
            .map_err(|error| format!("The regular expression is not valid: {error}"))?;
        let limit = match input.head_limit.map_or(DEFAULT_RESULTS, |whole| whole.0) {
            0 => MOST_RESULTS,
            limit => limit.min(MOST_RESULTS),
        };
        Ok(Self {
            mode: input.output_mode.unwrap_or(OutputMode::FilesWithMatches),
            offset: input.offset.map_or(0, |whole| whole.0),
            cwd: context.cwd.clone(),
            hidden: context.hidden.clone(),
            limit,
            root,
            matcher,
            input,
            respect_gitignore,
        })
    }

    fn walk(&self, stop: &StopFlag) -> Result<FileWalk, String> {
        let mut walk = FileWalk::new(&self.root, self.respect_gitignore, stop);
        if let Some(globs) = &self.input.glob {
            let mut builder = OverrideBuilder::new(&self.root);
            for glob in split_globs(globs) {
                builder.add(glob).map_err(|error| format!("`glob` is not valid: {error}."))?;
            }
            let overrides = builder.build().map_err(|error| format!("`glob` is not valid: {error}."))?;
            walk.builder().overrides(overrides);
        }
        if let Some(name) = &self.input.file_type {
            let mut builder = TypesBuilder::new();
            builder.add_defaults().select(name);
            walk.builder().types(builder.build().map_err(|error| format!("`type` is not valid: {error}."))?);
        }
        Ok(walk)
    }

    fn searcher(&self) -> Searcher {
        let content = self.mode == OutputMode::Content;
        let around = self.input.context.or(self.input.around);
        let lines = |own: Option<Whole>| {
            let lines = own.or(around).map_or(0, |whole| whole.0.min(MOST_CONTEXT));
            if content && !is_set(self.input.only_matching) { usize::try_from(lines).unwrap_or(0) } else { 0 }
        };
        SearcherBuilder::new()
            .line_number(content && self.input.line_numbers.is_none_or(|flag| flag.0))
            .multi_line(is_set(self.input.multiline))
            .before_context(lines(self.input.before))
            .after_context(lines(self.input.after))
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .heap_limit(Some(SEARCHER_BYTES))
            .build()
    }

    fn run(self, stop: &StopFlag, outputs: &Outputs) -> ToolOutcome {
        let walk = match self.walk(stop) {
            Ok(walk) => walk,
            Err(text) => return ToolOutcome::failed(text),
        };
        // Lists of files are sorted by age at the end and need every file; the others are cut to what can be shown.
        let needed = match self.mode {
            OutputMode::FilesWithMatches => u64::MAX,
            OutputMode::Content | OutputMode::Count => {
                self.offset.saturating_add(self.limit).saturating_add(1)
            }
        };
        let collected = Mutex::new(Collected::new(needed));
        walk.visit(out_of_scope(self.hidden.as_ref()), || {
            let mut searcher = self.searcher();
            let matcher = self.matcher.clone();
            let (collected, search) = (&collected, &self);
            let only_matching = is_set(search.input.only_matching);
            move |entry| {
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    return;
                }
                let mut sink = FileSink::new(search.mode, &matcher, only_matching, needed, stop);
                // A file that cannot be read or holds an endless line is passed over like one that does not match.
                if searcher.search_path(&matcher, entry.path(), &mut sink).is_ok()
                    && let Some(found) = sink.finish()
                {
                    collected.lock().unwrap_or_else(PoisonError::into_inner).add(entry.path(), found);
                }
            }
        });
        if stop.is_raised() {
            return interrupted();
        }
        let collected = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.outcome(collected, outputs)
    }

    fn outcome(&self, collected: Collected, outputs: &Outputs) -> ToolOutcome {
        let (match_count, file_count, more) = (collected.matches, collected.files, collected.dropped);
        let lines = match self.mode {
            OutputMode::Content | OutputMode::Count => self.lines_by_path(collected),
            OutputMode::FilesWithMatches => self.newest_first(collected),
        };
        let found = lines.len() as u64;
        let truncated = more || found > self.offset.saturating_add(self.limit);
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let shown: Vec<&str> = lines.iter().skip(skip).take(take).map(String::as_str).collect();
        let results = shown.join("\n");
        let mut text = match (self.mode, found) {
            (OutputMode::Content, 0) => "No matches found.".to_owned(),
            (_, 0) => "No files found.".to_owned(),
            _ if shown.is_empty() => {
                format!("Offset {} is past the end: there are only {found} results.", self.offset)
            }
            (OutputMode::FilesWithMatches, _) => format!("Found {found} files\n{results}"),
            (OutputMode::Count, _) => {
                format!("{results}\n\n{match_count} matching lines in {file_count} files.")
            }
            (OutputMode::Content, _) => results.clone(),
        };
        if truncated && !shown.is_empty() {
            text.push_str(&format!(
                "\n\n[Results {} to {} are shown and there are more. Use offset {} for the next ones, or a narrower search.]",
                self.offset + 1,
                self.offset + shown.len() as u64,
                self.offset + shown.len() as u64
            ));
        }
        let (text, file) = bounds::bounded(text, RESULT_CHARACTERS, outputs, "grep");
        let (results, _) = first_characters(&results, RESULT_CHARACTERS);
        ToolOutcome::completed(
            text,
            json!({
                "results": results, "matchCount": match_count, "truncated": truncated || file.is_some(),
                "numFiles": file_count,
            }),
        )
    }

    fn lines_by_path(&self, collected: Collected) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, entries) in collected.by_path {
            let name = self.shown(&path);
            if !lines.is_empty() && entries.iter().any(|entry| matches!(entry, Entry::Context(..))) {
                lines.push("--".to_owned());
            }
            lines.extend(entries.into_iter().map(|entry| match entry {
                Entry::Match(Some(number), text) => format!("{name}:{number}:{text}"),
                Entry::Match(None, text) => format!("{name}:{text}"),
                Entry::Context(Some(number), text) => format!("{name}-{number}-{text}"),
                Entry::Context(None, text) => format!("{name}-{text}"),
                Entry::Break => "--".to_owned(),
                Entry::Count(count) => format!("{name}:{count}"),
            }));
        }
        lines
    }

    fn newest_first(&self, collected: Collected) -> Vec<String> {
        let mut files: Vec<(Reverse<SystemTime>, PathBuf)> = collected
            .by_path
            .into_keys()
            .map(|path| {
                let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
                (Reverse(modified.unwrap_or(SystemTime::UNIX_EPOCH)), path)
            })
            .collect();
        files.sort_unstable();
        files.into_iter().map(|(_, path)| self.shown(&path)).collect()
    }

    /// The path relative to the working directory when it lies in it.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Several patterns may be given at once, separated by blanks or commas; commas inside braces belong to the pattern.
fn split_globs(globs: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_separator = |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter.is_whitespace() || (letter == ',' && depth == 0)
    };
    globs.split(is_separator).filter(|glob| !glob.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_globs_are_told_apart() {
        assert_eq!(split_globs("*.ts, *.{js,jsx} !x"), ["*.ts", "*.{js,jsx}", "!x"]);
        assert_eq!(split_globs("*.a,*.b"), ["*.a", "*.b"]);
        assert!(split_globs(" ").is_empty());
    }
}
