//! Git: the options in front of the subcommand, the subcommand, and what it does. A query is proven to only read with
//! known options, without any option in front but the one that turns paging off, and on the condition that it runs
//! with the safe configuration, since a repository's configuration can make even a query run a program.

mod changes;
mod queries;
pub(crate) mod safety;

use super::options::{Arguments, Groups, Style, read};
use super::program::apply_options;
use super::words::shown;
use super::{Effects, here};
use crate::shell::Word;

/// Options in front of the subcommand.
pub(crate) const GLOBAL: Groups = &["
    P no-pager, p paginate!!, c=!!, config-env=!!, C=!!, git-dir=<!!, work-tree=<!!, namespace=!!,
    exec-path=?!!, html-path, man-path, info-path, bare!!, no-replace-objects!, no-lazy-fetch,
    no-optional-locks, no-advice, literal-pathspecs, glob-pathspecs, noglob-pathspecs, icase-pathspecs,
    attr-source=!!, super-prefix=!!, version, v, help!!, h!!
"];

/// A subcommand.
pub(crate) struct Subcommand {
    /// One or two words.
    pub(crate) name: &'static str,
    pub(crate) groups: Groups,
    pub(crate) kind: Kind,
    pub(crate) rule: fn(&Arguments<'_>, &mut Effects),
}

/// What a subcommand is at heart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Change,
    Network,
}

/// The entry of a subcommand and how many words it has.
pub(crate) fn subcommand(words: &[Word]) -> Option<(&'static Subcommand, usize)> {
    let first = words.first()?.as_literal()?;
    let both = words.get(1).and_then(Word::as_literal).map(|second| format!("{first} {second}"));
    let tables = [queries::TABLE, changes::TABLE];
    let find = |name: &str| tables.iter().copied().flatten().find(|entry| entry.name == name);
    both.and_then(|both| find(&both)).map(|entry| (entry, 2)).or_else(|| find(first).map(|entry| (entry, 1)))
}

/// The words from the subcommand on, and what is in front of it.
pub(crate) fn split(words: &[Word]) -> (Arguments<'_>, &[Word]) {
    let mut front = read(words, GLOBAL, Style::Leading, false);
    let rest = words.len() - front.operands.len();
    front.operands.clear();
    (front, &words[rest..])
}

/// What git does with the words behind its name.
pub(crate) fn effects(words: &[Word]) -> Effects {
    let mut effects = Effects::of_known_program();
    let (front, rest) = split(words);
    apply_options(&front, &mut effects);
    let Some(first) = rest.first() else {
        // Help and the like.
        return effects;
    };
    let Some((entry, length)) = subcommand(rest) else {
        effects.incomplete(format!("`git {}` is not a subcommand that is known", shown(first)));
        return effects;
    };
    let arguments = read(&rest[length..], entry.groups, Style::Permuting, false);
    match entry.kind {
        Kind::Query => {}
        Kind::Change => effects.not_read_only(format!("`git {}` changes the repository", entry.name)),
        Kind::Network => {
            effects.network = true;
            effects.not_read_only(format!("`git {}` reaches the network", entry.name));
        }
    }
    apply_options(&arguments, &mut effects);
    if looks_into_submodules(&arguments) {
        effects.incomplete("in a submodule git may run programs that the repository there names");
    }
    (entry.rule)(&arguments, &mut effects);
    if SHOWS_COMMITS.contains(&entry.name)
        && names_only_revisions(rest)
        && effects.reads.iter().any(|it| it.recursive)
    {
        effects.read(&here(), true);
    }
    effects
}

/// True when an option asks for the state of submodules, which is found out by running git in them.
fn looks_into_submodules(arguments: &Arguments<'_>) -> bool {
    let passes_over = |word: &Word| matches!(word.as_literal(), Some("all" | "dirty"));
    arguments.values("ignore-submodules").any(|value| !passes_over(value))
}

/// Subcommands that show what any file of a commit holds when they are given no path.
const SHOWS_COMMITS: &[&str] = &[
    "diff",
    "log",
    "whatchanged",
    "show",
    "stash list",
    "diff-tree",
    "diff-index",
    "reflog show",
    "grep",
    "cat-file",
];

/// True when no word is sure to be a path: none stands behind `--`, and none is of the form `revision:path`.
fn names_only_revisions(words: &[Word]) -> bool {
    let sure = |word: &Word| word.as_literal() == Some("--") || word.known_start().contains(':');
    !words.iter().any(sure)
}

/// Options with which differences are shown line by line.
const PATCH: &[&str] = &[
    "p",
    "U",
    "patch-with-raw",
    "patch-with-stat",
    "L",
    "m",
    "c",
    "cc",
    "diff-merges",
    "word-diff",
    "word-diff-regex",
    "color-words",
    "check",
    "binary",
    "W",
    "inter-hunk-context",
];
/// Options with which only names and numbers are shown.
const SUMMARY: &[&str] = &[
    "stat",
    "numstat",
    "shortstat",
    "name-only",
    "name-status",
    "summary",
    "compact-summary",
    "raw",
    "quiet",
];

/// Commits and paths: what is in files is shown only when that is asked for.
pub(crate) fn history(arguments: &Arguments<'_>, effects: &mut Effects) {
    list(arguments, arguments.has(PATCH), effects);
}

/// Differences and files: what is in them is shown unless only names and numbers are asked for.
pub(crate) fn revisions_or_paths(arguments: &Arguments<'_>, effects: &mut Effects) {
    list(arguments, arguments.has(PATCH) || !arguments.has(SUMMARY), effects);
}

/// Revisions and paths, which cannot be told apart without the repository: everything is listed as a path, and the
/// path in `revision:path` as well. Without any, everything below the folder is read.
fn list(arguments: &Arguments<'_>, recursive: bool, effects: &mut Effects) {
    for word in &arguments.operands {
        let start = word.known_start();
        match (start.find(':'), word.as_literal()) {
            (Some(0), Some(text)) => {
                // A path with a meaning of its own, such as `:!path`, `:/path`, `:(top)path` or `:1:path`.
                let text = text.trim_start_matches(':');
                let text = match text.strip_prefix('(').and_then(|magic| magic.split_once(')')) {
                    Some((_, path)) => path,
                    None => text.trim_start_matches(['!', '^', '/']),
                };
                let path = text.rsplit(':').next().unwrap_or(text);
                effects.read(&Word::literal(if path.is_empty() { "." } else { path }), recursive);
            }
            (Some(at), Some(text)) => {
                let path = &text[at + 1..];
                effects.read(&Word::literal(if path.is_empty() { "." } else { path }), recursive);
            }
            (Some(_), None) | (None, _) => effects.read(word, recursive),
        }
    }
    if arguments.operands.is_empty() {
        effects.read(&here(), recursive);
    }
}

/// Names in the repository, which are no files.
pub(crate) fn names(_: &Arguments<'_>, _: &mut Effects) {}

/// Paths of which only names are shown.
pub(crate) fn names_of_files(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.read(word, false);
    }
    if arguments.operands.is_empty() {
        effects.read(&here(), false);
    }
}

/// Paths that are read, or everything.
pub(crate) fn paths(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.read(word, true);
    }
    if arguments.operands.is_empty() {
        effects.read(&here(), true);
    }
}
