//! Describing servers and removing them: a change of one key in the file of the scope, everything else in it kept. What
//! the person adds to a folder is approved by that.

use qoder_config::server_config::{expand_server, parse_server, unknown_fields};
use qoder_config::servers::{Approvals, Described, bound_digest};
use qoder_config::settings::{Change, WriteError, change, change_under, read_plain};
use qoder_runtime::setup::Setup;
use serde_json::{Map, Value, json};

use super::arguments::{Add, ScopeName, TransportName};
use super::{described, file, scope_of, unknown};
use crate::exit::{Exit, Fault};
use crate::screen::{print_note, print_row};

/// Describes a server from flags.
pub fn run(setup: &Setup, add: &Add) -> Result<Exit, Fault> {
    keep(setup, &add.name, &description(add)?, add.scope)
}

/// Describes a server by JSON.
pub fn from_json(setup: &Setup, name: &str, text: &str, scope: ScopeName) -> Result<Exit, Fault> {
    let hint = "give one object, such as {\"command\": \"npx\", \"args\": [\"-y\", \"some-server\"]}";
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Fault::input(format!("the description is not JSON: {error}"), hint))?;
    keep(setup, name, &value, scope)
}

/// Removes a server's description.
pub fn remove(setup: &Setup, name: &str, scope: Option<ScopeName>) -> Result<Exit, Fault> {
    let all = described(setup);
    let mut places: Vec<&Described> = all.iter().filter(|one| one.name == name).collect();
    if let Some(scope) = scope {
        places.retain(|one| scope_of(one.place) == Some(scope));
    }
    let one = match places.as_slice() {
        [] if scope.is_some() && all.iter().any(|one| one.name == name) => {
            let at: Vec<&str> =
                all.iter().filter(|one| one.name == name).map(|one| one.at.as_str()).collect();
            let message = format!("the MCP server `{name}` is not described in that scope");
            return Err(Fault::input(message, format!("it is in {}", at.join(" and "))));
        }
        [] => return Err(unknown(setup, name, &all)),
        [one] => *one,
        several => {
            let at: Vec<&str> = several.iter().map(|one| one.at.as_str()).collect();
            return Err(Fault::input(
                format!("the MCP server `{name}` is described in several places: {}", at.join(", ")),
                "say which one with --scope user, local or project",
            ));
        }
    };
    let Some(scope) = scope_of(one.place) else {
        return Err(Fault::input(format!("`{name}` is described in {}", one.at), "remove it there"));
    };
    write(setup, scope, name, &Change::Remove)?;
    if scope != ScopeName::User {
        Approvals::remove(&setup.config.config_root, &setup.config.project_root, name)
            .map_err(|error| cannot_write(&error))?;
    }
    print_row(&format!("removed the MCP server {name} from {}", file(setup, scope).display()))?;
    Ok(Exit::Success)
}

/// What the flags describe, as a file has it.
fn description(add: &Add) -> Result<Value, Fault> {
    let is_address = add.target.starts_with("http://") || add.target.starts_with("https://");
    let transport =
        add.transport.unwrap_or(if is_address { TransportName::Http } else { TransportName::Stdio });
    let mut value = Map::new();
    match transport {
        TransportName::Stdio => {
            if !add.header.is_empty() {
                return Err(Fault::input(
                    "--header is for remote servers",
                    "a program gets variables: --env NAME=VALUE",
                ));
            }
            value.insert("command".to_owned(), json!(add.target));
            value.insert("args".to_owned(), json!(add.args));
            let env = pairs("--env", &add.env, '=')?;
            if !env.is_empty() {
                value.insert("env".to_owned(), Value::Object(env));
            }
        }
        TransportName::Sse | TransportName::Http => {
            if let Some(word) = add.args.first() {
                return Err(Fault::input(
                    format!("`{word}` comes after the address, and an address has no arguments"),
                    "options go before the name; a program needs `-t stdio` or no -t at all",
                ));
            }
            if !add.env.is_empty() {
                return Err(Fault::input(
                    "--env is for programs",
                    "a remote server gets headers: --header 'Name: value'",
                ));
            }
            let word = if transport == TransportName::Sse { "sse" } else { "http" };
            value.insert("type".to_owned(), json!(word));
            value.insert("url".to_owned(), json!(add.target));
            let headers = pairs("--header", &add.header, ':')?;
            if !headers.is_empty() {
                value.insert("headers".to_owned(), Value::Object(headers));
            }
        }
    }
    if let Some(timeout) = add.timeout {
        value.insert("timeout".to_owned(), json!(timeout));
    }
    let mut oauth = Map::new();
    oauth.extend(add.client_id.as_ref().map(|id| ("clientId".to_owned(), json!(id))));
    oauth.extend(add.callback_port.map(|port| ("callbackPort".to_owned(), json!(port))));
    if !oauth.is_empty() {
        value.insert("oauth".to_owned(), Value::Object(oauth));
    }
    Ok(Value::Object(value))
}

fn pairs(option: &str, given: &[String], separator: char) -> Result<Map<String, Value>, Fault> {
    let pair = |text: &String| match text.split_once(separator) {
        Some((name, value)) if !name.trim().is_empty() => {
            let value = if separator == ':' { value.trim() } else { value };
            Ok((name.trim().to_owned(), json!(value)))
        }
        Some(_) | None => {
            let example = if separator == ':' { "'Name: value'" } else { "NAME=VALUE" };
            let name = text.split(separator).next().unwrap_or_default();
            Err(Fault::input(format!("{option}: `{name}` has no value"), format!("write it as {example}")))
        }
    };
    given.iter().map(pair).collect()
}

fn keep(setup: &Setup, name: &str, value: &Value, scope: ScopeName) -> Result<Exit, Fault> {
    let config = parse_server(name, value).map_err(|error| Fault::input(error.to_string(), error.hint()))?;
    if config.transport.kind() == "sdk" {
        return Err(Fault::input(
            "a server of type sdk lives in the program that starts qodercli; no file can describe one",
            "accepted here are stdio, sse and http",
        ));
    }
    for text in unknown_fields(value) {
        print_note(&format!("warning: {text}"));
    }
    // Variables may be set elsewhere; report now what is wrong whatever they are.
    if let Err(error) = expand_server(config.clone(), name, &setup.options.environment) {
        match error.code() {
            "mcp_config_variable" => print_note(&format!("warning: {error}; {}", error.hint())),
            _ => return Err(Fault::input(error.to_string(), error.hint())),
        }
    }
    let path = file(setup, scope);
    let present = read_plain(&path).map_err(|error| Fault::input(error.to_string(), error.hint()))?;
    let present = present.and_then(|layer| layer.value.get("mcpServers")?.get(name).cloned());
    if present.is_some_and(|present| present != *value) {
        let hint = format!("remove it first: qodercli mcp remove {name} -s {}", scope.as_str());
        return Err(Fault::input(format!("{} describes a server `{name}` already", path.display()), hint));
    }
    write(setup, scope, name, &Change::Set(value.clone()))?;
    if scope != ScopeName::User {
        // The person wrote it: that is the approval.
        let mark = bound_digest(name, value, &setup.config.project_root);
        Approvals::add(&setup.config.config_root, &setup.config.project_root, name, &mark)
            .map_err(|error| cannot_write(&error))?;
        if !setup.config.trust.is_trusted() {
            print_note(&format!(
                "warning: this folder is not trusted, so sessions here do not use {name} yet\n  hint: `qodercli trust` \
                 trusts the folder and shows what it brings; `-s user` describes a server for all folders, without trust"
            ));
        }
    }
    print_row(&format!("added the {} server {name} to {}", config.transport.kind(), path.display()))?;
    Ok(Exit::Success)
}

fn write(setup: &Setup, scope: ScopeName, name: &str, what: &Change) -> Result<(), Fault> {
    let path = file(setup, scope);
    let key = format!("mcpServers.{name}");
    match scope {
        ScopeName::User | ScopeName::Local => change(&path, &key, what),
        ScopeName::Project => change_under(&setup.config.config_root, &path, &key, what),
    }
    .map_err(|error| cannot_write(&error))
}

fn cannot_write(error: &WriteError) -> Fault {
    Fault {
        exit: Exit::Configuration,
        message: error.to_string(),
        hint: "check the file and its permissions".to_owned(),
    }
}
