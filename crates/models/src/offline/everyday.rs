//! What people ask in their first hour: a greeting, what it can do, a summary of a file, its functions, how to run the
//! tests, what changed. Each is answered from files and from git, and what was looked at is named.

mod file;
mod project;

use super::conversation::Step;
use super::help;
use super::intent::{Intent, Reading};
use super::phrases::{path_in, strip_fillers, strip_politeness, strip_word_prefix};
use super::plan::{Action, Offered};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Everyday {
    /// A greeting and nothing else.
    Greeting,
    /// What it can do.
    Help,
    /// What is in a file, in short.
    Summary(String),
    /// The functions of a file.
    Functions(String),
    /// How to run the tests.
    Tests,
    /// What changed lately.
    Changes,
}

/// Reads a sentence; `prompt` is whole, because a greeting is made of the words that are polite elsewhere.
pub(super) fn read(prompt: &str) -> Option<Reading> {
    let folded: String = prompt
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' })
        .collect();
    let words: Vec<&str> = folded.split_whitespace().collect();
    let asked = if is_greeting(&words) {
        Everyday::Greeting
    } else if is_help(&words) {
        Everyday::Help
    } else if asks_for_tests(&words) {
        Everyday::Tests
    } else if asks_for_changes(&words) {
        Everyday::Changes
    } else {
        of_file(prompt)?
    };
    Some(Intent::Everyday(asked).into())
}

fn is_greeting(words: &[&str]) -> bool {
    const GREETINGS: &[&str] =
        &["hello", "hi", "hey", "hallo", "moin", "yo", "good", "morning", "afternoon", "evening", "day"];
    const OTHERS: &[&str] = &["there", "qoder", "qodercli", "you", "all", "world", "again"];
    let first = words.first().is_some_and(|word| GREETINGS.contains(word));
    first && words.len() <= 4 && words.iter().all(|word| GREETINGS.contains(word) || OTHERS.contains(word))
}

fn is_help(words: &[&str]) -> bool {
    matches!(words, ["help"] | ["help", "me"] | ["what", "can", "you", "do"] | ["what", "do", "you", "do"])
}

/// `how do I run the tests`, `how can the tests be run`, `how to test this`.
fn asks_for_tests(words: &[&str]) -> bool {
    const UNDERSTOOD: &[&str] = &[
        "how",
        "do",
        "does",
        "can",
        "could",
        "should",
        "would",
        "i",
        "we",
        "you",
        "one",
        "to",
        "run",
        "running",
        "execute",
        "start",
        "launch",
        "the",
        "all",
        "unit",
        "test",
        "tests",
        "testing",
        "suite",
        "be",
        "are",
        "is",
        "this",
        "it",
        "project",
        "repository",
        "repo",
        "here",
        "in",
        "of",
        "for",
        "what",
        "command",
        "runs",
        "a",
    ];
    let tests = words.iter().any(|word| matches!(*word, "test" | "tests"));
    let asks = matches!(words.first(), Some(&("how" | "what")));
    tests && asks && words.iter().all(|word| UNDERSTOOD.contains(word))
}

/// `what changed recently`, `show me the recent changes`, `what are the latest commits`.
fn asks_for_changes(words: &[&str]) -> bool {
    const UNDERSTOOD: &[&str] = &[
        "what",
        "what's",
        "whats",
        "which",
        "has",
        "have",
        "is",
        "are",
        "was",
        "were",
        "been",
        "show",
        "list",
        "me",
        "the",
        "changed",
        "changes",
        "change",
        "recent",
        "recently",
        "latest",
        "lately",
        "last",
        "new",
        "commits",
        "commit",
        "history",
        "git",
        "log",
        "here",
        "in",
        "this",
        "project",
        "repository",
        "repo",
        "of",
        "files",
        "file",
        "happened",
        "done",
        "about",
        "tell",
        "most",
    ];
    let changed =
        words.iter().any(|word| matches!(*word, "changed" | "changes" | "commits" | "new" | "happened"));
    let lately = words
        .iter()
        .any(|word| matches!(*word, "recent" | "recently" | "latest" | "lately" | "last" | "new" | "what's"));
    changed && lately && words.iter().all(|word| UNDERSTOOD.contains(word))
}

/// Sentences about one file.
fn of_file(prompt: &str) -> Option<Everyday> {
    let text = strip_politeness(strip_fillers(prompt.trim(), &["please", "can you", "could you"]));
    let summaries =
        ["summarize", "summarise", "sum up", "summary of", "give me a summary of", "a summary of"];
    if let Some(rest) = strip_word_prefix(text, &summaries) {
        return only_path(rest).map(Everyday::Summary);
    }
    let verbs = ["list", "show", "show me", "what are", "which", "what", "find", "name"];
    let rest = strip_fillers(strip_word_prefix(text, &verbs)?, &["all", "the", "of", "me", "names of"]);
    let rest =
        strip_word_prefix(rest, &["functions", "function names", "methods", "function", "definitions"])?;
    let rest = strip_fillers(rest, &["are", "there", "defined", "in", "of", "does", "inside", "within"]);
    only_path(rest).map(Everyday::Functions)
}

/// The one path that these words are.
fn only_path(rest: &str) -> Option<String> {
    let rest = strip_fillers(rest, &["the", "file", "contents of", "content of"]);
    let path = path_in(rest)?;
    let others = rest.replace(&path, " ");
    let filler = |word: &str| {
        let word: String = word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        matches!(
            word.as_str(),
            "" | "file" | "please" | "for" | "me" | "have" | "define" | "defined" | "there"
        )
    };
    others.split_whitespace().all(filler).then_some(path)
}

/// The next action.
pub(super) fn plan(asked: &Everyday, steps: &[Step], offered: &Offered<'_>) -> Action {
    match asked {
        Everyday::Greeting => Action::Say(help::greeting()),
        Everyday::Help => Action::Say(help::page(offered.tools)),
        Everyday::Summary(path) => file::summary(path, steps, offered),
        Everyday::Functions(path) => file::functions(path, steps, offered),
        Everyday::Tests => project::tests(steps, offered),
        Everyday::Changes => project::changes(steps, offered),
    }
}
