//! How a session proves who it is. The token travels once, to the engine or in the first message to an external
//! program; never as an argument and never in an environment that commands inherit.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The variable that [`access_token_from_env`] reads.
pub const ACCESS_TOKEN_VARIABLE: &str = "QODER_PERSONAL_ACCESS_TOKEN";

/// How a session proves who it is.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthOptions {
    /// This token.
    AccessToken(String),
    /// The token in this variable; `options.env` is looked at before the environment.
    AccessTokenFromEnv(String),
    /// Whatever `qodercli` on this machine is configured with.
    QoderCli,
}

impl std::fmt::Debug for AuthOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AccessToken(_) => formatter.write_str("AccessToken(…)"),
            Self::AccessTokenFromEnv(variable) => write!(formatter, "AccessTokenFromEnv({variable:?})"),
            Self::QoderCli => formatter.write_str("QoderCli"),
        }
    }
}

/// Uses this token.
#[must_use]
pub fn access_token(token: impl Into<String>) -> AuthOptions {
    AuthOptions::AccessToken(token.into())
}

/// Uses the token in [`ACCESS_TOKEN_VARIABLE`].
#[must_use]
pub fn access_token_from_env() -> AuthOptions {
    access_token_from_env_var(ACCESS_TOKEN_VARIABLE)
}

/// Uses the token in a variable of your own.
#[must_use]
pub fn access_token_from_env_var(variable: impl Into<String>) -> AuthOptions {
    AuthOptions::AccessTokenFromEnv(variable.into())
}

/// Uses what `qodercli` on this machine is configured with.
#[must_use]
pub fn qodercli_auth() -> AuthOptions {
    AuthOptions::QoderCli
}

impl AuthOptions {
    /// The token, when one is used.
    pub(crate) fn token(&self, environment: &BTreeMap<String, String>) -> Result<Option<String>> {
        match self {
            Self::QoderCli => Ok(None),
            Self::AccessToken(token) if token.trim().is_empty() => Err(Error::option(
                "auth",
                "the access token is empty",
                "give a token, or use access_token_from_env()",
            )),
            Self::AccessToken(token) => Ok(Some(token.clone())),
            Self::AccessTokenFromEnv(variable) => match environment.get(variable) {
                Some(token) if !token.trim().is_empty() => Ok(Some(token.clone())),
                Some(_) | None => Err(Error::AuthAccessTokenEnvVar { variable: variable.clone() }),
            },
        }
    }

    /// The shape in which it travels to an external program.
    pub(crate) fn wire(&self, environment: &BTreeMap<String, String>) -> Result<Value> {
        Ok(match self.token(environment)? {
            Some(token) => json!({ "type": "accessToken", "accessToken": token }),
            None => json!({ "type": "qodercli" }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        assert!(!format!("{:?}", access_token("pat-123456")).contains("pat-123456"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let error = access_token_from_env_var("MY_PAT").token(&BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), "auth: the environment variable MY_PAT is not set");
        assert_eq!(error.code(), "auth_access_token_env_var");
    }
}
