//! What a call would touch, found out: paths resolved in both forms, commands read and their operands turned into reads
//! and edits. What cannot be found out is marked as unknown; the decision treats that as a reason to stop.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use qoder_types::Access;
use qoder_types::workspace::{Workspace, is_protected_name};

use super::expand::{Lister, MOST_MATCHES};
use super::glob::Glob;
use super::links;
use super::mentions::Mentions;
use super::removal;
use crate::hosts::{Target, target};
use crate::places::{FileSystem, PlaceError, leads_anywhere, normalise};
use crate::shell::knowledge::{Effects, Operand, effects, read_only_without_dash_names};
use crate::shell::{Directory, Piece, Reading, RedirectionKind, SimpleCommand, Word, read};

/// A place in both forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// As written, absolute and normalised.
    pub(crate) lexical: PathBuf,
    /// Links resolved.
    pub(crate) real: PathBuf,
    /// Everything below it is touched too.
    pub(crate) recursive: bool,
    /// The file has further names, one of which may be protected; only looked up for what is changed.
    pub(crate) has_other_names: bool,
    /// A protected name is a link to it or to a folder around it; only looked up for what is changed.
    pub(crate) is_linked_to: bool,
}

impl Place {
    /// True when links lead elsewhere than the spelling says.
    pub(crate) fn is_moved(&self) -> bool {
        self.lexical.as_os_str() != self.real.as_os_str()
    }
}

/// One simple command of a line, with what is known about it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) effects: Effects,
    pub(crate) reads: Vec<Place>,
    pub(crate) edits: Vec<Place>,
    /// Places it removes, also as far as variables of known meaning lead.
    pub(crate) removals: Vec<PathBuf>,
    /// Edits by redirection.
    pub(crate) outputs: Vec<Place>,
    /// It only reads: by its words, or because no name in its folder looks like an option to its pattern.
    pub(crate) only_reads: bool,
    /// Reads by redirection; they are among the reads, too.
    pub(crate) inputs: Vec<Place>,
    /// An operand that is read is not known.
    pub(crate) unknown_read: bool,
    /// An operand that is changed is not known.
    pub(crate) unknown_edit: bool,
    /// A redirection to a place that is not known or to a network device.
    pub(crate) unknown_output: bool,
    /// Anything among its words that may name a file, for programs about which nothing is known.
    pub(crate) mentions: Vec<Place>,
    /// A pattern among those words matches more names than the gate looks at.
    pub(crate) unknown_mention: bool,
    /// It goes through a name that the line itself may turn into a link.
    pub(crate) follows_new_link: bool,
}

/// A command line, read.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) reading: Reading,
    pub(crate) known: Vec<Known>,
}

impl Line {
    /// True for the command `at` itself and for everything that it runs.
    pub(crate) fn is_part_of(&self, index: usize, at: usize) -> bool {
        let mut place = index;
        while place > at {
            match self.reading.commands[place].wrapped {
                // A wrapper comes before what it runs.
                Some(wrapped) if wrapped.outer < place => place = wrapped.outer,
                Some(_) | None => return false,
            }
        }
        place == at
    }
}

/// What a call would touch.
#[derive(Debug)]
pub(crate) enum ResolvedAccess {
    Read(Place),
    Edit(Place),
    Line(Box<Line>),
    Fetch(Target),
    Agent(String),
    Skill { name: String, only_text: bool },
    Resource { server: Option<String>, lists: bool },
    As(String),
    Person,
    Internal,
    Other,
}

impl ResolvedAccess {
    /// True for a file behind a link of a process.
    pub(crate) fn leads_anywhere(&self) -> bool {
        match self {
            Self::Read(place) | Self::Edit(place) => {
                leads_anywhere(&place.lexical) || leads_anywhere(&place.real)
            }
            Self::Line(_)
            | Self::Fetch(_)
            | Self::Agent(_)
            | Self::Skill { .. }
            | Self::Resource { .. }
            | Self::As(_)
            | Self::Person
            | Self::Internal
            | Self::Other => false,
        }
    }
}

/// Finds out what an access comes to. The error is for the model: the input names a place that cannot exist.
pub(crate) fn find(
    access: &Access,
    cwd: &Path,
    workspace: &Workspace,
    files: &dyn FileSystem,
    guards_files: bool,
) -> Result<ResolvedAccess, PlaceError> {
    let finder = Finder { cwd, workspace, files, lister: Lister::new(files), guards_files };
    Ok(match access {
        Access::Read(path) => ResolvedAccess::Read(finder.place(path, false)?),
        Access::Edit(path) => ResolvedAccess::Edit(finder.changed(finder.place(path, false)?)),
        Access::Command(text) => ResolvedAccess::Line(Box::new(finder.line(text))),
        Access::Fetch(url) => ResolvedAccess::Fetch(target(url)),
        Access::Agent(name) => ResolvedAccess::Agent(name.clone()),
        Access::Skill { name, only_text } => {
            ResolvedAccess::Skill { name: name.clone(), only_text: *only_text }
        }
        Access::Resource { server, lists } => {
            ResolvedAccess::Resource { server: server.clone(), lists: *lists }
        }
        Access::As(name) => ResolvedAccess::As(name.clone()),
        Access::Person => ResolvedAccess::Person,
        Access::Internal => ResolvedAccess::Internal,
        Access::Other => ResolvedAccess::Other,
    })
}

pub(crate) struct Finder<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) workspace: &'a Workspace,
    pub(crate) files: &'a dyn FileSystem,
    pub(crate) lister: Lister<'a>,
    guards_files: bool,
}

impl Finder<'_> {
    fn place(&self, path: &Path, recursive: bool) -> Result<Place, PlaceError> {
        let expanded = match path.strip_prefix("~") {
            Ok(rest) => self.workspace.home.join(rest),
            Err(_) => self.cwd.join(path),
        };
        self.absolute_place(&expanded, recursive)
    }

    pub(crate) fn absolute_place(&self, path: &Path, recursive: bool) -> Result<Place, PlaceError> {
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(PlaceError::Nul);
        }
        let real = self.files.real(path)?;
        let recursive = recursive && !self.files.is_file(&real);
        Ok(Place { lexical: normalise(path), real, recursive, has_other_names: false, is_linked_to: false })
    }

    /// A place that is changed, and with it whatever else the file is called.
    fn changed(&self, mut place: Place) -> Place {
        self.look_for_other_names(&mut place);
        place
    }

    /// Looks for hard links and for protected names that lead to a place.
    fn look_for_other_names(&self, place: &mut Place) {
        place.has_other_names = self.files.has_other_names(&place.real);
        let mut linked =
            self.workspace.roots.iter().flat_map(|root| self.files.links_named(root, is_protected_name));
        place.is_linked_to = linked.any(|target| place.real.starts_with(target));
    }

    fn line(&self, text: &str) -> Line {
        let reading = read(text);
        let mut known: Vec<Known> = reading.commands.iter().map(|command| self.command(command)).collect();
        removal::hand_over(&reading, &mut known, self.workspace);
        links::mark(&reading, &mut known);
        Line { reading, known }
    }

    fn command(&self, command: &SimpleCommand) -> Known {
        let effects = effects(&command.words);
        let folders = self.folders(command);
        let mut known = Known {
            reads: Vec::new(),
            edits: Vec::new(),
            removals: Vec::new(),
            outputs: Vec::new(),
            only_reads: effects.read_only,
            inputs: Vec::new(),
            unknown_read: false,
            unknown_edit: false,
            unknown_output: false,
            mentions: Vec::new(),
            unknown_mention: false,
            follows_new_link: false,
            effects,
        };
        let has_pattern = |word: &Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
        if !known.only_reads
            && command.words.iter().any(has_pattern)
            && read_only_without_dash_names(&command.words)
        {
            known.only_reads = folders.iter().all(|folder| self.has_no_dash_names(folder.as_deref()));
        }
        known.unknown_read = !self.operands(&known.effects.reads, &folders, &mut known.reads);
        known.unknown_edit = !self.operands(&known.effects.edits, &folders, &mut known.edits);
        for place in &mut known.edits {
            self.look_for_other_names(place);
            // What is put into a folder has a name that need not be in the command.
            place.recursive |= self.guards_files && self.files.is_folder(&place.real);
        }
        for operand in &known.effects.removals {
            known.removals.extend(self.rough(&operand.word, &folders));
        }
        for redirection in &command.redirections {
            self.redirection(redirection.kind, redirection.target.as_ref(), &folders, &mut known);
        }
        for place in &mut known.outputs {
            self.look_for_other_names(place);
        }
        if self.guards_files {
            let is_understood = known.effects.known && known.effects.complete;
            let mentions = Mentions::of(self, command, is_understood);
            known.unknown_mention = mentions.is_unknown;
            known.mentions = mentions.places;
        }
        known
    }

    fn has_no_dash_names(&self, folder: Option<&Path>) -> bool {
        let names = folder.and_then(|folder| self.lister.names(folder));
        names.is_some_and(|names| !names.iter().any(|name| name.as_encoded_bytes().starts_with(b"-")))
    }

    /// The folders a command may run in; `None` among them is one that is not known.
    fn folders(&self, command: &SimpleCommand) -> Vec<Option<PathBuf>> {
        let folder = |directory: &Directory| match directory {
            Directory::Unknown => None,
            Directory::Known(steps) => {
                steps.iter().try_fold(self.cwd.to_path_buf(), |from, step| self.entered(&from, step))
            }
        };
        command.directories.iter().map(folder).collect()
    }

    /// Where `cd` leads from a folder. Bash takes `..` away by the spelling of where it is, and the kernel and other
    /// shells go up from where links have led: unless both arrive at one place, it is not known.
    fn entered(&self, from: &Path, step: &Word) -> Option<PathBuf> {
        let joined = from.join(&*self.spelled(step)?);
        let logical = normalise(&joined);
        let physical = self.files.real(&joined).ok()?;
        (self.files.real(&logical).ok()? == physical).then_some(logical)
    }

    /// Adds the places of operands; false when one of them is not known.
    fn operands(&self, operands: &[Operand], folders: &[Option<PathBuf>], places: &mut Vec<Place>) -> bool {
        let mut all = true;
        for operand in operands {
            let first = places.len();
            all &= self.operand(&operand.word, operand.recursive, folders, places);
            if operand.follows_links {
                all &= self.follow(first, operand.recursive, places);
            }
        }
        all
    }

    /// Adds where the links lead that are in the folders from `first` on; false when that is not known.
    fn follow(&self, first: usize, deep: bool, places: &mut Vec<Place>) -> bool {
        let mut at = first;
        while let Some(folder) = places.get(at).map(|place| place.real.clone()) {
            if self.files.is_folder(&folder) {
                places[at].recursive = true;
                let Some(links) = self.lister.linked(&folder, deep) else { return false };
                for (lexical, real) in links {
                    let place =
                        Place { lexical, real, recursive: deep, has_other_names: false, is_linked_to: false };
                    // A folder behind a link is gone through in its turn.
                    if !places.iter().any(|known| known.lexical == place.lexical) {
                        places.push(place);
                    }
                }
            }
            if places.len() > MOST_MATCHES {
                return false;
            }
            at += 1;
        }
        true
    }

    fn operand(
        &self,
        word: &Word,
        recursive: bool,
        folders: &[Option<PathBuf>],
        places: &mut Vec<Place>,
    ) -> bool {
        let Some(text) = self.spelled(word) else {
            return self.expanded(word, recursive, folders, places);
        };
        self.named(&text, recursive, folders, places)
    }

    /// Adds the places that a name has in the folders; false when one of them is not known.
    fn named(
        &self,
        text: &str,
        recursive: bool,
        folders: &[Option<PathBuf>],
        places: &mut Vec<Place>,
    ) -> bool {
        let mut all = true;
        for folder in folders {
            let path = match (Path::new(text).is_absolute(), folder) {
                (true, _) => PathBuf::from(text),
                (false, Some(folder)) => folder.join(text),
                (false, None) => {
                    all = false;
                    continue;
                }
            };
            match self.absolute_place(&path, recursive) {
                Ok(place) => places.push(place),
                Err(_) => all = false,
            }
        }
        all
    }

    /// The text of a word that is known, with the home directory in place.
    pub(crate) fn spelled<'w>(&self, word: &'w Word) -> Option<Cow<'w, str>> {
        if let Some(text) = word.as_literal() {
            return Some(Cow::Borrowed(text));
        }
        if word.is_dynamic() {
            return None;
        }
        let mut text = String::new();
        for piece in &word.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Home => text.push_str(&self.workspace.home.to_string_lossy()),
                Piece::Variable(_) | Piece::Glob(_) | Piece::Unknown(_) => return None,
            }
        }
        Some(Cow::Owned(text))
    }

    /// Adds what a pattern stands for, by looking at names in folders; false when that is not possible.
    fn expanded(
        &self,
        word: &Word,
        recursive: bool,
        folders: &[Option<PathBuf>],
        places: &mut Vec<Place>,
    ) -> bool {
        let Some(glob) = Glob::of(word, &self.workspace.home) else { return false };
        for folder in folders {
            let folder = match folder {
                Some(folder) => folder,
                None if glob.is_absolute => self.cwd,
                None => return false,
            };
            let mut listed = Vec::new();
            let Some(matches) = self.lister.matches(folder, &glob, &mut listed) else { return false };
            if matches.len() + places.len() > MOST_MATCHES {
                return false;
            }
            // A pattern that finds nothing stays as it is written.
            let unmatched = (matches.is_empty() || !glob.is_exact).then(|| folder.join(word.to_display()));
            let found = matches.into_iter().chain(unmatched).map(|path| (path, recursive));
            // The shell reads the names in every folder that it looks in.
            for (path, recursive) in found.chain(listed.into_iter().map(|path| (path, false))) {
                match self.absolute_place(&path, recursive) {
                    Ok(place) => places.push(place),
                    Err(_) => return false,
                }
            }
        }
        true
    }

    fn redirection(
        &self,
        kind: RedirectionKind,
        target: Option<&Word>,
        folders: &[Option<PathBuf>],
        known: &mut Known,
    ) {
        let Some(target) = target else { return };
        let writes = match kind {
            RedirectionKind::Input => false,
            RedirectionKind::Output | RedirectionKind::Append | RedirectionKind::ReadWrite => true,
            RedirectionKind::Duplicate | RedirectionKind::HereDocument | RedirectionKind::HereString => {
                return;
            }
        };
        if let Some(text) = target.as_literal() {
            if matches!(text, "/dev/null" | "/dev/stdout" | "/dev/stderr") {
                return;
            }
            let path = normalise(Path::new(text));
            if path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
                known.unknown_output = true;
                return;
            }
        }
        let places = if writes { &mut known.outputs } else { &mut known.inputs };
        if !self.operand(target, false, folders, places) || self.spelled(target).is_none() {
            // A target that is not known may be anything, a device included.
            known.unknown_output = true;
        }
        if !writes {
            known.reads.extend(known.inputs.iter().cloned());
        }
    }
}
