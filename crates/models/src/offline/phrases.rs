//! Reading plain English by position: prefixes, quoted parts, words that look
//! like paths. No regular expressions, no guessing beyond what is written
//! here.

/// Quote characters and what closes them.
const QUOTES: &[(char, char)] = &[('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// `text` without any of `prefixes` at its start, ignoring case; the prefix must end at a word.
pub(super) fn strip_word_prefix<'a>(text: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| {
        let head = text.get(..prefix.len())?;
        let rest = text.get(prefix.len()..)?;
        let at_word = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == ':');
        (head.eq_ignore_ascii_case(prefix) && at_word).then(|| rest.trim_start_matches(':').trim_start())
    })
}

/// Takes filler words off the start for as long as there are any.
pub(super) fn strip_fillers<'a>(text: &'a str, fillers: &[&str]) -> &'a str {
    let mut rest = text.trim();
    while let Some(shorter) = strip_word_prefix(rest, fillers) {
        rest = shorter;
    }
    rest
}

/// The place of `needle` outside of quotes, ignoring ASCII case.
pub(super) fn find_outside_quotes(text: &str, needle: &str) -> Option<usize> {
    let mut closing: Option<char> = None;
    let mut before = ' ';
    for (index, letter) in text.char_indices() {
        match closing {
            Some(close) if letter == close => closing = None,
            Some(_) => {}
            None => {
                if text.get(index..index + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle))
                {
                    return Some(index);
                }
                closing = opening_quote(letter, before);
            }
        }
        before = letter;
    }
    None
}

/// An apostrophe inside a word opens nothing.
fn opening_quote(letter: char, before: char) -> Option<char> {
    if before.is_alphanumeric() {
        return None;
    }
    QUOTES.iter().find(|(open, _)| *open == letter).map(|(_, close)| *close)
}

/// Everything in quotes, in order.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        if let Some(close) = opening_quote(letter, before)
            && let Some(end) = after.find(close)
        {
            found.push(after[..end].to_owned());
            rest = &after[end + close.len_utf8()..];
            before = close;
            continue;
        }
        before = letter;
        rest = after;
    }
    found
}

/// A phrase without the quotes around it, or without the punctuation that ends a sentence.
pub(super) fn unquote(text: &str) -> String {
    let text = text.trim();
    let inner = quoted(text);
    if let (Some(first), Some(letter)) = (inner.first(), text.chars().next())
        && opening_quote(letter, ' ').is_some()
    {
        return first.clone();
    }
    text.trim_end_matches(['.', '?', '!', ',', ';']).trim_end().to_owned()
}

/// True for words such as `main.rs`, `src/` and `Makefile.am`.
pub(super) fn looks_like_path(word: &str) -> bool {
    if word.is_empty() || word.contains(char::is_whitespace) || word.contains("://") {
        return false;
    }
    word.contains('/')
        || word.rsplit_once('.').is_some_and(|(_, extension)| {
            !extension.is_empty() && extension.len() <= 10 && extension.chars().all(char::is_alphanumeric)
        })
        || word.starts_with('.')
}

/// The path in a phrase: quoted text first, then the first word that looks like one.
pub(super) fn path_in(text: &str) -> Option<String> {
    quoted(text).into_iter().find(|part| !part.is_empty()).or_else(|| {
        text.split_whitespace()
            .map(|word| word.trim_end_matches(['.', '?', '!', ',', ';', ':', ')']).trim_start_matches('('))
            .find(|word| looks_like_path(word))
            .map(str::to_owned)
    })
}

/// Words that mean "here" and therefore no path.
pub(super) fn is_here(text: &str) -> bool {
    let folded = text.trim().trim_end_matches(['.', '?', '!']).to_ascii_lowercase();
    matches!(
        folded.as_str(),
        "" | "."
            | "here"
            | "this project"
            | "this repository"
            | "this repo"
            | "this directory"
            | "this folder"
            | "the project"
            | "the repository"
            | "the repo"
            | "the current directory"
            | "the code"
            | "this codebase"
            | "the codebase"
            | "all files"
            | "the workspace"
    )
}

/// `text` for a regular expression that matches it literally.
pub(super) fn escape_pattern(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_together_and_apostrophes_open_nothing() {
        assert_eq!(quoted("it's \"a b\" and `c`, don't"), ["a b", "c"]);
        assert_eq!(find_outside_quotes("'x with y' with z", " with "), Some(10));
        assert_eq!(unquote("\"a.\""), "a.");
        assert_eq!(unquote("a.txt."), "a.txt");
    }

    #[test]
    fn prefixes_end_at_words() {
        assert_eq!(strip_word_prefix("Show me x", &["show me"]), Some("x"));
        assert_eq!(strip_word_prefix("running late", &["run"]), None);
        assert_eq!(strip_word_prefix("é", &["ab"]), None);
        assert_eq!(strip_fillers("all of the files", &["all", "of", "the"]), "files");
    }

    #[test]
    fn paths_are_recognised() {
        assert_eq!(path_in("how many lines does main.rs have?").as_deref(), Some("main.rs"));
        assert_eq!(path_in("look at src/a b"), Some("src/a".into()));
        assert_eq!(path_in("see https://x.org now"), None);
        assert!(is_here("this repository."));
        assert_eq!(escape_pattern("a.b()"), r"a\.b\(\)");
    }
}
