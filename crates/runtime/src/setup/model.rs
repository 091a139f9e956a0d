//! From options and settings to how the model is reached, and to the model that judges calls in auto mode.

use std::sync::Arc;

use qoder_core::images::ImageModel;
use qoder_core::ports::Model;
use qoder_models::{Learned, ModelConfigError, ModelOptions, ModelSettings};
use serde_json::{Value, json};

use super::{Options, Setup, SetupError, value_error};
use crate::callbacks::{Callbacks, ModelPolicy};
use crate::engine::Classifier;
use crate::model_policy::images::PolicyImages;
use crate::model_policy::{PolicyMemory, PolicyModel};
use qoder_config::settings::Settings;
use qoder_models::ModelByName;
use qoder_models::SwitchedModel;

/// The tool that makes pictures.
const IMAGE_GEN: &str = "ImageGen";

/// What [`Setup::chosen_models`] answers.
type ChosenModels = (Arc<SwitchedModel>, ModelByName, Option<ModelByName>);

pub(super) fn model_options(options: &Options, settings: &Settings) -> Result<ModelOptions, SetupError> {
    let group = |path: &str| settings.get(path).cloned().unwrap_or_else(|| json!({}));
    let mut providers = group("providers");
    // The same place under the name of its topic; what is written under both is one provider.
    if let (Value::Object(providers), Value::Object(more)) = (&mut providers, group("models.providers")) {
        for (name, fields) in more {
            match (providers.get_mut(&name), fields) {
                (Some(Value::Object(known)), Value::Object(fields)) => known.extend(fields),
                (_, fields) => drop(providers.insert(name, fields)),
            }
        }
    }
    let shape = json!({
        "providers": providers,
        "tiers": group("model.tiers"),
        "prices": group("model.prices"),
        "contextWindows": group("model.contextWindows"),
        "maxOutputTokens": group("model.maxOutputTokensByModel"),
    });
    let models: ModelSettings = serde_json::from_value(shape)
        .map_err(|error| value_error(settings, "providers", format!("or `model` cannot be used: {error}")))?;
    let text = |path: &str| settings.text(path).map(str::to_owned);
    let number = |path: &str| settings.get(path).and_then(Value::as_u64);
    let environment = &options.environment;
    let most = number("general.maxAttempts").unwrap_or(10).clamp(1, 10);
    Ok(ModelOptions {
        model: options
            .model
            .clone()
            .or_else(|| environment.get("QODER_MODEL").filter(|name| !name.is_empty()).cloned())
            .or_else(|| text("model.name")),
        fallback_model: options.fallback_model.clone().or_else(|| text("model.fallback")),
        settings: models,
        base_url: options.base_url.clone(),
        api_style: options.api_style.clone(),
        api_key_env: options.api_key_env.clone(),
        environment: environment.clone(),
        max_attempts: u32::try_from(most).unwrap_or(10),
        record: options.record.clone(),
        context_window: options.context_window.or_else(|| number("model.contextWindow")),
        max_output_tokens: options
            .max_output_tokens
            .or_else(|| number("model.maxOutputTokens").and_then(|most| u32::try_from(most).ok())),
        betas: options.betas.clone(),
        proxy: options.proxy.clone(),
        compat: Value::Null,
        learned: Learned::default(),
        clients: options.http_clients.clone(),
    })
}

impl Setup {
    /// The model of a name, or the one that the options and settings name. Where a front chooses the model before each
    /// call, that choice stands instead.
    pub fn model(&self, name: Option<&str>, callbacks: &Callbacks) -> Result<Arc<dyn Model>, SetupError> {
        let mut options = self.model_options.clone();
        if let Some(name) = name {
            options.model = Some(name.to_owned());
        }
        Ok(model(options, callbacks.model_policy.as_ref(), &self.policy_memory)?)
    }

    /// The session's model, the way to others, and the way to those that commands name for their turns: `None`
    /// where a front chooses the model.
    pub(super) fn chosen_models(&self, callbacks: &Callbacks) -> Result<ChosenModels, SetupError> {
        let model = Arc::new(SwitchedModel::new(self.model(None, callbacks)?));
        let models = self.models(callbacks);
        let turn_models = callbacks.model_policy.is_none().then(|| Arc::clone(&models));
        Ok((model, models, turn_models))
    }

    /// Finds models by name later, as this setup would.
    fn models(&self, callbacks: &Callbacks) -> ModelByName {
        let (options, policy) = (self.model_options.clone(), callbacks.model_policy.clone());
        let memory = self.policy_memory.clone();
        Arc::new(move |name| {
            let options = ModelOptions { model: Some(name.to_owned()), ..options.clone() };
            model(options, policy.as_ref(), &memory).map_err(|error| format!("{error}. {}", error.hint()))
        })
    }

    /// The image model: the one that the settings name, or the one that a front chooses. A front is asked whether it has
    /// one only where an option or a rule names the tool, so that no callback is asked for a purpose without a use.
    pub(super) fn image_model(
        &self,
        callbacks: &Callbacks,
    ) -> Result<Option<Arc<dyn ImageModel>>, SetupError> {
        let name = self.config.settings.text("model.image").filter(|name| !name.trim().is_empty());
        let Some(policy) = &callbacks.model_policy else {
            return Ok(name
                .map(|name| qoder_models::resolve_image(&self.model_options, name))
                .transpose()?);
        };
        if name.is_none() && !self.names_tool(IMAGE_GEN) {
            return Ok(None);
        }
        let options = ModelOptions { fallback_model: None, ..self.model_options.clone() };
        let policy = PolicyModel::new(options, Arc::clone(policy), self.policy_memory.clone())?;
        Ok(Some(Arc::new(PolicyImages::new(policy, name.is_some()))))
    }

    /// True when the options or a rule name a tool.
    fn names_tool(&self, name: &str) -> bool {
        let listed = self.options.tools.iter().flatten().any(|tool| tool == name);
        listed || self.rules.allow.iter().chain(&self.rules.ask).any(|rule| rule.tool == name)
    }

    /// The judge of auto mode, when the settings name one. Projects cannot: `autoMode` is not theirs to set.
    pub(super) fn classifier(
        &self,
        policy: Option<&ModelPolicy>,
    ) -> Result<Option<Classifier>, ModelConfigError> {
        let settings = &self.config.settings;
        let Some(name) = settings.text("autoMode.classifier").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let options = self.model_options.clone();
        let options = ModelOptions { model: Some(name.to_owned()), fallback_model: None, ..options };
        let model = model(options, policy, &self.policy_memory)?;
        let mut hints = String::new();
        for (key, words) in [
            ("autoMode.allow", "Usually allow"),
            ("autoMode.soft_deny", "Usually deny"),
            ("autoMode.environment", "About the surroundings"),
        ] {
            for line in settings.list(key) {
                hints.push_str(&format!("\n{words}: {line}"));
            }
        }
        Ok(Some(Classifier { model, hints }))
    }
}

fn model(
    options: ModelOptions,
    policy: Option<&ModelPolicy>,
    memory: &PolicyMemory,
) -> Result<Arc<dyn Model>, ModelConfigError> {
    match policy {
        None => qoder_models::resolve(&options),
        Some(policy) => {
            let options = ModelOptions { fallback_model: None, ..options };
            Ok(Arc::new(PolicyModel::new(options, Arc::clone(policy), memory.clone())?))
        }
    }
}
