//! Servers that the definition of an agent describes for that agent alone. A description in a project's file needs the
//! same approval as one in its `.mcp.json`: started is only what the person knows of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_mcp::config::{NamedServer, ServerConfig, Transport};
use serde_json::Value;

use super::{Approvals, Described, Place, standing_in};
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
}

impl InlineServers {
    /// Decides as the setup does about the session's servers.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        Self {
            settings: setup.settings.clone(),
            config_root: setup.config_root.clone(),
            project_root: setup.project_root.clone(),
            environment: setup.options.environment.clone(),
        }
    }

    /// The server of this description.
    ///
    /// # Errors
    /// When it is described wrongly, switched off, or nobody has approved it.
    pub fn server(&self, name: &str, value: &Value, origin: &Origin) -> Result<NamedServer, String> {
        let place = match origin {
            Origin::Project | Origin::Plugin(_) => Place::Project,
            Origin::User => Place::User,
            Origin::BuiltIn | Origin::Flag => Place::Flag,
        };
        if self.settings.list("mcp.excluded").iter().any(|excluded| excluded == name) {
            return Err(format!("its server {name} is in `mcp.excluded` of the settings"));
        }
        let wrong =
            |error: qoder_mcp::config::ConfigError| format!("its server {name}: {error}; {}", error.hint());
        let config = ServerConfig::parse(name, value).map_err(wrong)?;
        if matches!(config.transport, Transport::Sdk { .. }) && place != Place::Flag {
            return Err(format!("its server {name} is of type sdk, which no file can bring"));
        }
        let one = Described { name: name.to_owned(), value: value.clone(), place, at: String::new() };
        let approvals = Approvals::load(&self.config_root);
        if standing_in(&one, &self.settings, &approvals, &self.project_root).reason(name).is_some() {
            return Err(format!(
                "its server {name} is described by the project and nobody has approved it: add it to \
                 `mcp.enabledProjectMcpServers` of your own settings"
            ));
        }
        let config = config.expanded(name, &self.environment).map_err(wrong)?;
        Ok(NamedServer { name: name.to_owned(), config, scope: place.scope() })
    }
}
