//! From JSON to a description. The kind comes from `type`, or from the fields: a `command` is a child process, an address
//! is streamable HTTP. Kinds that are not spoken are refused by name; an unknown field is a warning.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::fields::Fields;
use qoder_types::server::{OAuthConfig, ServerConfig, ToolPolicy, Transport};

use super::{ConfigError, check_name, expand, shown};
use crate::sources::kind_of;

/// Fields of every kind of server.
pub(super) const SHARED: &[&str] = &[
    "type",
    "tools",
    "alwaysAllow",
    "always_allow",
    "include_tools",
    "includeTools",
    "exclude_tools",
    "excludeTools",
    "timeout",
    "description",
    "disabled",
    "enabled",
    "sampling",
];
/// Fields of a child process.
const OF_PROCESS: &[&str] = &["command", "args", "env", "cwd"];
/// Fields of a remote server.
const OF_REMOTE: &[&str] = &["url", "http_url", "httpUrl", "headers", "oauth"];
/// Fields of a server in the program that started us; the instance is that program's affair.
const OF_SDK: &[&str] = &["name", "instance"];
const ADDRESSES: &[&str] = &["url", "http_url", "httpUrl"];

/// Reads a description as it was written, without looking at the environment.
///
/// # Errors
/// When it cannot be used; the error names the server and the field.
pub fn parse_server(name: &str, value: &Value) -> Result<ServerConfig, ConfigError> {
    check_name(name)?;
    let Some(map) = value.as_object() else {
        let problem = format!("must be an object, not {}", kind_of(value));
        return Err(ConfigError::field(name, format!("mcpServers.{name}"), problem));
    };
    let fields = Fields { server: name, map, place: "" };
    let transport = transport(&fields)?;
    let enabled = fields.flag(&["enabled"])?.unwrap_or(true) && !fields.flag(&["disabled"])?.unwrap_or(false);
    let shown = shown::fields(map, transport.kind());
    Ok(ServerConfig {
        transport,
        policies: policies(&fields)?,
        include_tools: fields.texts(&["include_tools", "includeTools"])?,
        exclude_tools: fields.texts(&["exclude_tools", "excludeTools"])?.unwrap_or_default(),
        timeout: fields.milliseconds("timeout")?,
        enabled,
        sampling: fields.flag(&["sampling"])?.unwrap_or(false),
        oauth: oauth(&fields)?,
        shown,
    })
}

/// Reads a description and puts the values of the environment's variables in.
///
/// # Errors
/// As [`parse_server`], and when a variable without a default is not set.
pub fn read_server(
    name: &str,
    value: &Value,
    environment: &BTreeMap<String, String>,
) -> Result<ServerConfig, ConfigError> {
    expand_server(parse_server(name, value)?, name, environment)
}

/// The description with `${VARIABLE}` and `${VARIABLE:-default}` replaced. What status rows show stays as it was
/// written: a variable often holds a secret.
///
/// # Errors
/// When a variable without a default is not set, or what comes out is no address or header.
pub fn expand_server(
    mut config: ServerConfig,
    name: &str,
    environment: &BTreeMap<String, String>,
) -> Result<ServerConfig, ConfigError> {
    config.transport = expand::transport(name, config.transport, environment)?;
    for (field, value) in [
        ("oauth.clientId", &mut config.oauth.client_id),
        ("oauth.clientSecret", &mut config.oauth.client_secret),
    ] {
        if let Some(text) = value {
            *text = expand::text(name, field, text, environment)?;
        }
    }
    Ok(config)
}

/// The unknown fields, each with the known one that may have been meant.
#[must_use]
pub fn unknown_fields(value: &Value) -> Vec<String> {
    let all = || [SHARED, OF_PROCESS, OF_REMOTE, OF_SDK].into_iter().flatten().copied();
    let folded = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let told = |name: &String| match all().find(|known| folded(known) == folded(name)) {
        Some(near) => format!("`{name}` is not a field of an MCP server; did you mean `{near}`?"),
        None if name == "trust" => {
            "`trust` is not used; `alwaysAllow` names tools that need no question".to_owned()
        }
        None => format!("`{name}` is not a field of an MCP server"),
    };
    let names = value.as_object().into_iter().flatten().map(|(name, _)| name);
    names.filter(|name| !all().any(|known| known == name.as_str())).map(told).collect()
}

fn transport(fields: &Fields<'_>) -> Result<Transport, ConfigError> {
    let process = fields.get(&["command"]).is_some();
    let address = fields.get(ADDRESSES).is_some();
    let kind = match fields.text(&["type"])? {
        Some(kind) => kind,
        None if process && address => {
            return Err(fields.wrong("type", "is missing, and there are both a `command` and an address"));
        }
        None if process => "stdio",
        None if address => "http",
        None if fields.get(&["tcp"]).is_some() => "tcp",
        None => return Err(fields.wrong("command", "is missing, and so is `url`")),
    };
    let remote = |fields: &Fields<'_>| Ok((fields.needed(ADDRESSES)?.to_owned(), fields.pairs("headers")?));
    match kind {
        "stdio" => Ok(Transport::Stdio {
            command: fields.needed(&["command"])?.to_owned(),
            args: fields.texts(&["args"])?.unwrap_or_default(),
            env: environment(fields)?,
            cwd: fields.text(&["cwd"])?.filter(|folder| !folder.is_empty()).map(PathBuf::from),
        }),
        "sse" => remote(fields).map(|(url, headers)| Transport::Sse { url, headers }),
        "http" => remote(fields).map(|(url, headers)| Transport::Http { url, headers }),
        "sdk" => {
            let name = fields.text(&["name"])?.filter(|name| !name.is_empty());
            Ok(Transport::Sdk { name: name.unwrap_or(fields.server).to_owned() })
        }
        other => {
            let kind = other.chars().take(40).collect();
            Err(ConfigError::Kind { server: fields.server.to_owned(), kind })
        }
    }
}

/// Variables for a child process: names and values that a system can take.
fn environment(fields: &Fields<'_>) -> Result<BTreeMap<String, String>, ConfigError> {
    let pairs = fields.pairs("env")?;
    for (name, value) in &pairs {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(fields.wrong("env", "has a name that no variable can have"));
        }
        if value.contains('\0') {
            return Err(fields.wrong(&format!("env.{name}"), "has a NUL character"));
        }
    }
    Ok(pairs)
}

fn policies(fields: &Fields<'_>) -> Result<Vec<(String, ToolPolicy)>, ConfigError> {
    let mut policies = Vec::new();
    for tool in fields.texts(&["alwaysAllow", "always_allow"])?.unwrap_or_default() {
        policies.push((tool, ToolPolicy::AlwaysAllow));
    }
    let Some((name, value)) = fields.get(&["tools"]) else { return Ok(policies) };
    let Some(items) = value.as_array() else {
        return Err(fields.wrong(name, format!("must be a list of policies, not {}", kind_of(value))));
    };
    for (index, item) in items.iter().enumerate() {
        let place = format!("tools[{index}].");
        let Some(map) = item.as_object() else {
            return Err(
                fields.wrong(&format!("tools[{index}]"), format!("must be an object, not {}", kind_of(item)))
            );
        };
        let fields = Fields { server: fields.server, map, place: &place };
        let tool = fields.needed(&["name"])?;
        let policy = match fields.needed(&["permission_policy", "permissionPolicy"])? {
            "always_allow" => ToolPolicy::AlwaysAllow,
            "always_ask" => ToolPolicy::AlwaysAsk,
            "always_deny" => ToolPolicy::AlwaysDeny,
            other => {
                let problem = format!("is `{other}`; accepted are always_allow, always_ask and always_deny");
                return Err(fields.wrong("permission_policy", problem));
            }
        };
        policies.push((tool.to_owned(), policy));
    }
    Ok(policies)
}

fn oauth(fields: &Fields<'_>) -> Result<OAuthConfig, ConfigError> {
    let Some((name, value)) = fields.get(&["oauth"]) else { return Ok(OAuthConfig::default()) };
    let Some(map) = value.as_object() else {
        return Err(fields.wrong(name, format!("must be an object, not {}", kind_of(value))));
    };
    let fields = Fields { server: fields.server, map, place: "oauth." };
    let text = |spellings| fields.text(spellings).map(|text| text.map(str::to_owned));
    let scopes = match fields.get(&["scopes", "scope"]) {
        Some((_, Value::String(words))) => Some(words.split_whitespace().map(str::to_owned).collect()),
        Some(_) | None => fields.texts(&["scopes", "scope"])?,
    };
    Ok(OAuthConfig {
        client_id: text(&["clientId", "client_id"])?,
        client_secret: text(&["clientSecret", "client_secret"])?,
        scopes,
        callback_port: fields.port(&["callbackPort", "callback_port"])?,
    })
}
