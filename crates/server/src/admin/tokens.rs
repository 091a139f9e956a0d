//! Creating tokens.

use crate::config::Config;
use crate::http::{ENVIRONMENT_SCOPE, Scope, TokenText};
use crate::model::ids::EnvironmentId;
use crate::model::time::Time;
use crate::secrets::SealError;
use crate::serve::{Foundation, ServeError, Use};
use crate::store::NewToken;

/// What a token is created with.
#[derive(Debug, Clone, Default)]
pub struct NewTokenOptions {
    /// Who gets it.
    pub user: String,
    /// Whose things it reaches; the user's own without it.
    pub tenant: Option<String>,
    /// What it may do; everything without them.
    pub scopes: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Time>,
}

/// Creates a token. Its text is known to the caller alone from here on.
///
/// # Errors
/// When a scope does not exist, or the data folder cannot be used.
pub async fn create_token(config: &Config, options: NewTokenOptions) -> Result<TokenText, ServeError> {
    let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let is_environment = |scope: &str| {
        scope.strip_prefix(ENVIRONMENT_SCOPE).is_some_and(|id| EnvironmentId::parse(id).is_some())
    };
    let is_known = |scope: &&String| known.contains(&scope.as_str()) || is_environment(scope);
    if let Some(scope) = options.scopes.iter().find(|scope| !is_known(scope)) {
        let problem = format!("has `{scope}`; scopes are {} and {ENVIRONMENT_SCOPE}ID", known.join(", "));
        return Err(crate::config::ConfigError::Option { option: "--scopes", problem }.into());
    }
    let user = options.user.trim().to_owned();
    if user.is_empty() || user.chars().any(char::is_control) {
        let problem = "must be a name".to_owned();
        return Err(crate::config::ConfigError::Option { option: "--user", problem }.into());
    }
    let foundation = Foundation::lay(config, Use::Command).await?;
    let token = TokenText::random().ok_or(SealError::Random)?;
    let scopes = if options.scopes.is_empty() {
        known.iter().map(|scope| (*scope).to_owned()).collect()
    } else {
        options.scopes
    };
    let new = NewToken {
        id: token.id.clone(),
        tenant: options.tenant.unwrap_or_else(|| user.clone()),
        hash: foundation.cluster.hash(&token.text),
        expires_at: options.expires_at,
        user,
        scopes,
    };
    let keys = foundation.keys.clone();
    // A key that cannot be made is noticed when the tenant's first secret is sealed.
    let make_key = Box::new(move |tenant| keys.new_data_key(tenant).unwrap_or_default());
    foundation.store.db.create_token(new, make_key).await?;
    Ok(token)
}

/// Reads a length of time such as `90d`, `12h` or `30m`, from now.
#[must_use]
pub fn parse_lifetime(text: &str, now: Time) -> Option<Time> {
    let (number, unit) = text.split_at(text.find(|each: char| !each.is_ascii_digit())?);
    let number: i64 = number.parse().ok().filter(|number| *number > 0)?;
    let milliseconds = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(now.after(number.checked_mul(milliseconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit() {
        assert_eq!(parse_lifetime("90d", Time(0)), Some(Time(90 * 86_400_000_000)));
        assert_eq!(parse_lifetime("2h", Time(0)), Some(Time(7_200_000_000)));
        for wrong in
            ["", "90", "d", "0d", "-1d", "1w", "1.5h", "99999999999999999999d", "9223372036854775807d"]
        {
            assert_eq!(parse_lifetime(wrong, Time(0)), None, "{wrong}");
        }
    }
}
