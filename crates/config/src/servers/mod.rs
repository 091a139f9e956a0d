//! Where the descriptions of MCP servers come from: plugins, the project's `.mcp.json`, settings, the command line. Of two with one
//! name the higher place wins. A server of a folder needs trust and the person's own approval before it is started.

mod agents;
mod approvals;
mod bound;
mod files;
mod inline;
mod plugins;

use std::collections::BTreeMap;
use std::path::Path;

use qoder_types::server::{NamedServer, Scope, Transport};
use serde_json::Value;

use crate::configuration::Configuration;
use crate::server_config::{ConfigError, parse_server, shown, unknown_fields};
use crate::settings::{Settings, variables};

pub use agents::{OfAgent, of_agents};
pub use approvals::Approvals;
pub use bound::{bound_digest, bound_files, unbound_parts};
pub use files::{Described, McpConfigError, Place, described};
pub use inline::{InlineServerError, InlineServers};
pub use plugins::of_plugin;

/// What the command line says about servers.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--mcp-config`: files, or JSON.
    pub configs: Vec<String>,
    /// Nothing but those.
    pub strict: bool,
    /// Only these servers, when there are any; those in the program that started us are not meant.
    pub allowed: Vec<String>,
}

/// A described server that is not connected.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Where it is described.
    pub scope: Scope,
    /// Its description without secrets.
    pub shown: Value,
    /// Why, for people.
    pub reason: String,
    /// True: it is switched off or waits for approval. False: it is described wrongly.
    pub disabled: bool,
}

/// The servers of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sources {
    /// Those to connect, by name. One that is switched off in its description is among them.
    pub servers: Vec<NamedServer>,
    /// Those that are shown and not connected.
    pub refused: Vec<Refused>,
    /// For people: files that cannot be read, unknown fields.
    pub warnings: Vec<String>,
}

/// All servers that are described for a session.
///
/// # Errors
/// When `--mcp-config` cannot be read. Anything else that is wrong harms its own server alone.
pub fn servers(
    config: &Configuration,
    of_plugins: &[Described],
    flags: &Flags,
) -> Result<Sources, McpConfigError> {
    let mut warnings = Vec::new();
    let mut all = Vec::new();
    if !flags.strict {
        all = described(config, of_plugins, &mut warnings);
    }
    all.extend(files::flags(&flags.configs)?);
    Ok(choose(all, warnings, config, flags))
}

/// The servers that plugins describe.
#[must_use]
pub fn servers_of_plugins(config: &Configuration, of_plugins: &[Described], flags: &Flags) -> Sources {
    let all = if flags.strict { Vec::new() } else { of_plugins.to_vec() };
    choose(all, Vec::new(), config, flags)
}

/// The description that counts of each name, and whether it may run.
fn choose(all: Vec<Described>, warnings: Vec<String>, config: &Configuration, flags: &Flags) -> Sources {
    let mut sources = Sources { warnings, ..Sources::default() };
    if all.is_empty() {
        return sources;
    }
    let wanted = Wanted::new(config, flags);
    let approvals = Approvals::load(&config.config_root);
    let mut chosen: BTreeMap<String, Result<NamedServer, Refused>> = BTreeMap::new();
    // The lowest place first, so that each later one may take over. What may not run takes nothing over.
    for one in all {
        let judged = judge(&one, config, &wanted, &approvals, &mut sources.warnings);
        let Some(judged) = judged else { continue };
        let yields = judged.as_ref().is_err_and(|refused| refused.disabled);
        if !(yields && chosen.contains_key(&one.name)) {
            chosen.insert(one.name.clone(), judged);
        }
    }
    for judged in chosen.into_values() {
        match judged {
            Ok(server) => sources.servers.push(server),
            Err(refused) => sources.refused.push(refused),
        }
    }
    sources
}

/// Which names may be connected at all.
#[derive(Debug, Clone)]
struct Wanted {
    allowed: Vec<String>,
    listed: Option<Vec<String>>,
    excluded: Vec<String>,
}

impl Wanted {
    fn new(config: &Configuration, flags: &Flags) -> Self {
        let listed =
            config.settings.get("mcp.allowed").is_some().then(|| config.settings.list("mcp.allowed"));
        Self { allowed: flags.allowed.clone(), listed, excluded: config.settings.list("mcp.excluded") }
    }

    fn has(&self, name: &str) -> bool {
        let in_list = |list: &[String]| list.iter().any(|entry| entry == name);
        (self.allowed.is_empty() || in_list(&self.allowed))
            && self.listed.as_ref().is_none_or(|listed| in_list(listed))
            && !in_list(&self.excluded)
    }
}

/// `None` for a server that is filtered out.
fn judge(
    one: &Described,
    configuration: &Configuration,
    wanted: &Wanted,
    approvals: &Approvals,
    warnings: &mut Vec<String>,
) -> Option<Result<NamedServer, Refused>> {
    let scope = one.place.scope();
    let refused = |shown: Value, reason: String, disabled: bool| {
        Some(Err(Refused { name: one.name.clone(), scope, shown, reason, disabled }))
    };
    let wrong = |error: &ConfigError| refused(shown(&one.value), format!("{error}; {}", error.hint()), false);
    let config = match parse_server(&one.name, &one.value) {
        Ok(config) => config,
        Err(_) if !wanted.has(&one.name) => return None,
        Err(error) => return wrong(&error),
    };
    if !matches!(config.transport, Transport::Sdk { .. }) && !wanted.has(&one.name) {
        return None;
    }
    let unread = unknown_fields(&one.value);
    warnings.extend(unread.into_iter().map(|text| format!("{}: MCP server `{}`: {text}", one.at, one.name)));
    if matches!(config.transport, Transport::Sdk { .. }) && one.place != Place::Flag {
        let reason =
            "a server of type sdk lives in the program that started us; a file cannot bring one".to_owned();
        return refused(config.shown, reason, false);
    }
    let standing = standing(one, &configuration.settings, approvals, configuration);
    if let Some(reason) = standing.reason(&one.name) {
        return refused(config.shown, reason, true);
    }
    let (variables, kept_back) = variables_of(one, &configuration.settings, &configuration.environment);
    warnings.extend(kept_back.iter().map(|name| variables::warning(&one.at, name)));
    match plugins::expanded(config, one, &variables) {
        Ok(config) => Some(Ok(NamedServer { name: one.name.clone(), config, scope })),
        Err(error) => wrong(&error),
    }
}

/// The variables that a description may name, and those that it does not get because its author is the project.
fn variables_of(
    one: &Described,
    settings: &Settings,
    environment: &BTreeMap<String, String>,
) -> (BTreeMap<String, String>, Vec<String>) {
    if !one.place.is_of_folder() {
        return (environment.clone(), Vec::new());
    }
    variables::for_description(&one.value, environment, &settings.list(variables::PROJECT_ENVIRONMENT))
}

/// Whether a described server may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may: the person described it, or approved exactly this description.
    Approved,
    /// The settings switch it off.
    SwitchedOff,
    /// It is not approved as it is.
    Unapproved,
}

impl Standing {
    /// Why it does not run.
    #[must_use]
    pub fn reason(self, name: &str) -> Option<String> {
        match self {
            Self::Approved => None,
            Self::SwitchedOff => Some("it is in `mcp.disabledProjectMcpServers` of the settings".to_owned()),
            Self::Unapproved => Some(format!("needs approval: run `qodercli mcp approve {name}`")),
        }
    }
}

/// Whether a described server may run. Settings of the folder itself cannot approve; they were taken away when the settings
/// were read.
#[must_use]
pub fn standing(
    one: &Described,
    settings: &Settings,
    approvals: &Approvals,
    config: &Configuration,
) -> Standing {
    standing_in(one, settings, approvals, &config.project_root)
}

fn standing_in(one: &Described, settings: &Settings, approvals: &Approvals, project_root: &Path) -> Standing {
    if !one.place.is_of_folder() {
        return Standing::Approved;
    }
    if settings.list("mcp.disabledProjectMcpServers").contains(&one.name) {
        return Standing::SwitchedOff;
    }
    let named = settings.list("mcp.enabledProjectMcpServers").contains(&one.name);
    let known = approvals.has(project_root, &one.name, &bound_digest(&one.name, &one.value, project_root));
    if settings.flag("mcp.enableAllProjectMcpServers", false) || named || known {
        Standing::Approved
    } else {
        Standing::Unapproved
    }
}
