//! MCP servers of a session in this process: those whose tools are functions here, those that the options describe, and the
//! callbacks that answer what servers ask.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use qoder_runtime::callbacks::{OnElicitation as EngineElicitation, OnMcpOAuth, OwnServers};
use qoder_runtime::config::servers::Flags;
use qoder_runtime::mcp::McpPeer;
use qoder_runtime::mcp::authorization::OAuthToken as RuntimeToken;
use qoder_runtime::mcp::questions::{
    Elicitation, ElicitationAction, ElicitationAnswer, OAuthAnswer, OAuthQuestion,
};
use serde_json::{Map, Value, json};

use crate::callback::guarded;
use crate::error::{Error, Result};
use crate::mcp::{
    ElicitationRequest, ElicitationResult, McpOAuthRequest, McpOAuthResolution, McpServerConfig, McpServers,
    OAuthToken, OnElicitation, OnMcpOAuthRequired,
};
use crate::options::QoderAgentOptions;
use crate::tools::{Instance, Peer};

/// Servers whose tools are functions of this process, by the name under which the session was given them.
#[derive(Clone, Default)]
pub(super) struct OwnInstances(Arc<Mutex<BTreeMap<String, Arc<Instance>>>>);

impl OwnInstances {
    pub(super) fn new(options: &QoderAgentOptions) -> Self {
        let instances = Self::default();
        if let McpServers::Map(servers) = &options.mcp_servers {
            instances.bring(servers);
        }
        instances
    }

    /// Makes more of them known.
    pub(super) fn bring(&self, servers: &BTreeMap<String, McpServerConfig>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, server) in servers {
            match server {
                McpServerConfig::Sdk(server) => {
                    known.insert(name.clone(), Arc::clone(&server.instance));
                }
                McpServerConfig::Stdio(_) | McpServerConfig::Sse(_) | McpServerConfig::Http(_) => {}
            }
        }
    }

    /// The way to each of them.
    pub(super) fn ways(&self) -> OwnServers {
        let instances = self.clone();
        Arc::new(move |name| {
            let known = instances.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(name).map(|instance| Arc::new(Peer(Arc::clone(instance))) as Arc<dyn McpPeer>)
        })
    }
}

/// What the options say about servers, as the engine reads it from every front.
pub(super) fn flags(options: &QoderAgentOptions) -> Result<Flags> {
    let configs = match &options.mcp_servers {
        McpServers::Map(servers) if servers.is_empty() => Vec::new(),
        McpServers::Map(servers) => {
            let json = serde_json::to_value(servers).map_err(|error| Error::Protocol(error.to_string()))?;
            vec![json!({ "mcpServers": json }).to_string()]
        }
        McpServers::File(path) => {
            // As an external program would: from the session's directory.
            let place: PathBuf = options.cwd.clone().unwrap_or_default().join(path);
            vec![place.display().to_string()]
        }
    };
    Ok(Flags {
        configs,
        strict: options.strict_mcp_config,
        allowed: options.allowed_mcp_server_names.clone(),
    })
}

/// Puts questions of servers to the callback.
pub(super) fn elicitation(answer: &OnElicitation) -> EngineElicitation {
    let answer = Arc::clone(answer);
    Arc::new(move |question: Elicitation| {
        let answer = Arc::clone(&answer);
        async move {
            let request = ElicitationRequest {
                server_name: question.server_name,
                message: question.message,
                mode: question.mode,
                elicitation_id: question.elicitation_id,
                requested_schema: question.requested_schema,
                title: question.title,
                display_name: question.display_name,
                extra: Map::new(),
            };
            let result = guarded("on_elicitation", async { answer(request).await }).await?;
            Ok(match result {
                ElicitationResult::Accept { content } => ElicitationAnswer {
                    action: ElicitationAction::Accept,
                    content: content.and_then(|content| match content {
                        Value::Object(fields) => Some(fields),
                        _ => None,
                    }),
                },
                ElicitationResult::Decline => {
                    ElicitationAnswer { action: ElicitationAction::Decline, content: None }
                }
                ElicitationResult::Cancel => ElicitationAnswer::cancel(),
            })
        }
        .boxed()
    })
}

/// Asks the callback for credentials of servers.
pub(super) fn credentials(get: &OnMcpOAuthRequired) -> OnMcpOAuth {
    let get = Arc::clone(get);
    Arc::new(move |question: OAuthQuestion| {
        let get = Arc::clone(&get);
        async move {
            let mut extra = Map::new();
            if let Some(url) = question.resource_metadata_url {
                extra.insert("resource_metadata_url".to_owned(), json!(url));
            }
            let request = McpOAuthRequest {
                server_name: question.server_name,
                server_url: question.server_url,
                auth_url: question.auth_url,
                state: question.state,
                scopes: question.scopes,
                extra,
            };
            let resolution = guarded("on_mcp_oauth_required", async { get(request).await }).await?;
            Ok(match resolution {
                Some(McpOAuthResolution::Token { token }) => OAuthAnswer::Token(runtime_token(token)),
                Some(McpOAuthResolution::CallbackUrl { callback_url }) => {
                    OAuthAnswer::CallbackUrl(callback_url)
                }
                Some(McpOAuthResolution::Code { code, state }) => OAuthAnswer::Code { code, state },
                None => OAuthAnswer::Rejected,
            })
        }
        .boxed()
    })
}

fn runtime_token(token: OAuthToken) -> RuntimeToken {
    RuntimeToken {
        access_token: token.access_token,
        token_type: token.token_type,
        refresh_token: token.refresh_token,
        expires_in: token.expires_in,
        expires_at: None,
        scope: token.scope,
    }
}
