//! The glossary (docs/glossary.md): a line `**term**: meaning` per term. Each term
//! is listed once, and a word to avoid is not itself a term.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::Verdict;

/// Judges docs/glossary.md.
pub(super) fn judge(root: &Path) -> Result<Verdict> {
    let path = root.join("docs/glossary.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Verdict { rule: "the glossary lists each term once", violations: violations(&text) })
}

/// The words that the glossary lists as avoided, in lower case.
pub(super) fn avoided(text: &str) -> Vec<String> {
    let lists = text.lines().filter_map(|line| line.rsplit_once("Not: "));
    lists.flat_map(|(_, words)| words.trim_end_matches('.').split(", ")).map(str::to_lowercase).collect()
}

fn violations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut terms = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some((term, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) else {
            continue;
        };
        if !terms.insert(term.to_lowercase()) {
            found.push(format!("docs/glossary.md:{}: {term:?} is listed twice", index + 1));
        }
    }
    if terms.is_empty() {
        found.push("docs/glossary.md lists no term".to_owned());
    }
    for (index, line) in text.lines().enumerate() {
        let Some((_, words)) = line.rsplit_once("Not: ") else { continue };
        for word in words.trim_end_matches('.').split(", ") {
            if terms.contains(&word.to_lowercase()) {
                found.push(format!("docs/glossary.md:{}: {word:?} is both a term and avoided", index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_terms_pass() {
        assert_eq!(violations("# Glossary\n\n**turn**: a span. Not: round.\n**step**: one.\n"), [""; 0]);
    }

    #[test]
    fn a_second_line_for_a_term_is_named() {
        assert_eq!(
            violations("**turn**: a.\n**Turn**: b.\n"),
            ["docs/glossary.md:2: \"Turn\" is listed twice"]
        );
    }

    #[test]
    fn an_avoided_word_that_is_a_term_is_named() {
        let found = violations("**turn**: a. Not: step, round.\n**step**: b.\n");
        assert_eq!(found, ["docs/glossary.md:1: \"step\" is both a term and avoided"]);
    }

    #[test]
    fn avoided_words_are_those_behind_not() {
        assert_eq!(
            avoided("**hook**: a.\nNot: Callback.\n**a**: b. Not: c d, e.\n"),
            ["callback", "c d", "e"]
        );
    }

    #[test]
    fn an_empty_glossary_is_a_violation() {
        assert_eq!(violations("# Glossary\n"), ["docs/glossary.md lists no term"]);
    }
}
