//! Phrases that STYLE.md replaces, wherever people read them: comments, documentation, texts in code, `--help`, pages. In
//! sources of Rust only comments and literals are looked at; a name is the business of another rule.

use super::known::{Counted, Finding};
use super::scanner;

/// The files that are read.
pub(super) const ENDINGS: &[&str] = &[".rs", ".md", ".py", ".ts"];

/// Files that quote the phrases.
const QUOTING: &[&str] = &["STYLE.md", "xtask/src/check/phrases.rs"];

/// A phrase, and what to write in its place.
const PHRASES: &[(&str, &str)] = &[
    ("is no session", "is not a session ID"),
    ("is none", "say what it is not"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("is told", "name who reports it"),
    ("tells", "reports, prints, returns"),
    ("stands in", "is in"),
    ("stands twice", "is a duplicate"),
    ("whoever", "the user, the host, the caller"),
    ("nobody", "no one is attached"),
    ("somebody", "the user, the host, the caller"),
    ("any more", "no longer"),
    ("what hides what", "which definitions are shadowed"),
    ("most tokens to think with", "maximum thinking tokens"),
    ("has a schema that is not one", "has an invalid input schema"),
    ("ended without an end", "ended before the message was complete"),
    ("a fault in the program", "internal error"),
    ("did not let a change", "rejected the change"),
    ("is to fit this", "must match"),
    ("goes with allow alone", "can only be used with `allow`"),
];

/// Judges these files.
pub(super) fn judge(texts: &[(String, String)]) -> Counted {
    let findings = texts
        .iter()
        .filter(|(path, _)| !QUOTING.contains(&path.as_str()))
        .flat_map(|(path, text)| found(path, text))
        .collect();
    Counted { name: "phrases", rule: "texts avoid the phrases that STYLE.md replaces", findings }
}

fn found(path: &str, text: &str) -> Vec<Finding> {
    let read = if path.ends_with(".rs") { prose(text) } else { text.to_owned() };
    let mut found = Vec::new();
    for (index, line) in read.lines().enumerate() {
        // `None` is a value, and that there is no session is an ordinary sentence.
        let line = line.replace("None", "NONE_").to_lowercase().replace("there is no session", "");
        for (phrase, instead) in PHRASES {
            for _ in 0..occurrences(&line, phrase) {
                let text = format!("line {}: {phrase:?}; write: {instead}", index + 1);
                found.push(Finding { path: path.to_owned(), text });
            }
        }
    }
    found
}

/// The comments and literals of a source, with blanks in place of its code.
fn prose(text: &str) -> String {
    let code = scanner::code_only(text);
    text.chars().zip(code.chars()).map(|(all, code)| if code.is_whitespace() { all } else { ' ' }).collect()
}

/// How often a phrase is in a line as whole words.
fn occurrences(line: &str, phrase: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase)
        .filter(|(start, _)| {
            let before = line[..*start].chars().next_back();
            let after = line[start + phrase.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<String> {
        judge(&[(path.to_owned(), text.to_owned())]).findings.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn every_phrase_is_found() {
        for (phrase, _) in PHRASES {
            assert_eq!(texts("docs/a.md", &format!("It {phrase}.\n")).len(), 1, "{phrase}");
        }
    }

    #[test]
    fn comments_documentation_and_literals_are_read() {
        for text in ["// It goes on.", "/// Goes on.", "let a = \"it goes on\";", "let a = r#\"goes on\"#;"] {
            assert_eq!(texts("crates/a/src/b.rs", text), ["line 1: \"goes on\"; write: continues"], "{text}");
        }
    }

    #[test]
    fn code_longer_words_and_files_that_quote_are_not() {
        assert_eq!(texts("a.rs", "fn nobody() { tells(somebody_else); }\n"), [""; 0]);
        assert_eq!(texts("a.md", "It retells many morels; cargo onward.\n"), [""; 0]);
        assert_eq!(texts("STYLE.md", "nobody\n"), [""; 0]);
        assert_eq!(texts("a.py", "if value is None: # There is no session.\n"), [""; 0]);
    }
}
