//! The MCP servers of a session: made of their descriptions and of what the front brings, with the rules that their
//! descriptions stand for. Nothing is reached before the session starts them.

use std::sync::Arc;
use std::time::Duration;

use qoder_core::ports::Model;
use qoder_policy::{Rule, RuleSet};
use qoder_types::{Behavior, RuleOrigin, RuleSource};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::{Setup, SetupError, value_error};
use crate::agents::{AgentLimits, AgentTree, OwnServers};
use crate::callbacks::Callbacks;
use crate::engine::server_requests::ServerRequests;
use crate::mcp::authorization::Authorizer;
use crate::mcp::lazy::{Lazy, LazyLoad};
use crate::mcp::oauth::{ServerAuthorizer, Vault};
use crate::mcp::questions::ServerQuestions;
use crate::mcp::remote::{self, PeerContext};
use crate::mcp::{ByName, Made, McpServers, RefusedServer, START_WAIT, ServerMaker};
use crate::permissions::Gate;
use crate::tools::toolbox::Offered;
use qoder_config::agents::ServerReference;
use qoder_config::plugins::Plugin;
use qoder_config::server_config::read_server;
use qoder_config::servers::{self as mcp_sources, Flags, InlineServers};
use qoder_models::SwitchedModel;
use qoder_types::server::{NamedServer, Scope, ToolPolicy, Transport};

/// Milliseconds that the first model call waits for servers which still connect.
const WAIT_VARIABLE: &str = "QODER_MCP_START_WAIT_MS";
/// The same as a setting.
const WAIT_SETTING: &str = "mcp.startWaitMs";
/// Whether tools are looked up by name.
const LAZY_SETTING: &str = "mcp.lazyLoad";

impl Setup {
    /// Connects to the servers, within a bound, and answers with the documented row of each. No session is opened.
    ///
    /// # Errors
    /// When the working directory or another root cannot be used.
    pub async fn server_rows(&self, callbacks: &Callbacks) -> Result<Vec<Value>, SetupError> {
        let questions = Arc::new(ServerRequests::new(callbacks, self.roots()?));
        let servers = self.servers(callbacks, &questions);
        servers.connect().await;
        let rows = servers.rows();
        servers.close().await;
        Ok(rows)
    }

    /// The servers, none of them started.
    pub(super) fn servers(&self, callbacks: &Callbacks, questions: &Arc<ServerRequests>) -> McpServers {
        self.plugins().plugins.iter().for_each(Plugin::prepare_data);
        let maker = self.server_maker(callbacks, questions);
        let questions = Arc::clone(questions) as Arc<dyn ServerQuestions>;
        let servers = McpServers::new(callbacks.servers.clone(), maker, questions, self.start_wait());
        servers.add_refused(callbacks.refused_servers.clone());
        servers
    }

    /// The agents of the session, none of them started.
    pub(super) fn tree(&self, callbacks: &Callbacks, questions: &Arc<ServerRequests>) -> AgentTree {
        let own_servers = self.own_servers(callbacks, questions);
        AgentTree::new(
            AgentLimits::of(&self.config.settings),
            own_servers,
            self.options.forward_subagent_text,
        )
    }

    /// Makes the servers that a definition describes for its agent alone.
    fn own_servers(&self, callbacks: &Callbacks, questions: &Arc<ServerRequests>) -> OwnServers {
        let maker = self.server_maker(callbacks, questions);
        let questions = Arc::clone(questions) as Arc<dyn ServerQuestions>;
        let (inline, wait) = (InlineServers::of(&self.config, &callbacks.server_flags), self.start_wait());
        Arc::new(move |definition| {
            let mut servers = Vec::new();
            for reference in definition.mcp_servers.iter().flatten() {
                match reference {
                    ServerReference::Inline { name, config } => {
                        servers.push(inline.server(name, config, &definition.origin)?);
                    }
                    ServerReference::Name(_) => {}
                }
            }
            let made = || McpServers::new(servers.clone(), Arc::clone(&maker), Arc::clone(&questions), wait);
            Ok((!servers.is_empty()).then(made))
        })
    }

    fn server_maker(&self, callbacks: &Callbacks, questions: &Arc<ServerRequests>) -> ServerMaker {
        let own = callbacks.own_servers.clone();
        let hidden = self.hidden_environment();
        let environment = remote::clean_environment(&self.options.environment, &hidden);
        let context = PeerContext {
            environment: Arc::new(environment),
            ..PeerContext::new(self.cwd.clone(), Arc::clone(questions) as Arc<dyn ServerQuestions>)
        };
        let pool = callbacks.connections.clone();
        let (vault, learned) = (Vault::new(&self.config.config_root), self.learned.clone());
        Arc::new(move |server| {
            if let Transport::Sdk { .. } = server.config.transport {
                let peer = own.as_ref().and_then(|find| find(&server.name));
                let peer =
                    peer.ok_or("it lives in the program that started this one, which did not bring it")?;
                return Ok(Made { peer, authorizer: None });
            }
            if let Some(pool) = &pool {
                return Ok(Made { peer: pool.peer(server, &context), authorizer: None });
            }
            let learned = learned.clone();
            let authorizer = ServerAuthorizer::for_server(server, &vault).transpose();
            let authorizer = authorizer.map_err(|error| error.to_string())?.map(|authorizer| {
                let sink = Arc::new(move |secret: &SecretString| learned.add(secret.expose_secret()));
                Arc::new(authorizer.with_secret_sink(sink)) as Arc<dyn Authorizer>
            });
            let context = PeerContext { authorizer: authorizer.clone(), ..context.clone() };
            Ok(Made { peer: remote::peer(server, &context), authorizer })
        })
    }

    fn start_wait(&self) -> Duration {
        let variable = self.variable(WAIT_VARIABLE).and_then(|text| text.trim().parse().ok());
        let milliseconds =
            variable.or_else(|| self.config.settings.get(WAIT_SETTING).and_then(Value::as_u64));
        milliseconds.map_or(START_WAIT, Duration::from_millis)
    }

    /// Whether tools of servers are looked up by name; decided by the setting and the model's context.
    pub(super) fn lazy(&self, model: &Arc<SwitchedModel>) -> Result<Arc<Lazy>, SetupError> {
        let mode = match self.config.settings.get(LAZY_SETTING) {
            None => LazyLoad::default(),
            Some(Value::Bool(true)) => LazyLoad::Always,
            Some(Value::Bool(false)) => LazyLoad::Never,
            Some(Value::String(word)) if word == "auto" => LazyLoad::Auto,
            Some(other) => {
                let problem = format!("is {other}; accepted are true, false and \"auto\"");
                return Err(value_error(&self.config.settings, LAZY_SETTING, problem).into());
            }
        };
        let model = Arc::clone(model);
        Ok(Arc::new(Lazy::new(mode, Arc::new(move || model.facts().context_window))))
    }

    /// The rules of all layers together with those that the descriptions of servers stand for.
    #[must_use]
    pub fn rules_with(&self, servers: &McpServers) -> RuleSet {
        let mut rules = self.rules.clone();
        for (scope, tool, policy) in servers.policies() {
            let source = match scope {
                Scope::Project => RuleSource::ProjectSettings,
                // Bringing a plugin vouches for all of it.
                Scope::User | Scope::Plugin => RuleSource::UserSettings,
                Scope::Local => RuleSource::LocalSettings,
                Scope::Flag | Scope::Sdk => RuleSource::CliArg,
            };
            let behavior = match policy {
                ToolPolicy::AlwaysAllow => Behavior::Allow,
                ToolPolicy::AlwaysAsk => Behavior::Ask,
                ToolPolicy::AlwaysDeny => Behavior::Deny,
                ToolPolicy::Auto => continue,
            };
            // The name of a tool is always a rule: it has no parentheses.
            if let Ok(rule) = Rule::parse(&tool, RuleOrigin { source, file: None, line: None }) {
                rules.add(behavior, rule);
            }
        }
        rules
    }

    /// The servers that the command line, or an SDK's options, name besides those of settings and files. What is wrong with
    /// one of them is in its row; what is worth a word to people comes back.
    ///
    /// # Errors
    /// When a file or a text of the flags cannot be read.
    pub fn bring_servers(&self, flags: &Flags, callbacks: &mut Callbacks) -> Result<Vec<String>, SetupError> {
        let sources = mcp_sources::servers(&self.config, &self.plugins().servers, flags)?;
        callbacks.server_flags = flags.clone();
        callbacks.servers.extend(sources.servers.into_iter().map(|mut server| {
            server.scope = scope(&server.config.transport, server.scope);
            server
        }));
        callbacks.refused_servers.extend(sources.refused.into_iter().map(refused));
        let mut warnings = sources.warnings;
        self.keep_servers_of_main(callbacks, &mut warnings);
        Ok(warnings)
    }

    /// Leaves the servers that the main agent lists, with those that it describes itself. One that may not run is shown
    /// with the reason, as a server of the session is, and the conversation continues without it.
    fn keep_servers_of_main(&self, callbacks: &mut Callbacks, warnings: &mut Vec<String>) {
        let Some(main) = &self.options.main_agent else { return };
        let Some(listed) = &main.mcp_servers else { return };
        let inline = InlineServers::of(&self.config, &callbacks.server_flags);
        for reference in listed {
            let name = reference.name();
            let is_known = callbacks.servers.iter().any(|one| one.name == name)
                || callbacks.refused_servers.iter().any(|one| one.name == name);
            match reference {
                ServerReference::Name(_) if is_known => {}
                ServerReference::Name(_) => {
                    warnings
                        .push(format!("the main agent lists the server `{name}`, which no file describes"));
                }
                ServerReference::Inline { config, .. } => match inline.server(name, config, &main.origin) {
                    Ok(mut server) => {
                        callbacks.servers.retain(|one| one.name != name);
                        callbacks.refused_servers.retain(|one| one.name != name);
                        server.scope = scope(&server.config.transport, server.scope);
                        callbacks.servers.push(server);
                    }
                    Err(reason) => {
                        warnings.push(format!("the main agent works without a server: {reason}"));
                        // What may not run takes nothing over.
                        if !is_known {
                            let row = inline.refused(name, config, &main.origin, &reason);
                            callbacks.refused_servers.push(refused(row));
                        }
                    }
                },
            }
        }
        callbacks.servers.retain(|one| listed.iter().any(|listed| listed.name() == one.name));
        callbacks.refused_servers.retain(|one| listed.iter().any(|listed| listed.name() == one.name));
    }

    /// The servers that plugins describe.
    #[must_use]
    pub fn servers_of_plugins(&self, flags: &Flags) -> (Vec<NamedServer>, Vec<RefusedServer>) {
        let sources = mcp_sources::servers_of_plugins(&self.config, &self.plugins().servers, flags);
        (sources.servers, sources.refused.into_iter().map(refused).collect())
    }

    /// Reads descriptions that a host sends while the session runs. One that makes no sense harms no other.
    #[must_use]
    pub fn read_servers(
        &self,
        configurations: &Map<String, Value>,
    ) -> (Vec<NamedServer>, Vec<RefusedServer>) {
        let (mut servers, mut refused) = (Vec::new(), Vec::new());
        for (name, value) in configurations {
            match read_server(name, value, &self.options.environment) {
                Ok(config) => {
                    let scope = scope(&config.transport, Scope::Flag);
                    servers.push(NamedServer { name: name.clone(), config, scope });
                }
                Err(error) => refused.push(RefusedServer {
                    name: name.clone(),
                    scope: Scope::Flag,
                    shown: json!({ "type": value.get("type").and_then(Value::as_str).unwrap_or("stdio") }),
                    reason: error.to_string(),
                    disabled: false,
                }),
            }
        }
        (servers, refused)
    }
}

fn refused(one: mcp_sources::Refused) -> RefusedServer {
    let mcp_sources::Refused { name, scope, shown, reason, disabled } = one;
    RefusedServer { name, scope, shown, reason, disabled }
}

/// A server inside the program that started us is that program's, wherever it is named.
fn scope(transport: &Transport, named: Scope) -> Scope {
    match transport {
        Transport::Sdk { .. } => Scope::Sdk,
        Transport::Stdio { .. } | Transport::Sse { .. } | Transport::Http { .. } => named,
    }
}

/// The servers as tools reach them by name, under the rules of the session.
pub(super) fn by_name(servers: &Arc<McpServers>, gate: &Arc<Gate>, offered: &Offered) -> Arc<ByName> {
    let gate = Arc::clone(gate);
    let guarded: Offered = Arc::new(move |name| gate.guards(name));
    Arc::new(ByName::new(Arc::clone(servers), Arc::clone(offered), guarded))
}
