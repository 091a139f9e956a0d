//! Servers that the definition of an agent describes for that agent alone. A description in a project's file needs the
//! same approval as one in its `.mcp.json`: started is only what the person knows of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_types::server::{NamedServer, Transport};
use serde_json::Value;

use super::{Approvals, Described, Flags, Place, Refused, Wanted, standing_in, variables_of};
use crate::configuration::Configuration;
use crate::server_config::{ConfigError, expand_server, parse_server, shown};
use crate::settings::Settings;
use crate::sources::Origin;

/// What decides about such servers.
#[derive(Debug, Clone)]
pub struct InlineServers {
    settings: Settings,
    config_root: PathBuf,
    project_root: PathBuf,
    environment: BTreeMap<String, String>,
    wanted: Wanted,
    strict: bool,
}

/// Where a description of an agent is, by whose agent it is.
pub(super) fn place_of(origin: &Origin) -> Place {
    match origin {
        Origin::Project | Origin::Plugin(_) => Place::Project,
        Origin::User => Place::User,
        Origin::BuiltIn | Origin::Flag => Place::Flag,
    }
}

impl InlineServers {
    /// Decides as the config and these flags do about the session's servers.
    #[must_use]
    pub fn of(config: &Configuration, flags: &Flags) -> Self {
        Self {
            settings: config.settings.clone(),
            config_root: config.config_root.clone(),
            project_root: config.project_root.clone(),
            environment: config.environment.clone(),
            wanted: Wanted::new(config, flags),
            strict: flags.strict,
        }
    }

    /// The server of this description.
    ///
    /// # Errors
    /// When it is described wrongly, switched off, or not approved.
    pub fn server(&self, name: &str, value: &Value, origin: &Origin) -> Result<NamedServer, String> {
        let place = place_of(origin);
        let refused = |why: &str| format!("its server {name} {why}");
        if self.wanted.excluded.iter().any(|excluded| excluded == name) {
            return Err(refused("is in `mcp.excluded` of the settings"));
        }
        if !self.wanted.has(name) {
            return Err(refused("is not among the servers that may be used"));
        }
        if self.strict && place != Place::Flag {
            return Err(refused("is not one of `--mcp-config`, and this run has no others"));
        }
        let wrong = |error: ConfigError| format!("its server {name}: {error}; {}", error.hint());
        let config = parse_server(name, value).map_err(wrong)?;
        if matches!(config.transport, Transport::Sdk { .. }) && place != Place::Flag {
            return Err(refused("is of type sdk, which no file can bring"));
        }
        let one = Described {
            name: name.to_owned(),
            value: value.clone(),
            place,
            at: String::new(),
            variables: Vec::new(),
        };
        let approvals = Approvals::load(&self.config_root);
        let standing = standing_in(&one, &self.settings, &approvals, &self.project_root);
        if let Some(reason) = standing.reason(name) {
            return Err(format!("its server {name}: {reason}"));
        }
        let (variables, _) = variables_of(&one, &self.settings, &self.environment);
        let config = expand_server(config, name, &variables).map_err(wrong)?;
        Ok(NamedServer { name: name.to_owned(), config, scope: place.scope() })
    }

    /// The row of a server that [`server`](Self::server) refused.
    #[must_use]
    pub fn refused(&self, name: &str, value: &Value, origin: &Origin, reason: String) -> Refused {
        let scope = place_of(origin).scope();
        Refused { name: name.to_owned(), scope, shown: shown(value), reason, disabled: true }
    }
}
