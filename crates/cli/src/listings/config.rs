//! `config`, `trust` and `--list-models`: what is in force, where it came from, and what the provider offers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_config::home;
use qoder_config::server_config::without_credentials;
use qoder_config::settings::{KNOWN_KEYS, holds_secret, is_known_key};
use qoder_runtime::error::SessionError;
use qoder_runtime::setup::Setup;
use serde_json::{Value, json};

use crate::command_line::place::{PlaceArguments, current_directory};
use crate::exit::{Exit, Fault};
use crate::listings::hooks;
use crate::screen;

/// Shows effective settings with their origin.
pub fn print(
    key: Option<&str>,
    at: PlaceArguments,
    environment: BTreeMap<String, String>,
) -> Result<Exit, Fault> {
    let as_json = at.json;
    let setup = at.prepare(environment)?;
    let mut rows = all_rows(&setup)?;
    if let Some(key) = key {
        rows.retain(|row| row.0 == key || row.0.starts_with(&format!("{key}.")));
        if rows.is_empty() {
            return Err(Fault::input(
                format!("no setting `{key}` is known or set"),
                "`qodercli config` lists all",
            ));
        }
    }
    if as_json {
        let list: Vec<Value> = rows
            .iter()
            .map(|(key, value, origin)| {
                let mut row = json!({ "key": key, "value": value, "origin": origin });
                if note(key, origin).is_some() {
                    row["hasEffect"] = json!(false);
                }
                row
            })
            .collect();
        screen::print_json(&Value::Array(list))?;
        return Ok(Exit::Success);
    }
    if key.is_none() {
        screen::print_row(&format!("folder: {} ({})", setup.cwd.display(), trust_text(&setup)))?;
        screen::print_row(&format!("config: {}", setup.config.config_root.display()))?;
    }
    for (key, value, origin) in rows {
        let note = note(&key, &origin).map(|note| format!("  ({note})")).unwrap_or_default();
        screen::print_row(&format!("{key} = {value}  [{origin}]{note}"))?;
    }
    Ok(Exit::Success)
}

/// Every effective setting with its value and where it comes from, by key.
fn all_rows(setup: &Setup) -> Result<Vec<(String, Value, String)>, Fault> {
    let mut rows: Vec<(String, Value, String)> = Vec::new();
    flatten(&setup.config.settings.effective, "", &mut rows);
    for row in &mut rows {
        row.2 = setup.config.settings.origin(&row.0).map(|layer| place(layer, &row.0)).unwrap_or_default();
    }
    for known in KNOWN_KEYS.iter().filter(|known| !known.default.is_empty()) {
        if !rows.iter().any(|row| row.0 == known.path)
            && let Ok(value) = serde_json::from_str(known.default)
        {
            rows.push((known.path.to_owned(), value, "default".to_owned()));
        }
    }
    rows.extend(profile_rows(setup)?);
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(rows)
}

/// The effective settings, one a line.
#[cfg(feature = "tui")]
pub fn as_text(setup: &Setup) -> Result<String, Fault> {
    let rows = all_rows(setup)?;
    let lines: Vec<String> =
        rows.iter().map(|(key, value, origin)| format!("{key} = {value}  [{origin}]")).collect();
    Ok(lines.join("\n"))
}

/// The compatibility profiles in force: of the model that is asked, and of every provider that the settings name.
fn profile_rows(setup: &Setup) -> Result<Vec<(String, Value, String)>, Fault> {
    let options = setup.model_options();
    let fault = |error: qoder_models::ModelConfigError| Fault::input(error.to_string(), error.hint());
    let row =
        |key: String, found: qoder_models::ProfileInForce| (key, json!(found.profile.name), found.reason);
    let mut rows = Vec::new();
    // A model that cannot be asked has no profile; the session itself says why.
    if let Ok(Some(found)) = qoder_models::profile_in_force(options) {
        rows.push(row("model.profile".to_owned(), found));
    }
    let named =
        |found: &qoder_models::ProfileInForce| options.settings.providers.contains_key(&found.provider);
    for found in qoder_models::provider_profiles(options).unwrap_or_default().into_iter().filter(named) {
        rows.push(row(format!("providers.{}.profile", found.provider), found));
    }
    qoder_models::check_compat(options).map_err(fault)?;
    Ok(rows)
}

/// What a reader of a setting has to know: it changes nothing. Rows of profiles come from no file.
fn note(key: &str, origin: &str) -> Option<&'static str> {
    let is_row_of_profile = key.ends_with(".profile") && !origin.contains(".json");
    if !is_known_key(key) && !is_row_of_profile {
        return Some("unknown setting: no effect");
    }
    (!has_effect(key)).then_some("no effect yet")
}

/// False for keys that are accepted and change nothing.
fn has_effect(key: &str) -> bool {
    KNOWN_KEYS.iter().filter(|known| !known.has_effect).all(|known| match known.path.strip_suffix('*') {
        Some(group) => !key.starts_with(group),
        None => key != known.path,
    })
}

fn trust_text(setup: &Setup) -> &'static str {
    match setup.config.trust {
        qoder_config::trust::Trust::No => "not trusted: its settings, AGENTS.md and rules are not used",
        qoder_config::trust::Trust::ThisRun | qoder_config::trust::Trust::Host => "trusted for this run",
        qoder_config::trust::Trust::Listed | qoder_config::trust::Trust::Configured => "trusted",
        qoder_config::trust::Trust::SwitchedOff => "folder trust is switched off",
    }
}

fn place(layer: &qoder_config::settings::Layer, key: &str) -> String {
    let line = layer.lines.get(&format!("/{}", key.replace('.', "/")));
    line.map_or_else(|| layer.name(), |line| format!("{}:{line}", layer.name()))
}

/// Rows for all values; keys hold no secrets, their values may.
fn flatten(value: &Value, prefix: &str, rows: &mut Vec<(String, Value, String)>) {
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                let of_server = path.starts_with("mcpServers.")
                    && (prefix.ends_with(".env") || prefix.ends_with(".headers"));
                if (of_server || holds_secret(name)) && below.is_string() {
                    rows.push((path, Value::String("***".to_owned()), String::new()));
                } else {
                    flatten(below, &path, rows);
                }
            }
        }
        other => rows.push((prefix.to_owned(), without_passwords(other), String::new())),
    }
}

/// A value without passwords: of addresses the host and the path stay, and so does everything that is no secret.
fn without_passwords(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains("://") => Value::String(without_credentials(text)),
        Value::Array(items) => Value::Array(items.iter().map(without_passwords).collect()),
        Value::Object(map) => {
            let field = |(name, below): (&String, &Value)| {
                let hidden = holds_secret(name) && below.is_string();
                (name.clone(), if hidden { json!("***") } else { without_passwords(below) })
            };
            Value::Object(map.iter().map(field).collect())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Puts a folder on the list of trusted ones.
pub fn trust(folder: Option<&PathBuf>, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let folder = current_directory(folder)?;
    let root = home::config_root(environment);
    let trusted = match qoder_config::trust::add(&folder, &root, &home::home(environment)) {
        // The folder was refused; anything else is about the place where the list is kept.
        Err(error) if error.what == "trust" => {
            return Err(Fault::input(error.to_string(), "trust a project's own folder"));
        }
        added => added.map_err(SessionError::from)?,
    };
    screen::print_row(&format!("trusted: {}", trusted.display()))?;
    let (found, problems) = qoder_config::hooks::hooks_of_folder(&trusted);
    hooks::tell_problems(&problems);
    if !found.is_empty() {
        screen::print_line("its hooks run as they are now; when they change, trust it again:")?;
    }
    for hook in &found {
        screen::print_line(&hooks::line(hook))?;
    }
    let scripts = qoder_config::hooks::script_digests_of_folder(&trusted);
    if !scripts.is_empty() {
        screen::print_line(
            "the scripts that they run, as they are now; one that changes is not run until you trust it again:",
        )?;
    }
    for script in scripts.keys() {
        screen::print_row(&format!("  {script}"))?;
    }
    let unbound = qoder_config::hooks::unbound_parts_of_folder(&trusted);
    if !found.is_empty() {
        screen::print_line(
            "not bound: what these programs load by themselves, other than scripts of this folder that they name",
        )?;
    }
    for part in unbound {
        screen::print_row(&format!(
            "  {part} (known only when the hook runs, so a change of any script in the folder counts)"
        ))?;
    }
    Ok(Exit::Success)
}
