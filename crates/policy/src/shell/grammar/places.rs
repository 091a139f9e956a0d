//! Where commands run: `cd` tracked through a line. A row of places is what is possible at one point; success and failure
//! of a command lead to different rows, since after `cd x && a` only `x` is possible and after `cd x; a` both are.

use crate::shell::reading::{Directory, SimpleCommand};
use crate::shell::{Piece, Word};

/// More places than this at one point count as one unknown place.
const MOST_PLACES: usize = 8;
/// A longer chain of `cd` counts as unknown.
const LONGEST_CHAIN: usize = 32;

/// The places possible at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places(pub Vec<Directory>);

impl Places {
    /// The start of a line.
    pub fn start() -> Self {
        Self(vec![Directory::start()])
    }

    /// Nothing is known.
    pub fn unknown() -> Self {
        Self(vec![Directory::Unknown])
    }

    /// Everything possible in either.
    pub fn or(mut self, other: Self) -> Self {
        for place in other.0 {
            if !self.0.contains(&place) {
                self.0.push(place);
            }
        }
        if self.0.len() > MOST_PLACES { Self::unknown() } else { self }
    }

    /// The places after entering a directory from each of these.
    fn entered(&self, target: &Word) -> Self {
        let absolute =
            matches!(target.pieces.first(), Some(Piece::Home)) || target.known_start().starts_with('/');
        if absolute {
            return Self(vec![Directory::Known(vec![target.clone()])]);
        }
        let places = self.0.iter().map(|place| match place {
            Directory::Known(chain) if chain.len() < LONGEST_CHAIN => {
                let mut chain = chain.clone();
                chain.push(target.clone());
                Directory::Known(chain)
            }
            Directory::Known(_) | Directory::Unknown => Directory::Unknown,
        });
        Self(places.collect())
    }
}

/// Where a command leaves the shell.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    /// When it succeeds.
    pub success: Places,
    /// When it fails.
    pub failure: Places,
}

impl Flow {
    /// A command that stays where it is.
    pub fn staying(here: &Places) -> Self {
        Self { success: here.clone(), failure: here.clone() }
    }

    /// Where the shell is when the result does not matter.
    pub fn either(self) -> Places {
        if self.success == self.failure { self.success } else { self.success.or(self.failure) }
    }
}

/// Where a simple command leaves the shell. `search_path` says that `CDPATH` may be set.
pub(crate) fn after(command: &SimpleCommand, here: &Places, search_path: bool) -> Flow {
    let mut words = command.words.as_slice();
    // `time` may be a program, and `command -v` runs nothing: then the shell stays.
    let mut may_stay = false;
    while let [first, rest @ ..] = words
        && matches!(first.as_literal(), Some("builtin" | "command" | "time"))
        && !rest.is_empty()
    {
        let is_option = |word: &&Word| word.known_start().starts_with('-');
        let options = rest.iter().take_while(is_option).count();
        may_stay |= options > 0 || first.as_literal() == Some("time");
        words = &rest[options..];
    }
    let Some(first) = words.first() else { return Flow::staying(here) };
    let arguments = words.get(1..).unwrap_or_default();
    let flow = match first.as_literal() {
        Some("cd") => changed(arguments, here, search_path, true),
        Some("pushd") => changed(arguments, here, search_path, false),
        Some("popd" | "eval" | "source" | ".") | None => {
            Flow { success: Places::unknown(), failure: Places::unknown().or(here.clone()) }
        }
        Some(_) => Flow::staying(here),
    };
    if may_stay && flow.success != *here {
        return Flow { success: flow.success.or(here.clone()), failure: flow.failure };
    }
    flow
}

/// What `cd` or `pushd` with these arguments does.
fn changed(arguments: &[Word], here: &Places, search_path: bool, home_by_default: bool) -> Flow {
    let mut rest = arguments;
    while let [first, more @ ..] = rest
        && matches!(first.as_literal(), Some("-L" | "-P" | "-e" | "--" | "-n"))
    {
        rest = more;
    }
    let success = match rest {
        [] if home_by_default && arguments.is_empty() => {
            Places(vec![Directory::Known(vec![Word { pieces: vec![Piece::Home] }])])
        }
        [target] if is_plain_target(target) && !search_path => here.entered(target),
        _ => Places::unknown(),
    };
    Flow { success, failure: here.clone() }
}

/// True for a target whose meaning is known: literal or below the home directory, no option and no stack entry.
fn is_plain_target(target: &Word) -> bool {
    let start = target.known_start();
    let named = !start.is_empty() || matches!(target.pieces.first(), Some(Piece::Home));
    named && !target.is_dynamic() && !start.starts_with(['-', '+'])
}
