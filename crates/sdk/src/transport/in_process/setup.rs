//! From options to what the engine takes. An option that the engine in process does not have yet is refused by name:
//! a limit that is silently not kept would be worse than none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::config::agents::AgentDefinition;
use qoder_runtime::config::hooks::{
    Action, DEFAULT_TIMEOUT, Hook, HookCall, OnFailure as EngineOnFailure, Traits,
};
use qoder_runtime::setup::{OptionNames, Options, RuleSource, SetupError, Thinking};
use serde_json::{Map, Value};

use super::servers::{self, OwnInstances};
use crate::error::{Error, Result};
use crate::hooks::OnFailure;
use crate::options::auth::ACCESS_TOKEN_VARIABLE;
use crate::options::{
    QoderAgentOptions, SdkPluginConfig, SettingSource, Settings, Skills, SystemPrompt, ThinkingConfig,
    ToolSet,
};
use crate::session::MessageSender;
use crate::transport::callbacks::{call_hook, resolve_model};

/// Switches file checkpoints on, here as in an external program.
const CHECKPOINTS_VARIABLE: &str = "QODER_ENABLE_SDK_FILE_CHECKPOINTING";
/// The switch that an external program takes as an argument and the engine as an option.
const REPLAY: &str = "replay-user-messages";

/// What the engine is asked for.
pub(super) fn engine_options(options: &QoderAgentOptions) -> Result<Options> {
    if let Some(what) = missing(options) {
        return Err(Error::unsupported(what));
    }
    let mut environment = options.environment();
    if let Some(token) = options.auth.as_ref().map(|auth| auth.token(&environment)).transpose()?.flatten() {
        environment.insert(ACCESS_TOKEN_VARIABLE.to_owned(), token);
    }
    if options.enable_file_checkpointing == Some(true) {
        environment.insert(CHECKPOINTS_VARIABLE.to_owned(), "true".to_owned());
    }
    let (system_prompt, append_system_prompt) = system_prompt(options)?;
    let base = options.cwd.clone().unwrap_or_default();
    Ok(Options {
        additional_directories: options.add_dirs.iter().map(|folder| base.join(folder)).collect(),
        plugin_dirs: plugins(options, &base),
        cwd: base,
        environment,
        option_names: OptionNames::SnakeCase,
        model: options.model.clone(),
        fallback_model: options.fallback_model.clone(),
        max_turns: options.max_turns,
        max_budget_usd: options.max_budget_usd,
        task_budget: options.task_budget,
        json_schema: options.schema(),
        betas: options.betas.clone(),
        proxy: options.proxy.clone(),
        plan_mode_instructions: options.plan_mode_instructions.clone(),
        prompt_suggestions: options.prompt_suggestions,
        forward_subagent_text: options.forward_subagent_text,
        custom_context: options.custom_context.clone(),
        tool_config: options.tool_config.clone(),
        command_environment: options.env.clone(),
        permission_mode: options.permission_mode,
        allowed_tools: options
            .allowed_tools
            .iter()
            .cloned()
            .chain(options.skills.iter().flat_map(Skills::rules))
            .collect(),
        skills: match &options.skills {
            Some(Skills::Only(names)) => Some(names.clone()),
            Some(Skills::All) | None => None,
        },
        disallowed_tools: options.disallowed_tools.clone(),
        tools: match &options.tools {
            Some(ToolSet::Only(names)) => Some(names.clone()),
            Some(ToolSet::Preset) | None => None,
        },
        system_prompt,
        append_system_prompt,
        settings: settings(options)?,
        setting_sources: options.sources().map(|sources| sources.iter().map(source).collect()),
        trust: options.trust,
        host: !options.implies_sources(),
        strict_mcp_config: options.strict_mcp_config,
        thinking: match options.thinking {
            None => Thinking::Default,
            Some(ThinkingConfig::Adaptive) => Thinking::Adaptive,
            Some(ThinkingConfig::Enabled { budget_tokens }) => Thinking::Budget(budget_tokens),
            Some(ThinkingConfig::Disabled) => Thinking::Disabled,
        },
        effort: options.effort.map(|effort| effort.as_str().to_owned()),
        replay_user_messages: options.extra_args.contains_key(REPLAY),
        ..Options::default()
    })
}

/// The folders of plugins; one that is relative lies in the working directory, as for an external program.
fn plugins(options: &QoderAgentOptions, base: &Path) -> Vec<PathBuf> {
    let folder = |SdkPluginConfig::Local(folder): &SdkPluginConfig| base.join(folder);
    options.plugins.iter().map(folder).collect()
}

fn source(source: &SettingSource) -> RuleSource {
    match source {
        SettingSource::User => RuleSource::UserSettings,
        SettingSource::Project => RuleSource::ProjectSettings,
        SettingSource::Local => RuleSource::LocalSettings,
    }
}

/// The first option that the engine does not have.
fn missing(options: &QoderAgentOptions) -> Option<String> {
    let argument = options.extra_args.keys().find(|name| *name != REPLAY);
    let plain = [(options.goal_max_turns.is_some(), "goal_max_turns")];
    let plain = plain.into_iter().find_map(|(given, name)| given.then(|| name.to_owned()));
    plain.or_else(|| argument.map(|name| format!("extra_args.{name}")))
}

fn system_prompt(options: &QoderAgentOptions) -> Result<(Option<String>, Option<String>)> {
    Ok(match &options.system_prompt {
        None => (None, None),
        Some(SystemPrompt::Text(text)) => (Some(text.clone()), None),
        Some(SystemPrompt::Preset { append }) => (None, append.clone()),
        Some(SystemPrompt::File(path)) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Error::option(
                    "system_prompt",
                    format!("{} cannot be read: {error}", path.display()),
                    "check the path",
                )
            })?;
            (Some(text), None)
        }
    })
}

/// The settings as the engine takes them: JSON or a path. A sandbox goes into the JSON.
pub(crate) fn settings(options: &QoderAgentOptions) -> Result<Option<String>> {
    let mut inline = match (&options.settings, &options.sandbox) {
        (None, None) => return Ok(None),
        (Some(Settings::File(path)), None) => return Ok(Some(path.display().to_string())),
        (Some(Settings::File(_)), Some(_)) => {
            return Err(Error::option(
                "sandbox",
                "it cannot be combined with a settings file",
                "write `sandbox` into that file, or give the settings inline",
            ));
        }
        (Some(Settings::Inline(settings)), _) => settings.clone(),
        (None, Some(_)) => Map::new(),
    };
    if let Some(sandbox) = &options.sandbox {
        inline.insert("sandbox".to_owned(), Value::Object(sandbox.clone()));
    }
    Ok(Some(Value::Object(inline).to_string()))
}

/// What the engine calls.
pub(super) fn callbacks(
    options: &Arc<QoderAgentOptions>,
    messages: &MessageSender,
    own: &OwnInstances,
) -> Callbacks {
    let model_policy = options.resolve_model.clone().map(|provider| {
        let (after_ms, messages) = (options.resolve_model_timeout_ms, messages.clone());
        Arc::new(move |question: Value| {
            let (provider, messages) = (Arc::clone(&provider), messages.clone());
            async move { resolve_model(&provider, question, after_ms, &messages).await }.boxed()
        }) as _
    });
    let auth_expired = options.on_auth_expired.clone().map(|hear| {
        Arc::new(move |reason: String| {
            let hear = Arc::clone(&hear);
            async move {
                // A failure of the callback itself has no receiver.
                let _ = crate::callback::guarded("on_auth_expired", async { hear(reason).await }).await;
            }
            .boxed()
        }) as _
    });
    Callbacks {
        hooks: hooks(options),
        own_servers: Some(own.ways()),
        model_policy,
        auth_expired,
        elicitation: options.on_elicitation.as_ref().map(servers::elicitation),
        mcp_oauth: options.on_mcp_oauth_required.as_ref().map(servers::credentials),
        ..Callbacks::default()
    }
}

/// The agents as the engine knows them. The words are the same on both sides.
///
/// # Errors
/// When a definition cannot be used; the field is named.
pub(super) fn agents(
    options: &QoderAgentOptions,
) -> std::result::Result<BTreeMap<String, AgentDefinition>, SetupError> {
    let wrong = |problem: String| SetupError::Option { option: "options", problem };
    let read = |(name, definition): (&String, &crate::options::agents::AgentDefinition)| {
        let value = serde_json::to_value(definition).map_err(|error| wrong(error.to_string()))?;
        let definition = AgentDefinition::from_sdk(name, &value).map_err(|error| wrong(error.to_string()))?;
        Ok((name.clone(), definition))
    };
    options.agents.iter().map(read).collect()
}

fn hooks(options: &QoderAgentOptions) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for (event, matchers) in &options.hooks {
        for matcher in matchers {
            for callback in &matcher.hooks {
                let callback = Arc::clone(callback);
                hooks.push(Hook {
                    event: event.as_str().to_owned(),
                    matcher: matcher.matcher.clone(),
                    name: format!("hook_{}", hooks.len()),
                    timeout: matcher.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
                    on_failure: matcher.on_failure.map(|on_failure| match on_failure {
                        OnFailure::Continue => EngineOnFailure::Continue,
                        OnFailure::Ask => EngineOnFailure::Ask,
                        OnFailure::Block => EngineOnFailure::Block,
                    }),
                    action: Action::Function(Arc::new(move |call: HookCall| {
                        let callback = Arc::clone(&callback);
                        async move { call_hook(&callback, call.input, call.tool_use_id).await }.boxed()
                    })),
                    traits: Traits::default(),
                });
            }
        }
    }
    hooks
}
