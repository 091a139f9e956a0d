//! Servers that the definition of an agent describes for that agent alone. A description in a project's file needs the
//! same approval as one in its `.mcp.json`: started is only what the person knows of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_mcp::RefusedServer;
use qoder_mcp::config::{NamedServer, ServerConfig, Transport, shown};
use serde_json::Value;

use super::{Approvals, Described, Flags, Place, Wanted, standing_in, variables_of};
use crate::extensions::Origin;
use crate::settings::Settings;
use crate::setup::Setup;

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

/// Where a description of an agent stands, by whose agent it is.
pub(super) fn place_of(origin: &Origin) -> Place {
    match origin {
        Origin::Project | Origin::Plugin(_) => Place::Project,
        Origin::User => Place::User,
        Origin::BuiltIn | Origin::Flag => Place::Flag,
    }
}

impl InlineServers {
    /// Decides as the setup and these flags do about the session's servers.
    #[must_use]
    pub fn of(setup: &Setup, flags: &Flags) -> Self {
        Self {
            settings: setup.settings.clone(),
            config_root: setup.config_root.clone(),
            project_root: setup.project_root.clone(),
            environment: setup.options.environment.clone(),
            wanted: Wanted::new(setup, flags),
            strict: flags.strict,
        }
    }

    /// The server of this description.
    ///
    /// # Errors
    /// When it is described wrongly, switched off, or nobody has approved it.
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
        let wrong =
            |error: qoder_mcp::config::ConfigError| format!("its server {name}: {error}; {}", error.hint());
        let config = ServerConfig::parse(name, value).map_err(wrong)?;
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
        let config = config.expanded(name, &variables).map_err(wrong)?;
        Ok(NamedServer { name: name.to_owned(), config, scope: place.scope() })
    }

    /// The row of a server that [`server`](Self::server) refused.
    #[must_use]
    pub fn refused(&self, name: &str, value: &Value, origin: &Origin, reason: String) -> RefusedServer {
        let scope = place_of(origin).scope();
        RefusedServer { name: name.to_owned(), scope, shown: shown(value), reason, disabled: true }
    }
}
