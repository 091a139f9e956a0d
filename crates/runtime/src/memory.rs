//! Memory files and rules: `AGENTS.md` and `.qoder/rules/**/*.md`, from the user's folder and, in a trusted project,
//! from its top down to the working directory. They are context for the model, never enforcement.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSetBuilder};
use ignore::WalkBuilder;
use serde::Deserialize;

use crate::extensions::bounds;
use crate::hooks::LoadedInstructions;
use crate::settings::Settings;
use crate::trust::is_repository;

/// The most bytes of one file.
const FILE_CAP: usize = 64 * 1024;
/// The most bytes of all files together.
const TOTAL_CAP: usize = 256 * 1024;
/// How deep imports may nest.
const IMPORT_DEPTH: usize = 5;

/// A piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPiece {
    /// Where it came from.
    pub path: PathBuf,
    /// What the model reads.
    pub text: String,
}

/// Where to look.
#[derive(Debug)]
pub struct MemoryPlaces<'a> {
    /// The configuration root.
    pub config_root: &'a Path,
    /// Working directory.
    pub cwd: &'a Path,
    /// Root of the project.
    pub project_root: &'a Path,
    /// False: only the user's own files.
    pub trusted: bool,
}

/// Finds and reads everything, outermost first.
#[must_use]
pub fn discover(places: &MemoryPlaces<'_>, settings: &Settings) -> Vec<MemoryPiece> {
    find(places, settings).pieces
}

/// The files that [`discover`] reads, as hooks are told of them.
#[must_use]
pub fn loaded(places: &MemoryPlaces<'_>, settings: &Settings) -> Vec<LoadedInstructions> {
    let found = find(places, settings);
    let told = |path: PathBuf, reason| {
        let is_local = path.to_string_lossy().ends_with(".local.md");
        let is_own = path.starts_with(places.config_root);
        let memory_type = if is_own {
            "User"
        } else if is_local {
            "Local"
        } else {
            "Project"
        };
        LoadedInstructions { path, memory_type, reason }
    };
    let pieces = found.pieces.into_iter().map(|piece| told(piece.path, None));
    let included = found.included.into_iter().map(|path| told(path, Some("include")));
    pieces.chain(included).collect()
}

fn find(places: &MemoryPlaces<'_>, settings: &Settings) -> Finder {
    let names = file_names(settings);
    let mut finder = Finder::new(excludes(settings), places.project_root);
    for name in &names {
        finder.file(&places.config_root.join(name), places.config_root);
    }
    finder.rules(&places.config_root.join("rules"), places.config_root);
    if places.trusted {
        let most =
            settings.get("context.discoveryMaxDirs").and_then(serde_json::Value::as_u64).unwrap_or(200);
        let mut folders: Vec<&Path> = places
            .cwd
            .ancestors()
            .take_while(|folder| folder.starts_with(places.project_root))
            .take(usize::try_from(most).unwrap_or(usize::MAX))
            .collect();
        folders.reverse();
        for folder in folders {
            for name in &names {
                finder.file(&folder.join(name), places.project_root);
                if let Some(stem) = name.strip_suffix(".md") {
                    finder.file(&folder.join(format!("{stem}.local.md")), places.project_root);
                }
            }
            finder.rules(&folder.join(".qoder/rules"), places.project_root);
        }
    }
    finder
}

/// Finds memory files of folders below the working directory, which count once a file beside them was read.
#[derive(Debug)]
pub struct NestedMemory {
    names: Vec<String>,
    cwd: PathBuf,
    excluded: globset::GlobSet,
}

impl NestedMemory {
    /// A finder for a trusted project; `None` for any other.
    #[must_use]
    pub fn new(places: &MemoryPlaces<'_>, settings: &Settings) -> Option<Self> {
        places.trusted.then(|| Self {
            names: file_names(settings),
            cwd: places.cwd.to_path_buf(),
            excluded: excludes(settings),
        })
    }

    /// Memory files between the working directory and `file` that are not in `known`, outermost first.
    #[must_use]
    pub fn beside(&self, file: &Path, known: &BTreeSet<String>) -> Vec<MemoryPiece> {
        let mut folders: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.cwd) && *folder != self.cwd)
            .collect();
        folders.reverse();
        let mut finder = Finder::new(self.excluded.clone(), &self.cwd);
        for folder in folders {
            for path in self.names.iter().map(|name| folder.join(name)) {
                if !known.contains(path.to_string_lossy().as_ref()) && !self.is_of_nested_repository(&path) {
                    finder.file(&path, &self.cwd);
                }
            }
        }
        finder.pieces
    }

    /// True when a repository of its own lies between the working directory and the real place of `path`: that one needs
    /// trust of its own.
    fn is_of_nested_repository(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| {
            real.ancestors()
                .skip(1)
                .take_while(|folder| folder.starts_with(&self.cwd) && *folder != self.cwd)
                .any(is_repository)
        })
    }
}

fn file_names(settings: &Settings) -> Vec<String> {
    let names = settings.list("context.fileName");
    if names.is_empty() { vec!["AGENTS.md".to_owned()] } else { names }
}

fn excludes(settings: &Settings) -> globset::GlobSet {
    let mut set = GlobSetBuilder::new();
    for glob in settings.list("agentsMdExcludes") {
        if let Ok(glob) = Glob::new(&glob) {
            set.add(glob);
        }
    }
    set.build().unwrap_or_else(|_| globset::GlobSet::empty())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuleHead {
    trigger: Option<String>,
    #[serde(rename = "alwaysApply")]
    always_apply: Option<bool>,
    description: Option<String>,
    glob: Option<OneOrMany>,
    paths: Option<OneOrMany>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn join(&self) -> String {
        match self {
            Self::One(one) => one.clone(),
            Self::Many(many) => many.join(", "),
        }
    }
}

struct Finder {
    excluded: globset::GlobSet,
    boundary: PathBuf,
    seen: BTreeSet<PathBuf>,
    pieces: Vec<MemoryPiece>,
    /// Files that others import.
    included: Vec<PathBuf>,
    total: usize,
}

impl Finder {
    fn new(excluded: globset::GlobSet, boundary: &Path) -> Self {
        let boundary = boundary.to_path_buf();
        Self { excluded, boundary, seen: BTreeSet::new(), pieces: Vec::new(), included: Vec::new(), total: 0 }
    }

    fn file(&mut self, path: &Path, root: &Path) {
        if let Some(text) = self.read(path, root) {
            let text = self.with_imports(&text, path, root, 0);
            self.add(path, text);
        }
    }

    fn add(&mut self, path: &Path, text: String) {
        if text.trim().is_empty() || self.total + text.len() > TOTAL_CAP {
            return;
        }
        self.total += text.len();
        self.pieces.push(MemoryPiece { path: path.to_path_buf(), text });
    }

    /// Reads a regular file inside `root` once; links that lead out of it are not followed.
    fn read(&mut self, path: &Path, root: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        let real_root = root.canonicalize().ok()?;
        if !real.starts_with(&real_root) || self.excluded.is_match(path) || !self.seen.insert(real.clone()) {
            return None;
        }
        if !real.metadata().ok()?.is_file() {
            return None;
        }
        let bytes = std::fs::read(&real).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.len() > FILE_CAP {
            let end = (0..=FILE_CAP).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("\n[… the rest of this file was left out …]");
        }
        Some(text)
    }

    fn rules(&mut self, folder: &Path, root: &Path) {
        if !folder.is_dir() {
            return;
        }
        let walk = WalkBuilder::new(folder).standard_filters(false).follow_links(false).build();
        let mut files: Vec<PathBuf> = walk
            .filter_map(Result::ok)
            .map(ignore::DirEntry::into_path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .take(500)
            .collect();
        files.sort();
        for path in files {
            let Some(text) = self.read(&path, root) else { continue };
            let (head, body) = split_head(&text);
            if let Some(text) = self.rule(&head, body, &path, root) {
                self.add(&path, text);
            }
        }
    }

    /// What the model reads of a rule at the start: all of it, or where it is and when it counts.
    fn rule(&mut self, head: &RuleHead, body: &str, path: &Path, root: &Path) -> Option<String> {
        let globs = head.glob.as_ref().or(head.paths.as_ref()).map(OneOrMany::join);
        let trigger = head.trigger.as_deref().unwrap_or(match (head.always_apply, &globs) {
            (Some(true), _) | (None, None) => "always_on",
            (_, Some(_)) => "glob",
            (Some(false), None) => "model_decision",
        });
        match trigger {
            "manual" => None,
            "model_decision" => {
                let when = head.description.as_deref().unwrap_or("see the file");
                Some(format!("A rule that may apply: {when}. Read {} when it does.", path.display()))
            }
            "glob" => {
                let globs = globs.unwrap_or_default();
                Some(format!(
                    "A rule for files that match {globs}: read {} before you change one.",
                    path.display()
                ))
            }
            _ => Some(self.with_imports(body, path, root, 0)),
        }
    }

    /// Puts the content of `@path` imports in place. Code spans and blocks are left alone.
    fn with_imports(&mut self, text: &str, path: &Path, root: &Path, depth: usize) -> String {
        if depth >= IMPORT_DEPTH || !text.contains('@') {
            return text.to_owned();
        }
        let folder = path.parent().unwrap_or(root).to_path_buf();
        let mut out = String::with_capacity(text.len());
        let mut fenced = false;
        for line in text.split_inclusive('\n') {
            let trimmed = line.trim();
            if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
                fenced = !fenced;
            }
            let target = (!fenced).then(|| trimmed.strip_prefix('@')).flatten();
            let target = target.filter(|target| !target.is_empty() && !target.contains(char::is_whitespace));
            let imported = target.and_then(|target| {
                let target = folder.join(target);
                // Outside the project an import would need someone's approval.
                let root = if target.starts_with(&self.boundary) {
                    self.boundary.clone()
                } else {
                    root.to_path_buf()
                };
                let text = self.read(&target, &root)?;
                self.included.push(target.clone());
                Some(self.with_imports(&text, &target, &root, depth + 1))
            });
            match imported {
                Some(imported) => {
                    out.push_str(imported.trim_end());
                    out.push('\n');
                }
                None => out.push_str(line),
            }
        }
        out
    }
}

/// Splits front matter off. Broken front matter is treated as absent, so that the rule itself is not lost.
fn split_head(text: &str) -> (RuleHead, &str) {
    let Some(rest) = text.strip_prefix("---\n") else { return (RuleHead::default(), text) };
    let Some(end) = rest.find("\n---") else { return (RuleHead::default(), text) };
    let body = rest[end + 4..].trim_start_matches('-').trim_start_matches('\n');
    (serde_saphyr::from_str_with_options(&rest[..end], bounds()).unwrap_or_default(), body)
}
