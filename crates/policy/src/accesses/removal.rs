//! Where removals lead. What is removed cannot be restored, so this looks wide: variables of well-known meaning are what
//! they usually are, other variables may be empty, patterns and braces stand for all they may become, and what a search
//! hands on is removed where the search looks. Only ever used to stop something.

use std::path::{Path, PathBuf};

use qoder_types::workspace::Workspace;

use super::glob::{Glob, Part};
use crate::accesses::find::{Finder, Known};
use crate::places::{is_system, normalise};
use crate::shell::{Piece, Reading, Word};

/// The most alternatives of braces that are looked at.
const MOST_ALTERNATIVES: usize = 64;

impl Finder<'_> {
    /// The places that the removal of a word may reach.
    pub(crate) fn rough(&self, word: &Word, folders: &[Option<PathBuf>]) -> Vec<PathBuf> {
        let here = folders.iter().flatten().next().map_or(self.cwd, PathBuf::as_path);
        let mut full = String::new();
        let mut bare = String::new();
        for piece in &word.pieces {
            let (text, known) = self.usual(piece, here);
            full.push_str(&text);
            if known {
                bare.push_str(&text);
            }
        }
        let mut paths = Vec::new();
        let mut texts = alternatives(&full);
        if bare != full {
            texts.push(bare);
        }
        // A word of nothing but unknown parts says nothing.
        for text in texts.iter().filter(|text| !text.is_empty()) {
            for folder in folders {
                let folder = folder.as_deref().unwrap_or(self.cwd);
                let lexical = normalise(&folder.join(whole_folder(text)));
                paths.extend(self.files.real(&lexical));
                paths.push(lexical);
            }
        }
        self.found_by_pattern(word, folders, &mut paths);
        paths
    }

    /// What a piece usually is, and whether that is sure.
    fn usual(&self, piece: &Piece, here: &Path) -> (String, bool) {
        let home = || self.workspace.home.to_string_lossy().into_owned();
        let variable = |name: &str| match name {
            "HOME" => home(),
            "PWD" | "OLDPWD" => here.to_string_lossy().into_owned(),
            _ => String::new(),
        };
        match piece {
            Piece::Literal(text) | Piece::Glob(text) => (text.clone(), true),
            Piece::Home => (home(), true),
            Piece::Variable(name) => (variable(name), false),
            Piece::Unknown(text) => match text.strip_prefix("${") {
                Some(rest) => {
                    let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
                    (variable(name.unwrap_or_default()), false)
                }
                None if text.starts_with(['$', '`', '<', '>', '~']) => (String::new(), false),
                // Braces.
                None => (text.clone(), true),
            },
        }
    }

    /// Adds what a pattern finds now, or the folder in which it looks when that is too much.
    fn found_by_pattern(&self, word: &Word, folders: &[Option<PathBuf>], paths: &mut Vec<PathBuf>) {
        if !word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_))) {
            return;
        }
        let Some(glob) = Glob::of(word, &self.workspace.home) else { return };
        for folder in folders {
            let folder = folder.as_deref().unwrap_or(self.cwd);
            match self.lister.matches(folder, &glob, &mut Vec::new()) {
                Some(found) => paths.extend(found.iter().map(|path| normalise(path))),
                None => {
                    let start = if glob.is_absolute { Path::new("/") } else { folder };
                    let fixed = glob.parts.iter().map_while(|part| match part {
                        Part::Name(name) => Some(name),
                        Part::Pattern(_) => None,
                    });
                    paths.push(normalise(&fixed.fold(start.to_path_buf(), |path, name| path.join(name))));
                }
            }
        }
    }
}

/// The texts that braces with commas stand for; the text itself when there are none or too many.
fn alternatives(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let inner = text.rfind('{').and_then(|start| {
            let end = start + text.get(start..)?.find('}')?;
            text.get(start + 1..end).filter(|inner| inner.contains(',')).map(|inner| (start, end, inner))
        });
        match inner {
            Some((start, end, inner))
                if open.len() + done.len() + inner.matches(',').count() < MOST_ALTERNATIVES =>
            {
                open.extend(
                    inner.split(',').map(|one| format!("{}{one}{}", &text[..start], &text[end + 1..])),
                );
            }
            Some((start, ..)) => done.push(text[..start].to_owned()),
            None => done.push(text),
        }
    }
    done
}

/// What a search or a list hands to a program that removes is removed where the search looks.
pub(crate) fn hand_over(reading: &Reading, known: &mut [Known], workspace: &Workspace) {
    for (at, command) in reading.commands.iter().enumerate() {
        let Some(outer) = command.wrapped.as_ref().map(|wrapped| wrapped.outer) else { continue };
        if outer >= at || known[at].effects.removals.is_empty() {
            continue;
        }
        let mut handed: Vec<PathBuf> = known[outer].reads.iter().map(|place| place.real.clone()).collect();
        if command.piped_input {
            // Whatever comes before it in the line may have written the names.
            let listed = known[..outer].iter().flat_map(|known| &known.reads).map(|place| place.real.clone());
            let named = reading.commands[..outer].iter().flat_map(|command| &command.words);
            let named = named.filter_map(|word| named_place(word, workspace));
            handed.extend(listed.chain(named).filter(|path| is_system(path, workspace)));
        }
        known[at].removals.extend(handed);
    }
}

/// An absolute path that a word is.
fn named_place(word: &Word, workspace: &Workspace) -> Option<PathBuf> {
    match word.pieces.as_slice() {
        [Piece::Literal(text)] if text.starts_with('/') => Some(normalise(Path::new(text))),
        [Piece::Home] => Some(workspace.home.clone()),
        [Piece::Variable(name)] if name == "HOME" => Some(workspace.home.clone()),
        _ => None,
    }
}

/// All that is in a folder is as much as the folder.
fn whole_folder(text: &str) -> &str {
    let stripped = ["/*", "/.*", "/**"].iter().find_map(|end| text.strip_suffix(end));
    match stripped {
        Some("") => "/",
        Some(folder) => folder,
        None if matches!(text, "*" | ".*" | "**") => ".",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_all_they_may_become() {
        let mut found = alternatives("/{bin,e{t,x}c}/y");
        found.sort();
        found.dedup();
        assert_eq!(found, ["/bin/y", "/etc/y", "/exc/y"]);
        assert_eq!(alternatives("a{b}c"), ["a{b}c"]);
        assert_eq!(alternatives("}{"), ["}{"]);
        assert!(alternatives(&"{a,b}".repeat(40)).len() <= MOST_ALTERNATIVES);
    }
}
