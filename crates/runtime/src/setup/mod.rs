//! From options to an engine: settings, trust, rules, tools, model, memory and the system prompt, in the order in which
//! each may depend on the one before. Every front comes through here, so defaults exist once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use qoder_core::images::ImageModel;
use qoder_core::ports::{CommandEnvironment, Tool};
use qoder_models::ModelOptions;
use qoder_policy::{RuleSet, Workspace};
use qoder_process::sandbox::SandboxSettings;
use qoder_tools::SessionShared;
use qoder_types::{PermissionMode, Purpose};
use serde_json::Value;

use self::prompt::{PLANNING, PromptParts, Surroundings, build};
use crate::agents::{AgentTool, Agents, NAME as AGENT_TOOL};
use crate::callbacks::Callbacks;
use crate::engine::interrupt::Ending;
use crate::engine::server_requests::ServerRequests;
use crate::engine::spending::Spending;
use crate::engine::{Common, Engine, FrontWishes, RequestStyle, SystemPrompt, TurnBounds};
use crate::events::Hub;
use crate::events::Notice;
use crate::mcp::ByName;
use crate::model_policy::PolicyMemory;
use crate::permissions::Gate;
use crate::permissions::PermissionUpdates;
use crate::session::redact;
use crate::store::jsonl::Durability;
use crate::telemetry::Telemetry;
use crate::tools::skill::SkillTool;
use crate::tools::toolbox::{Offered, Toolbox};
use qoder_config::agents::covers;
use qoder_config::extensions::{Extensions, PluginSet};
use qoder_config::memory::{Memory, MemoryPiece, MemoryPlaces, discover};
use qoder_config::settings::{Places, Settings, SettingsError, collect_rules, load_personal};
use qoder_config::trust;
use qoder_config::{Configuration, home};

mod agents;
mod changes;
mod checkpoints;
mod extensions;
mod hooks;
mod model;
mod options;
mod permissions;
mod prompt;
mod script;
mod servers;
mod telemetry;
mod tools;
#[cfg(test)]
mod tools_page_tests;
mod worker_tools;

pub use options::{HostTools, Options, SetupError};
pub use permissions::sandbox;
pub use qoder_core::OptionNames;
pub use qoder_core::ports::Thinking;
pub use qoder_types::RuleSource;
pub use qoder_types::tool::TOOL_NAMES;
pub use script::{ScriptEnd, ScriptError};
pub use worker_tools::WorkerTools;

type Tools = Vec<Arc<dyn Tool>>;

/// Everything that is known before a session is opened.
pub struct Setup {
    /// The options it was made from.
    pub options: Options,
    /// Settings, trust and the folders of definitions.
    pub config: Configuration,
    /// Working directory; real path.
    pub cwd: PathBuf,
    /// When a record counts as kept.
    pub durability: Durability,
    /// What confines commands.
    pub sandbox: SandboxSettings,
    /// For people.
    pub warnings: Vec<Notice>,
    rules: RuleSet,
    mode: PermissionMode,
    mode_is_explicit: bool,
    model_options: ModelOptions,
    structured: Option<Arc<dyn Tool>>,
    learned: redact::Learned,
    telemetry: Option<Telemetry>,
    policy_memory: PolicyMemory,
    plugins: OnceLock<PluginSet>,
}

impl Setup {
    /// Reads settings and decides about everything but the session.
    pub fn prepare(options: Options) -> Result<Self, SetupError> {
        let config_root = home::config_root(&options.environment);
        let cwd = real_directory("--cwd", &options.cwd)?;
        let personal = match load_personal(&config_root, options.settings.as_deref(), &options.environment) {
            // A file that was not to be read at all stops nothing, and trusts nothing.
            Err(_) if !reads_user_file(&options) => Settings::default(),
            loaded => loaded?,
        };
        let (trust, project_root) = trust::lookup(
            &cwd,
            &personal,
            &config_root,
            &options.environment,
            options::vouched_for(&options),
        );
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
        let rules = collect_rules(&settings, options::given_rules(&options), &mut warnings)?;
        tools::warn_unknown(&rules, &mut warnings);
        let (mode, mode_is_explicit) = permissions::mode::choose(&options, &settings)?;
        let model_options = model::model_options(&options, &settings)?;
        options::check_limits(&options)?;
        tools::external::check(&options)?;
        warnings.extend(options::unkept_budget(&options, &model_options));
        let structured = options::structured_output(&options)?;
        let telemetry = telemetry::wanted(&options.environment, &mut warnings);
        let names = options.option_names;
        // Loading has refused any other word.
        let durability = match settings.text("general.durability") {
            Some("power") => Durability::Power,
            _ => Durability::Process,
        };
        let mut sandbox = sandbox::settings(&settings, &options.environment, options.sandbox)?;
        let options = options::with_isolation(options, &mut sandbox)?;
        let mut setup = Self {
            config: Configuration {
                settings,
                trust,
                project_root,
                config_root,
                environment: options.environment.clone(),
                setting_sources: options.setting_sources.clone(),
            },
            options,
            sandbox,
            cwd,
            durability,
            warnings: warnings.iter().map(|text| Notice::from(names.reword(text).into_owned())).collect(),
            rules,
            mode,
            mode_is_explicit,
            model_options,
            structured,
            learned: redact::Learned::default(),
            telemetry,
            policy_memory: PolicyMemory::default(),
            plugins: OnceLock::new(),
        };
        setup.warnings.extend(setup.untrusted_notice());
        Ok(setup)
    }

    /// Writes the options in warnings as their reader does; those before `from` are done.
    pub(crate) fn reword_warnings(&mut self, from: usize) {
        let names = self.options.option_names;
        for warning in self.warnings.iter_mut().skip(from) {
            warning.text = names.reword(&warning.text).into_owned();
        }
    }

    /// The rules of all layers.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// The mode a session would start in.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// How to reach the model.
    #[must_use]
    pub fn model_options(&self) -> &ModelOptions {
        &self.model_options
    }

    /// A redactor that knows the configured keys.
    #[must_use]
    pub fn redactor(&self) -> redact::Redactor {
        redact::Redactor::new(self.secrets()).learning(&self.learned)
    }

    /// Builds the engine.
    pub(crate) fn engine(&self, callbacks: Callbacks) -> Result<Engine, SetupError> {
        let (hub, environment) = (Hub::new(self.redactor(), &self.warnings), self.command_environment());
        let (model, models, turn_models) = self.chosen_models(&callbacks)?;
        let (questions, lazy) =
            (Arc::new(ServerRequests::new(&callbacks, self.roots()?)), self.lazy(&model)?);
        let servers = Arc::new(self.servers(&callbacks, &questions));
        let (tree, image_model) = (self.tree(&callbacks, &questions), self.image_model(&callbacks)?);
        let extensions = self.live_extensions(callbacks.agents, &hub)?;
        let hooks = self.hooks(callbacks.hooks, &model, &models, &environment, &extensions)?;
        let gate = Arc::new(self.gate(&servers, &extensions.current())?);
        let ((for_agents, offered), (thinking, effort)) = (self.offered(&gate), self.thinking());
        let (system, memory) = self.system_prompt(&gate.workspace.roots);
        let by_name = servers::by_name(&servers, &gate, &offered);
        let (for_all, mut tools) = self.wanted_tools(&gate, &by_name, &extensions, image_model)?;
        let common = Arc::new(Common {
            extensions,
            updates: self.updates(),
            classifier: self.classifier(callbacks.model_policy.as_ref())?,
            confines: tools::confines(&self.sandbox),
            spending: self.spending(),
            environment,
            checkpoints: self.wanted_checkpoints(),
            hub: Arc::clone(&hub),
            memory,
            custom_context: self.options.custom_context.clone(),
            redactor: self.redactor(),
            telemetry: self.telemetry.clone(),
            log: OnceLock::new(),
            ending: Ending::default(),
        });
        if self.is_wanted(AGENT_TOOL) && !self.rules.hides(AGENT_TOOL) {
            tools.push(Arc::new(Agents::new(AgentTool {
                common: Arc::clone(&common),
                models,
                model: Arc::clone(&model),
                tools: for_all,
                servers: Arc::clone(&servers),
                offered: for_agents,
                lazy: Arc::clone(&lazy),
                hooks: Arc::clone(&hooks),
                gate: Arc::clone(&gate),
                system: system.clone(),
                outlet: Arc::clone(&hub) as _,
                tree,
            })));
        }
        let tools = [tools::in_order(tools), self.structured.iter().cloned().collect()].concat();
        let main_agent = self.options.main_agent.as_ref();
        Ok(Engine {
            common,
            model,
            turn_models,
            toolbox: Toolbox::new(tools, servers, offered).lazily(lazy).with_prompts(by_name.prompts()),
            questions: Some(questions),
            hooks,
            gate,
            agent: None,
            bounds: TurnBounds {
                max_turns: self.max_turns(),
                time_limit: main_agent.and_then(|agent| agent.timeout),
            },
            style: RequestStyle {
                purpose: Purpose::Main,
                thinking,
                effort: RwLock::new(effort),
                temperature: main_agent.and_then(|agent| agent.temperature),
                max_output_tokens: self.model_options.max_output_tokens,
            },
            system,
            auth_expired: Mutex::new(callbacks.auth_expired),
            shared: SessionShared::new(),
            outlet: hub,
            no_commands: self.options.no_commands,
            stays_open: self.options.stays_open,
            front: self.front_wishes(),
        })
    }

    fn front_wishes(&self) -> FrontWishes {
        FrontWishes {
            replay_user_messages: self.options.replay_user_messages,
            prompt_suggestions: self.options.prompt_suggestions,
            expose_request_id: self.variable("QODER_EXPOSE_REQUEST_ID") == Some("true"),
        }
    }

    /// What the session and its agents may spend together.
    fn spending(&self) -> Arc<Spending> {
        let spending = Spending::new(self.options.max_budget_usd, self.options.task_budget);
        Arc::new(if self.options.budget_is_of_session { spending.of_session() } else { spending })
    }

    fn command_environment(&self) -> Arc<CommandEnvironment> {
        Arc::new(CommandEnvironment {
            hidden: self.hidden_environment(),
            changed: self.options.command_environment.clone(),
        })
    }

    /// The built-in tools that the options leave, and those of them that the main model sees. An agent's set is its own: what
    /// a rule denies is denied to it by the gate.
    fn wanted_tools(
        &self,
        gate: &Arc<Gate>,
        by_name: &Arc<ByName>,
        extensions: &Arc<Extensions>,
        image_model: Option<Arc<dyn ImageModel>>,
    ) -> Result<(Tools, Tools), SetupError> {
        let mut tools = tools::built_in(self, gate, by_name, image_model);
        tools.push(Arc::new(SkillTool::new(Arc::clone(extensions))));
        tools.extend(self.options.host_tools.0.iter().cloned());
        tools.retain(|tool| self.is_wanted(&tool.definition().name));
        tools::describe_previews(&mut tools, options::preview_format(self.options.tool_config.as_ref())?);
        let is_shown = |tool: &&Arc<dyn Tool>| {
            let name = &tool.definition().name;
            !self.rules.hides(name) && !self.is_of_agents(name)
        };
        let mut shown: Tools = tools.iter().filter(is_shown).cloned().collect();
        // No rule is about a tool that does not run here.
        let external = tools::external::external_tools(&self.options);
        tools.extend(external.iter().cloned());
        shown.extend(external.into_iter().filter(|tool| !self.is_of_agents(&tool.definition().name)));
        Ok((tools, shown))
    }

    /// True for a tool that only agents have.
    fn is_of_agents(&self, name: &str) -> bool {
        self.options.tools_of_agents.iter().any(|entry| covers(entry, name))
    }

    /// The directories to work in, the working directory first.
    fn roots(&self) -> Result<Vec<PathBuf>, SetupError> {
        let mut roots = vec![self.cwd.clone()];
        if self.config.project_root != self.cwd && self.config.trust.is_trusted() {
            roots.push(self.config.project_root.clone());
        }
        for folder in &self.options.additional_directories {
            roots.push(real_directory("--add-dir", folder)?);
        }
        for folder in self.config.settings.list("permissions.additionalDirectories") {
            // A configured directory that is not on this machine is no reason to stop.
            roots.extend(home::expand_home(&folder, &self.options.environment).canonicalize());
        }
        Ok(roots)
    }

    /// The places of the session.
    #[must_use]
    pub fn workspace(&self, roots: Vec<PathBuf>) -> Workspace {
        Workspace {
            cwd: self.cwd.clone(),
            project_root: self.config.project_root.clone(),
            home: home::home(&self.options.environment),
            roots,
            config_dir: self.config.config_root.clone(),
            protected: Vec::new(),
            isolation: self.options.isolation.clone(),
        }
    }

    /// Where changes of permissions are written.
    #[must_use]
    pub fn updates(&self) -> PermissionUpdates {
        let project = self.config.project_root.join(".qoder");
        PermissionUpdates {
            user: self.config.config_root.join("settings.json"),
            project: project.join("settings.json"),
            local: project.join("settings.local.json"),
            trusted: self.config.trust.is_trusted(),
            no_bypass: self.config.settings.flag("security.disableYoloMode", false),
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.options.environment.get(name).map(String::as_str)
    }

    /// How much to think: what the flags say, else the setting, whose lowest level is not to think at all.
    fn thinking(&self) -> (Thinking, Option<String>) {
        let chosen = self.options.thinking;
        let configured = self.config.settings.text("model.reasoningEffort");
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
        let configured = self.config.settings.get("model.maxSessionTurns").and_then(Value::as_i64);
        self.options.max_turns.or_else(|| configured.and_then(|turns| u64::try_from(turns).ok()))
    }

    /// True when the model shall see the tool.
    fn is_wanted(&self, name: &str) -> bool {
        let has = |list: &[String]| list.iter().any(|entry| entry == name);
        let core =
            self.config.settings.get("tools.core").is_some().then(|| self.config.settings.list("tools.core"));
        let wanted = self.options.tools.as_ref().or(core.as_ref());
        wanted.is_none_or(|wanted| has(wanted))
            && !has(&self.config.settings.list("tools.exclude"))
            && self.options.main_agent.as_ref().is_none_or(|agent| agent.has(name))
    }

    /// Which tools of MCP servers agents may have, and which of them the main model sees. There are all of them, those that
    /// `tools` names when it names any, or none when it is empty; the main model sees those that no rule hides.
    fn offered(&self, gate: &Arc<Gate>) -> (Offered, Offered) {
        let none = self.options.tools.as_ref().is_some_and(Vec::is_empty);
        let named = self.options.tools.iter().flatten().filter(|name| name.starts_with("mcp__"));
        let named: Vec<String> = named.cloned().collect();
        let main = self.options.main_agent.clone();
        let all: Offered = Arc::new(move |name| {
            !none
                && (named.is_empty() || named.iter().any(|entry| covers(entry, name)))
                && main.as_ref().is_none_or(|agent| agent.has(name))
        });
        let (gate, among) = (Arc::clone(gate), Arc::clone(&all));
        let of_agents = self.options.tools_of_agents.clone();
        let is_shown = move |name: &str| {
            among(name) && !gate.hides(name) && !of_agents.iter().any(|entry| covers(entry, name))
        };
        (all, Arc::new(is_shown))
    }

    /// The memory files that a session has from the start.
    pub(crate) fn memory_pieces(&self) -> Vec<MemoryPiece> {
        discover(&self.memory_places(), &self.config.settings).pieces
    }

    fn memory_places(&self) -> MemoryPlaces {
        let wanted = |source| self.options.setting_sources.as_ref().is_none_or(|all| all.contains(&source));
        let trusted = self.config.trust.is_trusted();
        MemoryPlaces {
            config_root: self.config.config_root.clone(),
            cwd: self.cwd.clone(),
            project_root: self.config.project_root.clone(),
            user: wanted(RuleSource::UserSettings),
            project: trusted && wanted(RuleSource::ProjectSettings),
            local: trusted && wanted(RuleSource::LocalSettings),
        }
    }

    fn system_prompt(&self, roots: &[PathBuf]) -> (SystemPrompt, Arc<Memory>) {
        // An empty prompt was asked for: nothing at all goes in front of the messages.
        let bare = self.options.system_prompt.as_deref() == Some("");
        let (memory, pieces) = Memory::new(self.memory_places(), &self.config.settings, bare);
        let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let prompt = build(
            &PromptParts {
                replacement: self.options.system_prompt.as_deref(),
                append: self.options.append_system_prompt.as_deref(),
                plan: self.plan_text(bare),
                memory: &pieces,
                language: self.config.settings.text("language"),
            },
            &Surroundings {
                cwd: &self.cwd,
                additional: roots.get(1..).unwrap_or_default(),
                git: trust::is_repository(&trust::project_root(&self.cwd)),
                date: &date,
            },
        );
        (prompt, Arc::new(memory))
    }

    /// How plans are made: what the front says, else our own words when the session begins with planning.
    fn plan_text(&self, bare: bool) -> Option<&str> {
        let own = (self.mode == PermissionMode::Plan && !bare).then_some(PLANNING);
        self.options.plan_mode_instructions.as_deref().filter(|text| !text.trim().is_empty()).or(own)
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
