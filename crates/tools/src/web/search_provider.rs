//! The search services: SearXNG, Brave Search and Tavily, or whatever answers in the shape of one of them.
//!
//! Each makes one request and reads one list out of the answer. The address of a service is a person's setting and may
//! therefore be on this machine; the body is bounded, and every failure says what to do about it.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_process::output::first_characters;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;
use url::Url;

use crate::web::client::{builder, read_body};
use crate::web::error::WebError;

/// The largest answer of a service.
const ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// The most results, whatever is configured.
const RESULTS: usize = 20;
/// How much is kept of a title and of a snippet.
const TITLE_CHARACTERS: usize = 300;
const SNIPPET_CHARACTERS: usize = 1_000;

/// The kind of a search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchService {
    /// SearXNG: `GET {baseUrl}/search?q=…&format=json`. Needs a base URL and no key.
    Searxng,
    /// The Brave Search API: `GET {baseUrl}/res/v1/web/search?q=…`. Needs a key.
    Brave,
    /// Tavily: `POST {baseUrl}/search`. Needs a key.
    Tavily,
}

impl SearchService {
    /// The service that a setting names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "searxng" => Some(Self::Searxng),
            "brave" => Some(Self::Brave),
            "tavily" => Some(Self::Tavily),
            _ => None,
        }
    }
}

/// What a person set about searching.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// The kind of service.
    pub provider: SearchService,
    /// Where it is; the public address of the service when left out.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<SecretString>,
    /// The environment variable that holds the key when `api_key` is left out.
    pub api_key_env: Option<String>,
    /// How many results to ask for.
    pub max_results: usize,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
}

/// What is searched for.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) query: String,
    pub(crate) allowed: Vec<String>,
    pub(crate) blocked: Vec<String>,
}

/// Something that searches.
pub(crate) trait SearchProvider: fmt::Debug + Send + Sync {
    /// Searches once.
    fn search(&self, wish: Wish) -> BoxFuture<'static, Result<Vec<Finding>, SearchError>>;
}

/// Why a search failed. The text is for the model and ends with what to do.
#[derive(Debug, Error)]
pub(crate) enum SearchError {
    #[error(
        "No search service is configured. A person can set `tools.webSearch.provider` to \"searxng\" (with \
         `tools.webSearch.baseUrl`), \"brave\" or \"tavily\" (with `tools.webSearch.apiKeyEnv` naming the variable that \
         holds the key) in the settings. Go on without searching, or fetch pages that you know with WebFetch."
    )]
    NotConfigured,
    #[error("{limit} searches were made in this session and no more are allowed. Use what was found.")]
    TooMany { limit: u32 },
    #[error("The search took longer than {milliseconds} ms. Try later.")]
    TimedOut { milliseconds: u128 },
    #[error("`tools.webSearch.baseUrl` is missing or no http(s) URL. Tell the person to set it.")]
    NoAddress,
    #[error(
        "No key is set. Tell the person to set `tools.webSearch.apiKeyEnv` and the variable that it names."
    )]
    NoKey,
    #[error("The search service refused the key (status {status}). Tell the person to check it.")]
    Refused { status: u16 },
    #[error("The search service has too many requests now (status 429). Try later, and search less.")]
    Busy,
    #[error("The search service answered with the status {status}: {start}")]
    Status { status: u16, start: String },
    #[error(
        "The answer of the search service is not in the shape of the configured provider: {problem}. Tell the person to \
         check `tools.webSearch.provider` and `tools.webSearch.baseUrl`; SearXNG must have the JSON format switched on."
    )]
    Shape { problem: String },
    #[error(transparent)]
    Web(#[from] WebError),
}

impl SearchError {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotConfigured => "search_not_configured",
            Self::TooMany { .. } => "search_too_many",
            Self::TimedOut { .. } => "search_timeout",
            Self::NoAddress => "search_no_address",
            Self::NoKey => "search_no_key",
            Self::Refused { .. } => "search_key_refused",
            Self::Busy => "search_busy",
            Self::Status { .. } => "search_status",
            Self::Shape { .. } => "search_shape",
            Self::Web(error) => error.code(),
        }
    }
}

/// The provider for these settings.
pub(crate) fn provider(settings: SearchSettings) -> Arc<dyn SearchProvider> {
    Arc::new(HttpSearch(Arc::new(settings)))
}

/// A service that is asked over HTTP.
#[derive(Debug)]
struct HttpSearch(Arc<SearchSettings>);

impl SearchProvider for HttpSearch {
    fn search(&self, wish: Wish) -> BoxFuture<'static, Result<Vec<Finding>, SearchError>> {
        let settings = Arc::clone(&self.0);
        Box::pin(async move {
            let client = builder().build().map_err(|error| WebError::Setup { problem: error.to_string() })?;
            let address = address(&settings)?;
            let host = address.host_str().unwrap_or_default().to_owned();
            let request = request(&client, &settings, address, &wish)?;
            let request = request.header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "identity");
            let answer = request.send().await.map_err(|error| crate::web::client::network(&host, &error))?;
            let status = answer.status();
            let bytes = read_body(answer, &host, ANSWER_BYTES).await?;
            require_success(status, &bytes)?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| SearchError::Shape { problem: format!("it is not JSON ({error})") })?;
            findings(&settings, &value)
        })
    }
}

fn address(settings: &SearchSettings) -> Result<Url, SearchError> {
    let (standard, path) = match settings.provider {
        SearchService::Searxng => (None, "search"),
        SearchService::Brave => (Some("https://api.search.brave.com"), "res/v1/web/search"),
        SearchService::Tavily => (Some("https://api.tavily.com"), "search"),
    };
    let base = settings.base_url.as_deref().filter(|base| !base.trim().is_empty()).or(standard);
    let base = base.ok_or(SearchError::NoAddress)?.trim().trim_end_matches('/');
    let url = Url::parse(&format!("{base}/{path}")).map_err(|_| SearchError::NoAddress)?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err(SearchError::NoAddress)
    }
}

fn key(settings: &SearchSettings) -> Result<SecretString, SearchError> {
    let from_environment = || {
        let name = settings.api_key_env.as_deref()?;
        std::env::var(name).ok().filter(|key| !key.is_empty()).map(SecretString::from)
    };
    settings.api_key.clone().or_else(from_environment).ok_or(SearchError::NoKey)
}

fn request(
    client: &Client,
    settings: &SearchSettings,
    mut address: Url,
    wish: &Wish,
) -> Result<RequestBuilder, SearchError> {
    let count = settings.max_results.clamp(1, RESULTS);
    Ok(match settings.provider {
        SearchService::Searxng => {
            address.query_pairs_mut().append_pair("q", &with_sites(wish)).append_pair("format", "json");
            client.get(address)
        }
        SearchService::Brave => {
            address
                .query_pairs_mut()
                .append_pair("q", &with_sites(wish))
                .append_pair("count", &count.to_string());
            client.get(address).header("X-Subscription-Token", key(settings)?.expose_secret())
        }
        SearchService::Tavily => {
            let body = json!({
                "query": wish.query, "max_results": count, "include_domains": wish.allowed,
                "exclude_domains": wish.blocked,
            });
            client
                .post(address)
                .bearer_auth(key(settings)?.expose_secret())
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string())
        }
    })
}

/// The query with the wishes about domains in the words that search engines share.
fn with_sites(wish: &Wish) -> String {
    let allowed: Vec<String> = wish.allowed.iter().map(|domain| format!("site:{domain}")).collect();
    let blocked: Vec<String> = wish.blocked.iter().map(|domain| format!("-site:{domain}")).collect();
    [vec![wish.query.clone()], vec![allowed.join(" OR ")], blocked]
        .concat()
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn require_success(status: StatusCode, bytes: &[u8]) -> Result<(), SearchError> {
    match status.as_u16() {
        200..=299 => Ok(()),
        code @ (401 | 403) => Err(SearchError::Refused { status: code }),
        429 => Err(SearchError::Busy),
        code => {
            let text = String::from_utf8_lossy(bytes);
            let start = first_characters(text.trim(), 300).0.to_owned();
            Err(SearchError::Status { status: code, start })
        }
    }
}

fn findings(settings: &SearchSettings, answer: &Value) -> Result<Vec<Finding>, SearchError> {
    let (place, text_field) = match settings.provider {
        SearchService::Searxng | SearchService::Tavily => ("/results", "content"),
        SearchService::Brave => ("/web/results", "description"),
    };
    let list = match answer.pointer(place) {
        Some(Value::Array(list)) => list.as_slice(),
        // Brave leaves the part out when it found nothing.
        None if settings.provider == SearchService::Brave && answer.get("type").is_some() => &[],
        Some(_) | None => return Err(SearchError::Shape { problem: format!("there is no list at {place}") }),
    };
    let text = |entry: &Value, field: &str, limit: usize| {
        let text = entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        first_characters(&plain, limit).0.to_owned()
    };
    let found = list.iter().filter_map(|entry| {
        let url = entry.get("url").and_then(Value::as_str).filter(|url| url.len() <= 2_000)?;
        Some(Finding {
            title: text(entry, "title", TITLE_CHARACTERS),
            url: url.to_owned(),
            snippet: text(entry, text_field, SNIPPET_CHARACTERS),
        })
    });
    Ok(found.take(settings.max_results.clamp(1, RESULTS)).collect())
}
