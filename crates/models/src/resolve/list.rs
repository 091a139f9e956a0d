//! Asks providers which models they offer, page by page, and reads every form of list that servers have. A provider
//! that cannot say is represented by what the settings list for it; only when nothing at all is known does listing fail.

use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::{Client, Url};
use serde_json::Value;

use crate::exchange::Timeouts;
use crate::failure::{self, excerpt, failure, malformed};
use crate::profile::{ModelsList, choose};
use crate::resolve::all_routes;
use crate::routes::Route;
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
/// In front of ids where models are resources.
const RESOURCE: &str = "models/";

/// One page of a list.
struct Page {
    entries: Vec<Value>,
    /// The parameter that asks for the next page.
    next: Option<(&'static str, String)>,
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
    if route.profile().models_list == ModelsList::None {
        let message = format!(
            "{} has no list of models. Name them in `providers.{}.models` of the settings",
            route.place(),
            route.provider
        );
        return Err(failure(ModelFailureClass::NotFound, message));
    }
    let client = options.clients.get(route, &options.environment)?;
    let usual = route.models_endpoint();
    let has_tags = route.profile().models_list == ModelsList::Tags;
    match ask_all(&client, route, options, &usual).await {
        // Whatever the second one says, the first answer is the one to report.
        Err(missing) if has_tags && missing.class == ModelFailureClass::NotFound => {
            ask_all(&client, route, options, &route.tags_endpoint()).await.map_err(|_| missing)
        }
        other => other,
    }
}

async fn ask_all(
    client: &Client,
    route: &Route,
    options: &ModelOptions,
    address: &Url,
) -> Result<Vec<ListedModel>, ModelFailure> {
    let mut models: Vec<ListedModel> = Vec::new();
    let mut after: Option<(&'static str, String)> = None;
    for _ in 0..MOST_PAGES {
        let page = ask_page(client, route, options, address, after.as_ref()).await?;
        let known = models.len();
        for model in page.entries.iter().filter_map(|entry| listed(entry, route)) {
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        }
        // A page that brings nothing new would come again and again.
        if page.next.is_none() || models.len() == known {
            break;
        }
        after = page.next;
    }
    Ok(models)
}

async fn ask_page(
    client: &Client,
    route: &Route,
    options: &ModelOptions,
    address: &Url,
    after: Option<&(&'static str, String)>,
) -> Result<Page, ModelFailure> {
    let mut address = address.clone();
    if let Some((name, value)) = after {
        address.query_pairs_mut().append_pair(name, value);
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
    let list: Option<Value> = serde_json::from_str(body.trim_start_matches('\u{feff}')).ok();
    if let Some(list) = &list
        && route.choice().is_guess
        && let Some(told) = choose::by_headers(&headers).or_else(|| choose::by_models(list))
    {
        options.learned.recognise(&route.server_key(), told.profile);
    }
    list.and_then(read_page).ok_or_else(|| match failure::refusal(&body) {
        Some(error) => failure::from_event(&error),
        None => malformed(format!(
            "{} answered with something that is not a list of models: {}",
            route.place(),
            excerpt(&body)
        )),
    })
}

/// A page in any of the forms: `data`, `models`, or the list alone.
fn read_page(list: Value) -> Option<Page> {
    let text = |list: &Value, name: &str| {
        list.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let has_more = list.get("has_more") == Some(&Value::Bool(true));
    let last = text(&list, "last_id").filter(|_| has_more).map(|id| ("after_id", id));
    let next = last.or_else(|| text(&list, "nextPageToken").map(|token| ("pageToken", token)));
    let entries = match list {
        Value::Array(entries) => entries,
        Value::Object(mut fields) => match (fields.remove("data"), fields.remove("models")) {
            (Some(Value::Array(entries)), _) | (_, Some(Value::Array(entries))) => entries,
            // A list without entries is written as null where it is made by a language that has such lists.
            (Some(Value::Null), _) | (_, Some(Value::Null)) => Vec::new(),
            _ => return None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    Some(Page { entries, next })
}

/// One entry: a name, or an object with an id or a name.
fn listed(entry: &Value, route: &Route) -> Option<ListedModel> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = entry.as_str().or_else(|| text("id")).or_else(|| text("model")).or_else(|| text("name"))?;
    let id = id.strip_prefix(RESOURCE).unwrap_or(id);
    let name = ["display_name", "displayName", "name"].iter().find_map(|field| text(field));
    let name = name.map(|name| name.strip_prefix(RESOURCE).unwrap_or(name)).filter(|name| *name != id);
    Some(ListedModel {
        id: id.to_owned(),
        display_name: name.map(str::to_owned),
        provider: route.provider.clone(),
    })
}
