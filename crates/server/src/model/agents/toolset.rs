//! What the `tools` of an agent come to: which tools the model sees, under which name, and what happens when it calls one.
//! The order is: the entry of the tool, the default of its toolset, the default of its kind.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::model::ids::hex;
use crate::model::problem::Problem;
use crate::model::tools::{BUILT_IN, Policy, ToolConfig, ToolEntry, built_in, lower_case};

/// The longest tool name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// A built-in tool.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltInTool {
    /// The runtime's name.
    pub name: &'static str,
    /// As the agent spells it, when it does.
    pub spelling: Option<String>,
    /// What happens; `None` when the model does not see it.
    pub policy: Option<Policy>,
    /// Further fields of its entry.
    pub extra: Map<String, Value>,
}

/// The tools of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTools {
    /// The server, as the agent names it.
    pub server: String,
    /// The server, as the runtime names it.
    pub alias: String,
    /// For tools without an entry; `None` when the model does not see them.
    pub default: Option<Policy>,
    /// By the raw name of the tool; `None` when the model does not see it.
    pub tools: BTreeMap<String, Option<Policy>>,
}

impl ServerTools {
    /// Adds what another agent sees of the same server.
    fn merge(&mut self, other: &Self) {
        let names: Vec<String> = self.tools.keys().chain(other.tools.keys()).cloned().collect();
        let of = |server: &Self, name: &String| server.tools.get(name).copied().unwrap_or(server.default);
        let tools = names.into_iter().map(|name| {
            let policy = of(self, &name).or(of(other, &name));
            (name, policy)
        });
        self.tools = tools.collect();
        self.default = self.default.or(other.default);
    }
}

/// A tool that the client runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalTool {
    /// As the agent names it.
    pub name: String,
    /// As the runtime names it.
    pub alias: String,
    /// What the model reads about it.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// Everything that the model could call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Toolset {
    /// The built-in tools, those that it does not see included.
    pub built_in: Vec<BuiltInTool>,
    /// The tools of MCP servers.
    pub servers: Vec<ServerTools>,
    /// The tools that the client runs.
    pub external: Vec<ExternalTool>,
    /// The built-in tools that workers run, with their policies.
    pub outside: Vec<(&'static str, Policy)>,
    /// True when it can load skills.
    pub has_skills: bool,
    /// True when it can start agents.
    pub has_team: bool,
}

/// The tool that starts agents of a roster.
pub const AGENT: &str = "Agent";

/// The tool that loads skills. No policy of an agent is about it: each call that a skill leads to is decided on its own.
pub const SKILL: &str = "Skill";

/// What a name that the model called stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// The tool that starts agents.
    Agent,
    /// A built-in tool.
    BuiltIn {
        /// The runtime's name.
        name: String,
        /// As the agent spells it, when it does.
        spelling: Option<String>,
        /// What happens; `None` when it is not enabled.
        policy: Option<Policy>,
    },
    /// A tool of an MCP server.
    Server {
        /// The server, as the agent names it.
        server: String,
        /// The tool, as the server names it.
        tool: String,
        /// What happens; `None` when it is not enabled.
        policy: Option<Policy>,
    },
    /// A tool that the client runs.
    External {
        /// As the agent names it.
        name: String,
    },
    /// A built-in tool that workers run.
    Outside {
        /// As workers name it.
        name: &'static str,
        /// What happens.
        policy: Policy,
    },
}

/// The built-in tools that workers of a self-hosted environment run, as they name them.
pub const OUTSIDE: [&str; 6] = ["bash", "read", "write", "edit", "glob", "grep"];

impl Toolset {
    /// Resolves the entries of an agent.
    #[must_use]
    pub fn new(entries: &[ToolEntry]) -> Self {
        let mut toolset = Self::default();
        for entry in entries {
            match entry {
                ToolEntry::BuiltIn { enabled_tools, disallowed_tools, default_config, configs } => {
                    toolset.built_in =
                        resolve_built_in(enabled_tools, disallowed_tools, default_config, configs);
                }
                ToolEntry::Mcp { mcp_server_name, default_config, configs } => {
                    toolset.servers.push(resolve_server(mcp_server_name, default_config, configs));
                }
                ToolEntry::Custom { name, description, input_schema } => {
                    toolset.external.push(ExternalTool {
                        name: name.clone(),
                        alias: external_alias(name),
                        description: description.clone(),
                        input_schema: input_schema.clone(),
                    })
                }
            }
        }
        toolset
    }

    /// The same, for an agent that has skills or has none.
    #[must_use]
    pub fn with_skills(self, has_skills: bool) -> Self {
        Self { has_skills, ..self }
    }

    /// The same, for an agent that coordinates others or does not.
    #[must_use]
    pub fn with_team(self, has_team: bool) -> Self {
        Self { has_team, ..self }
    }

    /// The same in a self-hosted environment: workers run the tools that touch the machine, under the names that workers know; skills
    /// are files on that machine. The others run here, under such names, too.
    #[must_use]
    pub fn outside(mut self) -> Self {
        let mut inside = Vec::new();
        for tool in self.built_in {
            let lower = lower_case(tool.name);
            match (OUTSIDE.into_iter().find(|name| *name == lower), tool.policy) {
                (Some(name), Some(policy)) => self.outside.push((name, policy)),
                (Some(_), None) => {}
                // It reads files that are elsewhere.
                (None, _) if tool.name == "DeliverArtifacts" => {}
                (None, _) => inside.push(BuiltInTool { spelling: Some(lower.to_owned()), ..tool }),
            }
        }
        for tool in self.external.iter_mut().filter(|tool| OUTSIDE.contains(&tool.alias.as_str())) {
            tool.alias = format!("custom_{}_{}", tool.alias, mark(&tool.name));
        }
        Self { built_in: inside, has_skills: false, ..self }
    }

    /// Adds the tools of another agent of the same session. What one of them has, the session has.
    ///
    /// # Errors
    /// When the two define a tool differently.
    pub fn merge(&mut self, other: Self) -> Result<(), Problem> {
        let clash = |name: &str| Problem::whole(format!("different definitions of `{name}`"));
        for tool in other.built_in {
            match self.built_in.iter_mut().find(|known| known.name == tool.name) {
                Some(known)
                    if known.policy.is_some() && tool.policy.is_some() && known.extra != tool.extra =>
                {
                    return Err(clash(tool.name));
                }
                Some(known) if known.policy.is_some() || tool.policy.is_none() => {}
                Some(known) => *known = tool,
                None => self.built_in.push(tool),
            }
        }
        for tool in other.external {
            match self.external.iter().find(|known| known.alias == tool.alias) {
                Some(known) if *known != tool => return Err(clash(&tool.name)),
                Some(_) => {}
                None => self.external.push(tool),
            }
        }
        for (name, policy) in other.outside {
            if self.outside.iter().all(|(known, _)| *known != name) {
                self.outside.push((name, policy));
            }
        }
        for server in other.servers {
            match self.servers.iter_mut().find(|known| known.alias == server.alias) {
                Some(known) => known.merge(&server),
                None => self.servers.push(server),
            }
        }
        self.has_skills |= other.has_skills;
        self.has_team |= other.has_team;
        Ok(())
    }

    /// The built-in tools that the model sees, with their policies.
    pub fn enabled(&self) -> impl Iterator<Item = (&BuiltInTool, Policy)> {
        self.built_in.iter().filter_map(|tool| Some((tool, tool.policy?)))
    }

    /// What a name that the model called stands for.
    #[must_use]
    pub fn called(&self, name: &str) -> Called {
        if self.has_team && name == AGENT {
            return Called::Agent;
        }
        if let Some((name, policy)) = self.outside.iter().find(|(known, _)| *known == name) {
            return Called::Outside { name, policy: *policy };
        }
        if let Some(tool) = self.external.iter().find(|tool| tool.alias == name) {
            return Called::External { name: tool.name.clone() };
        }
        let server = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        if let Some((alias, tool)) = server
            && let Some(server) = self.servers.iter().find(|server| server.alias == alias)
        {
            let is_it = |raw: &&String| qoder_mcp::tool_name(alias, raw) == name;
            let tool = server.tools.keys().find(is_it).map_or(tool, String::as_str);
            let policy = server.tools.get(tool).copied().unwrap_or(server.default);
            return Called::Server { server: server.server.clone(), tool: tool.to_owned(), policy };
        }
        let tool = self.built_in.iter().find(|tool| tool.name == name);
        Called::BuiltIn {
            name: name.to_owned(),
            spelling: tool.and_then(|tool| tool.spelling.clone()),
            policy: match tool {
                Some(tool) => tool.policy,
                None => (self.has_skills && name == SKILL).then_some(Policy::AlwaysAllow),
            },
        }
    }
}

fn resolve_built_in(
    enabled: &[String],
    disallowed: &[String],
    default: &ToolConfig,
    configs: &[ToolConfig],
) -> Vec<BuiltInTool> {
    let listed = |list: &[String], name: &str| list.iter().find(|one| built_in(one) == Some(name)).cloned();
    let resolve = |(name, _): &(&'static str, &str)| {
        let config = configs.iter().find(|config| built_in(&config.name) == Some(name));
        let allowed = enabled.is_empty() || listed(enabled, name).is_some();
        let switched = config.and_then(|config| config.enabled).or(default.enabled).unwrap_or(true);
        // The stricter word counts where lists and entries disagree.
        let is_enabled = allowed && switched && listed(disallowed, name).is_none();
        let policy =
            config.and_then(|config| config.policy).or(default.policy).unwrap_or(Policy::AlwaysAllow);
        BuiltInTool {
            name,
            spelling: config.map(|config| config.name.clone()).or_else(|| listed(enabled, name)),
            policy: is_enabled.then_some(policy),
            extra: config.map(|config| config.extra.clone()).unwrap_or_default(),
        }
    };
    BUILT_IN.iter().map(resolve).collect()
}

fn resolve_server(server: &str, default: &ToolConfig, configs: &[ToolConfig]) -> ServerTools {
    let (enabled, policy) = (default.enabled.unwrap_or(true), default.policy.unwrap_or(Policy::AlwaysAsk));
    let tools = configs.iter().map(|config| {
        let is_enabled = config.enabled.unwrap_or(enabled);
        (config.name.clone(), is_enabled.then_some(config.policy.unwrap_or(policy)))
    });
    ServerTools {
        server: server.to_owned(),
        alias: server_alias(server),
        default: enabled.then_some(policy),
        tools: tools.collect(),
    }
}

/// The runtime's name of a server: its own where that can be part of a tool's name, else one made from it.
#[must_use]
pub fn server_alias(name: &str) -> String {
    if qoder_mcp::names::server_name_problem(name).is_none() {
        return name.to_owned();
    }
    let safe: String = name.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    format!("{safe}-{}", mark(name))
}

/// The runtime's name of a client's tool: its own where providers accept it and no tool of the runtime has it.
fn external_alias(name: &str) -> String {
    let is_taken = qoder_types::tool::TOOL_NAMES.contains(&name)
        || name == "StructuredOutput"
        || name.starts_with("mcp__");
    if name.len() <= LONGEST_NAME && !is_taken {
        return name.to_owned();
    }
    let room = LONGEST_NAME - 16;
    format!("custom_{}_{}", &name[..name.len().min(room)], mark(name))
}

fn mark(name: &str) -> String {
    hex(&Sha256::digest(name)[..4])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::tools::{CUSTOM, MCP_TOOLSET, TOOLSET, read};

    fn toolset(tools: &Value) -> Toolset {
        Toolset::new(&read(tools).unwrap())
    }

    fn policy(toolset: &Toolset, name: &str) -> Option<Policy> {
        match toolset.called(name) {
            Called::BuiltIn { policy, .. } | Called::Server { policy, .. } => policy,
            Called::Outside { policy, .. } => Some(policy),
            Called::External { .. } | Called::Agent => panic!("{name} is not built in"),
        }
    }

    #[test]
    fn the_entry_outranks_the_default_and_the_default_the_kind() {
        let tools = toolset(&json!([{ "type": TOOLSET,
            "default_config": { "permission_policy": { "type": "always_ask" } },
            "configs": [{ "name": "read", "permission_policy": { "type": "always_allow" } }] }]));
        assert_eq!(policy(&tools, "Read"), Some(Policy::AlwaysAllow));
        assert_eq!(policy(&tools, "Bash"), Some(Policy::AlwaysAsk));
        assert_eq!(policy(&toolset(&json!([{ "type": TOOLSET }])), "Bash"), Some(Policy::AlwaysAllow));
        assert_eq!(policy(&toolset(&json!([])), "Bash"), None, "no toolset, no tools");
    }

    #[test]
    fn lists_and_switches_take_tools_away_and_the_stricter_word_counts() {
        let tools = toolset(&json!([{ "type": TOOLSET, "enabled_tools": ["Bash", "Read", "Nonsense"],
            "disallowed_tools": ["bash"], "configs": [{ "name": "Write", "enabled": true }] }]));
        let seen: Vec<&str> = tools.enabled().map(|(tool, _)| tool.name).collect();
        assert_eq!(seen, ["Read"]);
        let tools = toolset(&json!([{ "type": TOOLSET, "enabled_tools": ["Bash"],
            "configs": [{ "name": "Bash", "enabled": false }] }]));
        assert_eq!(tools.enabled().count(), 0);
        let tools = toolset(&json!([{ "type": TOOLSET, "default_config": { "enabled": false },
            "configs": [{ "name": "grep", "enabled": true }] }]));
        let seen: Vec<_> = tools.enabled().map(|(tool, _)| tool.spelling.as_deref()).collect();
        assert_eq!(seen, [Some("grep")]);
    }

    #[test]
    fn tools_of_servers_are_meant_by_their_raw_names() {
        let tools = toolset(&json!([{ "type": MCP_TOOLSET, "mcp_server_name": "weather service",
            "configs": [{ "name": "get.forecast", "permission_policy": { "type": "always_allow" } },
                        { "name": "delete", "enabled": false }] }]));
        let alias = &tools.servers[0].alias;
        assert!(qoder_mcp::names::server_name_problem(alias).is_none(), "{alias}");
        let called = tools.called(&qoder_mcp::tool_name(alias, "get.forecast"));
        let expected = Called::Server {
            server: "weather service".to_owned(),
            tool: "get.forecast".to_owned(),
            policy: Some(Policy::AlwaysAllow),
        };
        assert_eq!(called, expected);
        assert_eq!(policy(&tools, &format!("mcp__{alias}__other")), Some(Policy::AlwaysAsk));
        assert_eq!(policy(&tools, &format!("mcp__{alias}__delete")), None);
    }

    #[test]
    fn names_of_clients_tools_never_clash_with_ours() {
        let long = "x".repeat(128);
        let tools = toolset(&json!([
            { "type": CUSTOM, "name": "Bash" }, { "type": CUSTOM, "name": "mcp__a__b" },
            { "type": CUSTOM, "name": "get_weather" }, { "type": CUSTOM, "name": long },
        ]));
        for tool in &tools.external {
            assert!(tool.alias.len() <= LONGEST_NAME && tool.alias != "Bash", "{}", tool.alias);
            assert_eq!(tools.called(&tool.alias), Called::External { name: tool.name.clone() });
        }
        assert_eq!(tools.external[2].alias, "get_weather");
    }
}
