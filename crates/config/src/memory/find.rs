//! Reads memory files and rules within bounds: each file once, no link out of the folder whose author may say something,
//! and the content of imports in their place.

use std::collections::BTreeSet;

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use qoder_files::read_regular;

use super::rule::{Rule, Trigger};
use super::{MemoryPiece, Owner, Reason};
use crate::sources::Problem;

/// The most bytes of one file.
const FILE_CAP: usize = 64 * 1024;
/// The most bytes of all files together.
const TOTAL_CAP: usize = 256 * 1024;
/// How deep imports may nest.
const IMPORT_DEPTH: usize = 5;
/// The most rules of one folder.
const MOST_RULES: usize = 500;
/// How deep folders of rules may nest.
const RULES_DEPTH: usize = 16;

/// Reads files and keeps what the model is to have.
pub(super) struct Finder {
    excluded: globset::GlobSet,
    boundary: PathBuf,
    seen: BTreeSet<PathBuf>,
    total: usize,
    /// What was read.
    pub(super) pieces: Vec<MemoryPiece>,
    /// What is wrong with some of it.
    pub(super) problems: Vec<Problem>,
}

impl Finder {
    pub(super) fn new(excluded: globset::GlobSet, boundary: &Path) -> Self {
        Self {
            excluded,
            boundary: boundary.to_path_buf(),
            seen: BTreeSet::new(),
            total: 0,
            pieces: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads a memory file, if it is there.
    pub(super) fn file(&mut self, path: &Path, root: &Path, owner: Owner) {
        if let Some(text) = self.read(path, root) {
            let mut included = Vec::new();
            let text = self.with_imports(&text, path, root, 0, &mut included);
            self.add(MemoryPiece { included, ..piece(path, text, owner) });
        }
    }

    fn add(&mut self, piece: MemoryPiece) {
        if piece.text.trim().is_empty() || self.total + piece.text.len() > TOTAL_CAP {
            return;
        }
        self.total += piece.text.len();
        self.pieces.push(piece);
    }

    /// Reads a regular file inside `root` once; links that lead out of it are not followed.
    fn read(&mut self, path: &Path, root: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        let real_root = root.canonicalize().ok()?;
        if !real.starts_with(&real_root) || self.excluded.is_match(path) || !self.seen.insert(real.clone()) {
            return None;
        }
        let (bytes, is_cut) = read_regular(&real, Some(&real_root), FILE_CAP as u64).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_cut {
            let end = (0..=FILE_CAP).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
            text.push_str("\n[… the rest of this file was left out …]");
        }
        Some(text)
    }

    /// Reads the rules of a folder that count from the start.
    pub(super) fn rules(&mut self, folder: &Path, root: &Path, owner: Owner) {
        for path in rule_files(folder) {
            let Some(rule) = self.rule(&path, root, owner) else { continue };
            match rule.trigger {
                Trigger::Manual | Trigger::Paths(_) => {}
                Trigger::ModelDecision(when) => {
                    let when = when.as_deref().unwrap_or("see the file");
                    let text =
                        format!("A rule that may apply: {when}. Read {} when it does.", path.display());
                    self.add(MemoryPiece { is_whole: false, ..piece(&path, text, owner) });
                }
                Trigger::AlwaysOn => self.add_rule(&path, root, owner, &rule.body),
            }
        }
    }

    /// Reads one rule; what is wrong with its head is among the problems.
    pub(super) fn rule(&mut self, path: &Path, root: &Path, owner: Owner) -> Option<Rule> {
        let text = self.read(path, root)?;
        let (rule, problem) = Rule::parse(&text, path, owner);
        self.problems.extend(problem);
        Some(rule)
    }

    /// Keeps the text of a rule.
    pub(super) fn add_rule(&mut self, path: &Path, root: &Path, owner: Owner, body: &str) {
        let mut included = Vec::new();
        let text = self.with_imports(body, path, root, 0, &mut included);
        self.add(MemoryPiece { included, ..piece(path, text, owner) });
    }

    /// Puts the content of `@path` imports in place. Code spans and blocks are left alone.
    fn with_imports(
        &mut self,
        text: &str,
        path: &Path,
        root: &Path,
        depth: usize,
        included: &mut Vec<PathBuf>,
    ) -> String {
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
                included.push(target.clone());
                Some(self.with_imports(&text, &target, &root, depth + 1, included))
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

/// A piece that the model has from the start.
fn piece(path: &Path, text: String, owner: Owner) -> MemoryPiece {
    MemoryPiece {
        path: path.to_path_buf(),
        text,
        owner,
        reason: Reason::SessionStart,
        globs: Vec::new(),
        included: Vec::new(),
        is_whole: true,
    }
}

/// The rules of a folder, in a fixed order. A folder that is not there has none.
pub(super) fn rule_files(folder: &Path) -> Vec<PathBuf> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let walk = WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(RULES_DEPTH))
        .build();
    let mut files: Vec<PathBuf> = walk
        .filter_map(Result::ok)
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .take(MOST_RULES)
        .collect();
    files.sort();
    files
}
