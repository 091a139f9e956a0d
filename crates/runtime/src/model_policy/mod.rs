//! A model that a front chooses anew before each call. The front's answer is final: there is no fallback, and an error
//! or an empty name ends the run. Models that were chosen before are kept, so that their connections are.

pub(crate) mod images;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use qoder_core::images::ImageModel;
use qoder_core::ports::{Model, ModelEvent, ModelFacts, ModelRequest};
use qoder_models::{ModelConfigError, ModelOptions};
use qoder_types::{ModelFailure, ModelFailureClass, Purpose, Role};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::callbacks::ModelPolicy;

/// A list of models that is not older counts as present: calls that begin together share one.
const LIST_AGE: Duration = Duration::from_secs(1);
/// How long no list is requested after one could not be fetched.
const LIST_PAUSE: Duration = Duration::from_secs(60);
/// How long listing may take before the question goes out without a list.
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// The variable that carries a chosen key to the route; it exists in no process.
const KEY_VARIABLE: &str = "QODER_CHOSEN_KEY";
/// Models that were chosen before and are kept. Keys may be new with every choice.
const MOST_KEPT: usize = 64;
/// The agent that a session itself is.
const MAIN_AGENT: &str = "main";

/// A model that a front chooses.
#[derive(Clone)]
pub struct PolicyModel(Arc<Inner>);

struct Inner {
    options: ModelOptions,
    policy: ModelPolicy,
    /// What is known before the first choice.
    usual: Arc<dyn Model>,
    /// How much fits into the model of the conversation that was chosen last.
    chosen_limits: Mutex<Option<ChosenLimits>>,
    memory: PolicyMemory,
}

/// How much fits into a model, and what it was chosen for.
#[derive(Clone, Copy)]
struct ChosenLimits {
    purpose: Purpose,
    context_window: u64,
    max_output_tokens: u64,
}

/// What the models of one session know together, those of its agents included.
#[derive(Clone, Default)]
pub struct PolicyMemory(Arc<Memory>);

#[derive(Default)]
struct Memory {
    /// The session itself; its agents speak under ids of their own.
    session: Mutex<Option<String>>,
    /// Models that were chosen before.
    chosen: Mutex<HashMap<String, Arc<dyn Model>>>,
    listed: Mutex<Option<Listed>>,
}

/// A list of models, and until when it counts.
#[derive(Clone)]
struct Listed {
    until: Instant,
    models: Vec<Value>,
}

/// What a front answered.
#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    model: String,
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    #[serde(default)]
    credentials: Option<Credentials>,
}

#[derive(Deserialize)]
struct Credentials {
    provider: String,
    api_key: String,
    url: Option<String>,
    style: Option<String>,
    /// As `compat` of a provider in the settings.
    #[serde(default)]
    compat: Value,
}

impl PolicyModel {
    /// Asks `policy` before each call.
    ///
    /// # Errors
    /// When the options name a model that does not exist.
    pub fn new(
        options: ModelOptions,
        policy: ModelPolicy,
        memory: PolicyMemory,
    ) -> Result<Self, ModelConfigError> {
        let usual = qoder_models::resolve(&options)?;
        Ok(Self(Arc::new(Inner { options, policy, usual, chosen_limits: Mutex::default(), memory })))
    }
}

/// An image model that was chosen for one call.
pub(crate) struct ChosenImages {
    /// The model.
    pub(crate) model: Arc<dyn ImageModel>,
    /// What the provider's request gets besides.
    pub(crate) parameters: BTreeMap<String, Value>,
    /// True when it runs on a key of the front's user.
    pub(crate) own_key: bool,
}

impl PolicyModel {
    /// Asks which model makes pictures for the session or agent `session_id`.
    pub(crate) async fn image_model(&self, session_id: &str) -> Result<ChosenImages, String> {
        let choice = self.0.ask(Purpose::ImageGen, session_id, 0).await?;
        let options = self.0.options_of(&choice)?;
        let model = qoder_models::resolve_image(&options, &choice.model)
            .map_err(|error| explained(&choice, &error))?;
        let parameters = choice.parameters.into_iter().flatten().filter(|(_, value)| !value.is_null());
        Ok(ChosenImages { model, parameters: parameters.collect(), own_key: choice.credentials.is_some() })
    }
}

impl Model for PolicyModel {
    fn facts(&self) -> ModelFacts {
        let usual = self.0.usual.facts();
        let chosen_limits = *self.0.chosen_limits.lock().unwrap_or_else(PoisonError::into_inner);
        match chosen_limits {
            Some(ChosenLimits { context_window, max_output_tokens, .. }) => {
                ModelFacts { context_window, max_output_tokens, ..usual }
            }
            None => usual,
        }
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
        let turns = request.messages.iter().filter(|each| each.message.role == Role::Assistant).count();
        let mut choice = self.ask(request.purpose, &request.session_id, turns).await?;
        let window = apply(choice.parameters.take(), &mut request)?;
        let own_key = choice.credentials.is_some();
        let model = self.model(&choice)?;
        self.remember(request.purpose, &model.facts(), window);
        let reply = model.stream(request);
        // What runs on the user's own key costs the platform nothing.
        Ok(reply
            .map(move |event| match event {
                Ok(ModelEvent::Reply(mut reply)) if own_key => {
                    reply.cost_usd = 0.0;
                    Ok(ModelEvent::Reply(reply))
                }
                Err(failure) if own_key => {
                    let message = in_words_of_the_callback(&failure.message);
                    Err(ModelFailure { message, ..failure })
                }
                other => other,
            })
            .boxed())
    }

    /// Asks the front.
    async fn ask(&self, purpose: Purpose, session_id: &str, turns: usize) -> Result<Choice, String> {
        let session = self.memory.session(purpose, session_id);
        let question = json!({
            "purpose": word(purpose),
            "agentId": if session == session_id { MAIN_AGENT } else { session_id },
            "sessionId": session,
            "turnIndex": turns,
            "availableModels": self.available().await,
        });
        let answer =
            (self.policy)(question).await.map_err(|problem| format!("resolve_model failed: {problem}"))?;
        let choice: Choice = serde_json::from_value(answer)
            .map_err(|error| format!("resolve_model answered something unreadable: {error}"))?;
        if choice.model.trim().is_empty() {
            return Err("resolve_model answered with an empty model; it must name one".to_owned());
        }
        Ok(choice)
    }

    /// How long a conversation may get follows from the model that it was last continued with. Agents that have no model of
    /// their own ask this one, too; the session itself goes first.
    fn remember(&self, purpose: Purpose, facts: &ModelFacts, window: Option<u64>) {
        let mut chosen_limits = self.chosen_limits.lock().unwrap_or_else(PoisonError::into_inner);
        let of_agents = chosen_limits.is_none_or(|chosen_limits| chosen_limits.purpose == Purpose::Subagent);
        if purpose == Purpose::Main || (purpose == Purpose::Subagent && of_agents) {
            let context_window = window.unwrap_or(facts.context_window);
            *chosen_limits =
                Some(ChosenLimits { purpose, context_window, max_output_tokens: facts.max_output_tokens });
        }
    }

    fn model(&self, choice: &Choice) -> Result<Arc<dyn Model>, String> {
        let route = choice
            .credentials
            .as_ref()
            .map(|with| (&with.provider, &with.api_key, &with.url, &with.style, &with.compat));
        let key = format!("{:?} {route:?}", choice.model);
        let mut chosen = self.memory.0.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = chosen.get(&key) {
            return Ok(Arc::clone(model));
        }
        let model =
            qoder_models::resolve(&self.options_of(choice)?).map_err(|error| explained(choice, &error))?;
        if chosen.len() >= MOST_KEPT {
            chosen.clear();
        }
        chosen.insert(key, Arc::clone(&model));
        Ok(model)
    }

    /// The options that a choice means.
    fn options_of(&self, choice: &Choice) -> Result<ModelOptions, String> {
        let mut options = ModelOptions { model: Some(choice.model.clone()), ..self.options.clone() };
        if let Some(with) = &choice.credentials {
            if with.api_key.trim().is_empty() {
                return Err(format!("resolve_model chose {} with an empty `api_key`", choice.model));
            }
            options.base_url = Some(self.address(with)?);
            options.api_style = Some(with.style.clone().unwrap_or_else(|| "openai".to_owned()));
            options.compat = self.compat(with);
            options.api_key_env = Some(KEY_VARIABLE.to_owned());
            options.environment.insert(KEY_VARIABLE.to_owned(), with.api_key.clone());
        }
        Ok(options)
    }

    /// What the callback says about the server, or the settings of the provider that it names.
    fn compat(&self, with: &Credentials) -> Value {
        if !with.compat.is_null() {
            return with.compat.clone();
        }
        let configured = self.options.settings.providers.get(&with.provider);
        configured.map(|provider| provider.compat.clone()).unwrap_or_default()
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

    /// What can be chosen now; the last known list, or nothing, when the present one is unknown.
    async fn available(&self) -> Vec<Value> {
        let listed = &self.memory.0.listed;
        let kept = listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.as_ref().filter(|kept| Instant::now() < kept.until) {
            return kept.models.clone();
        }
        let fetched = tokio::time::timeout(LIST_PATIENCE, list(&self.options)).await.unwrap_or_default();
        let (age, models) = if fetched.is_empty() {
            (LIST_PAUSE, kept.map(|kept| kept.models).unwrap_or_default())
        } else {
            (LIST_AGE, fetched)
        };
        let now = Listed { until: Instant::now() + age, models: models.clone() };
        *listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        models
    }
}

impl PolicyMemory {
    /// The session that a request belongs to, also when an agent of it makes the request.
    fn session(&self, purpose: Purpose, session_id: &str) -> String {
        let mut session = self.0.session.lock().unwrap_or_else(PoisonError::into_inner);
        if purpose == Purpose::Main || session.is_none() {
            *session = Some(session_id.to_owned());
        }
        session.clone().unwrap_or_default()
    }
}

/// The documented word for a purpose; those that are our own have the nearest one.
fn word(purpose: Purpose) -> Value {
    if matches!(purpose, Purpose::Classifier | Purpose::Grading) {
        return json!("utility");
    }
    if purpose == Purpose::Sampling {
        return json!("generate");
    }
    json!(purpose)
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

/// Why a choice cannot be used.
fn explained(choice: &Choice, error: &ModelConfigError) -> String {
    let problem = format!("resolve_model chose {}: {error}. {}", choice.model, error.hint());
    if choice.credentials.is_some() { in_words_of_the_callback(&problem) } else { problem }
}

/// A fault in what the callback chose, in the names that it has for it.
fn in_words_of_the_callback(text: &str) -> String {
    text.replace(
        &format!("it is taken from {KEY_VARIABLE}"),
        "it is the `api_key` that resolve_model returned",
    )
    .replace("--api-style", "`style`")
    .replace("--base-url", "`url`")
}

/// Overrides: some have a place in the request, the others go to the provider as they are. Answers with the context window
/// that is wanted, which is nothing for the provider.
fn apply(parameters: Option<Map<String, Value>>, request: &mut ModelRequest) -> Result<Option<u64>, String> {
    let mut window = None;
    for (name, value) in parameters.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        let wrong = |wanted: &str| format!("resolve_model gave `{name}` {value}; accepted {wanted}");
        match name.as_str() {
            "max_tokens" | "maxTokens" => {
                let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
                let tokens = tokens.filter(|tokens| *tokens > 0);
                request.max_output_tokens = Some(tokens.ok_or_else(|| wrong("are whole numbers above 0"))?);
            }
            "contextWindow" | "context_window" => {
                let tokens = value.as_u64().filter(|tokens| *tokens > 0);
                window = Some(tokens.ok_or_else(|| wrong("are whole numbers above 0"))?);
            }
            "reasoningEffort" | "reasoning_effort" | "effort" => {
                let effort = value.as_str().ok_or_else(|| wrong("is a word"))?;
                request.effort = Some(effort.to_owned());
            }
            "topP" => drop(request.parameters.insert("top_p".to_owned(), value)),
            "topK" => drop(request.parameters.insert("top_k".to_owned(), value)),
            _ => drop(request.parameters.insert(name, value)),
        }
    }
    Ok(window)
}
