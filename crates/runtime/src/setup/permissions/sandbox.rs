//! The sandbox of a session: from settings, the environment and the flag to what the tools need.
//!
//! Anything that switches it on counts; nothing that a project says does, neither on nor off. A backend that is asked
//! for by name and does not exist here is an error, because a sandbox that was meant and is missing would be worse than
//! no start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_policy::{RuleSet, Workspace};
use qoder_process::sandbox::{SandboxPlaces, SandboxSettings, report};
use qoder_types::workspace::Isolation;
use serde_json::{Map, Value};

use qoder_config::settings::{Settings, SettingsError};

/// Names of what we have; each means: whatever of it this system offers.
const BACKENDS: [&str; 6] = ["native", "landlock", "bwrap", "bubblewrap", "seatbelt", "sandbox-exec"];

/// The sandbox settings in force. `flag` is `--sandbox`.
pub fn settings(
    settings: &Settings,
    environment: &BTreeMap<String, String>,
    flag: bool,
) -> Result<SandboxSettings, SettingsError> {
    let mut value = settings.get("sandbox").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut enabled = flag || settings.flag("security.toolSandboxing", false);
    match settings.get("tools.sandbox") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(on)) => enabled |= on,
        Some(Value::String(word)) => {
            enabled |= switch(word).ok_or_else(|| wrong(settings, "tools.sandbox", word))?;
        }
        Some(Value::Object(own)) => {
            enabled |= own.get("enabled").and_then(Value::as_bool).unwrap_or(true);
            overlay(&mut value, own);
        }
        Some(other) => return Err(wrong(settings, "tools.sandbox", &other.to_string())),
    }
    if let Some(word) = environment.get("QODER_SANDBOX") {
        let on = switch(word).ok_or_else(|| SettingsError::Value {
            place: "environment".to_owned(),
            key: "QODER_SANDBOX".to_owned(),
            problem: format!("is `{word}`; {}", accepted()),
        })?;
        enabled |= on;
    }
    let mut sandbox: SandboxSettings = serde_json::from_value(value).map_err(|error| {
        let place =
            settings.origin("sandbox").map_or_else(|| "settings".to_owned(), |layer| layer.place("sandbox"));
        SettingsError::Value { place, key: "sandbox".to_owned(), problem: format!("cannot be read: {error}") }
    })?;
    sandbox.enabled |= enabled;
    sandbox.filesystem.allow_write.extend(settings.list("tools.sandboxAllowedPaths"));
    if settings.flag("tools.sandboxNetworkAccess", false) {
        sandbox.network.allowed_domains.push("*".to_owned());
    }
    Ok(sandbox)
}

/// Whether a word switches the sandbox on; `None` for one that means nothing here.
fn switch(word: &str) -> Option<bool> {
    match word.trim().to_lowercase().as_str() {
        "" | "0" | "false" | "off" | "no" | "none" => Some(false),
        "1" | "true" | "on" | "yes" | "auto" => Some(true),
        name => BACKENDS.contains(&name).then_some(true),
    }
}

fn accepted() -> String {
    format!("accepted are true, false, {}", BACKENDS.join(", "))
}

fn wrong(settings: &Settings, key: &str, word: &str) -> SettingsError {
    let place = settings.origin(key).map_or_else(|| "settings".to_owned(), |layer| layer.place(key));
    SettingsError::Value { place, key: key.to_owned(), problem: format!("is `{word}`; {}", accepted()) }
}

/// Fields of `higher` replace those of `lower`, objects field by field.
fn overlay(lower: &mut Value, higher: &Map<String, Value>) {
    let Value::Object(lower) = lower else { return };
    for (name, value) in higher {
        match (lower.get_mut(name), value) {
            (Some(below @ Value::Object(_)), Value::Object(value)) => overlay(below, value),
            (_, value) => {
                lower.insert(name.clone(), value.clone());
            }
        }
    }
}

/// What the sandbox of an isolated session enforces on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxTrial {
    /// What confines commands; nothing where they cannot be confined.
    pub confined_by: Option<&'static str>,
    /// What cannot be enforced.
    pub problems: Vec<String>,
}

/// Tries the sandbox of a session that has this folder for itself.
#[must_use]
pub fn try_isolated(folder: &Path) -> SandboxTrial {
    let settings =
        SandboxSettings { enabled: true, allow_unsandboxed_commands: false, ..SandboxSettings::default() };
    let places = SandboxPlaces {
        isolation: Some(Isolation::new(vec![folder.to_path_buf()])),
        ..SandboxPlaces::default()
    };
    let found = report(&settings, &places, folder);
    SandboxTrial { confined_by: found.mechanism.filter(|_| found.is_enforced()), problems: found.problems }
}

/// The places of a session, with those that its rules deny to read.
#[must_use]
pub fn places(rules: &RuleSet, workspace: &Workspace) -> SandboxPlaces {
    let denying = rules.deny.iter().filter(|rule| rule.tool == "Read");
    let deny_read = denying.filter_map(|rule| named_place(rule.content.as_deref()?, workspace)).collect();
    SandboxPlaces {
        home: workspace.home.clone(),
        config_dir: workspace.config_dir.clone(),
        deny_read,
        protected: workspace.protected.clone(),
        isolation: workspace.isolation.clone(),
    }
}

/// The one place that a pattern names. Patterns for many places cannot be covered one by one; the gate asks about
/// commands while such a rule is there.
fn named_place(pattern: &str, workspace: &Workspace) -> Option<PathBuf> {
    let body = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*")).unwrap_or(pattern);
    let body = body.trim_end_matches('/');
    if body.is_empty() || body.contains(['*', '?', '[', '{', '\\', '\0']) {
        return None;
    }
    if let Some(rest) = body.strip_prefix("//") {
        return Some(PathBuf::from("/").join(rest));
    }
    if let Some(rest) = body.strip_prefix("~/") {
        return Some(workspace.home.join(rest));
    }
    if let Some(rest) = body.strip_prefix('/') {
        return Some(workspace.project_root.join(rest));
    }
    // A bare name counts at any depth; the place where it usually is is covered.
    Some(workspace.cwd.join(body.strip_prefix("./").unwrap_or(body)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value, variable: Option<&str>, flag: bool) -> Result<SandboxSettings, SettingsError> {
        let effective = Settings { effective: value, ..Settings::default() };
        let environment =
            variable.map(|word| ("QODER_SANDBOX".to_owned(), word.to_owned())).into_iter().collect();
        settings(&effective, &environment, flag)
    }

    #[test]
    fn any_switch_turns_it_on_and_none_leaves_it_off() {
        assert!(!read(json!({}), None, false).unwrap().enabled);
        assert!(read(json!({}), None, true).unwrap().enabled);
        for on in ["1", "true", "native", "bwrap"] {
            assert!(read(json!({}), Some(on), false).unwrap().enabled, "{on}");
        }
        assert!(!read(json!({}), Some("false"), false).unwrap().enabled);
        let settings = [
            json!({"sandbox": {"enabled": true}}),
            json!({"tools": {"sandbox": true}}),
            json!({"tools": {"sandbox": "landlock"}}),
            json!({"tools": {"sandbox": {"network": {"allowLocalBinding": true}}}}),
            json!({"security": {"toolSandboxing": true}}),
        ];
        for value in settings {
            assert!(read(value.clone(), None, false).unwrap().enabled, "{value}");
            assert!(read(value.clone(), Some("off"), false).unwrap().enabled, "{value}");
        }
    }

    #[test]
    fn a_backend_that_is_not_here_is_an_error() {
        assert!(read(json!({}), Some("docker"), false).is_err());
        let error = read(json!({"tools": {"sandbox": "podman"}}), None, false).unwrap_err();
        assert!(error.to_string().contains("accepted are true, false, native"), "{error}");
        assert!(read(json!({"sandbox": {"network": {"httpProxyPort": 70000}}}), None, false).is_err());
    }

    #[test]
    fn the_older_keys_add_to_the_newer() {
        let sandbox = read(
            json!({"sandbox": {"filesystem": {"allowWrite": ["a"]}, "allowUnsandboxedCommands": false},
                   "tools": {"sandboxAllowedPaths": ["b"], "sandboxNetworkAccess": true,
                             "sandbox": {"filesystem": {"denyRead": ["c"]}}}}),
            None,
            false,
        )
        .unwrap();
        assert_eq!(sandbox.filesystem.allow_write, ["a", "b"]);
        assert_eq!(sandbox.filesystem.deny_read, ["c"]);
        assert_eq!(sandbox.network.allowed_domains, ["*"]);
        assert!(!sandbox.allow_unsandboxed_commands);
    }

    #[test]
    fn rules_that_name_a_place_cover_it() {
        let workspace = Workspace {
            cwd: "/w/p/sub".into(),
            project_root: "/w/p".into(),
            home: "/home/n".into(),
            roots: vec!["/w/p".into()],
            config_dir: "/home/n/.qoder".into(),
            protected: Vec::new(),
            isolation: None,
        };
        let named = |pattern: &str| named_place(pattern, &workspace);
        assert_eq!(named("~/.ssh/**"), Some("/home/n/.ssh".into()));
        assert_eq!(named("//etc/shadow"), Some("/etc/shadow".into()));
        assert_eq!(named("/secret/"), Some("/w/p/secret".into()));
        assert_eq!(named("./.env"), Some("/w/p/sub/.env".into()));
        assert_eq!(named(".env"), Some("/w/p/sub/.env".into()));
        assert_eq!(named("**/*.pem"), None);
    }
}
