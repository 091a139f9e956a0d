//! Which profile a route has, and why: what the settings say, then the host, then a port that one server alone uses,
//! then the name of the provider in the settings, then the careful row of the protocol. A response or a list of models
//! may tell more later.

use ::http::HeaderMap;
use reqwest::Url;
use serde::Serialize;
use serde_json::Value;

use super::{Profile, UNKNOWN_CHAT, UNKNOWN_MESSAGES, UNKNOWN_RESPONSES, overrides, profiles, table};
use crate::error::ModelConfigError;
use crate::protocol::Protocol;

/// A profile and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) profile: Profile,
    /// For people: "host `api.mistral.ai`".
    pub(crate) reason: String,
    /// True when nothing chose it, so that a response may.
    pub(crate) is_guess: bool,
}

/// The profile that is used for a provider, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileInForce {
    /// The provider's name in the settings, or `anthropic`, `openai`, `qoder` or `flags`.
    pub provider: String,
    /// The model that is asked for.
    pub model: String,
    /// The wire protocol.
    pub protocol: &'static str,
    /// The profile.
    pub profile: Profile,
    /// Why it was chosen, for people.
    pub reason: String,
}

/// What the address and the name of the provider tell.
pub(crate) fn by_address(base: &Url, provider: &str, protocol: Protocol) -> Choice {
    let host = base.host_str().unwrap_or_default().to_ascii_lowercase();
    if let Some((_, name)) = table::HOSTS.iter().find(|(pattern, _)| matches(pattern, &host)) {
        return chosen_by(name, format!("host `{host}`"));
    }
    let port = base.port();
    if let Some((number, name)) = table::PORTS.iter().find(|(number, _)| Some(*number) == port) {
        return chosen_by(name, format!("port {number}"));
    }
    let called = provider.to_ascii_lowercase();
    let alias = table::ALIASES.iter().find(|(alias, _)| *alias == called).map(|(_, name)| *name);
    // `anthropic` and `openai` are also what a protocol is called: at another address they say nothing.
    let says_protocol = matches!(called.as_str(), "anthropic" | "openai");
    if let Some(profile) = find(alias.unwrap_or(&called)).filter(|_| !says_protocol) {
        return Choice { profile, reason: format!("the provider is called `{provider}`"), is_guess: false };
    }
    let profile = match protocol {
        Protocol::AnthropicMessages => UNKNOWN_MESSAGES,
        Protocol::OpenAiChat => UNKNOWN_CHAT,
        Protocol::OpenAiResponses => UNKNOWN_RESPONSES,
    };
    let reason = format!("the address does not say which server is at `{host}`");
    Choice { profile, reason, is_guess: true }
}

/// The choice with what `compat` says.
pub(crate) fn with_compat(choice: Choice, compat: &Value, setting: &str) -> Result<Choice, ModelConfigError> {
    if compat.is_null() {
        return Ok(choice);
    }
    let profile = overrides::apply(choice.profile, compat, setting)?;
    let names = overrides::names_profile(compat);
    let reason = match (names, compat.is_object()) {
        (true, false) => format!("`{setting}`"),
        (true, true) => format!("`{setting}`, with changes"),
        (false, _) => format!("{}, with changes from `{setting}`", choice.reason),
    };
    // What a person changed is changed on purpose, so that nothing found later replaces it.
    Ok(Choice { profile, reason, is_guess: false })
}

/// The provider whose keys look like this one, and the one at `host`, where these are two.
pub(crate) fn other_owner(key: &str, host: &str) -> Option<(&'static str, &'static str)> {
    let (_, owner) = table::KEYS.iter().find(|(start, _)| key.trim().starts_with(start))?;
    let (_, asked) = table::HOSTS.iter().find(|(pattern, _)| matches(pattern, host))?;
    let title = |name: &str| find(name).map_or("another provider", |profile| profile.title);
    (owner != asked).then(|| (title(owner), title(asked)))
}

/// What the headers of a response tell.
pub(crate) fn by_headers(headers: &HeaderMap) -> Option<Choice> {
    let fits = |part: &str, value: &str| {
        headers.iter().find(|(name, text)| {
            let known =
                if part.ends_with('-') { name.as_str().starts_with(part) } else { name.as_str() == part };
            known && text.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains(value))
        })
    };
    table::HEADERS.iter().find_map(|(part, value, name)| {
        let (header, _) = fits(part, value)?;
        Some(chosen_by(name, format!("response header `{header}`")))
    })
}

/// The choice that a list of models allows.
pub(crate) fn by_models(list: &Value) -> Option<Choice> {
    let data = list.get("data").or(Some(list)).and_then(Value::as_array)?;
    let entry = data.first()?;
    let owner = entry.get("owned_by").and_then(Value::as_str)?;
    let (_, name) = table::OWNERS.iter().find(|(known, _)| *known == owner)?;
    Some(chosen_by(name, format!("its list of models says `owned_by: {owner}`")))
}

fn chosen_by(name: &str, reason: String) -> Choice {
    // Every name of the tables is a row; a test holds that.
    Choice { profile: find(name).unwrap_or(UNKNOWN_CHAT), reason, is_guess: false }
}

fn find(name: &str) -> Option<Profile> {
    profiles().iter().find(|profile| profile.name == name && !name.starts_with("unknown-")).copied()
}

/// True when a host fits a pattern with at most one `*`.
fn matches(pattern: &str, host: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == host,
        Some((front, end)) => {
            host.len() > front.len() + end.len() && host.starts_with(front) && host.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(url: &str, provider: &str) -> (&'static str, String) {
        let choice = by_address(&Url::parse(url).unwrap(), provider, Protocol::OpenAiChat);
        (choice.profile.name, choice.reason)
    }

    #[test]
    fn every_name_of_the_tables_is_a_row() {
        let hosts = table::HOSTS.iter().chain(table::ALIASES).chain(table::OWNERS).map(|(_, name)| *name);
        let ports = table::PORTS.iter().map(|(_, name)| *name);
        let headers = table::HEADERS.iter().map(|(_, _, name)| *name);
        for name in hosts.chain(ports).chain(headers) {
            assert!(find(name).is_some(), "{name}");
        }
        let mut all: Vec<&str> = profiles().iter().map(|profile| profile.name).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "names are unique");
    }

    #[test]
    fn the_address_tells_then_the_name_and_then_nothing() {
        for (url, provider, expected, reason) in [
            ("https://API.mistral.ai/v1", "x", "mistral", "host `api.mistral.ai`"),
            ("https://mine.openai.azure.com", "openai", "azure", "host `mine.openai.azure.com`"),
            ("https://bedrock-runtime.eu-west-1.amazonaws.com", "x", "bedrock", "host `bedrock-runtime"),
            ("https://us-east5-aiplatform.googleapis.com", "x", "vertex", "host `us-east5"),
            ("http://localhost:11434/v1", "x", "ollama", "port 11434"),
            ("http://10.0.0.7:1234/v1", "x", "lmstudio", "port 1234"),
            ("http://gpu.example.test/v1", "vLLM", "vllm", "called `vLLM`"),
            ("http://gpu.example.test/v1", "moonshot", "kimi", "called `moonshot`"),
            ("http://gpu.example.test/v1", "openai", "unknown-chat", "the address does not say"),
            ("https://api.mistral.ai.example.test", "x", "unknown-chat", "the address does not say"),
        ] {
            let (name, why) = chosen(url, provider);
            assert_eq!(name, expected, "{url}");
            assert!(why.contains(reason), "{why}");
        }
    }

    #[test]
    fn headers_and_lists_tell_what_the_address_does_not() {
        let headers = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            by_headers(&headers).map(|choice| choice.profile.name)
        };
        assert_eq!(headers("server", "llama.cpp"), Some("llamacpp"));
        assert_eq!(headers("x-litellm-call-id", "7"), Some("litellm"));
        assert_eq!(headers("server", "uvicorn"), None);
        let owner = |owner: &str| {
            by_models(&json!({"data": [{"id": "m", "owned_by": owner}]})).map(|choice| choice.profile.name)
        };
        assert_eq!(owner("vllm"), Some("vllm"));
        assert_eq!(owner("library"), Some("ollama"));
        assert_eq!(owner("stranger"), None);
    }
}
