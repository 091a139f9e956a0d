//! Which model answers: the question that `resolve_model` is asked before each call, its answer, and the catalogues of
//! models and providers.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::callback::CallbackError;

/// The parameter that is about the server and no parameter of the model.
const COMPAT: &str = "compat";

/// Chooses the model for one call. The answer is final: there is no fallback.
pub type ModelPolicyProvider = Arc<
    dyn Fn(ModelPolicyContext) -> BoxFuture<'static, Result<ModelPolicyResult, CallbackError>> + Send + Sync,
>;

/// What is known when a model has to be chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelPolicyContext {
    /// Why the model is called: `main`, `subagent`, `web_fetch`, `image_gen`, `compact` and others.
    pub purpose: String,
    /// The session.
    pub session_id: String,
    /// The agent that calls.
    pub agent_id: String,
    /// The number of the turn.
    pub turn_index: u64,
    /// What can be chosen.
    pub available_models: Vec<ModelInfo>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelPolicyResult {
    /// The model.
    pub model: ModelChoice,
    /// Overrides such as `reasoningEffort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
}

impl ModelPolicyResult {
    /// This model.
    #[must_use]
    pub fn model(name: impl Into<String>) -> Self {
        Self { model: ModelChoice::Name(name.into()), parameters: None }
    }

    /// This model, on a key of your own.
    #[must_use]
    pub fn custom(model: CustomModel) -> Self {
        Self { model: ModelChoice::Custom(model), parameters: None }
    }

    /// The shape in which it travels: the name alone under `model`, the rest as credentials.
    pub(crate) fn wire(&self) -> Value {
        let mut parameters = self.parameters.clone();
        let compat = parameters.as_mut().and_then(|parameters| parameters.remove(COMPAT));
        let mut answer = match &self.model {
            ModelChoice::Name(name) => json!({ "model": name }),
            ModelChoice::Custom(custom) => {
                let mut credentials = json!({ "provider": custom.provider, "api_key": custom.api_key });
                for (key, value) in [("url", &custom.url), ("style", &custom.style)] {
                    if let Some(value) = value {
                        credentials[key] = json!(value);
                    }
                }
                if let Some(compat) = compat {
                    credentials[COMPAT] = compat;
                }
                json!({ "model": custom.model, "credentials": credentials })
            }
        };
        if let Some(parameters) = parameters.filter(|parameters| !parameters.is_empty()) {
            answer["parameters"] = json!(parameters);
        }
        answer
    }
}

/// A model by its name, or one on a key of your own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModelChoice {
    /// A name or tier.
    Name(String),
    /// A model on a key of your own.
    Custom(CustomModel),
}

impl From<&str> for ModelPolicyResult {
    fn from(name: &str) -> Self {
        Self::model(name)
    }
}

impl From<String> for ModelPolicyResult {
    fn from(name: String) -> Self {
        Self::model(name)
    }
}

/// A model on a key of your own.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomModel {
    /// The provider, as the catalogue names it.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The key.
    pub api_key: String,
    /// Another address than the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `openai` (the default) or `anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
}

impl CustomModel {
    /// The choice of this model at a server with this compatibility profile: its name, or an object of the fields that
    /// differ.
    #[must_use]
    pub fn with_compat(self, compat: impl Into<Value>) -> ModelPolicyResult {
        let parameters = Map::from_iter([(COMPAT.to_owned(), compat.into())]);
        ModelPolicyResult { model: ModelChoice::Custom(self), parameters: Some(parameters) }
    }
}

impl std::fmt::Debug for CustomModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not reach a log by accident.
        formatter
            .debug_struct("CustomModel")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("url", &self.url)
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

/// A model that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelInfo {
    /// What to pass to `set_model`.
    pub value: String,
    /// For people.
    pub display_name: String,
    /// False when it cannot be used now; `None` counts as true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_enabled: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A provider for keys of your own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByokProviderInfo {
    /// What to write into [`CustomModel::provider`].
    pub key: String,
    /// For people.
    pub display_name: String,
    /// Where to get a key.
    pub api_key_url: String,
    /// Its address.
    pub url: String,
    /// What the user has to fill in.
    pub fields: Vec<ByokFieldInfo>,
    /// Its models, in groups.
    pub types: Vec<ByokModelTypeInfo>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Something that the user has to fill in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByokFieldInfo {
    /// For example `api_key`.
    pub key: String,
    /// For people.
    pub display_name: String,
    /// For example `free_input`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True when it cannot be left out.
    pub mandatory: bool,
}

/// A group of models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByokModelTypeInfo {
    /// The group.
    pub key: String,
    /// For people.
    pub display_name: String,
    /// Its models.
    pub models: Vec<ByokModelInfo>,
}

/// A model of a provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByokModelInfo {
    /// What to write into [`CustomModel::model`].
    pub key: String,
    /// For people.
    pub display_name: String,
    /// True when it reads images.
    pub is_vl: bool,
    /// True when it reasons.
    pub is_reasoning: bool,
    /// The protocol, for example `openai`.
    pub format: String,
    /// The longest input.
    pub max_input_tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_model_travels_as_name_and_credentials() {
        let custom = CustomModel {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            api_key: "k".to_owned(),
            style: Some("anthropic".to_owned()),
            ..CustomModel::default()
        };
        assert!(!format!("{custom:?}").contains("\"k\""));
        assert_eq!(
            custom.with_compat(json!({ "profile": "vllm", "images": "none" })).wire(),
            json!({ "model": "m", "credentials": {
                "provider": "p", "api_key": "k", "style": "anthropic",
                "compat": { "profile": "vllm", "images": "none" },
            } })
        );
    }
}
