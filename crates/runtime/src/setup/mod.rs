//! From options to an engine: settings, trust, rules, tools, model, memory and the system prompt, in the order in which
//! each may depend on the one before. Every front comes through here, so defaults exist once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::policy::{RuleSet, Workspace};
use qoder_core::ports::{Thinking, Tool};
use qoder_models::{ModelConfigError, ModelOptions, ModelSettings, SECRET_ENVIRONMENT};
use qoder_tools::{SessionShared, ToolSettings};
use qoder_types::{PermissionMode, RuleSource};
use serde_json::{Value, json};

use crate::engine::{Engine, SystemPrompt};
use crate::events::Host;
use crate::gate::Gate;
use crate::memory::{MemoryPlaces, NestedMemory, discover};
use crate::prompt::{PromptParts, Surroundings, build};
use crate::settings::{Places, Settings, SettingsError, collect_rules, load_personal};
use crate::store::jsonl::Durability;
use crate::toolbox::Toolbox;
use crate::trust::{self, Trust};
use crate::{layout, redact};

mod model;

/// The names that permission configuration may use; a part of them comes with later versions.
pub const TOOL_NAMES: [&str; 22] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "Agent",
    "AskUserQuestion",
    "NotebookEdit",
    "TaskOutput",
    "TaskStop",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "Config",
    "TodoWrite",
    "ListMcpResources",
    "ReadMcpResource",
    "Mcp",
    "Skill",
];

/// What a front was asked for. `Default` is a session with nothing special in the current directory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Working directory; empty takes the process's own.
    pub cwd: PathBuf,
    /// More directories to work in.
    pub additional_directories: Vec<PathBuf>,
    /// The process environment.
    pub environment: BTreeMap<String, String>,
    /// Model or tier.
    pub model: Option<String>,
    /// Asked when the main model fails.
    pub fallback_model: Option<String>,
    /// Endpoint from the command line.
    pub base_url: Option<String>,
    /// Its protocol.
    pub api_style: Option<String>,
    /// The variable that holds its key.
    pub api_key_env: Option<String>,
    /// Where to record model traffic.
    pub record: Option<PathBuf>,
    /// Model calls per turn.
    pub max_turns: Option<u64>,
    /// The mode, when it was given explicitly.
    pub permission_mode: Option<PermissionMode>,
    /// Rules that allow, as lists.
    pub allowed_tools: Vec<String>,
    /// Rules that deny, as lists.
    pub disallowed_tools: Vec<String>,
    /// The built-in tools that exist; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// A settings file or JSON.
    pub settings: Option<String>,
    /// Which settings files to read; `None` is all.
    pub setting_sources: Option<Vec<RuleSource>>,
    /// True: trust the folder for this run.
    pub trust: bool,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`.
    pub effort: Option<String>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
    /// Context window in tokens.
    pub context_window: Option<u64>,
    /// True when prompts are echoed on the stream.
    pub replay_user_messages: bool,
}

/// Options or settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A settings layer is wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The model's configuration is wrong.
    #[error(transparent)]
    Model(#[from] ModelConfigError),
    /// An option is wrong.
    #[error("{option}: {problem}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong and what is accepted.
        problem: String,
    },
}

impl SetupError {
    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Settings(error) => error.hint().to_owned(),
            Self::Model(error) => error.hint(),
            Self::Option { .. } => "`qodercli --help` shows what each option takes".to_owned(),
        }
    }
}

/// Everything that is known before a session is opened.
pub struct Setup {
    /// The options it was made from.
    pub options: Options,
    /// All settings.
    pub settings: Settings,
    /// Whether the folder is trusted.
    pub trust: Trust,
    /// Working directory; real path.
    pub cwd: PathBuf,
    /// Root of the project.
    pub project_root: PathBuf,
    /// The configuration root.
    pub config_root: PathBuf,
    /// When a record counts as kept.
    pub durability: Durability,
    /// For people.
    pub warnings: Vec<String>,
    rules: RuleSet,
    mode: PermissionMode,
    mode_is_explicit: bool,
    model_options: ModelOptions,
}

impl Setup {
    /// Reads settings and decides about everything but the session.
    pub fn prepare(options: Options) -> Result<Self, SetupError> {
        let config_root = layout::config_root(&options.environment);
        let cwd = real_directory("--cwd", &options.cwd)?;
        let personal = match load_personal(&config_root, options.settings.as_deref(), &options.environment) {
            // A file that was not to be read at all stops nothing, and trusts nothing.
            Err(_) if !reads_user_file(&options) => Settings::default(),
            loaded => loaded?,
        };
        let (trust, project_root) =
            trust::lookup(&cwd, &personal, &config_root, &options.environment, options.trust);
        let all = [RuleSource::UserSettings, RuleSource::ProjectSettings, RuleSource::LocalSettings];
        let settings = Settings::load(&Places {
            config_root: config_root.clone(),
            project_root: project_root.clone(),
            sources: options.setting_sources.clone().unwrap_or_else(|| all.to_vec()),
            trusted: trust.is_trusted(),
            flag: options.settings.clone(),
            environment: options.environment.clone(),
        })?;
        let mut warnings = settings.warnings.clone();
        warnings.extend(trust::untrusted_notice(trust, &project_root, &cwd));
        let rules =
            collect_rules(&settings, &options.allowed_tools, &options.disallowed_tools, &mut warnings)?;
        warn_unknown_tools(&rules, &mut warnings);
        let (mode, mode_is_explicit) = choose_mode(&options, &settings)?;
        let model_options = model::model_options(&options, &settings)?;
        // Loading has refused any other word.
        let durability = match settings.text("general.durability") {
            Some("power") => Durability::Power,
            _ => Durability::Process,
        };
        Ok(Self {
            options,
            settings,
            trust,
            cwd,
            project_root,
            config_root,
            durability,
            warnings,
            rules,
            mode,
            mode_is_explicit,
            model_options,
        })
    }

    /// How to reach the model.
    #[must_use]
    pub /// A rule for a tool that does not exist can never match; that is worth a word.
fn warn_unknown_tools(rules: &RuleSet, warnings: &mut Vec<String>) {
    for rule in rules.deny.iter().chain(&rules.ask).chain(&rules.allow) {
        let known =
            rule.tool == "*" || rule.tool.starts_with("mcp__") || TOOL_NAMES.contains(&rule.tool.as_str());
        if !known {
            warnings.push(format!("the rule `{}` names no known tool and will never match", rule.text));
        }
    }
}
