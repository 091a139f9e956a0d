//! From options and settings to how the model is reached, and to the model that judges calls in auto mode.

use qoder_models::{ModelConfigError, ModelOptions, ModelSettings};
use serde_json::{Value, json};

use super::{Options, SetupError, value_error};
use crate::engine::Classifier;
use crate::settings::Settings;

pub(super) fn model_options(&self) -> &ModelOptions {
        &self.model_options
    }

    /// A redactor that knows the configured keys.
    #[must_use]
    pub fn redactor(&self) -> redact::Redactor {
        redact::Redactor::new(qoder_models::configured_secrets(&self.model_options))
    }

    /// Builds the engine.
    pub fn engine(&self, host: Arc<dyn Host>) -> Result<Engine, SetupError> {
        let model = qoder_models::resolve(&self.model_options)?;
        let mut roots = vec![self.cwd.clone()];
        if self.project_root != self.cwd && self.trust.is_trusted() {
            roots.push(self.project_root.clone());
        }
        for folder in &self.options.additional_directories {
            roots.push(real_directory("--add-dir", folder)?);
        }
        for folder in self.settings.list("permissions.additionalDirectories") {
            // A configured directory that is not on this machine is no reason to stop.
            roots.extend(layout::expand_home(&folder, &self.options.environment).canonicalize());
        }
        let gate = Gate {
            rules: self.rules.clone(),
            mode: self.mode,
            trusted: self.trust.is_trusted() || self.mode_is_explicit,
            workspace: Workspace {
                cwd: self.cwd.clone(),
                project_root: self.project_root.clone(),
                home: layout::home(&self.options.environment),
                roots: roots.clone(),
                config_dir: self.config_root.clone(),
            },
        };
        let (thinking, effort) = self.thinking();
        Ok(Engine {
            model,
            toolbox: self.toolbox(),
            gate,
            max_turns: self.max_turns(),
            thinking,
            effort,
            max_output_tokens: self.model_options.max_output_tokens,
            system: self.system_prompt(&roots[1..]),
            roots: roots.into(),
            hidden_environment: self.hidden_environment().into(),
            shared: SessionShared::new(),
            host,
            nested_memory: NestedMemory::new(&self.memory_places(), &self.settings),
            replay_user_messages: self.options.replay_user_messages,
            expose_request_id: self.variable("QODER_EXPOSE_REQUEST_ID") == Some("true"),
        })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.options.environment.get(name).map(String::as_str)
    }

    /// How much to think: what the flags say, else the setting, whose lowest level is not to think at all.
    fn thinking(&self) -> (Thinking, Option<String>) {
        let chosen = self.options.thinking;
        let configured = self.settings.text("model.reasoningEffort");
        match (&self.options.effort, configured) {
            (Some(effort), _) => (chosen, Some(effort.clone())),
            (None, Some("disabled" | "off" | "none")) if chosen == Thinking::Default => {
                (Thinking::Disabled, None)
            }
            (None, Some("disabled" | "off" | "none") | None) => (chosen, None),
            (None, Some(level)) => (chosen, Some(level.to_owned())),
        }
    }

    fn max_turns(&self) -> Option<u64> {
        let configured = self.settings.get("model.maxSessionTurns").and_then(Value::as_i64);
        self.options.max_turns.or_else(|| configured.and_then(|turns| u64::try_from(turns).ok()))
    }

    fn toolbox(&self) -> Toolbox {
        let number = |path: &str| self.settings.get(path).and_then(Value::as_u64);
        let defaults = ToolSettings::default();
        let settings = ToolSettings {
            bash_default_timeout_ms: number("tools.shell.timeoutMs")
                .unwrap_or(defaults.bash_default_timeout_ms),
            bash_inactivity_seconds: number("tools.shell.inactivityTimeout")
                .unwrap_or(defaults.bash_inactivity_seconds),
            respect_gitignore: self.settings.flag("context.fileFiltering.respectGitIgnore", true),
            ..defaults
        };
        let core = self.settings.get("tools.core").is_some().then(|| self.settings.list("tools.core"));
        let excluded = self.settings.list("tools.exclude");
        let wanted = self.options.tools.as_ref().or(core.as_ref());
        let tools: Vec<Arc<dyn Tool>> = qoder_tools::built_in(&settings)
            .into_iter()
            .filter(|tool| {
                let name = &tool.definition().name;
                wanted.is_none_or(|wanted| wanted.contains(name))
                    && !excluded.contains(name)
                    && !self.rules.hides(name)
            })
            .collect();
        Toolbox::new(tools)
    }

    fn memory_places(&self) -> MemoryPlaces<'_> {
        MemoryPlaces {
            config_root: &self.config_root,
            cwd: &self.cwd,
            project_root: &self.project_root,
            trusted: self.trust.is_trusted(),
        }
    }

    fn system_prompt(&self, additional: &[PathBuf]) -> SystemPrompt {
        // An empty prompt was asked for: nothing at all goes in front of the messages.
        let bare = self.options.system_prompt.as_deref() == Some("");
        let memory = if bare { Vec::new() } else { discover(&self.memory_places(), &self.settings) };
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        build(
            &PromptParts {
                replacement: self.options.system_prompt.as_deref(),
                append: self.options.append_system_prompt.as_deref(),
                memory: &memory,
                language: self.settings.text("language"),
            },
            &Surroundings {
                cwd: &self.cwd,
                additional,
                git: trust::is_repository(&trust::project_root(&self.cwd)),
                date: &date,
            },
        )
    }

    /// Variables that commands must not inherit: those that hold keys, by name or by value.
    fn hidden_environment(&self) -> Vec<String> {
        let secrets = qoder_models::configured_secrets(&self.model_options);
        let mut hidden: Vec<String> = SECRET_ENVIRONMENT.iter().map(|name| (*name).to_owned()).collect();
        let excluded = self.settings.list("advanced.excludedEnvVars");
        hidden.extend(if self.settings.get("advanced.excludedEnvVars").is_some() {
            excluded
        } else {
            vec!["DEBUG".to_owned(), "DEBUG_MODE".to_owned()]
        });
        let holders = self.options.environment.iter().filter(|(_, value)| secrets.contains(value));
        hidden.extend(holders.map(|(name, _)| name.clone()));
        hidden.sort();
        hidden.dedup();
        hidden
    }
}

fn reads_user_file(options: &Options) -> bool {
    options.setting_sources.as_ref().is_none_or(|sources| sources.contains(&RuleSource::UserSettings))
}

fn real_directory(option: &'static str, path: &Path) -> Result<PathBuf, SetupError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let real = path.canonicalize().map_err(|error| SetupError::Option {
        option,
        problem: format!("{} cannot be used as a directory: {error}", path.display()),
    })?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(SetupError::Option { option, problem: format!("{} is not a directory", path.display()) })
}

fn value_error(settings: &Settings, key: &str, problem: String) -> SettingsError {
    let place = settings.origin(key).map_or_else(|| "settings".to_owned(), |layer| layer.place(key));
    SettingsError::Value { place, key: key.to_owned(), problem }
}

/// The mode and whether a person chose it for this very run. An explicit choice counts in an untrusted folder too: it
/// comes from the person, not from the folder, and trusts none of the folder's files.
fn choose_mode(options: &Options, settings: &Settings) -> Result<(PermissionMode, bool), SetupError> {
    let key = "general.defaultPermissionMode";
    // Loading has refused any other word.
    let (mode, explicit) = match (options.permission_mode, settings.text(key).and_then(PermissionMode::parse))
    {
        (Some(mode), _) => (mode, true),
        (None, None) => (PermissionMode::Default, false),
        (None, Some(mode)) => {
            let layer = settings.origin(key).map(|layer| layer.source);
            (mode, layer == Some(RuleSource::FlagSettings))
        }
    };
    if mode == PermissionMode::BypassPermissions && settings.flag("security.disableYoloMode", false) {
        return Err(SetupError::Option {
            option: "--permission-mode",
            problem: "bypassPermissions is forbidden by the setting security.disableYoloMode".to_owned(),
        });
    }
    Ok((mode, explicit))
}

fn model_options(options: &Options, settings: &Settings) -> Result<ModelOptions, SetupError> {
    let group = |path: &str| settings.get(path).cloned().unwrap_or_else(|| json!({}));
    let shape = json!({
        "providers": group("providers"),
        "tiers": group("model.tiers"),
        "prices": group("model.prices"),
        "contextWindows": group("model.contextWindows"),
        "maxOutputTokens": group("model.maxOutputTokensByModel"),
    });
    let models: ModelSettings = serde_json::from_value(shape)
        .map_err(|error| value_error(settings, "providers", format!("or `model` cannot be used: {error}")))?;
    let text = |path: &str| settings.text(path).map(str::to_owned);
    let number = |path: &str| settings.get(path).and_then(Value::as_u64);
    let environment = &options.environment;
    let most = number("general.maxAttempts").unwrap_or(10).clamp(1, 10);
    Ok(ModelOptions {
        model: options
            .model
            .clone()
            .or_else(|| environment.get("QODER_MODEL").filter(|name| !name.is_empty()).cloned())
            .or_else(|| text("model.name")),
        fallback_model: options.fallback_model.clone().or_else(|| text("model.fallback")),
        settings: models,
        base_url: options.base_url.clone(),
        api_style: options.api_style.clone(),
        api_key_env: options.api_key_env.clone(),
        environment: environment.clone(),
        max_attempts: u32::try_from(most).unwrap_or(10),
        record: options.record.clone(),
        context_window: options.context_window.or_else(|| number("model.contextWindow")),
        max_output_tokens: options
            .max_output_tokens
            .or_else(|| number("model.maxOutputTokens").and_then(|most| u32::try_from(most).ok())),
    })
}

/// The judge of auto mode, when the settings name one. Projects cannot: `autoMode` is not theirs to set.
pub(super) fn classifier(
    options: &ModelOptions,
    settings: &Settings,
) -> Result<Option<Classifier>, ModelConfigError> {
    let Some(name) = settings.text("autoMode.classifier").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let options = ModelOptions { model: Some(name.to_owned()), fallback_model: None, ..options.clone() };
    let model = qoder_models::resolve(&options)?;
    let mut hints = String::new();
    for (key, words) in [
        ("autoMode.allow", "Usually allow"),
        ("autoMode.soft_deny", "Usually deny"),
        ("autoMode.environment", "About the surroundings"),
    ] {
        for line in settings.list(key) {
            hints.push_str(&format!("\n{words}: {line}"));
        }
    }
    Ok(Some(Classifier { model, hints }))
}
