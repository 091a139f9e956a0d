//! What a credential is for: an MCP server by its address, or a variable of commands. The type, the address, the name of the
//! variable and the client of a credential never change; everything secret can only be written.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::model::fields::{Change, Fields};
use crate::model::problem::Problem;
use crate::model::time::Time;

const LONGEST_SECRET: usize = 32 * 1024;
const LONGEST_URL: usize = 2_048;
const LONGEST_WORD: usize = 2_048;
const MOST_HOSTS: usize = 64;
const TYPES: [&str; 3] = ["static_bearer", "mcp_oauth", "environment_variable"];

/// What is secret of a credential.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Secrets {
    /// The token of a server, or the value of a variable.
    pub token: String,
    /// Brings a new token.
    pub refresh_token: Option<String>,
    /// The client's own secret at the token endpoint.
    pub client_secret: Option<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secrets")
    }
}

impl Secrets {
    /// Every value that nothing may show.
    pub fn values(&self) -> impl Iterator<Item = &String> {
        [Some(&self.token), self.refresh_token.as_ref(), self.client_secret.as_ref()].into_iter().flatten()
    }
}

/// How a client says who it is at a token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointAuth {
    /// It does not.
    None,
    /// In the header.
    ClientSecretBasic,
    /// In the body.
    ClientSecretPost,
}

impl EndpointAuth {
    const WORDS: [&'static str; 3] = ["none", "client_secret_basic", "client_secret_post"];

    fn as_str(self) -> &'static str {
        match self {
            Self::None => Self::WORDS[0],
            Self::ClientSecretBasic => Self::WORDS[1],
            Self::ClientSecretPost => Self::WORDS[2],
        }
    }

    fn parse(word: &str) -> Self {
        match word {
            "client_secret_basic" => Self::ClientSecretBasic,
            "client_secret_post" => Self::ClientSecretPost,
            _ => Self::None,
        }
    }
}

/// How a token is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    /// The client.
    pub client_id: String,
    /// Where.
    pub token_endpoint: String,
    /// How the client says who it is there.
    pub token_endpoint_auth: EndpointAuth,
    /// For which resource.
    pub resource: Option<String>,
    /// For what.
    pub scope: Option<String>,
}

/// What a credential is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Auth {
    /// A fixed token for a server.
    StaticBearer {
        /// The server.
        mcp_server_url: String,
    },
    /// A token for a server that can be renewed.
    McpOauth {
        /// The server.
        mcp_server_url: String,
        /// When the token ends, in microseconds.
        expires_at: Option<i64>,
        /// How it is renewed.
        refresh: Option<Refresh>,
    },
    /// A variable of commands.
    EnvironmentVariable {
        /// Its name.
        secret_name: String,
        /// The only hosts that it may reach; any host without them.
        allowed_hosts: Option<Vec<String>>,
        /// Where clients want it put in requests: in headers, in bodies.
        injection: (bool, bool),
    },
}

impl Auth {
    /// Reads a new one, and what is secret of it.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(fields: Fields<'_>) -> Result<(Self, Secrets), Problem> {
        let kind = fields.word("type", &TYPES)?.ok_or_else(|| Problem::field("type", "is required"))?;
        let secret = |key: &str| fields.text(key, 1..=LONGEST_SECRET).map(str::to_owned);
        match kind {
            "static_bearer" => {
                let auth = Self::StaticBearer { mcp_server_url: address(fields, "mcp_server_url")? };
                Ok((auth, Secrets { token: secret("token")?, ..Secrets::default() }))
            }
            "mcp_oauth" => {
                let mut secrets = Secrets { token: secret("access_token")?, ..Secrets::default() };
                let refresh = fields.object("refresh")?.map(|refresh| {
                    create_refresh(refresh, &mut secrets).map_err(|problem| problem.inside("refresh"))
                });
                let auth = Self::McpOauth {
                    mcp_server_url: address(fields, "mcp_server_url")?,
                    expires_at: time(fields, "expires_at")?,
                    refresh: refresh.transpose()?,
                };
                Ok((auth, secrets))
            }
            _ => {
                let name = fields.text("secret_name", 1..=256)?;
                let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !is_name {
                    return Err(Problem::field("secret_name", "is not the name of a variable"));
                }
                let networking = fields.object("networking")?;
                let networking = networking.ok_or_else(|| Problem::field("networking", "is required"))?;
                let auth = Self::EnvironmentVariable {
                    secret_name: name.to_owned(),
                    allowed_hosts: hosts(networking).map_err(|problem| problem.inside("networking"))?,
                    injection: injection(fields, (true, false))?,
                };
                let value = secret("secret_value")?;
                if value.contains('\0') {
                    return Err(Problem::field("secret_value", "contains a NUL"));
                }
                Ok((auth, Secrets { token: value, ..Secrets::default() }))
            }
        }
    }

    /// Applies an update.
    ///
    /// # Errors
    /// When a field cannot be used or cannot change.
    pub fn update(&mut self, secrets: &mut Secrets, fields: Fields<'_>) -> Result<(), Problem> {
        self.check_fixed(fields)?;
        let token = match self {
            Self::StaticBearer { .. } => "token",
            Self::McpOauth { .. } => "access_token",
            Self::EnvironmentVariable { .. } => "secret_value",
        };
        if let Some(value) = fields.optional_text(token, 1..=LONGEST_SECRET)? {
            secrets.token = value.to_owned();
        }
        match self {
            Self::StaticBearer { .. } => Ok(()),
            Self::McpOauth { expires_at, refresh, .. } => {
                if fields.change("expires_at") != Change::Keep {
                    *expires_at = time(fields, "expires_at")?;
                }
                match (fields.change("refresh"), refresh) {
                    (Change::Keep, _) => Ok(()),
                    (Change::Clear, refresh) => {
                        *refresh = None;
                        (secrets.refresh_token, secrets.client_secret) = (None, None);
                        Ok(())
                    }
                    (Change::Set(value), refresh) => {
                        let inside = |problem: Problem| problem.inside("refresh");
                        let fields = Fields::of(value, "refresh")?;
                        match refresh {
                            Some(refresh) => update_refresh(refresh, secrets, fields).map_err(inside),
                            None => {
                                *refresh = Some(create_refresh(fields, secrets).map_err(inside)?);
                                Ok(())
                            }
                        }
                    }
                }
            }
            Self::EnvironmentVariable { allowed_hosts, injection: places, .. } => {
                if let Some(networking) = fields.object("networking")? {
                    *allowed_hosts = hosts(networking).map_err(|problem| problem.inside("networking"))?;
                }
                *places = injection(fields, *places)?;
                Ok(())
            }
        }
    }

    /// What identifies a credential cannot change; an update may repeat it.
    fn check_fixed(&self, fields: Fields<'_>) -> Result<(), Problem> {
        let view = self.view();
        for key in ["type", "mcp_server_url", "secret_name"] {
            if let Some(value) = fields.get(key)
                && view.get(key) != Some(value)
            {
                return Err(Problem::field(key, "cannot be changed; create another credential"));
            }
        }
        Ok(())
    }

    /// The server that it is for.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::StaticBearer { mcp_server_url } | Self::McpOauth { mcp_server_url, .. } => {
                Some(mcp_server_url)
            }
            Self::EnvironmentVariable { .. } => None,
        }
    }

    /// What no other credential of the same vault may be for.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::StaticBearer { mcp_server_url } | Self::McpOauth { mcp_server_url, .. } => {
                comparable(mcp_server_url)
            }
            Self::EnvironmentVariable { secret_name, .. } => format!("${secret_name}"),
        }
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        match self {
            Self::StaticBearer { mcp_server_url } => {
                json!({ "type": TYPES[0], "mcp_server_url": mcp_server_url })
            }
            Self::McpOauth { mcp_server_url, expires_at, refresh } => {
                let refresh = refresh.as_ref().map(|refresh| {
                    json!({ "client_id": refresh.client_id, "token_endpoint": refresh.token_endpoint,
                        "token_endpoint_auth": { "type": refresh.token_endpoint_auth.as_str() },
                        "resource": refresh.resource, "scope": refresh.scope })
                });
                json!({ "type": TYPES[1], "mcp_server_url": mcp_server_url, "expires_at": expires_at.map(Time),
                    "refresh": refresh })
            }
            Self::EnvironmentVariable { secret_name, allowed_hosts, injection: (header, body) } => {
                let networking = match allowed_hosts {
                    None => json!({ "type": "unrestricted" }),
                    Some(hosts) => json!({ "type": "limited", "allowed_hosts": hosts }),
                };
                json!({ "type": TYPES[2], "secret_name": secret_name, "networking": networking,
                    "injection_location": { "header": header, "body": body } })
            }
        }
    }
}

/// An address as it is compared: without a slash at its end, its name in lower case.
#[must_use]
pub fn comparable(url: &str) -> String {
    let parsed = Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.to_string());
    parsed.trim_end_matches('/').to_owned()
}

fn address(fields: Fields<'_>, key: &str) -> Result<String, Problem> {
    let text = fields.text(key, 1..=LONGEST_URL)?;
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        Some(url) if url.username().is_empty() && url.password().is_none() => Ok(text.to_owned()),
        Some(_) => Err(Problem::field(key, "must not contain credentials")),
        None => Err(Problem::field(key, "must be an http or https address")),
    }
}

fn time(fields: Fields<'_>, key: &str) -> Result<Option<i64>, Problem> {
    let Some(text) = fields.optional_text(key, 1..=64)? else { return Ok(None) };
    let time =
        Time::parse(text).ok_or_else(|| Problem::field(key, format!("is `{text}`, which is not a time")))?;
    Ok(Some(time.0))
}

fn hosts(fields: Fields<'_>) -> Result<Option<Vec<String>>, Problem> {
    match fields.word("type", &["unrestricted", "limited"])? {
        Some("unrestricted") => Ok(None),
        Some(_) => Ok(Some(fields.texts("allowed_hosts", MOST_HOSTS)?)),
        None => Err(Problem::field("type", "is required")),
    }
}

fn injection(fields: Fields<'_>, before: (bool, bool)) -> Result<(bool, bool), Problem> {
    let Some(places) = fields.object("injection_location")? else { return Ok(before) };
    let flag = |key: &str, before| Ok::<bool, Problem>(places.flag(key)?.unwrap_or(before));
    Ok((flag("header", before.0)?, flag("body", before.1)?))
}

/// How the client says who it is, and its secret when that needs one.
fn endpoint_auth(fields: Fields<'_>, secrets: &mut Secrets) -> Result<Option<EndpointAuth>, Problem> {
    let Some(auth) = fields.object("token_endpoint_auth")? else { return Ok(None) };
    let mut read = || -> Result<EndpointAuth, Problem> {
        let word = auth.word("type", &EndpointAuth::WORDS)?;
        let kind = EndpointAuth::parse(word.ok_or_else(|| Problem::field("type", "is required"))?);
        let secret = auth.optional_text("client_secret", 1..=LONGEST_SECRET)?;
        match (kind, secret) {
            (EndpointAuth::None, _) => secrets.client_secret = None,
            (_, Some(secret)) => secrets.client_secret = Some(secret.to_owned()),
            (_, None) if secrets.client_secret.is_some() => {}
            (_, None) => return Err(Problem::field("client_secret", "is required")),
        }
        Ok(kind)
    };
    read().map(Some).map_err(|problem| problem.inside("token_endpoint_auth"))
}

fn create_refresh(fields: Fields<'_>, secrets: &mut Secrets) -> Result<Refresh, Problem> {
    secrets.refresh_token = Some(fields.text("refresh_token", 1..=LONGEST_SECRET)?.to_owned());
    let auth = endpoint_auth(fields, secrets)?;
    Ok(Refresh {
        client_id: fields.text("client_id", 1..=LONGEST_WORD)?.to_owned(),
        token_endpoint: address(fields, "token_endpoint")?,
        token_endpoint_auth: auth.ok_or_else(|| Problem::field("token_endpoint_auth", "is required"))?,
        resource: fields.optional_text("resource", 1..=LONGEST_URL)?.map(str::to_owned),
        scope: fields.optional_text("scope", 1..=LONGEST_WORD)?.map(str::to_owned),
    })
}

fn update_refresh(refresh: &mut Refresh, secrets: &mut Secrets, fields: Fields<'_>) -> Result<(), Problem> {
    for (key, now) in [("client_id", &refresh.client_id), ("token_endpoint", &refresh.token_endpoint)] {
        if fields.optional_text(key, 1..=LONGEST_URL)?.is_some_and(|value| value != now) {
            return Err(Problem::field(key, "cannot be changed; create another credential"));
        }
    }
    if let Some(token) = fields.optional_text("refresh_token", 1..=LONGEST_SECRET)? {
        secrets.refresh_token = Some(token.to_owned());
    }
    if fields.change("scope") != Change::Keep {
        refresh.scope = fields.optional_text("scope", 1..=LONGEST_WORD)?.map(str::to_owned);
    }
    if let Some(auth) = endpoint_auth(fields, secrets)? {
        refresh.token_endpoint_auth = auth;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(value: &Value) -> Result<(Auth, Secrets), Problem> {
        Auth::create(Fields::of_body(value).unwrap())
    }

    fn oauth() -> Value {
        json!({ "type": "mcp_oauth", "mcp_server_url": "https://mcp.example.com/", "access_token": "at-1",
            "expires_at": "2026-01-01T00:00:00Z", "refresh": { "client_id": "c", "refresh_token": "rt-1",
            "token_endpoint": "https://id.example.com/token", "scope": "all",
            "token_endpoint_auth": { "type": "client_secret_post", "client_secret": "cs-1" } } })
    }

    #[test]
    fn secrets_are_apart_and_never_shown() {
        let bearer = json!({ "type": "static_bearer", "mcp_server_url": "https://a/mcp", "token": "tk-1" });
        let variable = json!({ "type": "environment_variable", "secret_name": "KEY", "secret_value": "sv-1",
            "networking": { "type": "limited", "allowed_hosts": ["api.example.com"] } });
        for (value, secret) in [(oauth(), "at-1"), (bearer, "tk-1"), (variable, "sv-1")] {
            let (auth, secrets) = create(&value).unwrap();
            assert_eq!(secrets.token, secret);
            let shown =
                format!("{} {auth:?} {secrets:?} {}", auth.view(), serde_json::to_string(&auth).unwrap());
            for secret in secrets.values() {
                assert!(!shown.contains(secret.as_str()), "{shown}");
            }
        }
    }

    #[test]
    fn an_update_keeps_what_it_does_not_name_and_what_is_fixed() {
        let (mut auth, mut secrets) = create(&oauth()).unwrap();
        let mut update = |value: Value| auth.update(&mut secrets, Fields::of_body(&value).unwrap());
        for (value, field) in [
            (json!({ "type": "static_bearer" }), "type"),
            (json!({ "mcp_server_url": "https://other/" }), "mcp_server_url"),
            (json!({ "refresh": { "client_id": "d" } }), "refresh.client_id"),
            (
                json!({ "refresh": { "token_endpoint_auth": { "type": "no" } } }),
                "refresh.token_endpoint_auth.type",
            ),
        ] {
            assert_eq!(update(value.clone()).unwrap_err().field.as_deref(), Some(field), "{value}");
        }
        update(json!({ "type": "mcp_oauth", "access_token": "at-2", "expires_at": null,
            "refresh": { "refresh_token": "rt-2", "scope": null } }))
        .unwrap();
        let values: Vec<&str> = secrets.values().map(String::as_str).collect();
        assert_eq!(values, ["at-2", "rt-2", "cs-1"]);
        let shown = auth.view();
        assert_eq!((&shown["expires_at"], &shown["refresh"]["scope"]), (&Value::Null, &Value::Null));
        assert_eq!(shown["refresh"]["client_id"], "c");
        auth.update(&mut secrets, Fields::of_body(&json!({ "refresh": null })).unwrap()).unwrap();
        assert_eq!((&auth.view()["refresh"], secrets.values().count()), (&Value::Null, 1));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (value, field) in [
            (json!({}), "type"),
            (json!({ "type": "static_bearer", "mcp_server_url": "https://a" }), "token"),
            (json!({ "type": "static_bearer", "mcp_server_url": "ftp://a", "token": "t" }), "mcp_server_url"),
            (
                json!({ "type": "static_bearer", "mcp_server_url": "https://u:p@a", "token": "t" }),
                "mcp_server_url",
            ),
            (
                json!({ "type": "environment_variable", "secret_name": "1X", "secret_value": "v" }),
                "secret_name",
            ),
            (
                json!({ "type": "environment_variable", "secret_name": "X", "secret_value": "v" }),
                "networking",
            ),
        ] {
            assert_eq!(create(&value).unwrap_err().field.as_deref(), Some(field), "{value}");
        }
        assert_eq!(comparable("HTTPS://Example.com/mcp/"), "https://example.com/mcp");
    }
}
