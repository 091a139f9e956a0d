//! What a node does of what nodes do.

use super::ConfigError;

/// What a node does. Every node beats, so that operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// Answers clients.
    pub api: bool,
    /// Drives sessions.
    pub drive: bool,
    /// Takes over what nodes leave that are gone.
    pub sweep: bool,
}

impl Roles {
    /// Everything.
    pub const ALL: Self = Self { api: true, drive: true, sweep: true };

    pub(super) fn read(words: Option<Vec<String>>) -> Result<Self, ConfigError> {
        let Some(words) = words else { return Ok(Self::ALL) };
        let mut roles = Self { api: false, drive: false, sweep: false };
        for word in &words {
            match word.as_str() {
                "api" => roles.api = true,
                "drive" => roles.drive = true,
                "sweep" => roles.sweep = true,
                other => {
                    let problem = format!("has `{other}`; roles are api, drive and sweep");
                    return Err(ConfigError::option("--roles", problem));
                }
            }
        }
        if words.is_empty() {
            return Err(ConfigError::option("--roles", "needs at least one of api, drive and sweep"));
        }
        Ok(roles)
    }
}
