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

/// Why a server of an agent is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InlineServerError {
    /// The settings exclude it.
    #[error("its server {name} is in `mcp.excluded` of the settings")]
    Excluded {
        /// The server.
        name: String,
    },
    /// The settings list the servers that may be used.
    #[error("its server {name} is not among the servers that may be used")]
    NotAllowed {
        /// The server.
        name: String,
    },
    /// The run takes servers from flags alone.
    #[error("its server {name} is not one of `--mcp-config`, and this run has no others")]
    OnlyFlags {
        /// The server.
        name: String,
    },
    /// Its description is wrong.
    #[error("its server {name}: {error}; {}", error.hint())]
    Config {
        /// The server.
        name: String,
        /// What is wrong.
        error: ConfigError,
    },
    /// A file describes a server that only a program can bring.
    #[error("its server {name} is of type sdk, which no file can bring")]
    InProcess {
        /// The server.
        name: String,
    },
    /// The person has not approved it.
    #[error("its server {name}: {reason}")]
    NotApproved {
        /// The server.
        name: String,
        /// What is missing, and how to approve it.
        reason: String,
    },
}

impl InlineServerError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Excluded { .. } => "mcp_server_excluded",
            Self::NotAllowed { .. } => "mcp_server_not_allowed",
            Self::OnlyFlags { .. } => "mcp_server_only_flags",
            Self::Config { error, .. } => error.code(),
            Self::InProcess { .. } => "mcp_server_in_process",
            Self::NotApproved { .. } => "mcp_server_not_approved",
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Excluded { .. } => "remove it from `mcp.excluded`".to_owned(),
            Self::NotAllowed { .. } => "add it to the servers that the settings allow".to_owned(),
            Self::OnlyFlags { .. } => {
                "describe it in `--mcp-config`, or leave `--strict-mcp-config` out".to_owned()
            }
            Self::Config { error, .. } => error.hint(),
            Self::InProcess { .. } => "describe a server of type stdio, http or sse".to_owned(),
            Self::NotApproved { name, .. } => format!("run `qodercli mcp approve {name}` in the project"),
        }
    }
}

/// What an agent's start reports.
impl From<InlineServerError> for String {
    fn from(error: InlineServerError) -> Self {
        error.to_string()
    }
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
    pub fn server(
        &self,
        name: &str,
        value: &Value,
        origin: &Origin,
    ) -> Result<NamedServer, InlineServerError> {
        let place = place_of(origin);
        let of = || name.to_owned();
        if self.wanted.excluded.iter().any(|excluded| excluded == name) {
            return Err(InlineServerError::Excluded { name: of() });
        }
        if !self.wanted.has(name) {
            return Err(InlineServerError::NotAllowed { name: of() });
        }
        if self.strict && place != Place::Flag {
            return Err(InlineServerError::OnlyFlags { name: of() });
        }
        let wrong = |error: ConfigError| InlineServerError::Config { name: of(), error };
        let config = parse_server(name, value).map_err(wrong)?;
        if matches!(config.transport, Transport::Sdk { .. }) && place != Place::Flag {
            return Err(InlineServerError::InProcess { name: of() });
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
            return Err(InlineServerError::NotApproved { name: of(), reason });
        }
        let (variables, _) = variables_of(&one, &self.settings, &self.environment);
        let config = expand_server(config, name, &variables).map_err(wrong)?;
        Ok(NamedServer { name: name.to_owned(), config, scope: place.scope() })
    }

    /// The row of a server that [`server`](Self::server) refused.
    #[must_use]
    pub fn refused(&self, name: &str, value: &Value, origin: &Origin, reason: &InlineServerError) -> Refused {
        let scope = place_of(origin).scope();
        Refused {
            name: name.to_owned(),
            scope,
            shown: shown(value),
            reason: reason.to_string(),
            disabled: true,
        }
    }
}
