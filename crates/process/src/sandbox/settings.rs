//! What a person may set about the sandbox. The names are those of the SDK; every field may be missing.
//!
//! Nothing here decides anything: the plan reads it, and the runtime fills it from the settings files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The settings of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Whether commands run confined.
    pub enabled: bool,
    /// Whether a confined command needs no question. Deny and ask rules and protected places still hold.
    pub auto_allow_bash_if_sandboxed: bool,
    /// Commands that always run outside, as the words they start with.
    pub excluded_commands: Vec<String>,
    /// Whether the model may ask to leave the sandbox for one command.
    pub allow_unsandboxed_commands: bool,
    /// What may be reached.
    pub network: NetworkSettings,
    /// What may be read and written.
    pub filesystem: FilesystemSettings,
    /// Failures that are not reported as violations, by command prefix (`*` for all) and a part of the message.
    pub ignore_violations: IgnoredViolations,
    /// Whether to do without namespaces where the system has none, as in many containers. Writes outside the workspace
    /// and the network stay closed; protected files are then only guarded by the gate.
    pub enable_weaker_nested_sandbox: bool,
}

/// Messages that are not reported as violations, by command prefix.
pub type IgnoredViolations = BTreeMap<String, Vec<String>>;

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            auto_allow_bash_if_sandboxed: true,
            excluded_commands: Vec::new(),
            allow_unsandboxed_commands: true,
            network: NetworkSettings::default(),
            filesystem: FilesystemSettings::default(),
            ignore_violations: IgnoredViolations::new(),
            enable_weaker_nested_sandbox: false,
        }
    }
}

/// What a confined command may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSettings {
    /// Hosts that may be reached: a name is that host, `*.name` its subdomains, `*` every public host.
    pub allowed_domains: Vec<String>,
    /// Hosts that may not, whatever else is allowed.
    pub denied_domains: Vec<String>,
    /// Whether servers may listen on the command's own loopback, which cannot be reached from outside.
    pub allow_local_binding: bool,
    /// Unix sockets that may be used. No system here can limit them to a list, so a list is refused.
    pub allow_unix_sockets: Vec<String>,
    /// Whether every unix socket may be used.
    pub allow_all_unix_sockets: bool,
    /// A proxy of the person's own on this port of the machine decides in place of the lists.
    pub http_proxy_port: Option<u16>,
    /// The same for a SOCKS proxy.
    pub socks_proxy_port: Option<u16>,
}

/// What a confined command may read and write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesystemSettings {
    /// More places to write. A protected place named here loses its protection.
    pub allow_write: Vec<String>,
    /// Places inside writable ones that stay as they are.
    pub deny_write: Vec<String>,
    /// Places that are not readable.
    pub deny_read: Vec<String>,
    /// Places inside unreadable ones that are.
    pub allow_read: Vec<String>,
    /// Whether only managed settings may name readable places.
    pub allow_managed_read_paths_only: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_take_the_safe_defaults() {
        let settings: SandboxSettings = serde_json::from_str(r#"{"enabled": true, "network": {}}"#).unwrap();
        assert!(settings.enabled && settings.auto_allow_bash_if_sandboxed);
        assert!(settings.allow_unsandboxed_commands && !settings.enable_weaker_nested_sandbox);
        assert_eq!(settings.network, NetworkSettings::default());
        assert!(!settings.network.allow_local_binding && settings.network.allowed_domains.is_empty());
    }
}
