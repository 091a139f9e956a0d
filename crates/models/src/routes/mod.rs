//! One way to reach one model: protocol, address, credentials and headers. Owns how addresses are
//! completed, how keys travel, and that neither a key nor anything secret in an address gets into a
//! message.

mod clients;
pub(crate) mod provider;

use std::collections::BTreeMap;

use ::http::{HeaderMap, HeaderName, HeaderValue};
use qoder_http::is_loopback;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::error::ModelConfigError;
use crate::profile::choose::{self, Choice};
use crate::profile::{Profile, ProfileInForce};
use crate::protocol::Protocol;

pub use clients::HttpClients;

/// A way to reach a model.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) provider: String,
    pub(crate) protocol: Protocol,
    pub(crate) model: String,
    base: Url,
    api_key: Option<SecretString>,
    bearer: Option<SecretString>,
    headers: HeaderMap,
    betas: Vec<String>,
    proxy: Option<Url>,
    /// For people: the proxy of the environment that requests pass through.
    via: Option<String>,
    key_origin: String,
    choice: Choice,
    /// True for a provider that the settings describe.
    is_configured: bool,
}

/// Where a key came from and how it travels.
#[derive(Default)]
pub(crate) struct Credentials {
    pub(crate) api_key: Option<SecretString>,
    pub(crate) bearer: Option<SecretString>,
    /// For people: which variable or setting holds the key.
    pub(crate) origin: String,
}

impl Route {
    /// Checks the parts. `subject` names the provider or flag in errors.
    pub(crate) fn new(
        provider: &str,
        protocol: Protocol,
        base_url: &str,
        credentials: Credentials,
        subject: &str,
    ) -> Result<Self, ModelConfigError> {
        let base = parse_base(base_url, subject)?;
        let choice = choose::by_address(&base, provider, protocol);
        check_key(&base, &credentials)?;
        Ok(Self {
            provider: provider.to_owned(),
            protocol,
            model: String::new(),
            base,
            api_key: credentials.api_key,
            bearer: credentials.bearer,
            headers: HeaderMap::new(),
            betas: Vec::new(),
            proxy: None,
            via: None,
            key_origin: credentials.origin,
            choice,
            is_configured: false,
        })
    }

    /// Adds a header of the settings.
    pub(crate) fn add_header(&mut self, name: &str, value: &str) -> Result<(), ModelConfigError> {
        let bad = || ModelConfigError::BadHeader {
            name: name.to_owned(),
            subject: format!("provider `{}`", self.provider),
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut text = HeaderValue::from_str(value).map_err(|_| bad())?;
        text.set_sensitive(true);
        self.headers.insert(header, text);
        Ok(())
    }

    /// Asks the provider for beta features, besides those that its headers name. Other protocols have none.
    pub(crate) fn add_betas(&mut self, betas: &[String]) -> Result<(), ModelConfigError> {
        if let Some(bad) = betas.iter().find(|name| HeaderValue::from_str(name).is_err()) {
            return Err(ModelConfigError::BadHeader {
                name: "anthropic-beta".to_owned(),
                subject: format!("--betas ({bad:?})"),
            });
        }
        self.betas = betas.to_vec();
        Ok(())
    }

    /// Says that the settings describe this provider.
    pub(crate) fn mark_configured(&mut self) {
        self.is_configured = true;
    }

    /// The name under which a session remembers what it learned.
    pub(crate) fn learned_under(&self) -> String {
        format!("{} {}", self.server_key(), self.model)
    }

    /// The same for what holds for every model of the server.
    pub(crate) fn server_key(&self) -> String {
        format!("{} {}", self.protocol.name(), public_url(&self.base))
    }

    /// The line of the settings that gives this provider `compat`.
    pub(crate) fn settings_line(&self, compat: &Map<String, Value>) -> String {
        let mut provider = Map::new();
        let mut name = self.provider.as_str();
        if !self.is_configured {
            if name == "flags" {
                name = "mine";
            }
            provider.insert("protocol".into(), self.protocol.name().into());
            provider.insert("baseUrl".into(), public_url(&self.base).trim_end_matches('/').into());
            let variable = self.key_origin.strip_prefix("it is taken from ");
            if let Some(variable) = variable.filter(|origin| !origin.contains('`')) {
                provider.insert("apiKeyEnv".into(), variable.into());
            }
        }
        provider.insert("compat".into(), Value::Object(compat.clone()));
        json!({ "providers": { name: provider } }).to_string()
    }

    /// Takes what `compat` says about the server; `setting` is its path.
    pub(crate) fn set_compat(&mut self, compat: &Value, setting: &str) -> Result<(), ModelConfigError> {
        self.choice = choose::with_compat(self.choice.clone(), compat, setting)?;
        Ok(())
    }

    /// What the server accepts, as far as it is known before the first response.
    pub(crate) fn profile(&self) -> Profile {
        self.choice.profile
    }

    /// The profile and why it was chosen.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The profile for people and programs.
    pub(crate) fn profile_in_force(&self) -> ProfileInForce {
        ProfileInForce {
            provider: self.provider.clone(),
            model: self.model.clone(),
            protocol: self.protocol.name(),
            profile: self.choice.profile,
            reason: self.choice.reason.clone(),
        }
    }

    /// Goes through this proxy.
    pub(crate) fn set_proxy(&mut self, proxy: &str) -> Result<(), ModelConfigError> {
        self.proxy = Some(parse_proxy(proxy)?);
        Ok(())
    }

    /// The proxy to go through, in place of those that the environment names.
    pub(crate) fn proxy(&self) -> Option<&Url> {
        self.proxy.as_ref()
    }

    /// Notes the proxy that the environment puts in between.
    pub(crate) fn note_proxy(&mut self, environment: &BTreeMap<String, String>) {
        self.via = qoder_http::proxy_of(&self.base, environment);
    }

    /// For people: what a connection is made to, the proxy in between included.
    pub(crate) fn way(&self) -> String {
        let place = self.place();
        match (&self.proxy, &self.via) {
            (Some(proxy), _) => {
                format!("{place} through the proxy {}", proxy.host_str().unwrap_or("?"))
            }
            (None, Some(via)) => format!("{place} through the proxy {via}"),
            (None, None) => place,
        }
    }

    /// The address of the protocol's own path.
    pub(crate) fn endpoint(&self) -> Url {
        self.below_version(self.protocol.path())
    }

    /// The address of the list of models.
    pub(crate) fn models_endpoint(&self) -> Url {
        self.below_version("models")
    }

    /// The address of the list that servers of local models have beside the protocol.
    pub(crate) fn tags_endpoint(&self) -> Url {
        let mut url = self.base.clone();
        url.set_path("/api/tags");
        url
    }

    /// The address of a path below the version.
    pub(crate) fn below_version(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let kept = url.path().trim_end_matches('/').to_owned();
        // `/v1`, but also `/v4` and `/v1beta/openai`: an address that names its version keeps it, and one that names a
        // deployment has its version in the query.
        let versioned = kept.split('/').any(|segment| is_version(segment) || segment == "deployments");
        url.set_path(&if versioned { format!("{kept}/{path}") } else { format!("{kept}/v1/{path}") });
        url
    }

    /// Every header of a request.
    pub(crate) fn request_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
        if self.protocol == Protocol::AnthropicMessages {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let secret = |text: String| {
            // A key with a line break cannot travel; sending none gives the endpoint's own words about the key.
            HeaderValue::from_str(&text).ok().map(|mut value| {
                value.set_sensitive(true);
                value
            })
        };
        if let Some(key) = &self.api_key
            && let Some(value) = secret(key.expose_secret().to_owned())
        {
            headers.insert("x-api-key", value);
        }
        if let Some(token) = &self.bearer
            && let Some(value) = secret(format!("Bearer {}", token.expose_secret()))
        {
            headers.insert("authorization", value);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        if self.protocol == Protocol::AnthropicMessages && !self.betas.is_empty() {
            let before = headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
            let all: Vec<&str> = before.into_iter().chain(self.betas.iter().map(String::as_str)).collect();
            // Each of them was checked, and a comma is allowed.
            if let Ok(value) = HeaderValue::from_str(&all.join(",")) {
                headers.insert("anthropic-beta", value);
            }
        }
        headers
    }

    /// Every header of a request for pictures. The endpoint is one of the OpenAI family, where a key is a bearer token,
    /// also at a gateway that is configured for another protocol.
    pub(crate) fn image_headers(&self) -> HeaderMap {
        let mut headers = self.request_headers();
        headers.remove("anthropic-version");
        headers.insert("accept", HeaderValue::from_static("application/json"));
        if let Some(key) = self.api_key.as_ref().filter(|_| !headers.contains_key("authorization"))
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
        {
            value.set_sensitive(true);
            headers.insert("authorization", value);
        }
        headers
    }

    /// Who is asked, by the name that the conventions of telemetry have for it.
    pub(crate) fn known_provider(&self) -> &'static str {
        provider::of(self.base.host_str().unwrap_or_default(), &self.provider, self.protocol)
    }

    /// `apiKeySource` of the session's first message.
    pub(crate) fn key_source(&self) -> &'static str {
        if self.api_key.is_some() || self.bearer.is_some() { "user" } else { "none" }
    }

    /// For people: where the key is taken from.
    pub(crate) fn key_origin(&self) -> &str {
        if self.key_origin.is_empty() { "no key is configured for this provider" } else { &self.key_origin }
    }

    /// Host and port, for people.
    pub(crate) fn place(&self) -> String {
        let host = self.base.host_str().unwrap_or("?");
        match self.base.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The address of the endpoint.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// True for a server on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// `text` without any key of this route.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for secret in self.secrets() {
            masked = masked.replace(&secret, "***");
        }
        masked
    }

    fn secrets(&self) -> Vec<String> {
        [&self.api_key, &self.bearer]
            .into_iter()
            .flatten()
            .map(|secret| secret.expose_secret().to_owned())
            .chain(self.headers.values().filter_map(|value| value.to_str().ok().map(str::to_owned)))
            // A short value such as `1` is no secret, and masking it would garble every message.
            .filter(|secret| secret.len() >= 6)
            .collect()
    }
}

/// A key that belongs to another provider than the one at this address is not sent: that one would learn it.
fn check_key(base: &Url, credentials: &Credentials) -> Result<(), ModelConfigError> {
    let host = base.host_str().unwrap_or_default().to_ascii_lowercase();
    for key in [&credentials.api_key, &credentials.bearer].into_iter().flatten() {
        if let Some((owner, asked)) = choose::other_owner(key.expose_secret(), &host) {
            return Err(ModelConfigError::WrongKey {
                origin: credentials.origin.replace("it is taken from ", ""),
                owner: owner.to_owned(),
                asked: asked.to_owned(),
                host,
            });
        }
    }
    Ok(())
}

/// An address without credentials and query, for people and recordings.
pub(crate) fn public_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Fails only for addresses that cannot hold credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn parse_base(text: &str, subject: &str) -> Result<Url, ModelConfigError> {
    let shown = || match text.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => text.to_owned(),
    };
    let bad = |reason: &str| ModelConfigError::BadUrl {
        url: shown(),
        subject: subject.to_owned(),
        reason: reason.to_owned(),
    };
    let trimmed = text.trim();
    if !trimmed.contains("://") && !trimmed.is_empty() {
        let guess = with_scheme(trimmed);
        return Err(bad(&format!("it has no scheme; did you mean `{guess}`?")));
    }
    let mut url = Url::parse(trimmed).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it must start with http:// or https://"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it has no host"));
    }
    let mut path = url.path().trim_end_matches('/').to_owned();
    for suffix in ["/chat/completions", "/messages", "/responses", "/models", "/completions"] {
        if let Some(stripped) = path.strip_suffix(suffix) {
            path = stripped.to_owned();
        }
    }
    url.set_path(&path);
    Ok(url)
}

/// An address that lacks its scheme, with the likely one.
fn with_scheme(address: &str) -> String {
    let address = address.trim_start_matches('/');
    let host = address.split(['/', ':']).next().unwrap_or(address);
    let is_near = host == "localhost" || !host.contains('.') || host.parse::<std::net::IpAddr>().is_ok();
    format!("{}://{address}", if is_near { "http" } else { "https" })
}

fn parse_proxy(text: &str) -> Result<Url, ModelConfigError> {
    let bad = |reason: &str| ModelConfigError::BadUrl {
        url: text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, rest)| format!("***@{rest}")),
        subject: "proxy".to_owned(),
        reason: reason.to_owned(),
    };
    // The short word for the fifth version, which is the one that is spoken.
    let address = match text.trim().strip_prefix("socks://") {
        Some(rest) => format!("socks5://{rest}"),
        None => text.trim().to_owned(),
    };
    let url = Url::parse(&address).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") {
        return Err(bad("it must start with http://, https://, socks5:// or socks://"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad("it has no host"));
    }
    Ok(url)
}

/// True for `v1`, `v4`, `v1beta` and the like.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base: &str, protocol: Protocol) -> String {
        Route::new("p", protocol, base, Credentials::default(), "test").unwrap().endpoint().to_string()
    }

    #[test]
    fn addresses_work_with_and_without_version_and_slash() {
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/messages"]
        {
            assert_eq!(endpoint(base, Protocol::AnthropicMessages), "http://h:1/v1/messages");
        }
        assert_eq!(endpoint("https://h/api/v4", Protocol::OpenAiChat), "https://h/api/v4/chat/completions");
        assert_eq!(endpoint("https://h/x?a=b", Protocol::OpenAiResponses), "https://h/x/v1/responses?a=b");
        for (base, expected) in [
            ("https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
            ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
            ("https://h/openai/v1/azure", "https://h/openai/v1/azure/chat/completions"),
            (
                "https://h/openai/deployments/mine?api-version=2024-10-21",
                "https://h/openai/deployments/mine/chat/completions?api-version=2024-10-21",
            ),
            ("https://h/vendor/v8-engine", "https://h/vendor/v8-engine/v1/chat/completions"),
        ] {
            assert_eq!(endpoint(base, Protocol::OpenAiChat), expected);
        }
    }

    #[test]
    fn bad_addresses_are_named_without_credentials() {
        for bad in ["nothing", "ftp://host/", "https://"] {
            assert!(
                Route::new("p", Protocol::OpenAiChat, bad, Credentials::default(), "test").is_err(),
                "{bad}"
            );
        }
        let error = Route::new("p", Protocol::OpenAiChat, "ftp://u:secret@h", Credentials::default(), "test")
            .err()
            .unwrap();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(error.code(), "model_bad_url");
    }

    #[test]
    fn servers_on_this_machine_are_recognised() {
        for (base, expected) in [
            ("http://localhost:8080", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:1/v1", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example.test", false),
        ] {
            let route = Route::new("p", Protocol::OpenAiChat, base, Credentials::default(), "test").unwrap();
            assert_eq!(route.is_loopback(), expected, "{base}");
        }
    }

    #[test]
    fn keys_are_masked() {
        let credentials =
            Credentials { api_key: Some("sk-very-secret".into()), bearer: None, origin: String::new() };
        let route = Route::new("p", Protocol::AnthropicMessages, "http://h", credentials, "test").unwrap();
        assert_eq!(route.mask("bad key sk-very-secret!"), "bad key ***!");
    }
}
