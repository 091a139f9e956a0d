//! Errors of the protocol library in our words: bounded, on one line, without anything a mismatched answer said.

use qoder_types::display::escaped_line;
use rmcp::transport::auth::AuthError;

use crate::authorization::AuthorizationError;

/// The longest text of an error; servers write whole pages.
const LONGEST: usize = 300;

/// What went wrong, for people.
pub(super) fn explained(error: &AuthError) -> AuthorizationError {
    match error {
        AuthError::CredentialStoreError(problem) => AuthorizationError::Store(bounded(problem)),
        AuthError::AuthorizationServerMismatch { expected_issuer, .. } => failed(&format!(
            "the authorization server names another issuer than {expected_issuer}; its answer was dropped"
        )),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => failed(&format!(
            "the answer does not name its issuer, which must be {expected_issuer}; give the whole callback URL"
        )),
        AuthError::PkceUnsupported => failed(NO_PKCE),
        other => failed(&other.to_string()),
    }
}

/// Said when a server cannot do what every authorization needs.
pub(super) const NO_PKCE: &str = "the authorization server does not offer PKCE with S256";

/// An error with a bounded text.
pub(super) fn failed(problem: &str) -> AuthorizationError {
    AuthorizationError::Failed(bounded(problem))
}

/// One line of bounded length, in which whatever would steer a terminal or cannot be seen is escaped.
pub(super) fn bounded(text: &str) -> String {
    let mut words = text.split([' ', '\n', '\t']).filter(|word| !word.is_empty());
    let mut short = String::new();
    for word in &mut words {
        if !short.is_empty() {
            short.push(' ');
        }
        short.extend(word.chars().take(LONGEST));
        if short.len() >= LONGEST {
            break;
        }
    }
    if short.chars().count() > LONGEST {
        short = short.chars().take(LONGEST).collect();
    }
    if words.next().is_some() {
        short.push('…');
    }
    escaped_line(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_servers_are_cut_and_kept_on_one_line() {
        assert_eq!(bounded("a\n\tb\u{1b}[31m c"), "a b\\u{1b}[31m c");
        assert_eq!(bounded("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        assert!(bounded(&"word ".repeat(1_000)).chars().count() <= LONGEST + 5);
        assert!(bounded(&"x".repeat(10_000)).chars().count() <= LONGEST + 1);
    }

    #[test]
    fn a_mismatched_answer_is_not_shown() {
        let error = AuthError::AuthorizationServerMismatch {
            expected_issuer: "https://good.example".to_owned(),
            received_issuer: "https://evil.example".to_owned(),
        };
        let shown = explained(&error).to_string();
        assert!(shown.contains("good.example") && !shown.contains("evil"), "{shown}");
    }
}
