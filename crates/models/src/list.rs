//! Asks providers which models they offer, page by page. A provider that cannot say
//! is represented by what the settings list for it; only when nothing at all is known
//! does listing fail.

use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::client;
use crate::failure::{self, excerpt, failure, malformed};
use crate::http::Timeouts;
use crate::resolve::all_routes;
use crate::route::Route;
use crate::settings::ModelOptions;

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The id to pass as `--model`.
    pub id: String,
    /// The provider's name for people.
    pub display_name: Option<String>,
    /// The provider it comes from.
    pub provider: String,
}

/// A provider that always promises more must not hold up listing for ever.
const MOST_PAGES: usize = 20;

#[derive(Deserialize)]
struct Page {
    data: Vec<Value>,
    #[serde(default)]
    has_more: Value,
    #[serde(default)]
    last_id: Value,
}

/// What every configured provider offers. Without any provider the list holds the `offline` model alone.
///
/// # Errors
/// When no provider could be asked.
pub async fn list_models(options: &ModelOptions) -> Result<Vec<ListedModel>, ModelFailure> {
    let routes = all_routes(options)
        .map_err(|error| failure(ModelFailureClass::Configuration, format!("{error}. {}", error.hint())))?;
    if routes.is_empty() {
        return Ok(vec![ListedModel {
            id: "offline".into(),
            display_name: Some("Built-in rules, no language model".into()),
            provider: "offline".into(),
        }]);
    }
    let mut models: Vec<ListedModel> = Vec::new();
    let mut last_failure = None;
    for (route, configured) in routes {
        let mut offered = match ask(&route, options).await {
            Ok(offered) => offered,
            Err(failure) => {
                last_failure = Some(failure);
                Vec::new()
            }
        };
        for id in configured {
            if !offered.iter().any(|model| model.id == id) {
                offered.push(ListedModel { id, display_name: None, provider: route.provider.clone() });
            }
        }
        models.extend(offered);
    }
    match last_failure {
        Some(failure) if models.is_empty() => Err(failure),
        _ => Ok(models),
    }
}

/// What one provider offers.
pub(crate) async fn ask(route: &Route, options: &ModelOptions) -> Result<Vec<ListedModel>, ModelFailure> {
    let client = client::build(route, &options.environment)?;
    let mut models: Vec<ListedModel> = Vec::new();
    let mut after: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = ask_page(&client, route, options, after.as_deref()).await?;
        let known = models.len();
        for entry in &page.data {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let Some(id) = text("id").filter(|id| !models.iter().any(|model| model.id == *id)) else {
                continue;
            };
            models.push(ListedModel {
                id: id.to_owned(),
                display_name: text("display_name").map(str::to_owned),
                provider: route.provider.clone(),
            });
        }
        let next = page.last_id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        // A page that brings nothing new would come again and again.
        if page.has_more != Value::Bool(true) || next.is_none() || models.len() == known {
            break;
        }
        after = next;
    }
    Ok(models)
}

async fn ask_page(
    client: &Client,
    route: &Route,
    options: &ModelOptions,
    after: Option<&str>,
) -> Result<Page, ModelFailure> {
    let mut address = route.models_endpoint();
    if let Some(after) = after {
        address.query_pairs_mut().append_pair("after_id", after);
    }
    let request =
        client.get(address).headers(route.request_headers()).timeout(Timeouts::new(options).idle()).send();
    let response = request.await.map_err(|error| failure::from_network(&error, route))?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = response.text().await.map_err(|error| failure::from_network(&error, route))?;
    if !(200..300).contains(&status) {
        return Err(failure::from_status(status, &headers, &body, route).failure);
    }
    serde_json::from_str(&body).map_err(|_| {
        malformed(format!(
            "{} answered with something that is no list of models: {}",
            route.place(),
            excerpt(&body)
        ))
    })
}
