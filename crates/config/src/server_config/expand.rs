//! Variables of the environment in a description: `${NAME}` and `${NAME:-default}` in the command, its arguments and
//! environment, the address and the headers. What comes out is checked: an address must be one, and so must a header.

use std::collections::BTreeMap;

use qoder_types::server::Transport;

use super::ConfigError;

type Environment = BTreeMap<String, String>;

/// The way to a server with the variables' values in it.
pub(super) fn transport(
    server: &str,
    transport: Transport,
    environment: &Environment,
) -> Result<Transport, ConfigError> {
    let expand = |field: &str, value: &str| text(server, field, value, environment);
    let pairs = |field: &str, pairs: BTreeMap<String, String>| {
        let pair = |(name, value): (String, String)| {
            let value = text(server, &format!("{field}.{name}"), &value, environment)?;
            Ok((name, value))
        };
        pairs.into_iter().map(pair).collect::<Result<BTreeMap<_, _>, ConfigError>>()
    };
    let remote = |address: &str, headers| {
        let address = expand("url", address)?;
        check_address(server, &address)?;
        let headers = pairs("headers", headers)?;
        check_headers(server, &headers)?;
        Ok((address, headers))
    };
    Ok(match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let one = |(index, value): (usize, &String)| expand(&format!("args[{index}]"), value);
            let cwd = cwd.map(|folder| expand("cwd", &folder.to_string_lossy())).transpose()?;
            Transport::Stdio {
                command: expand("command", &command)?,
                args: args.iter().enumerate().map(one).collect::<Result<_, _>>()?,
                env: pairs("env", env)?,
                cwd: cwd.map(Into::into),
            }
        }
        Transport::Sse { url, headers } => {
            let (url, headers) = remote(&url, headers)?;
            Transport::Sse { url, headers }
        }
        Transport::Http { url, headers } => {
            let (url, headers) = remote(&url, headers)?;
            Transport::Http { url, headers }
        }
        Transport::Sdk { name } => Transport::Sdk { name },
    })
}

/// A text with the variables' values in it. Values are not looked into again.
pub(super) fn text(
    server: &str,
    field: &str,
    value: &str,
    environment: &Environment,
) -> Result<String, ConfigError> {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let inside = &rest[start + 2..start + length];
        let (name, default) =
            inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
        out.push_str(&rest[..start]);
        let set = environment.get(name).map(String::as_str);
        // As in a shell: with a default, an empty variable counts as one that is not set.
        match (set.filter(|text| default.is_none() || !text.is_empty()), default) {
            (Some(text), _) | (None, Some(text)) => out.push_str(text),
            // Not a variable's name: the text means something else.
            (None, None) if !is_name(name) => out.push_str(&rest[start..=start + length]),
            (None, None) => {
                return Err(ConfigError::Variable {
                    server: server.to_owned(),
                    field: field.to_owned(),
                    variable: name.to_owned(),
                });
            }
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

fn check_address(server: &str, address: &str) -> Result<(), ConfigError> {
    let wrong = |problem: String| ConfigError::field(server, "url", problem);
    let parsed = url::Url::parse(address).map_err(|error| wrong(format!("is not an address: {error}")))?;
    match parsed.scheme() {
        "http" | "https" if parsed.host_str().is_some() => Ok(()),
        "ws" | "wss" => {
            Err(ConfigError::Kind { server: server.to_owned(), kind: parsed.scheme().to_owned() })
        }
        scheme => Err(wrong(format!("must begin with http:// or https://, not {scheme}:"))),
    }
}

fn check_headers(server: &str, headers: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    for (name, value) in headers {
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(ConfigError::field(
                server,
                "headers",
                format!("has the name {name:?}, which no header can have"),
            ));
        }
        if http::HeaderValue::from_str(value).is_err() {
            return Err(ConfigError::field(
                server,
                format!("headers.{name}"),
                "has characters that no header can have",
            ));
        }
    }
    Ok(())
}
