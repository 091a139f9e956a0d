//! A session of the interface as options of the runtime: nothing of the server's machine, settings or environment reaches it, and
//! the gate asks only where the agent's policies say so.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_models::{ModelOptions, is_tier};
use qoder_runtime::config::settings::holds_secret;
use qoder_runtime::setup::{HostTools, Options, Setup, SetupError};
use qoder_types::server::{ToolPolicies, ToolPolicy};
use qoder_types::{PermissionMode, ToolDefinition};
use serde_json::{Map, Value, json};

use super::given::host::SessionHost;
use super::given::skills::Skills;
use super::outside_tools;
use super::team::Team;
use crate::environment::Places;
use crate::model::environment::{EnvironmentBody, EnvironmentConfig, Networking};
use crate::model::session::{Session, SessionSecrets};
use crate::model::tools::Policy;
use crate::model::toolset::{AGENT, SKILL, Toolset};

/// Variables of the server's own environment that commands have, too.
const KEPT_VARIABLES: [&str; 7] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR"];
/// Values shorter than this could be any word.
const SHORTEST_SECRET: usize = 8;
/// Hosts from which package managers load.
const REGISTRIES: [&str; 14] = [
    "pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "deb.debian.org",
    "security.debian.org",
    "archive.ubuntu.com",
];

/// What every session of a node is opened with.
#[derive(Debug, Clone)]
pub struct RuntimeSettings {
    /// The server's environment, for the model's provider.
    pub environment: BTreeMap<String, String>,
    /// A folder without settings of anyone.
    pub config_root: PathBuf,
    /// Settings of the operator, such as providers.
    pub settings: Map<String, Value>,
    /// True when no provider is configured: the offline model answers.
    pub is_offline: bool,
    /// What a credit costs.
    pub credit_usd: f64,
}

/// What a session is given beside its agent and its environment.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// What the model reads about it.
    pub(super) facts: Vec<String>,
    /// Its skills.
    pub(super) skills: Skills,
    /// Tools of the server.
    pub(super) tools: HostTools,
    /// What runs its tools, when that is another process.
    pub(super) host: Option<SessionHost>,
    /// The agents that it may start.
    pub(super) team: Team,
    /// True when workers run its tools.
    pub(super) is_outside: bool,
}

impl RuntimeSettings {
    /// What the runtime is asked for when an agent has this model. Without a provider the offline model answers for tiers;
    /// a model that was named is never another one.
    #[must_use]
    pub fn model_for<'a>(&self, name: &'a str) -> &'a str {
        if self.is_offline && is_tier(name) { "offline" } else { name }
    }

    /// How a model of this name is reached.
    ///
    /// # Errors
    /// When the operator's settings cannot be used.
    pub fn model_options(&self, model: &str) -> Result<ModelOptions, SetupError> {
        let mut environment = self.environment.clone();
        environment.insert("QODER_CONFIG_DIR".to_owned(), self.config_root.to_string_lossy().into_owned());
        let setup = Setup::prepare(Options {
            cwd: self.config_root.clone(),
            environment,
            model: Some(self.model_for(model).to_owned()),
            settings: Some(Value::Object(self.settings.clone()).to_string()),
            setting_sources: Some(Vec::new()),
            ..Options::default()
        })?;
        Ok(setup.model_options().clone())
    }

    /// The options of a session.
    pub(super) fn options(
        &self,
        session: &Session,
        environment: &EnvironmentBody,
        secrets: &SessionSecrets,
        (toolset, places): (&Toolset, &Places),
        given: Given,
    ) -> Options {
        let agent = &session.body.agent;
        let mut variables = self.environment.clone();
        let config_root = self.config_root.to_string_lossy().into_owned();
        variables.insert("QODER_CONFIG_DIR".to_owned(), config_root);
        let budget = session.body.budget.as_ref().map(|budget| budget.dollars(self.credit_usd));
        let model = self.model_for(&agent.model.id).to_owned();
        let cwd = agent.system.as_ref().filter(|_| !given.is_outside);
        let cwd = cwd.map(|_| format!("Working directory: {}", places.workspace.display()));
        let facts: Vec<String> = cwd.into_iter().chain(given.facts).collect();
        let own_words = given.is_outside.then(|| outside_tools::PROMPT.to_owned());
        let mut isolation = places.isolation();
        if given.host.as_ref().is_some_and(|host| host.is_container) {
            // Commands see the files of the container, which has none of this machine's.
            isolation.readable = vec![PathBuf::from("/")];
        }
        Options {
            cwd: places.workspace.clone(),
            additional_directories: vec![places.session.clone()],
            environment: variables,
            command_environment: self.command_environment(secrets, places, environment),
            secrets: secret_values(secrets),
            model: Some(model),
            effort: agent.model.effort.clone(),
            context_window: agent.model.context_window,
            max_budget_usd: budget,
            budget_is_of_session: true,
            // What no rule allows is denied: the policies of the agent are all that asks.
            permission_mode: Some(PermissionMode::DontAsk),
            allowed_tools: allowed(&given.team.together, environment),
            disallowed_tools: blocked(&given.team.together),
            tools: Some(offered(&given.team.together)),
            tools_of_agents: given.team.tools_of_agents(toolset),
            only_own_agents: true,
            tool_policies: policies(toolset),
            external_tools: external(&given.team.together),
            gated_external_tools: outside_tools::definitions(&given.team.together),
            skills: Some(given.skills.names),
            skill_dirs: given.skills.folders,
            // The runtime's own words name this machine.
            system_prompt: agent.system.clone().or(own_words),
            append_system_prompt: (!facts.is_empty()).then(|| facts.join("\n")),
            settings: Some(self.settings(environment).to_string()),
            setting_sources: Some(Vec::new()),
            strict_mcp_config: true,
            no_commands: true,
            stays_open: true,
            isolation: Some(isolation),
            host_tools: given.tools,
            tool_host: given.host.map(|host| host.tools),
            sandbox: true,
            ..Options::default()
        }
    }

    /// Commands have nothing of the server's environment but where programs are and how text is written.
    fn command_environment(
        &self,
        secrets: &SessionSecrets,
        places: &Places,
        environment: &EnvironmentBody,
    ) -> BTreeMap<String, Option<String>> {
        let hidden = self.environment.keys().filter(|name| !KEPT_VARIABLES.contains(&name.as_str()));
        let mut changed: BTreeMap<String, Option<String>> = hidden.map(|name| (name.clone(), None)).collect();
        changed.insert("HOME".to_owned(), Some(places.home.to_string_lossy().into_owned()));
        if environment.setup().is_some() {
            // Where package managers put programs.
            let programs = places.home.join(".local/bin");
            let path = self.environment.get("PATH").map_or("/usr/bin:/bin", String::as_str);
            changed.insert("PATH".to_owned(), Some(format!("{}:{path}", programs.display())));
        }
        for (name, value) in &secrets.variables {
            changed.insert(name.clone(), Some(value.clone()));
        }
        changed
    }

    fn settings(&self, environment: &EnvironmentBody) -> Value {
        let domains = hosts(environment);
        let mut settings = self.settings.clone();
        let fixed = json!({
            "permissions": { "unattended": "park" },
            "mcp": { "lazyLoad": false },
            "sandbox": { "network": { "allowedDomains": domains, "allowLocalBinding": true } },
        });
        if let Value::Object(fixed) = fixed {
            settings.extend(fixed);
        }
        Value::Object(settings)
    }
}

/// The hosts that commands of an environment reach; `*` is every public one.
pub(super) fn hosts(environment: &EnvironmentBody) -> Vec<String> {
    match &environment.config {
        EnvironmentConfig::Cloud { networking: Networking::Limited { .. }, .. } => reachable(environment),
        EnvironmentConfig::Cloud { networking: Networking::Unrestricted, .. }
        | EnvironmentConfig::SelfHosted { .. } => vec!["*".to_owned()],
    }
}

/// The values of variables whose names say that they are secret: commands have them, and nothing shows them.
pub(super) fn secret_variables(secrets: &SessionSecrets) -> Vec<String> {
    let named = secrets.variables.iter().filter(|(name, _)| holds_secret(name)).map(|(_, value)| value);
    named.filter(|value| value.len() >= SHORTEST_SECRET).cloned().collect()
}

/// The values that nothing of the session shows: those of variables whose names say that they are secret.
pub(super) fn secret_values(secrets: &SessionSecrets) -> Vec<String> {
    let named = secrets.variables.iter().filter(|(name, _)| holds_secret(name)).map(|(_, value)| value);
    let values = named.chain(secrets.credentials.values());
    values.filter(|value| value.len() >= SHORTEST_SECRET).cloned().collect()
}

/// The hosts that a limited environment reaches.
fn reachable(environment: &EnvironmentBody) -> Vec<String> {
    let EnvironmentConfig::Cloud { networking, .. } = &environment.config else { return Vec::new() };
    let Networking::Limited { allowed_hosts, allow_package_managers, .. } = networking else {
        return Vec::new();
    };
    let registries = REGISTRIES.iter().filter(|_| *allow_package_managers).map(|host| (*host).to_owned());
    allowed_hosts.iter().cloned().chain(registries).collect()
}

/// Rules that allow everything that is enabled; the policies come after them. Fetching is allowed for the hosts that the
/// environment and the tool's own lists leave.
fn allowed(toolset: &Toolset, environment: &EnvironmentBody) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    for (tool, _) in toolset.enabled() {
        let limited = matches!(
            environment.config,
            EnvironmentConfig::Cloud { networking: Networking::Limited { .. }, .. }
        );
        let own = domains(&tool.extra, "allowed_domains");
        match (tool.name, own.is_empty(), limited) {
            ("WebFetch", false, _) => rules.extend(own.iter().flat_map(|host| fetching(host))),
            ("WebFetch", true, true) => {
                rules.extend(reachable(environment).iter().map(|host| domain_rule(host)))
            }
            _ => rules.push(tool.name.to_owned()),
        }
    }
    rules.extend(toolset.outside.iter().map(|(name, _)| (*name).to_owned()));
    rules.extend(toolset.has_skills.then(|| SKILL.to_owned()));
    rules.extend(toolset.has_team.then(|| AGENT.to_owned()));
    rules.extend(toolset.servers.iter().map(|server| format!("mcp__{}", server.alias)));
    rules
}

fn blocked(toolset: &Toolset) -> Vec<String> {
    let fetch = toolset.enabled().find(|(tool, _)| tool.name == "WebFetch");
    let hosts = fetch.map(|(tool, _)| domains(&tool.extra, "blocked_domains")).unwrap_or_default();
    hosts.iter().flat_map(|host| fetching(host)).collect()
}

fn domains(extra: &Map<String, Value>, key: &str) -> Vec<String> {
    let hosts = extra.get(key).and_then(Value::as_array).into_iter().flatten();
    hosts.filter_map(|host| host.as_str().map(str::to_owned)).collect()
}

/// A host and everything below it.
fn fetching(host: &str) -> [String; 2] {
    [domain_rule(host), domain_rule(&format!("*.{host}"))]
}

fn domain_rule(host: &str) -> String {
    format!("WebFetch(domain:{host})")
}

/// The built-in tools and servers that an agent sees.
pub(super) fn offered(toolset: &Toolset) -> Vec<String> {
    let built_in = toolset.enabled().map(|(tool, _)| tool.name.to_owned());
    let skill = toolset.has_skills.then(|| SKILL.to_owned());
    let agent = toolset.has_team.then(|| AGENT.to_owned());
    built_in
        .chain(skill)
        .chain(agent)
        .chain(toolset.servers.iter().map(|server| format!("mcp__{}", server.alias)))
        .collect()
}

fn policy(policy: Policy) -> ToolPolicy {
    match policy {
        Policy::AlwaysAllow => ToolPolicy::AlwaysAllow,
        Policy::AlwaysAsk => ToolPolicy::AlwaysAsk,
        Policy::AlwaysDeny => ToolPolicy::AlwaysDeny,
        Policy::Auto => ToolPolicy::Auto,
    }
}

/// What an agent's policies come to.
pub(super) fn policies(toolset: &Toolset) -> ToolPolicies {
    let mut policies = ToolPolicies::default();
    for (tool, decided) in toolset.enabled() {
        policies.tools.insert(tool.name.to_owned(), policy(decided));
    }
    for (name, decided) in &toolset.outside {
        policies.tools.insert((*name).to_owned(), policy(*decided));
    }
    for server in &toolset.servers {
        // A tool that is not enabled and is called all the same is denied.
        let default = server.default.map_or(ToolPolicy::AlwaysDeny, policy);
        policies.servers.insert(server.alias.clone(), default);
        for (tool, decided) in &server.tools {
            let name = qoder_mcp::tool_name(&server.alias, tool);
            policies.tools.insert(name, decided.map_or(ToolPolicy::AlwaysDeny, policy));
        }
    }
    policies
}

fn external(toolset: &Toolset) -> Vec<ToolDefinition> {
    let tool = |tool: &crate::model::toolset::ExternalTool| ToolDefinition {
        name: tool.alias.clone(),
        description: tool.description.as_str().into(),
        input_schema: tool.input_schema.clone().into(),
    };
    toolset.external.iter().map(tool).collect()
}
