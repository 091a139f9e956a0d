//! The MCP servers of a session: those of its agent, over HTTP, with the tools that its toolsets leave.

use std::net::IpAddr;

use qoder_types::server::{NamedServer, Scope, ServerConfig, Transport};
use serde_json::json;
use url::{Host, Url};

use crate::model::agent::McpServer;
use crate::model::toolset::{ServerTools, Toolset};

/// Which addresses sessions may reach besides public ones.
#[derive(Debug, Clone, Default)]
pub struct PrivateAddresses {
    /// Every address.
    pub all: bool,
    /// These hosts.
    pub hosts: Vec<String>,
}

/// The servers of an agent, and the names of those that may not be reached.
pub(super) fn servers(
    servers: &[McpServer],
    toolset: &Toolset,
    private: &PrivateAddresses,
) -> (Vec<NamedServer>, Vec<String>) {
    let (mut named, mut refused) = (Vec::new(), Vec::new());
    for server in servers {
        let Some(tools) = toolset.servers.iter().find(|tools| tools.server == server.name) else { continue };
        if is_refused(&server.url, private) {
            refused.push(server.name.clone());
            continue;
        }
        named.push(NamedServer {
            name: tools.alias.clone(),
            config: config(server, tools),
            scope: Scope::Flag,
        });
    }
    (named, refused)
}

fn config(server: &McpServer, tools: &ServerTools) -> ServerConfig {
    let transport = Transport::Http { url: server.url.clone(), headers: std::collections::BTreeMap::new() };
    let mut config = ServerConfig::new(transport, json!({ "type": "http", "url": server.url }));
    let enabled = |wanted: bool| {
        let names = tools.tools.iter().filter(move |(_, policy)| policy.is_some() == wanted);
        names.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    match tools.default {
        Some(_) => config.exclude_tools = enabled(false),
        None => config.include_tools = Some(enabled(true)),
    }
    config
}

/// True for an address on this machine or in a private network that no one has listed. A name is looked at as it is written; what
/// it resolves to is for the network's own rules.
fn is_refused(url: &str, private: &PrivateAddresses) -> bool {
    if private.all {
        return false;
    }
    let Ok(url) = Url::parse(url) else { return true };
    let Some(host) = url.host() else { return true };
    if private.hosts.iter().any(|allowed| Some(allowed.as_str()) == url.host_str()) {
        return false;
    }
    match host {
        Host::Ipv4(address) => is_private(IpAddr::V4(address)),
        Host::Ipv6(address) => is_private(IpAddr::V6(address)),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let below = |suffix: &str| {
                name.eq_ignore_ascii_case(suffix)
                    || name.to_ascii_lowercase().ends_with(&format!(".{suffix}"))
            };
            !name.contains('.')
                || ["localhost", "local", "internal", "home.arpa"].iter().any(|suffix| below(suffix))
        }
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => is_private(IpAddr::V4(address)),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_multicast()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_unless_they_are_listed() {
        let none = PrivateAddresses::default();
        for url in [
            "http://127.0.0.1:8080/mcp",
            "http://[::1]/",
            "http://localhost/",
            "http://10.0.0.5/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://printer/",
            "http://a.internal/",
            "http://0.0.0.0/",
            "http://2130706433/",
            "nonsense",
        ] {
            assert!(is_refused(url, &none), "{url}");
        }
        for url in ["https://mcp.example.com/", "http://8.8.8.8/", "https://[2606:4700::1111]/"] {
            assert!(!is_refused(url, &none), "{url}");
        }
        let listed = PrivateAddresses { all: false, hosts: vec!["10.0.0.5".to_owned()] };
        assert!(!is_refused("http://10.0.0.5:9/", &listed) && is_refused("http://10.0.0.6/", &listed));
        assert!(!is_refused("http://127.0.0.1/", &PrivateAddresses { all: true, hosts: Vec::new() }));
    }
}
