//! Changes of a setup after it was prepared: a token that came with the handshake, settings that a front lays on top
//! while a session runs, and what a front may show of the configured providers.

use qoder_models::ModelOptions;
use serde_json::{Value, json};

use super::{Setup, SetupError};

/// The variable under which a token is known.
const TOKEN: &str = "QODER_PERSONAL_ACCESS_TOKEN";

impl Setup {
    /// Uses a token that the front was given. It goes to the gateway, if one is configured, and into the list of what is
    /// never shown.
    pub fn use_access_token(&mut self, token: &str) {
        for environment in [&mut self.options.environment, &mut self.model_options.environment] {
            environment.insert(TOKEN.to_owned(), token.to_owned());
        }
    }

    /// Reaches models through this proxy, in place of those that the environment names.
    pub fn use_proxy(&mut self, proxy: &str) {
        self.options.proxy = Some(proxy.to_owned());
        self.model_options.proxy = Some(proxy.to_owned());
    }

    /// The same setup with more in the layer of `--settings`; a key that is given again replaces the former value.
    ///
    /// # Errors
    /// When the settings cannot be used; nothing has changed then.
    pub fn with_flag_settings(&self, settings: &Value) -> Result<Self, SetupError> {
        let mut flag = self.config.settings.flag_layer().unwrap_or_else(|| json!({}));
        merge(&mut flag, settings);
        let options = super::Options { settings: Some(flag.to_string()), ..self.options.clone() };
        Self::prepare(options)
    }

    /// True when another model is configured than in `other`.
    #[must_use]
    pub fn names_another_model(&self, other: &Self) -> bool {
        let named = |options: &ModelOptions| (options.model.clone(), options.fallback_model.clone());
        named(&self.model_options) != named(&other.model_options)
    }

    /// The configured providers, as the documented catalog of those that take a user's own key.
    #[must_use]
    pub fn provider_catalog(&self) -> Vec<Value> {
        let field =
            json!([{ "key": "api_key", "display_name": "API key", "type": "free_input", "mandatory": true }]);
        let providers = self.model_options.settings.providers.iter();
        providers
            .map(|(key, provider)| {
                let protocol = provider.protocol.as_deref().unwrap_or("anthropic-messages");
                let format = if protocol.starts_with("anthropic") { "anthropic" } else { "openai" };
                let model = |id: &String| json!({ "key": id, "display_name": id, "format": format });
                let models: Vec<Value> = provider.models.iter().map(model).collect();
                json!({
                    "key": key, "display_name": key, "api_key_url": "", "url": provider.base_url,
                    "fields": field, "types": [{ "key": "pg", "display_name": key, "models": models }],
                })
            })
            .collect()
    }
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_wins_and_others_stay() {
        let mut base = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 1 });
        merge(&mut base, &json!({ "a": { "c": [3] }, "e": null }));
        assert_eq!(base, json!({ "a": { "b": 1, "c": [3] }, "d": 1, "e": null }));
    }
}
