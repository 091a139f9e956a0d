//! The routes that flags, settings and the environment describe, and which of them a name means.

use crate::error::ModelConfigError;
use crate::protocol::Protocol;
use crate::routes::{Credentials, Route};
use crate::settings::{ModelOptions, ProviderSettings};

const TIERS: &[&str] = &["auto", "ultimate", "performance", "efficient", "lite"];
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const OPENAI_URL: &str = "https://api.openai.com";

/// True for a name that stands for whichever model the configuration chooses.
#[must_use]
pub fn is_tier(name: &str) -> bool {
    TIERS.contains(&name.trim())
}
/// The name that counts, and the tier when it is one that the settings do not map.
pub(crate) fn named<'a>(options: &'a ModelOptions, name: Option<&'a str>) -> (&'a str, Option<&'a str>) {
    let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("auto");
    let mapped = options.settings.tiers.get(name).filter(|_| is_tier(name));
    let name = mapped.map_or(name, String::as_str);
    (name, is_tier(name).then_some(name))
}

/// The path of the setting that changes the profile of a provider.
pub(crate) fn compat_setting(provider: &str) -> String {
    format!("providers.{provider}.compat")
}

/// The route for a name, or none when no provider is configured at all. `tier` is set when the name is a tier that the
/// settings do not map.
pub(crate) fn find_route(
    options: &ModelOptions,
    name: &str,
    tier: Option<&str>,
) -> Result<Option<Route>, ModelConfigError> {
    let wanted = tier.is_none().then_some(name);
    if let Some(base_url) = &options.base_url {
        return flag_route(options, base_url, wanted).map(Some);
    }
    let providers = &options.settings.providers;
    if let Some((prefix, model)) = name.split_once('/')
        && let Some(provider) = providers.get(prefix)
    {
        return settings_route(options, prefix, provider, Some(model)).map(Some);
    }
    let listing = providers.iter().find(|(_, provider)| provider.models.iter().any(|id| id == name));
    if let Some((id, provider)) = listing {
        return settings_route(options, id, provider, Some(name)).map(Some);
    }
    if let Some((prefix, model)) = name.split_once('/')
        && let Some(route) = environment_route(options, prefix, Some(model))?
    {
        return Ok(Some(route));
    }
    if let Some((first, provider)) = providers.iter().next() {
        if let Some((prefix, _)) = name.split_once('/') {
            return Err(unknown_provider(options, prefix, name));
        }
        return settings_route(options, first, provider, wanted).map(Some);
    }
    if options.variable("QODER_BASE_URL").is_some() {
        // The gateway knows the tiers itself.
        return environment_route(options, "qoder", Some(name));
    }
    let openai_first = ["gpt-", "o1", "o3", "o4", "chatgpt"].iter().any(|prefix| name.starts_with(prefix));
    let order = if openai_first { ["openai", "anthropic"] } else { ["anthropic", "openai"] };
    for provider in order {
        if let Some(route) = environment_route(options, provider, wanted)? {
            return Ok(Some(route));
        }
    }
    match (wanted, name.split_once('/')) {
        (Some(_), Some((prefix, _))) => Err(unknown_provider(options, prefix, name)),
        _ => Ok(None),
    }
}

fn unknown_provider(options: &ModelOptions, prefix: &str, name: &str) -> ModelConfigError {
    ModelConfigError::UnknownProvider {
        provider: prefix.to_owned(),
        model: name.to_owned(),
        known: options.settings.providers.keys().cloned().collect(),
    }
}

fn parse_protocol(text: &str, subject: &str) -> Result<Protocol, ModelConfigError> {
    Protocol::parse(text).ok_or_else(|| ModelConfigError::UnknownProtocol {
        protocol: text.to_owned(),
        subject: subject.to_owned(),
    })
}

/// A key travels as the protocol's own providers want it.
fn credentials(protocol: Protocol, key: Option<&str>, origin: &str) -> Credentials {
    let Some(key) = key else { return Credentials::default() };
    let origin = format!("it is taken from {origin}");
    match protocol {
        Protocol::AnthropicMessages => Credentials { api_key: Some(key.into()), bearer: None, origin },
        Protocol::OpenAiChat | Protocol::OpenAiResponses => {
            Credentials { api_key: None, bearer: Some(key.into()), origin }
        }
    }
}

fn named_variable<'a>(
    options: &'a ModelOptions,
    name: &str,
    subject: &str,
) -> Result<&'a str, ModelConfigError> {
    options.variable(name).ok_or_else(|| ModelConfigError::MissingEnvironment {
        name: name.to_owned(),
        subject: subject.to_owned(),
    })
}

fn flag_route(
    options: &ModelOptions,
    base_url: &str,
    model: Option<&str>,
) -> Result<Route, ModelConfigError> {
    let protocol = parse_protocol(options.api_style.as_deref().unwrap_or("anthropic"), "--api-style")?;
    let usual = match protocol {
        Protocol::AnthropicMessages => "ANTHROPIC_API_KEY",
        Protocol::OpenAiChat | Protocol::OpenAiResponses => "OPENAI_API_KEY",
    };
    let credentials = match &options.api_key_env {
        Some(name) => credentials(protocol, Some(named_variable(options, name, "--api-key-env")?), name),
        None => credentials(protocol, options.variable(usual), usual),
    };
    let mut route = Route::new("flags", protocol, base_url, credentials, "--base-url")?;
    route.set_compat(&options.compat, "compat")?;
    route.model = model.unwrap_or(protocol.default_model()).to_owned();
    Ok(route)
}

fn settings_route(
    options: &ModelOptions,
    name: &str,
    provider: &ProviderSettings,
    model: Option<&str>,
) -> Result<Route, ModelConfigError> {
    let subject = format!("provider `{name}`");
    let style = provider.protocol.as_deref().unwrap_or(if name == "openai" { "openai" } else { "anthropic" });
    let protocol = parse_protocol(style, &subject)?;
    let credentials = match (&provider.api_key, &provider.api_key_env) {
        (Some(key), Some(variable)) if !key.is_empty() && !variable.is_empty() => {
            return Err(ModelConfigError::TwoKeys { provider: name.to_owned() });
        }
        (Some(key), _) if !key.is_empty() => {
            credentials(protocol, Some(key), &format!("`apiKey` of provider `{name}` in the settings"))
        }
        (_, Some(variable)) => {
            credentials(protocol, Some(named_variable(options, variable, &subject)?), variable)
        }
        _ => Credentials::default(),
    };
    let usual = match protocol {
        Protocol::AnthropicMessages => ANTHROPIC_URL,
        Protocol::OpenAiChat | Protocol::OpenAiResponses => OPENAI_URL,
    };
    let base_url = provider.base_url.as_deref().unwrap_or(usual);
    let address = format!("`providers.{name}.baseUrl`");
    let mut route = Route::new(name, protocol, base_url, credentials, &address)?;
    route.set_compat(&provider.compat, &compat_setting(name))?;
    route.mark_configured();
    for (header, value) in &provider.headers {
        route.add_header(header, value)?;
    }
    let default = provider.models.first().map_or(protocol.default_model(), String::as_str);
    route.model = model.unwrap_or(default).to_owned();
    Ok(route)
}

/// A route from the environment: `qoder`, `anthropic` or `openai`. None when its variables are not set.
fn environment_route(
    options: &ModelOptions,
    provider: &str,
    model: Option<&str>,
) -> Result<Option<Route>, ModelConfigError> {
    let built = match provider {
        "qoder" => {
            let Some(url) = options.variable("QODER_BASE_URL") else { return Ok(None) };
            let token = options.variable("QODER_PERSONAL_ACCESS_TOKEN");
            let credentials = Credentials {
                api_key: None,
                bearer: token.map(Into::into),
                origin: token
                    .map(|_| "it is taken from QODER_PERSONAL_ACCESS_TOKEN".into())
                    .unwrap_or_default(),
            };
            let mut route =
                Route::new("qoder", Protocol::AnthropicMessages, url, credentials, "QODER_BASE_URL")?;
            model.unwrap_or("auto").clone_into(&mut route.model);
            route
        }
        "anthropic" => {
            let (url, key, token) = (
                options.variable("ANTHROPIC_BASE_URL"),
                options.variable("ANTHROPIC_API_KEY"),
                options.variable("ANTHROPIC_AUTH_TOKEN"),
            );
            if url.is_none() && key.is_none() && token.is_none() {
                return Ok(None);
            }
            let origin = if key.is_some() { "ANTHROPIC_API_KEY" } else { "ANTHROPIC_AUTH_TOKEN" };
            let known = key.is_some() || token.is_some();
            let credentials = Credentials {
                api_key: key.map(Into::into),
                bearer: token.map(Into::into),
                origin: if known { format!("it is taken from {origin}") } else { String::new() },
            };
            let mut route = Route::new(
                "anthropic",
                Protocol::AnthropicMessages,
                url.unwrap_or(ANTHROPIC_URL),
                credentials,
                "ANTHROPIC_BASE_URL",
            )?;
            let default = options.variable("ANTHROPIC_MODEL").unwrap_or(route.protocol.default_model());
            route.model = model.unwrap_or(default).to_owned();
            route
        }
        "openai" => {
            let (url, key) = (options.variable("OPENAI_BASE_URL"), options.variable("OPENAI_API_KEY"));
            if url.is_none() && key.is_none() {
                return Ok(None);
            }
            let protocol = match options.variable("QODER_OPENAI_API") {
                Some("responses") => Protocol::OpenAiResponses,
                None | Some("chat") => Protocol::OpenAiChat,
                Some(other) => parse_protocol(other, "QODER_OPENAI_API")?,
            };
            let credentials = credentials(protocol, key, "OPENAI_API_KEY");
            let mut route =
                Route::new("openai", protocol, url.unwrap_or(OPENAI_URL), credentials, "OPENAI_BASE_URL")?;
            let default = options.variable("OPENAI_MODEL").unwrap_or(protocol.default_model());
            route.model = model.unwrap_or(default).to_owned();
            route
        }
        _ => return Ok(None),
    };
    Ok(Some(built))
}

/// The route with what the options say about every route.
pub(crate) fn with_options(mut route: Route, options: &ModelOptions) -> Result<Route, ModelConfigError> {
    route.add_betas(&options.betas)?;
    if let Some(proxy) = &options.proxy {
        route.set_proxy(proxy)?;
    }
    route.note_proxy(&options.environment);
    Ok(route)
}

/// Every route that is configured, for listing models. Providers of the settings come with the ids they list.
pub(crate) fn all_routes(options: &ModelOptions) -> Result<Vec<(Route, Vec<String>)>, ModelConfigError> {
    if let Some(base_url) = &options.base_url {
        return Ok(vec![(with_options(flag_route(options, base_url, None)?, options)?, Vec::new())]);
    }
    let mut routes = Vec::new();
    for (name, provider) in &options.settings.providers {
        let route = settings_route(options, name, provider, None)?;
        routes.push((with_options(route, options)?, provider.models.clone()));
    }
    for provider in ["qoder", "anthropic", "openai"] {
        if let Some(route) = environment_route(options, provider, None)? {
            routes.push((with_options(route, options)?, Vec::new()));
        }
    }
    Ok(routes)
}

/// The default model of the provider that has this name; `None` when no provider has it.
pub(crate) fn provider_model(options: &ModelOptions, name: &str) -> Result<Option<String>, ModelConfigError> {
    let routes = all_routes(options)?;
    let found = routes.iter().find(|(route, _)| options.base_url.is_none() && route.provider == name);
    Ok(found.map(|(route, _)| format!("{name}/{}", route.model)))
}
