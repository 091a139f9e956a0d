//! How long sessions are kept that rest.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ConfigError;

/// How long sessions are kept that rest and wait for nothing. Without it, for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Days, for every tenant that is not listed.
    pub days: Option<u32>,
    /// Days for these tenants, by name.
    pub tenants: BTreeMap<String, u32>,
}

impl Retention {
    /// Days for which the sessions of a tenant are kept; `None` keeps them.
    #[must_use]
    pub fn of(&self, tenant: &str) -> Option<u32> {
        self.tenants.get(tenant).copied().or(self.days)
    }

    /// # Errors
    /// When sessions would be deleted as soon as they rest.
    pub(super) fn checked(self) -> Result<Self, ConfigError> {
        if self.days.iter().chain(self.tenants.values()).any(|days| *days == 0) {
            return Err(ConfigError::option("retention", "needs at least 1 day"));
        }
        Ok(self)
    }
}
