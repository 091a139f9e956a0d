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

/// `text` without polite words at its end.
pub(super) fn strip_politeness(text: &str) -> &str {
    const WORDS: &[&str] = &["please", "thanks", "thank you", "for me"];
    let mut rest = text.trim_end();
    loop {
        let bare = rest.trim_end_matches(['.', '!', '?']).trim_end();
        let shorter = WORDS.iter().find_map(|word| {
            let start = bare.len().checked_sub(word.len())?;
            let (front, end) = (bare.get(..start)?, bare.get(start..)?);
            let at_word = front.ends_with(|c: char| c.is_whitespace() || c == ',');
            (end.eq_ignore_ascii_case(word) && at_word).then(|| front.trim_end().trim_end_matches(','))
        });
        match shorter {
            Some(shorter) => rest = shorter.trim_end(),
            None => return rest,
        }
    }
}

/// Splits in front of `word` and behind it, where it stands outside of quotes.
pub(super) fn split_outside_quotes<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let at = find_outside_quotes(text, word)?;
    Some((&text[..at], &text[at + word.len()..]))
}

/// The first word or quoted part, and the rest.
pub(super) fn first_part(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some(close) = text.chars().next().and_then(|letter| opening_quote(letter, ' ')) {
        let start = text.chars().next().map_or(0, char::len_utf8);
        if let Some(end) = text[start..].find(close) {
            let inner = &text[start..start + end];
            return (inner.to_owned(), text[start + end + close.len_utf8()..].trim_start());
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (without_punctuation(&text[..end]).to_owned(), text[end..].trim_start())
}

/// A word without the punctuation of the sentence around it.
pub(super) fn without_punctuation(word: &str) -> &str {
    word.trim_end_matches(['.', '?', '!', ',', ';', ':', ')']).trim_start_matches('(')
}

/// The words of `text` that are neither in `understood` nor a path that was `used`; none when nothing is left.
pub(super) fn left_over(text: &str, understood: &[&str], used: &[&str]) -> Option<String> {
    let mut plain = text.to_owned();
    for part in used {
        plain = plain.replacen(part, " ", 1);
    }
    let words: Vec<&str> = plain
        .split_whitespace()
        .filter(|word| {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            !bare.is_empty() && !understood.iter().any(|known| known.eq_ignore_ascii_case(bare))
        })
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
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
        text.split_whitespace().map(without_punctuation).find(|word| looks_like_path(word)).map(str::to_owned)
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
    fn polite_words_at_the_end_are_no_part_of_it() {
        assert_eq!(strip_politeness("show a.txt, please."), "show a.txt");
        assert_eq!(strip_politeness("show a.txt for me, thank you!"), "show a.txt");
        assert_eq!(strip_politeness("show please.txt"), "show please.txt");
        assert_eq!(strip_politeness("please"), "please");
    }

    #[test]
    fn what_is_not_understood_is_left_over() {
        assert_eq!(left_over("show a.txt now", &["show", "now"], &["a.txt"]), None);
        assert_eq!(left_over("show a.txt backwards?", &["show"], &["a.txt"]).as_deref(), Some("backwards?"));
        assert_eq!(first_part("`a b` c"), ("a b".into(), "c"));
        assert_eq!(first_part("'open end"), ("'open".into(), "end"));
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
