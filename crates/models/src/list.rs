//! Asks providers which models they offer. A provider that cannot say is represented
//! by what the settings list for it; only when nothing at all is known does listing
//! fail.

use qoder_types::{ModelFailure, ModelFailureClass};
use serde::Deserialize;

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

#[derive(Deserialize)]
struct Page {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    display_name: Option<String>,
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

async fn ask(route: &Route, options: &ModelOptions) -> Result<Vec<ListedModel>, ModelFailure> {
    let client = client::build(route, &options.environment)?;
    let request = client
        .get(route.models_endpoint())
        .headers(route.request_headers())
        .timeout(Timeouts::new(options).idle())
        .send();
    let response = request.await.map_err(|error| failure::from_network(&error, route))?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = response.text().await.map_err(|error| failure::from_network(&error, route))?;
    if !(200..300).contains(&status) {
        return Err(failure::from_status(status, &headers, &body, route).failure);
    }
    let page: Page = serde_json::from_str(&body).map_err(|_| {
        malformed(format!(
            "{} answered with something that is no list of models: {}",
            route.place(),
            excerpt(&body)
        ))
    })?;
    Ok(page
        .data
        .into_iter()
        .map(|entry| ListedModel {
            id: entry.id,
            display_name: entry.display_name,
            provider: route.provider.clone(),
        })
        .collect())
}
