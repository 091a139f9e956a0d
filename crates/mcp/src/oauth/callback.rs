//! What comes back from an authorization server through a person's browser: read from a URL, or from its two parts.
//! It must belong to an authorization that was begun here; anything else is not looked at further.

use url::Url;

use super::problem::bounded;
use crate::authorization::{AuthorizationError, Callback};

/// Longer ones are no callback of an authorization server.
const LONGEST: usize = 16 * 1024;

/// What a callback may say, each at most once.
const PARAMETERS: [&str; 5] = ["state", "code", "error", "error_description", "iss"];

/// A callback, read.
pub(super) struct Returned {
    /// The state as it came back.
    pub(super) state: String,
    /// Who says so.
    pub(super) issuer: Option<String>,
    /// The code, or what is wrong.
    pub(super) outcome: Outcome,
    /// Where the callback arrived, without its parameters; `None` when only the parts were given.
    pub(super) arrived_at: Option<Url>,
}

/// What an authorization came to.
pub(super) enum Outcome {
    /// Granted.
    Code(String),
    /// Not granted: the error's code, and words about it.
    Error(String, Option<String>),
}

/// Reads a callback.
pub(super) fn read(callback: &Callback) -> Result<Returned, AuthorizationError> {
    match callback {
        Callback::Url(url) => read_url(url),
        Callback::Code { code, state } => Ok(Returned {
            state: state.clone(),
            issuer: None,
            outcome: Outcome::Code(code.clone()),
            arrived_at: None,
        }),
    }
}

fn read_url(text: &str) -> Result<Returned, AuthorizationError> {
    let foreign = |what: &str| AuthorizationError::ForeignCallback(what.to_owned());
    if text.len() > LONGEST {
        return Err(foreign("it is too long"));
    }
    let mut url = Url::parse(text.trim()).map_err(|_| foreign("it is not a URL"))?;
    for name in PARAMETERS {
        if url.query_pairs().filter(|(key, _)| key == name).count() > 1 {
            // One that is given twice could be checked in one form and used in the other.
            return Err(foreign(&format!("it repeats `{name}`")));
        }
    }
    let parameter = |name: &str| {
        let mut pairs = url.query_pairs();
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let state = parameter("state").ok_or_else(|| foreign("it has no state"))?;
    let outcome = match (parameter("error"), parameter("code")) {
        (Some(error), _) => Outcome::Error(error, parameter("error_description")),
        (None, Some(code)) => Outcome::Code(code),
        (None, None) => return Err(foreign("it has neither a code nor an error")),
    };
    let issuer = parameter("iss");
    url.set_query(None);
    url.set_fragment(None);
    Ok(Returned { state, issuer, outcome, arrived_at: Some(url) })
}

impl Returned {
    /// True when it arrived where it was sent. Hosts that only have the parts vouch for that themselves.
    pub(super) fn arrived_at(&self, redirect_uri: &str) -> bool {
        let Some(arrived) = &self.arrived_at else { return true };
        Url::parse(redirect_uri).is_ok_and(|mut expected| {
            expected.set_query(None);
            expected.set_fragment(None);
            expected == *arrived
        })
    }
}

/// The error that an authorization server gave, in our words.
pub(super) fn refusal(code: &str, description: Option<&str>) -> AuthorizationError {
    let text = bounded(&match description {
        Some(description) => format!("{code}: {description}"),
        None => code.to_owned(),
    });
    if code == "access_denied" { AuthorizationError::Denied(text) } else { AuthorizationError::Failed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<Returned, AuthorizationError> {
        read(&Callback::Url(text.to_owned()))
    }

    #[test]
    fn callbacks_are_read_whole() {
        let returned = url("http://localhost:3000/callback?code=c%2B1&state=s&iss=https%3A%2F%2Fas").unwrap();
        assert_eq!((returned.state.as_str(), returned.issuer.as_deref()), ("s", Some("https://as")));
        assert!(matches!(&returned.outcome, Outcome::Code(code) if code == "c+1"));
        assert!(returned.arrived_at("http://localhost:3000/callback"));
        assert!(!returned.arrived_at("http://localhost:3001/callback"));
        assert!(!returned.arrived_at("http://localhost:3000/other"));
    }

    #[test]
    fn anything_else_is_foreign() {
        for text in
            ["", "nonsense", "http://h/?code=c", "http://h/?state=s", "http://h/?state=a&state=b&code=c"]
        {
            let error = url(text).err().map(|error| error.code());
            assert_eq!(error, Some("mcp_oauth_foreign_callback"), "{text}");
        }
        for name in PARAMETERS {
            let text = format!("http://h/?state=s&code=c&iss=i&{name}=1&{name}=1");
            assert!(matches!(url(&text), Err(AuthorizationError::ForeignCallback(_))), "{text}");
        }
        let error = url(&format!("http://h/?code=c&state={}", "s".repeat(20_000))).err();
        assert!(matches!(error, Some(AuthorizationError::ForeignCallback(_))));
    }

    #[test]
    fn a_person_who_says_no_is_told_apart_from_a_failure() {
        assert_eq!(refusal("access_denied", None).code(), "mcp_oauth_denied");
        assert_eq!(refusal("invalid_scope", Some("x")).code(), "mcp_oauth_failed");
    }
}
