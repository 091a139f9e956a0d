//! `/models`: what agents can have. The tiers come first; what providers offer is asked for once in a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use qoder_models::ListedModel;
use serde_json::{Value, json};

use super::app::App;
use crate::drive::RuntimeSettings;
use crate::http::{self as edge, ApiError, ApiRequest, Cursor, PageRequest, Scope};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;

/// How long a list of models is believed.
const BELIEVED: Duration = Duration::from_secs(300);
/// How long providers may take to list them.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST: u64 = 1_000;
/// Names that the settings, or the provider's own default, map to a model.
const TIERS: [(&str, &str); 5] = [
    ("auto", "Auto"),
    ("ultimate", "Ultimate"),
    ("performance", "Performance"),
    ("efficient", "Efficient"),
    ("lite", "Lite"),
];

/// Models that agents can have.
#[derive(Debug, Clone)]
pub struct ModelCatalog {
    settings: Arc<RuntimeSettings>,
    listed: Arc<Mutex<Option<Listed>>>,
}

/// What providers offered, and when they were asked.
type Listed = (Instant, Vec<ListedModel>);

impl ModelCatalog {
    /// The models of these settings.
    #[must_use]
    pub fn new(settings: RuntimeSettings) -> Self {
        Self { settings: Arc::new(settings), listed: Arc::default() }
    }

    /// Refuses a budget for a model without a price: it would never be reached.
    ///
    /// # Errors
    /// When the model has no known price.
    pub fn check_budget(&self, model: &str) -> Result<(), Refusal> {
        let options = self.settings.model_options(model);
        let unpriced = options.ok().and_then(|options| qoder_models::unpriced_model(&options));
        match unpriced {
            None => Ok(()),
            Some(model) => {
                let problem = format!("cannot be kept: the price of the model `{model}` is not known");
                Err(Problem::field("budget", problem).with_code("model_not_budgetable").into())
            }
        }
    }

    async fn all(&self) -> Vec<ListedModel> {
        let tiers = TIERS.iter().map(|(id, name)| ListedModel {
            id: (*id).to_owned(),
            display_name: Some((*name).to_owned()),
            provider: "tier".to_owned(),
        });
        let mut models: Vec<ListedModel> = tiers.collect();
        models.extend(self.offered().await);
        models
    }

    /// What providers offer; nothing while they cannot be asked.
    async fn offered(&self) -> Vec<ListedModel> {
        let known = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, models)) = known
            && at.elapsed() < BELIEVED
        {
            return models;
        }
        let Ok(options) = self.settings.model_options("auto") else { return Vec::new() };
        let listed = tokio::time::timeout(PATIENCE, qoder_models::list_models(&options)).await;
        let models = listed.ok().and_then(Result::ok).unwrap_or_default();
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), models.clone()));
        models
    }

    fn view(&self, model: &ListedModel) -> Value {
        let options = self.settings.model_options(&model.id).ok();
        let facts =
            options.and_then(|options| qoder_models::resolve(&options).ok()).map(|model| model.facts());
        let is_enabled = facts.is_some();
        let (window, output) = facts.map_or((0, 0), |facts| (facts.context_window, facts.max_output_tokens));
        json!({
            "id": model.id, "type": "model", "display_name": model.display_name.as_deref().unwrap_or(&model.id),
            "created_at": "2026-01-01T00:00:00Z", "max_input_tokens": window, "max_tokens": output,
            "capabilities": capabilities(), "lifecycle": "active", "source": model.provider, "is_enabled": is_enabled,
            "is_new": false, "price_factor": 1.0, "efforts": ["low", "medium", "high", "xhigh", "max"],
            "default_effort": null, "default_context_window": window, "available_context_windows": [window],
        })
    }
}

/// What an agent can use of a model. The keys are those that typed clients require; what concerns requests to a model itself, which
/// this server does not answer, is not supported.
fn capabilities() -> Value {
    let (yes, no) = (json!({ "supported": true }), json!({ "supported": false }));
    json!({
        "batch": no, "citations": no, "code_execution": no, "context_management": no, "structured_outputs": no,
        "effort": { "supported": true, "low": yes, "medium": yes, "high": yes, "xhigh": yes, "max": yes },
        "image_input": yes, "pdf_input": yes,
        "server_tools": { "supported": true, "web_search": yes, "code_execution": no },
        "thinking": {
            "supported": true,
            "types": { "adaptive": yes, "between_tools": no, "disabled": no, "enabled": no },
        },
    })
}

pub(super) async fn list(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let page = PageRequest::read(&request.query, MOST)?;
    let models = app.models.all().await;
    let place = |id: &str| models.iter().position(|model| model.id == id);
    let unknown = || Problem::field("page", "is not a cursor of this list");
    let (from, to) = match &page.cursor {
        Cursor::Start => (0, page.limit.min(models.len())),
        Cursor::After(id) => {
            let from = place(id).ok_or_else(unknown)? + 1;
            (from, (from + page.limit).min(models.len()))
        }
        Cursor::Before(id) => {
            let to = place(id).ok_or_else(unknown)?;
            (to.saturating_sub(page.limit), to)
        }
    };
    let shown = &models[from..to];
    let ids: Vec<String> = shown.iter().map(|model| model.id.clone()).collect();
    let data: Vec<Value> = shown.iter().map(|model| app.models.view(model)).collect();
    edge::json(&edge::page_of_ids(&ids, to < models.len(), from > 0, &data))
}

pub(super) async fn read(State(app): State<Arc<App>>, request: ApiRequest) -> Result<Response, ApiError> {
    request.needs(Scope::Read)?;
    let id = request.parameter(0);
    let models = app.models.all().await;
    let model = models.iter().find(|model| model.id == id).ok_or_else(|| Refusal::not_found("model", id))?;
    edge::json(&app.models.view(model))
}
