//! Which candidates fit a word best: letters in order, near each other and at the start of names count more; what was used
//! lately counts before the rest.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// How many are found at most.
const MOST_FOUND: usize = 50;

/// A command: name, what may follow, what it does, and how often it was used.
pub(crate) type CommandChoice = (String, String, String, usize);

/// Something that may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// What is put in place of the word.
    pub(crate) text: String,
    /// What is shown.
    pub(crate) label: String,
    /// More about it.
    pub(crate) about: String,
}

/// The paths that fit best; `recent` are those that were used lately, newest first.
pub(crate) fn best_paths(word: &str, paths: &[String], recent: &[String]) -> Vec<Candidate> {
    let candidate =
        |path: &String| Candidate { text: format!("@{path}"), label: path.clone(), about: String::new() };
    if word.is_empty() {
        let others = paths.iter().filter(|path| !recent.contains(path));
        return recent.iter().chain(others).take(MOST_FOUND).map(candidate).collect();
    }
    let pattern = Pattern::parse(word, CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, usize, &String)> = Vec::new();
    // A folder that is written whole is followed by what is in it.
    for path in paths.iter().filter(|path| !(path.ends_with('/') && *path == word)) {
        let Some(score) = pattern.score(Utf32Str::new(path, &mut buffer), &mut matcher) else { continue };
        let used = recent.iter().position(|recent| recent == path);
        let bonus = used.map_or(0, |place| 40_u32.saturating_sub(u32::try_from(place).unwrap_or(40)));
        scored.push((score + bonus, path.len(), path));
    }
    scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)).then(one.2.cmp(other.2)));
    scored.into_iter().take(MOST_FOUND).map(|(_, _, path)| candidate(path)).collect()
}

/// The commands that fit best.
pub(crate) fn best_commands(word: &str, commands: &[CommandChoice]) -> Vec<Candidate> {
    let candidate = |(name, hint, about, _): &CommandChoice| {
        let label = if hint.is_empty() { format!("/{name}") } else { format!("/{name} {hint}") };
        Candidate { text: format!("/{name}"), label, about: about.clone() }
    };
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::parse(word, CaseMatching::Ignore, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(bool, u32, usize, &CommandChoice)> = Vec::new();
    for command in commands {
        let Some(score) = pattern.score(Utf32Str::new(&command.0, &mut buffer), &mut matcher) else {
            continue;
        };
        scored.push((command.0.starts_with(word), score, command.3, command));
    }
    scored.sort_by(|one, other| {
        let order = other.0.cmp(&one.0).then(other.2.cmp(&one.2)).then(other.1.cmp(&one.1));
        order.then(one.3.0.cmp(&other.3.0))
    });
    scored.into_iter().take(MOST_FOUND).map(|(_, _, _, command)| candidate(command)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(found: &[Candidate]) -> Vec<&str> {
        found.iter().map(|one| one.label.as_str()).collect()
    }

    #[test]
    fn paths_fit_by_their_letters_and_by_use() {
        let paths = ["src/main.rs", "src/map.rs", "docs/manual.md", "target/"].map(str::to_owned);
        let found = best_paths("srcma", &paths, &[]);
        assert_eq!(labels(&found), ["src/map.rs", "src/main.rs"]);
        let found = best_paths("srcma", &paths, &["src/main.rs".to_owned()]);
        assert_eq!(labels(&found)[0], "src/main.rs");
        let found = best_paths("", &paths, &["target/".to_owned()]);
        assert_eq!(labels(&found)[0], "target/");
        let found = best_paths("target/", &["target/", "target/debug/"].map(str::to_owned), &[]);
        assert_eq!(labels(&found), ["target/debug/"]);
    }

    #[test]
    fn commands_begin_with_the_word_before_they_contain_it() {
        let command = |name: &str, used| (name.to_owned(), String::new(), String::new(), used);
        let commands =
            [command("theme", 0), command("help", 0), command("hooks", 3), command("shortcuts", 9)];
        assert_eq!(labels(&best_commands("h", &commands))[..2], ["/hooks", "/help"]);
        assert_eq!(labels(&best_commands("", &commands))[0], "/shortcuts");
    }
}
