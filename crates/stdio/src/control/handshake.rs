//! The handshake: what the program that started us declares becomes callbacks of the session, and what it may want to
//! know of us becomes the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_protocol::control::{Initialize, RuntimeRequest};
use qoder_runtime::callbacks::{AuthExpired, Callbacks, ModelPolicy};
use qoder_runtime::config::agents::AgentDefinition;
use qoder_runtime::config::hooks::{Action, DEFAULT_TIMEOUT, Hook, OnFailure, Traits};
use qoder_runtime::setup::Setup;
use serde_json::Value;

use super::channel::Channel;
use super::error::HandshakeError;
use super::{hooks, servers};

/// What the program declares.
pub(crate) fn declared(
    request: &Value,
    channel: &Arc<Channel>,
    setup: &mut Setup,
) -> Result<Callbacks, HandshakeError> {
    let initialize: Initialize = serde_json::from_value(request.clone())?;
    if initialize.sdk.is_some() {
        channel.output().want_early_status();
    }
    let handshake = Handshake(&initialize);
    if let Some(token) = handshake.access_token()? {
        setup.use_access_token(token);
    }
    let callbacks = handshake.callbacks(channel)?;
    handshake.apply_options(setup)?;
    Ok(callbacks)
}

/// The handshake as callbacks.
struct Handshake<'a>(&'a Initialize);

impl Handshake<'_> {
    /// The token that the program was given, if it was given one.
    fn access_token(&self) -> Result<Option<&str>, HandshakeError> {
        let Some(auth) = &self.0.auth else { return Ok(None) };
        match (auth.kind.as_str(), auth.access_token.as_deref().map(str::trim)) {
            ("accessToken", Some(token)) if !token.is_empty() => Ok(Some(token)),
            ("accessToken", _) => Err(HandshakeError::EmptyToken),
            ("qodercli", _) => Ok(None),
            (other, _) => Err(HandshakeError::UnknownAuth(other.to_owned())),
        }
    }

    /// Options that come with the handshake and not on the command line.
    fn apply_options(&self, setup: &mut Setup) -> Result<(), HandshakeError> {
        if self.0.goal_max_turns.is_some() {
            return Err(HandshakeError::Goals);
        }
        if let Some(proxy) = self.0.proxy.as_deref().filter(|proxy| !proxy.trim().is_empty()) {
            setup.use_proxy(proxy);
        }
        let options = &mut setup.options;
        options.plan_mode_instructions.clone_from(&self.0.plan_mode_instructions);
        options.prompt_suggestions = self.0.prompt_suggestions;
        options.forward_subagent_text = self.0.forward_subagent_text;
        options.custom_context.clone_from(&self.0.custom_context);
        options.tool_config.clone_from(&self.0.tool_config);
        options.skills.clone_from(&self.0.skills);
        Ok(())
    }

    /// What the program declared, as functions that ask it.
    fn callbacks(&self, channel: &Arc<Channel>) -> Result<Callbacks, HandshakeError> {
        Ok(Callbacks {
            hooks: self.hooks(channel)?,
            own_servers: Some(servers::own(channel)),
            elicitation: self.0.elicitation.then(|| servers::elicitation(channel)),
            mcp_oauth: self.0.mcp_oauth.then(|| servers::credentials(channel)),
            agents: self.agents()?,
            model_policy: self.0.model_policy.then(|| model_policy(channel)),
            auth_expired: self.0.auth_expired.then(|| auth_expired(channel)),
            ..Callbacks::default()
        })
    }

    /// The agents that the program defines.
    fn agents(&self) -> Result<BTreeMap<String, AgentDefinition>, HandshakeError> {
        let read =
            |(name, value): (&String, &Value)| Ok((name.clone(), AgentDefinition::from_sdk(name, value)?));
        self.0.agents.iter().flatten().map(read).collect()
    }

    fn hooks(&self, channel: &Arc<Channel>) -> Result<Vec<Hook>, HandshakeError> {
        let mut hooks = Vec::new();
        for (event, matchers) in self.0.hooks.iter().flatten() {
            for matcher in matchers {
                let on_failure = match matcher.on_failure.as_deref() {
                    None => None,
                    Some(word) => Some(OnFailure::parse(word).ok_or_else(|| HandshakeError::OnFailure {
                        event: event.clone(),
                        word: word.to_owned(),
                    })?),
                };
                let timeout = match matcher.timeout {
                    None => DEFAULT_TIMEOUT,
                    Some(seconds) => {
                        let timeout =
                            Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
                        timeout.ok_or_else(|| HandshakeError::Timeout { event: event.clone(), seconds })?
                    }
                };
                hooks.extend(matcher.hook_callback_ids.iter().map(|id| Hook {
                    event: event.clone(),
                    matcher: matcher.matcher.clone(),
                    name: id.clone(),
                    timeout,
                    on_failure,
                    action: Action::Function(hooks::function(channel, id)),
                    traits: Traits::default(),
                }));
            }
        }
        Ok(hooks)
    }
}

fn model_policy(channel: &Arc<Channel>) -> ModelPolicy {
    let channel = Arc::clone(channel);
    Arc::new(move |question| {
        let context = question.as_object().cloned().unwrap_or_default();
        channel.request(RuntimeRequest::GetModelPolicy { context })
    })
}

fn auth_expired(channel: &Arc<Channel>) -> AuthExpired {
    let channel = Arc::clone(channel);
    Arc::new(move |reason| {
        let told = channel.request(RuntimeRequest::AuthExpired { reason });
        async move {
            // It is a notice: whatever comes back, the credentials of this session stay refused.
            drop(told.await);
        }
        .boxed()
    })
}
