//! The hooks of a session: those of the front, those of settings, and what the latter work with.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use qoder_core::ports::CommandEnvironment;
use qoder_types::RuleSource;

use super::{Setup, SetupError};
use crate::agents::own_hooks;
use qoder_config::extensions::Extensions;
use qoder_config::hooks::{Hook, SettingsHooks, Vouched};
use qoder_config::settings::{Places, variables};
use qoder_config::trust::{self, Trust};
use qoder_hooks::{HookServices, Hooks};
use qoder_models::ModelByName;
use qoder_models::SwitchedModel;

/// How long a session waits for a prompt before hooks are called, unless the environment says otherwise.
const IDLE: Duration = Duration::from_secs(60);

impl Setup {
    /// The hooks of the front, of settings and of the main agent.
    ///
    /// # Errors
    /// When those of the main agent are not trusted.
    pub(super) fn hooks(
        &self,
        own: Vec<Hook>,
        model: &Arc<SwitchedModel>,
        models: &ModelByName,
        environment: &Arc<CommandEnvironment>,
        extensions: &Extensions,
    ) -> Result<Arc<Hooks>, SetupError> {
        let services = HookServices {
            project_dir: self.config.project_root.clone(),
            environment: Arc::clone(environment),
            variables: self.options.environment.clone(),
            project_variables: variables::listed(
                &self.options.environment,
                &self.config.settings.list(variables::PROJECT_ENVIRONMENT),
            ),
            model: Arc::clone(model),
            models: Arc::clone(models),
            post: Arc::new(|url, headers, body| {
                Box::pin(
                    async move { qoder_tools::post_json(&url, &headers, body).await.map_err(String::from) },
                )
            }),
            idle_after: self.idle_after(),
            judge: OnceLock::new(),
        };
        let hooks = Hooks::new(own).with_settings(services, self.settings_hooks());
        hooks.follow(&extensions.current());
        let main = self.options.main_agent.as_deref();
        own_hooks::of_main(&Arc::new(hooks), main).map_err(|problem| SetupError::Option {
            option: "--agent",
            problem: format!("the agent cannot be the main one: {problem}"),
        })
    }

    /// How long a session waits for a prompt before hooks are called.
    fn idle_after(&self) -> Duration {
        let milliseconds = self.variable("QODER_IDLE_PROMPT_MS").and_then(|value| value.parse().ok());
        milliseconds.map_or(IDLE, Duration::from_millis)
    }

    /// The hooks of settings, for a session or for a list.
    #[must_use]
    pub fn settings_hooks(&self) -> SettingsHooks {
        let all = [RuleSource::UserSettings, RuleSource::ProjectSettings, RuleSource::LocalSettings];
        let places = Places {
            config_root: self.config.config_root.clone(),
            project_root: self.config.project_root.clone(),
            sources: self.options.setting_sources.clone().unwrap_or_else(|| all.to_vec()),
            trusted: self.config.trust.is_trusted(),
            flag: self.options.settings.clone(),
            environment: self.options.environment.clone(),
        };
        let vouched = match self.config.trust {
            Trust::Listed => trust::vouched_hooks(&self.config.project_root, &self.config.config_root),
            Trust::No | Trust::ThisRun | Trust::Host | Trust::Configured | Trust::SwitchedOff => Vouched::Now,
        };
        SettingsHooks::new(places, vouched, &self.config.settings)
    }
}
