//! Checks for what users of the SDK write themselves: does a session store keep the rules? Every rule works with keys of
//! its own, so a store that already holds something can be checked as well. Nothing here needs a test framework or a
//! particular executor.

mod store_rules;
mod values;

use crate::session_store::{SessionStore, SessionStoreError};

use store_rules::Broken;
pub use store_rules::SESSION_STORE_RULES;

/// A rule that a store does not keep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("session store rule '{rule}': {violation}")]
pub struct SessionStoreRuleError {
    /// The rule.
    pub rule: String,
    /// How it is broken.
    pub violation: String,
}

impl SessionStoreRuleError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "session_store_rule"
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "docs/session-stores.md says what each rule is about"
    }
}

/// Checks all rules, each on a store from `make_store`; returns the names of those that were checked. Rules about methods
/// that a store may leave out are passed over when it has left them out.
///
/// ```
/// use qoder_agent_sdk::InMemorySessionStore;
/// use qoder_agent_sdk::testing::{SESSION_STORE_RULES, session_store_conformance};
///
/// let checked = futures::executor::block_on(session_store_conformance(InMemorySessionStore::new));
/// assert_eq!(checked.unwrap(), SESSION_STORE_RULES);
/// ```
///
/// # Errors
/// The first rule that is broken.
pub async fn session_store_conformance<S: SessionStore>(
    make_store: impl Fn() -> S,
) -> Result<Vec<&'static str>, SessionStoreRuleError> {
    let mut checked = Vec::new();
    for name in SESSION_STORE_RULES {
        if check_session_store_rule(&make_store, name).await? {
            checked.push(name);
        }
    }
    Ok(checked)
}

/// Checks one rule; false when it is about a method that the store has left out.
///
/// # Errors
/// When the rule is broken, or there is no rule of this name.
pub async fn check_session_store_rule<S: SessionStore>(
    make_store: impl Fn() -> S,
    rule: &str,
) -> Result<bool, SessionStoreRuleError> {
    let broken = |violation: String| SessionStoreRuleError { rule: rule.to_owned(), violation };
    if !SESSION_STORE_RULES.contains(&rule) {
        let known = SESSION_STORE_RULES.join(", ");
        return Err(broken(format!("there is no such rule; the rules are {known}")));
    }
    match store_rules::check(&make_store(), rule).await {
        Ok(()) => Ok(true),
        Err(Broken::Store(SessionStoreError::LeftOut(_))) => Ok(false),
        Err(Broken::Store(SessionStoreError::Failed(problem))) => {
            Err(broken(format!("the store failed: {problem}")))
        }
        Err(Broken::Rule(violation)) => Err(broken(violation)),
    }
}
