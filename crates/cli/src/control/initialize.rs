//! The handshake: what the program that started us declares becomes callbacks of the session, and what it may want to
//! know of us becomes the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_runtime::callbacks::{AuthExpired, Callbacks, ModelPolicy};
use qoder_runtime::hooks::{DEFAULT_TIMEOUT, Hook, OnFailure};
use qoder_runtime::mcp::{McpPeer, Tunnel, TunnelSend};
use serde::Deserialize;
use serde_json::{Value, json};

use super::channel::Channel;

/// The version of the protocol that is spoken.
pub const PROTOCOL_VERSION: u64 = 1;

/// The request, as far as it is known. Unknown keys are other programs' affair.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialize {
    hooks: Option<BTreeMap<String, Vec<Matcher>>>,
    model_policy: bool,
    auth_expired: bool,
    auth: Option<Auth>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Matcher {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hook_callback_ids: Vec<String>,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    on_failure: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Auth {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    access_token: Option<String>,
}

impl std::fmt::Debug for Auth {
    /// Written by hand because a token must not reach a log through `{:?}`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Auth").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Initialize {
    /// Reads the request.
    pub fn read(request: &Value) -> Result<Self, String> {
        serde_json::from_value(request.clone()).map_err(|error| format!("initialize: {error}"))
    }

    /// The token that the program was given, if it was given one.
    pub fn access_token(&self) -> Result<Option<&str>, String> {
        let Some(auth) = &self.auth else { return Ok(None) };
        match (auth.kind.as_str(), auth.access_token.as_deref().map(str::trim)) {
            ("accessToken", Some(token)) if !token.is_empty() => Ok(Some(token)),
            ("accessToken", _) => Err("initialize: auth.accessToken is empty".to_owned()),
            ("qodercli", _) => Ok(None),
            (other, _) => Err(format!(
                "initialize: auth.type `{other}` is not known; accepted are accessToken and qodercli"
            )),
        }
    }

    /// What the program declared, as functions that ask it. `servers` are those that live in it.
    pub fn callbacks(&self, channel: &Arc<Channel>, servers: &[String]) -> Result<Callbacks, String> {
        let tool_servers =
            servers.iter().map(|name| (name.clone(), server(channel, name))).collect::<Vec<_>>();
        Ok(Callbacks {
            hooks: self.hooks(channel)?,
            tool_servers,
            model_policy: self.model_policy.then(|| model_policy(channel)),
            auth_expired: self.auth_expired.then(|| auth_expired(channel)),
        })
    }

    fn hooks(&self, channel: &Arc<Channel>) -> Result<Vec<Hook>, String> {
        let mut hooks = Vec::new();
        for (event, matchers) in self.hooks.iter().flatten() {
            for matcher in matchers {
                let on_failure = match matcher.on_failure.as_deref() {
                    None => None,
                    Some(word) => Some(OnFailure::parse(word).ok_or_else(|| {
                        format!("initialize: hooks.{event}: onFailure `{word}` is not known; accepted are continue, ask and block")
                    })?),
                };
                let timeout = match matcher.timeout {
                    None => DEFAULT_TIMEOUT,
                    Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
                        format!("initialize: hooks.{event}: timeout {seconds} is not a number of seconds")
                    })?,
                };
                hooks.extend(matcher.hook_callback_ids.iter().map(|id| Hook {
                    event: event.clone(),
                    matcher: matcher.matcher.clone(),
                    name: id.clone(),
                    timeout,
                    on_failure,
                    function: hook(channel, id),
                }));
            }
        }
        Ok(hooks)
    }
}

fn hook(channel: &Arc<Channel>, id: &str) -> qoder_runtime::hooks::HookFunction {
    let (channel, id) = (Arc::clone(channel), id.to_owned());
    Arc::new(move |call| {
        let (input, _) = channel.output().bounded(call.input);
        channel.request(json!({
            "subtype": "hook_callback", "callback_id": id, "input": input, "tool_use_id": call.tool_use_id,
        }))
    })
}

fn server(channel: &Arc<Channel>, name: &str) -> Arc<dyn McpPeer> {
    let (channel, name) = (Arc::clone(channel), name.to_owned());
    let send: TunnelSend = Arc::new(move |message| {
        let asked =
            channel.request(json!({ "subtype": "mcp_message", "server_name": name, "message": message }));
        async move {
            let mut answer = asked.await?;
            match answer.get_mut("mcp_response") {
                Some(response) => Ok(response.take()),
                None => Err("the answer has no `mcp_response`".to_owned()),
            }
        }
        .boxed()
    });
    Arc::new(Tunnel::new(send))
}

fn model_policy(channel: &Arc<Channel>) -> ModelPolicy {
    let channel = Arc::clone(channel);
    Arc::new(move |mut question| {
        question["subtype"] = json!("get_model_policy");
        channel.request(question)
    })
}

fn auth_expired(channel: &Arc<Channel>) -> AuthExpired {
    let channel = Arc::clone(channel);
    Arc::new(move |reason| {
        let told = channel.request(json!({ "subtype": "auth_expired", "reason": reason }));
        async move {
            // It is a notice: whatever comes back, the credentials of this session stay refused.
            drop(told.await);
        }
        .boxed()
    })
}
