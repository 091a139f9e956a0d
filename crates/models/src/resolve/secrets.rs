//! The keys that are configured, so that tools do not inherit them and nothing prints them.

use crate::settings::ModelOptions;

/// Names of variables that hold keys. Tools must not inherit them.
pub const SECRET_ENVIRONMENT: &[&str] =
    &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "QODER_PERSONAL_ACCESS_TOKEN"];

/// The values of every configured key, for redaction.
#[must_use]
pub fn configured_secrets(options: &ModelOptions) -> Vec<String> {
    let mut secrets: Vec<String> =
        SECRET_ENVIRONMENT.iter().filter_map(|name| options.variable(name)).map(str::to_owned).collect();
    secrets.extend(options.api_key_env.as_deref().and_then(|name| options.variable(name)).map(str::to_owned));
    for provider in options.settings.providers.values() {
        secrets.extend(provider.api_key.clone());
        secrets.extend(
            provider.api_key_env.as_deref().and_then(|name| options.variable(name)).map(str::to_owned),
        );
        for (name, value) in &provider.headers {
            if name.eq_ignore_ascii_case("authorization") || name.to_ascii_lowercase().contains("key") {
                secrets.push(value.clone());
            }
        }
    }
    secrets.retain(|secret| !secret.trim().is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}
