//! What a session must keep to itself: the keys that it is configured with, taken out of everything that is kept or shown,
//! and the variables that hold them, which programs do not inherit.

use qoder_models::SECRET_ENVIRONMENT;
use serde_json::Value;

use crate::setup::Setup;
use crate::telemetry::Telemetry;
use qoder_config::settings::holds_secret;

/// Shorter than this a value could be any word.
const SHORTEST: usize = 8;

impl Setup {
    /// The values of keys.
    pub(in crate::setup) fn secrets(&self) -> Vec<String> {
        let mut secrets = qoder_models::configured_secrets(&self.model_options);
        let variable =
            self.config.settings.text("tools.webSearch.apiKeyEnv").and_then(|name| self.variable(name));
        secrets.extend(variable.map(str::to_owned));
        secrets.extend(self.options.secrets.iter().cloned());
        secrets.extend(self.telemetry.iter().flat_map(Telemetry::secrets).cloned());
        collect(&self.config.settings.effective, "", &mut secrets);
        let bare: Vec<String> = secrets.iter().filter_map(|secret| without_scheme(secret)).collect();
        secrets.extend(bare);
        secrets.retain(|secret| !secret.is_empty());
        secrets.sort_unstable();
        secrets.dedup();
        secrets
    }

    /// Variables that commands must not inherit: those that hold keys, by name or in their value.
    pub(in crate::setup) fn hidden_environment(&self) -> Vec<String> {
        let secrets = self.secrets();
        let mut hidden: Vec<String> = SECRET_ENVIRONMENT.iter().map(|name| (*name).to_owned()).collect();
        let excluded = self.config.settings.list("advanced.excludedEnvVars");
        hidden.extend(if self.config.settings.get("advanced.excludedEnvVars").is_some() {
            excluded
        } else {
            vec!["DEBUG".to_owned(), "DEBUG_MODE".to_owned()]
        });
        let holds = |value: &str| {
            let is_inside = |secret: &&String| secret.len() >= SHORTEST && value.contains(secret.as_str());
            secrets.iter().any(|secret| secret == value) || secrets.iter().any(|secret| is_inside(&secret))
        };
        let holders = self.options.environment.iter().filter(|(_, value)| holds(value));
        hidden.extend(holders.map(|(name, _)| name.clone()));
        hidden.extend(self.hidden_by_telemetry());
        hidden.sort();
        hidden.dedup();
        hidden
    }
}

/// Texts of the settings whose name says that they are keys. What names a variable is no key.
fn collect(value: &Value, name: &str, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let is_key = holds_secret(name) && text.len() >= SHORTEST && !text.contains("${");
            secrets.extend(is_key.then(|| text.clone()));
        }
        Value::Object(map) => {
            for (below, value) in map {
                collect(value, below, secrets);
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The credential of `Bearer …`, which may appear without its scheme.
fn without_scheme(secret: &str) -> Option<String> {
    let (scheme, credential) = secret.split_once(' ')?;
    let known = ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str());
    known.then(|| credential.trim().to_owned())
}
