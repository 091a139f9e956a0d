//! Which hooks an event concerns: a matcher is nothing, a list of exact names, or a regular expression that is searched in
//! the name. An expression is compiled when it is first needed.

use qoder_config::hooks::other_name;
use regex::{Regex, RegexBuilder};

/// The most memory a compiled expression may take.
const LARGEST_EXPRESSION: usize = 1024 * 1024;

/// A matcher that is ready.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    All,
    Names(Vec<String>),
    Expression(Regex),
    /// It cannot be compiled.
    Nothing(String),
}

impl Matcher {
    /// Reads the text of a matcher.
    pub(crate) fn new(text: Option<&str>) -> Self {
        let text = text.unwrap_or_default().trim();
        if text.is_empty() || text == "*" {
            return Self::All;
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '|');
        if text.chars().all(plain) {
            return Self::Names(text.split('|').map(|name| name.trim().to_owned()).collect());
        }
        match RegexBuilder::new(text).size_limit(LARGEST_EXPRESSION).build() {
            Ok(expression) => Self::Expression(expression),
            // The last line says what is wrong; those before it repeat the expression.
            Err(error) => Self::Nothing(error.to_string().lines().last().unwrap_or_default().to_owned()),
        }
    }

    /// True when the matcher means this name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let other = other_name(name);
        let means = |name: &str| match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|one| one == name),
            Self::Expression(expression) => expression.is_match(name),
            Self::Nothing(_) => false,
        };
        means(name) || other.is_some_and(means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(matcher: Option<&str>, name: &str) -> bool {
        Matcher::new(matcher).matches(name)
    }

    #[test]
    fn nothing_and_a_star_mean_everything() {
        for matcher in [None, Some(""), Some("  "), Some("*")] {
            assert!(matches(matcher, "Bash") && matches(matcher, "") && matches(matcher, "mcp__a__b"));
        }
    }

    #[test]
    fn plain_words_are_exact_names() {
        assert!(matches(Some("Edit"), "Edit"));
        assert!(!matches(Some("Edit"), "NotebookEdit"), "a word is not searched inside a name");
        assert!(matches(Some("Edit|Write"), "Write") && matches(Some("Edit | Write"), "Write"));
        assert!(!matches(Some("edit"), "Edit"));
        assert!(matches(Some("mcp__my-server__x"), "mcp__my-server__x"));
    }

    #[test]
    fn anything_else_is_searched_as_an_expression() {
        assert!(matches(Some("mcp__.*"), "mcp__a__b") && !matches(Some("^mcp__a__.*$"), "mcp__b__a"));
        assert!(matches(Some("Edit.?"), "NotebookEdit"));
    }

    #[test]
    fn a_tool_with_two_names_is_matched_by_either() {
        assert!(
            matches(Some("Task"), "Agent")
                && matches(Some("Agent"), "Task")
                && matches(Some("Ag.nt$"), "Agent")
        );
    }

    #[test]
    fn an_expression_that_cannot_be_compiled_matches_nothing() {
        for bad in ["(", "a{1000000}{1000}", "[z-a]"] {
            let matcher = Matcher::new(Some(bad));
            assert!(matches!(matcher, Matcher::Nothing(_)) && !matcher.matches(bad), "{bad}");
        }
    }
}
