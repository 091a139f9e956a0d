//! Memory that comes while a session runs: files beside those that tools work on, rules that are about them, and files
//! that changed after the model had them. Nothing is looked for before a tool has worked on a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::find::{Finder, rule_files};
use super::rule::{PathRule, Trigger};
use super::{
    Discovered, LoadedFiles, MemoryPiece, MemoryPlaces, Owner, Reason, discover, excludes, file_names,
};
use crate::settings::Settings;
use crate::sources::Problem;
use crate::trust::is_repository;

/// The memory of a session, which its agents share.
#[derive(Debug)]
pub struct Memory {
    places: MemoryPlaces,
    names: Vec<String>,
    excluded: globset::GlobSet,
    /// Folders with rules, and the folders that patterns in them begin at.
    rule_folders: Vec<(PathBuf, Owner, Vec<PathBuf>)>,
    start: LoadedFiles,
    rules: Mutex<Option<Arc<Vec<PathRule>>>>,
    problems: Mutex<Vec<Problem>>,
}

impl Memory {
    /// Reads what counts from the start, unless nothing shall, and knows where to look for more.
    #[must_use]
    pub fn new(places: MemoryPlaces, settings: &Settings, is_bare: bool) -> (Self, Vec<MemoryPiece>) {
        let found = if is_bare { Discovered::default() } else { discover(&places, settings) };
        let Discovered { pieces, problems } = found;
        let mut rule_folders = Vec::new();
        if places.user {
            // The person's own rules are about any project, so their patterns may begin there as well.
            let above = places.config_root.parent().unwrap_or(&places.config_root).to_path_buf();
            let bases = vec![places.project_root.clone(), above];
            rule_folders.push((places.config_root.join("rules"), Owner::User, bases));
        }
        for folder in places.folders(settings).into_iter().filter(|_| places.project) {
            rule_folders.push((folder.join(".qoder/rules"), Owner::Project, vec![folder.to_path_buf()]));
        }
        let mut start = LoadedFiles::default();
        pieces.iter().filter(|piece| piece.is_whole).for_each(|piece| start.add(piece));
        let memory = Self {
            names: file_names(settings),
            excluded: excludes(settings),
            places,
            rule_folders,
            start,
            rules: Mutex::new(None),
            problems: Mutex::new(problems),
        };
        (memory, pieces)
    }

    /// The files that the model has from the start.
    #[must_use]
    pub fn at_start(&self) -> &LoadedFiles {
        &self.start
    }

    /// A file that an earlier process gave to the model. What it was then is not known; what it is now counts as that.
    #[must_use]
    pub fn adopted(&self, path: &Path) -> MemoryPiece {
        let owner = if path.starts_with(&self.places.config_root) { Owner::User } else { Owner::Project };
        let reason = if self.is_rule(path) { Reason::PathGlobMatch } else { Reason::NestedTraversal };
        let (text, globs, included) = (String::new(), Vec::new(), Vec::new());
        MemoryPiece { path: path.to_path_buf(), text, owner, reason, globs, included, is_whole: true }
    }

    fn is_rule(&self, path: &Path) -> bool {
        self.rule_folders.iter().any(|(folder, _, _)| path.starts_with(folder))
    }

    /// What is wrong with rules, once.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rules are looked for anew when the next file is worked on.
    pub fn look_again(&self) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// What counts for a file and is not in `known`: memory files of the folders between the working directory and it,
    /// outermost first, and rules about it.
    #[must_use]
    pub fn about(&self, file: &Path, known: &BTreeSet<String>) -> Vec<MemoryPiece> {
        let mut pieces = self.beside(file, known);
        let is_new = |rule: &&PathRule| !known.contains(rule.path.to_string_lossy().as_ref());
        let mut problems = Vec::new();
        let rules = self.path_rules();
        let real = file.canonicalize().ok();
        for rule in rules.iter().filter(is_new) {
            let is_about = rule.is_about(file, &mut problems)
                || real.as_deref().is_some_and(|real| real != file && rule.is_about(real, &mut problems));
            if is_about {
                pieces.extend(self.rule_text(&rule.path, rule.owner, &rule.globs));
            }
        }
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).extend(problems);
        pieces
    }

    fn rule_text(&self, path: &Path, owner: Owner, globs: &[String]) -> Option<MemoryPiece> {
        let root = self.places.root(owner);
        let mut finder = Finder::new(self.excluded.clone(), &self.places.project_root);
        let rule = finder.rule(path, root, owner)?;
        finder.add_rule(path, root, owner, &rule.body);
        let piece = finder.pieces.pop()?;
        Some(MemoryPiece { reason: Reason::PathGlobMatch, globs: globs.to_vec(), ..piece })
    }

    /// The rules that are about certain files.
    fn path_rules(&self) -> Arc<Vec<PathRule>> {
        let mut known = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = &*known {
            return Arc::clone(rules);
        }
        let mut rules = Vec::new();
        let mut finder = Finder::new(self.excluded.clone(), &self.places.project_root);
        for (folder, owner, bases) in &self.rule_folders {
            for path in rule_files(folder) {
                let rule = finder.rule(&path, self.places.root(*owner), *owner);
                if let Some(Trigger::Paths(globs)) = rule.map(|rule| rule.trigger) {
                    rules.push(PathRule::new(path, *owner, globs, bases.clone()));
                }
            }
        }
        // What is wrong with heads was reported at the start.
        Arc::clone(known.insert(Arc::new(rules)))
    }

    fn beside(&self, file: &Path, known: &BTreeSet<String>) -> Vec<MemoryPiece> {
        if !self.places.project {
            return Vec::new();
        }
        let cwd = &self.places.cwd;
        let mut folders: Vec<&Path> = file
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(cwd) && *folder != cwd.as_path())
            .collect();
        folders.reverse();
        let mut finder = Finder::new(self.excluded.clone(), cwd);
        for folder in folders {
            for path in self.names.iter().map(|name| folder.join(name)) {
                if !known.contains(path.to_string_lossy().as_ref()) && !self.is_of_nested_repository(&path) {
                    finder.file(&path, cwd, Owner::Project);
                }
            }
        }
        let nested = |piece| MemoryPiece { reason: Reason::NestedTraversal, ..piece };
        finder.pieces.into_iter().map(nested).collect()
    }

    /// True when a repository of its own lies between the working directory and the real place of `path`: that one needs
    /// trust of its own.
    fn is_of_nested_repository(&self, path: &Path) -> bool {
        let cwd = &self.places.cwd;
        path.canonicalize().is_ok_and(|real| {
            real.ancestors()
                .skip(1)
                .take_while(|folder| folder.starts_with(cwd) && *folder != cwd.as_path())
                .any(is_repository)
        })
    }

    /// A file that the model has, as it is now; `None` when it no longer exists.
    #[must_use]
    pub fn again(&self, path: &Path, owner: Owner) -> Option<MemoryPiece> {
        if self.is_rule(path) {
            return self.rule_text(path, owner, &[]);
        }
        let mut finder = Finder::new(self.excluded.clone(), &self.places.project_root);
        finder.file(path, self.places.root(owner), owner);
        finder.pieces.pop()
    }
}
