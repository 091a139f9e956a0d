//! Which prefix of a command may be offered as a lasting rule. By default none: only the exact command. A prefix is
//! offered for the tasks that a project defines itself, such as its scripts and tests, and for recording changes; never
//! for interpreters, wrappers, shells, package runners, installing, or anything that reaches another machine.

use super::words::all_joined;
use crate::shell::Word;

/// Programs that run a named script of the project with `run`.
const SCRIPT_RUNNERS: &[&str] = &["npm", "pnpm", "yarn", "bun"];
/// Program and subcommand.
const TASKS: &[(&str, &[&str])] = &[
    ("npm", &["test", "t"]),
    ("pnpm", &["test", "t"]),
    ("yarn", &["test"]),
    ("cargo", &["build", "b", "check", "c", "test", "t", "clippy", "fmt", "doc", "tree", "metadata"]),
    ("git", &["add", "commit", "status"]),
    ("dotnet", &["build", "test"]),
];

/// How many words of the command may be offered as a prefix; nothing when only the exact command may be offered.
#[must_use]
pub fn suggestable_prefix(words: &[Word]) -> Option<usize> {
    let words = all_joined(&words[..words.len().min(3)]);
    let known: Vec<&str> = words.iter().map_while(Word::as_literal).collect();
    let (program, subcommand) = (known.first()?, known.get(1)?);
    if SCRIPT_RUNNERS.contains(program) && matches!(*subcommand, "run" | "run-script") {
        return known.get(2).filter(|script| is_name(script)).map(|_| 3);
    }
    TASKS.iter().any(|(name, tasks)| name == program && tasks.contains(subcommand)).then_some(2)
}

/// A plain name of a script: no option, no path.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(plain)
}
