//! A model that a front chooses anew before each call. The front's answer is final: there is no fallback, and an error
//! or an empty name ends the run. Models that were chosen before are kept, so that their connections are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use qoder_core::ports::{Model, ModelEvent, ModelFacts, ModelRequest};
use qoder_models::{ModelConfigError, ModelOptions};
use qoder_types::{ModelFailure, ModelFailureClass, Purpose, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::callbacks::ModelPolicy;

/// How long a list of models counts as present.
const LIST_AGE: Duration = Duration::from_secs(60);
/// How long listing may take before the question goes out without a list.
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// The variable that carries a chosen key to the route; it exists in no process.
const KEY_VARIABLE: &str = "QODER_CHOSEN_KEY";

/// A model that a front chooses.
#[derive(Clone)]
pub struct PolicyModel(Arc<Inner>);

struct Inner {
    options: ModelOptions,
    policy: ModelPolicy,
    /// What is known before the first choice.
    usual: Arc<dyn Model>,
    chosen: Mutex<HashMap<String, Arc<dyn Model>>>,
    listed: Mutex<Option<(Instant, Vec<Value>)>>,
}

/// What a front answered.
#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    model: String,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    credentials: Option<Credentials>,
}

#[derive(Deserialize)]
struct Credentials {
    provider: String,
    api_key: String,
    url: Option<String>,
    style: Option<String>,
}

impl PolicyModel {
    /// Asks `policy` before each call.
    ///
    /// # Errors
    /// When the options name a model that does not exist.
    pub fn new(options: ModelOptions, policy: ModelPolicy) -> Result<Self, ModelConfigError> {
        let usual = qoder_models::resolve(&options)?;
        let (chosen, listed) = (Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Inner { options, policy, usual, chosen, listed })))
    }
}

impl Model for PolicyModel {
    fn facts(&self) -> ModelFacts {
        self.0.usual.facts()
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelFailure>> {
        let inner = Arc::clone(&self.0);
        let begun = async move {
            match inner.choose(request).await {
                Ok(stream) => stream,
                Err(problem) => stream::once(std::future::ready(Err(refused(problem)))).boxed(),
            }
        };
        stream::once(begun).flatten().boxed()
    }
}

fn refused(message: String) -> ModelFailure {
    ModelFailure { class: ModelFailureClass::Configuration, message, status: None, retry_after_ms: None }
}

impl Inner {
    async fn choose(
        &self,
        mut request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelFailure>>, String> {
        let question = json!({
            "purpose": request.purpose,
            "sessionId": request.session_id,
            "agentId": if request.purpose == Purpose::Subagent { request.session_id.as_str() } else { "main" },
            "turnIndex": request.messages.iter().filter(|each| each.message.role == Role::Assistant).count(),
            "availableModels": self.available().await,
        });
        let answer =
            (self.policy)(question).await.map_err(|problem| format!("resolve_model failed: {problem}"))?;
        let choice: Choice = serde_json::from_value(answer)
            .map_err(|error| format!("resolve_model answered something unreadable: {error}"))?;
        if choice.model.trim().is_empty() {
            return Err("resolve_model answered with an empty model; it must name one".to_owned());
        }
        apply(choice.parameters.as_ref(), &mut request);
        let own_key = choice.credentials.is_some();
        let reply = self.model(&choice)?.stream(request);
        // What runs on the user's own key costs the platform nothing.
        Ok(reply
            .map(move |event| match event {
                Ok(ModelEvent::Reply(mut reply)) if own_key => {
                    reply.cost_usd = 0.0;
                    Ok(ModelEvent::Reply(reply))
                }
                other => other,
            })
            .boxed())
    }

    fn model(&self, choice: &Choice) -> Result<Arc<dyn Model>, String> {
        let route =
            choice.credentials.as_ref().map(|with| (&with.provider, &with.api_key, &with.url, &with.style));
        let key = format!("{:?} {route:?}", choice.model);
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = chosen.get(&key) {
            return Ok(Arc::clone(model));
        }
        let mut options = ModelOptions { model: Some(choice.model.clone()), ..self.options.clone() };
        if let Some(with) = &choice.credentials {
            options.base_url = Some(self.address(with)?);
            options.api_style = Some(with.style.clone().unwrap_or_else(|| "openai".to_owned()));
            options.api_key_env = Some(KEY_VARIABLE.to_owned());
            options.environment.insert(KEY_VARIABLE.to_owned(), with.api_key.clone());
        }
        let model = qoder_models::resolve(&options)
            .map_err(|error| format!("resolve_model chose {}: {error}. {}", choice.model, error.hint()))?;
        chosen.insert(key, Arc::clone(&model));
        Ok(model)
    }

    fn address(&self, with: &Credentials) -> Result<String, String> {
        if let Some(url) = with.url.as_ref().filter(|url| !url.trim().is_empty()) {
            return Ok(url.clone());
        }
        let configured = self.options.settings.providers.get(&with.provider);
        match (configured.and_then(|provider| provider.base_url.clone()), with.provider.as_str()) {
            (Some(url), _) => Ok(url),
            (None, "anthropic") => Ok("https://api.anthropic.com".to_owned()),
            (None, "openai") => Ok("https://api.openai.com".to_owned()),
            (None, other) => Err(format!(
                "resolve_model chose the provider `{other}`, whose address is not known; give `url`, or configure it \
                 under `providers` in the settings"
            )),
        }
    }

    /// What can be chosen now; empty when nobody can say.
    async fn available(&self) -> Vec<Value> {
        let kept = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((when, models)) = kept
            && when.elapsed() < LIST_AGE
        {
            return models;
        }
        let models: Vec<Value> =
            tokio::time::timeout(LIST_PATIENCE, list(&self.options)).await.unwrap_or_default();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), models.clone()));
        models
    }
}

/// The models that the configured providers offer, as the documented `ModelInfo`; empty when none can say.
pub async fn list(options: &ModelOptions) -> Vec<Value> {
    let listed = qoder_models::list_models(options).await.unwrap_or_default();
    let info = |model: qoder_models::ListedModel| {
        let name = model.display_name.unwrap_or_else(|| model.id.clone());
        json!({ "value": model.id, "displayName": name, "isEnabled": true })
    };
    listed.into_iter().map(info).collect()
}

/// Parameters that a request can carry; others are the provider's own business and stay as configured.
fn apply(parameters: Option<&Value>, request: &mut ModelRequest) {
    let value = |names: [&str; 2]| names.iter().find_map(|name| parameters?.get(name));
    let tokens = value(["max_tokens", "maxTokens"]).and_then(Value::as_u64);
    if let Some(tokens) = tokens.and_then(|tokens| u32::try_from(tokens).ok()) {
        request.max_output_tokens = Some(tokens);
    }
    if let Some(effort) = value(["reasoningEffort", "reasoning_effort"]).and_then(Value::as_str) {
        request.effort = Some(effort.to_owned());
    }
}
