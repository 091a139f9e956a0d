//! What a front can ask for, and what is wrong with it when it cannot be used. Values that no settings file changes are
//! checked here; what depends on settings is checked where it is put together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use qoder_config::servers::McpConfigError;
use qoder_core::OptionNames;
use qoder_core::ports::{Thinking, Tool};
use qoder_models::{HttpClients, ModelConfigError, ModelOptions};
use qoder_process::sandbox::SandboxSettings;
use qoder_tools::host::ToolHost;
use qoder_types::server::ToolPolicies;
use qoder_types::workspace::Isolation;
use qoder_types::{PermissionMode, RuleSource, ToolDefinition};
use serde_json::{Map, Value};

use crate::tools::structured::StructuredOutput;
use qoder_config::agents::AgentDefinition;
use qoder_config::settings::{GivenRules, SettingsError};
use qoder_config::skills::check_name;
use qoder_config::trust::Trust;

/// What a front was asked for. `Default` is a session with nothing special in the current directory.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Working directory; empty takes the process's own.
    pub cwd: PathBuf,
    /// More directories to work in.
    pub additional_directories: Vec<PathBuf>,
    /// Plugins for this run: folders, in order.
    pub plugin_dirs: Vec<PathBuf>,
    /// The process environment.
    pub environment: BTreeMap<String, String>,
    /// Variables that commands have otherwise than this process; `None` takes one away.
    pub command_environment: BTreeMap<String, Option<String>>,
    /// Values that nothing of the session keeps or shows, besides the configured keys.
    pub secrets: Vec<String>,
    /// Model or tier.
    pub model: Option<String>,
    /// Model to use when the main model fails.
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
    /// Money that this run may spend.
    pub max_budget_usd: Option<f64>,
    /// True when that is what the session may spend in all its runs; what its log has on record counts.
    pub budget_is_of_session: bool,
    /// Tokens that one turn may use.
    pub task_budget: Option<u64>,
    /// Schema of the answer.
    pub json_schema: Option<Value>,
    /// Betas of the provider.
    pub betas: Vec<String>,
    /// Proxy for requests to models, in place of those that the environment names.
    pub proxy: Option<String>,
    /// HTTP clients of models; a program that opens many sessions gives all of them a clone, so that they share connections.
    pub http_clients: HttpClients,
    /// The mode, when it was given explicitly.
    pub permission_mode: Option<PermissionMode>,
    /// Rules that allow, as lists.
    pub allowed_tools: Vec<String>,
    /// Rules that deny, as lists.
    pub disallowed_tools: Vec<String>,
    /// Tools, by name or as `mcp__server__tool`, that are denied and stay visible: the model sees them, and each call is
    /// answered with the denial.
    pub disallowed_visible_tools: Vec<String>,
    /// What is decided about each tool, beside rules and mode.
    pub tool_policies: ToolPolicies,
    /// The built-in tools that exist; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Tools, by name or as `mcp__server`, that agents have and the main model does not.
    pub tools_of_agents: Vec<String>,
    /// True when there are no agents but those of the front.
    pub only_own_agents: bool,
    /// Tools that run outside the runtime: no rule or mode applies to them, and each call waits until its result is brought.
    pub external_tools: Vec<ToolDefinition>,
    /// Tools that run outside the runtime, too, after rules, policies and modes have let the call pass. What they make a question
    /// is answered together with the call: with its result, or with a denial.
    pub gated_external_tools: Vec<ToolDefinition>,
    /// Tools of the front's own process: rules, policies and modes apply to them as to built-in ones.
    pub host_tools: HostTools,
    /// Folders with skills of the front, `<folder>/<name>/SKILL.md`. Their `allowed-tools` allow nothing.
    pub skill_dirs: Vec<PathBuf>,
    /// The skills that may be used; `None` is all that are found.
    pub skills: Option<Vec<String>>,
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
    /// True when a program drives the session and has listed `setting_sources` itself. One that lists `project` or `local`
    /// vouches for its working directory.
    pub host: bool,
    /// True: no server of settings and files is used, only those that the front names.
    pub strict_mcp_config: bool,
    /// How much to think.
    pub thinking: Thinking,
    /// `low` … `max`.
    pub effort: Option<String>,
    /// Limit for a reply.
    pub max_output_tokens: Option<u32>,
    /// Context window in tokens.
    pub context_window: Option<u64>,
    /// How plans are made, in place of the built-in text.
    pub plan_mode_instructions: Option<String>,
    /// True when suggestions for the next prompt shall follow results.
    pub prompt_suggestions: bool,
    /// True when what agents say and think goes onto the stream, not only their calls and results.
    pub forward_subagent_text: bool,
    /// Attached to user messages on the stream.
    pub custom_context: Option<Map<String, Value>>,
    /// How built-in tools behave, as the SDKs write it.
    pub tool_config: Option<Value>,
    /// True: a prompt that begins with `/` is text like any other, and there are no commands.
    pub no_commands: bool,
    /// True: a session whose calls wait for answers stays open, and continues with what arrives. Otherwise its drive ends.
    pub stays_open: bool,
    /// True when prompts are echoed on the stream.
    pub replay_user_messages: bool,
    /// True: files are kept for rewinding unless the settings say otherwise.
    pub checkpoints_by_default: bool,
    /// The environment that the session has for itself. The cautions that protect a person's machine are then off, whatever
    /// leaves the environment is denied, and commands run confined.
    pub isolation: Option<Isolation>,
    /// Runs built-in tools inside of the session's environment, in place of this process. Nothing is kept for rewinding then.
    pub tool_host: Option<Arc<ToolHost>>,
    /// True: commands run confined, whatever the settings say.
    pub sandbox: bool,
    /// The agent that the main conversation runs as; [`super::Setup::become_main`] finds it.
    pub main_agent: Option<Arc<AgentDefinition>>,
    /// The folder in which that agent keeps its memory.
    pub main_memory: Option<PathBuf>,
    /// How messages name options.
    pub option_names: OptionNames,
}

/// Tools of the front's own process.
#[derive(Clone, Default)]
pub struct HostTools(pub Vec<Arc<dyn Tool>>);

impl std::fmt::Debug for HostTools {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().map(|tool| &tool.definition().name)).finish()
    }
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

impl From<McpConfigError> for SetupError {
    fn from(error: McpConfigError) -> Self {
        Self::Option { option: "--mcp-config", problem: error.problem }
    }
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

/// A limit that nothing can keep to is a mistake.
pub(super) fn check_limits(options: &Options) -> Result<(), SetupError> {
    if let Some(money) = options.max_budget_usd.filter(|money| !money.is_finite() || *money <= 0.0) {
        let problem = format!("{money} is no budget; give a number of dollars above 0");
        return Err(SetupError::Option { option: "--max-budget-usd", problem });
    }
    if options.task_budget == Some(0) {
        let problem = "0 is no budget; give a number of tokens above 0".to_owned();
        return Err(SetupError::Option { option: "--task-budget", problem });
    }
    Ok(())
}

/// The rules among the options.
pub(super) fn given_rules(options: &Options) -> GivenRules<'_> {
    GivenRules {
        allowed: &options.allowed_tools,
        disallowed: &options.disallowed_tools,
        disallowed_visible: &options.disallowed_visible_tools,
    }
}

/// Who vouches for the working directory for this run alone.
pub(super) fn vouched_for(options: &Options) -> Option<Trust> {
    let of_folder =
        |source: &RuleSource| matches!(source, RuleSource::ProjectSettings | RuleSource::LocalSettings);
    if options.trust {
        return Some(Trust::ThisRun);
    }
    let lists = options.setting_sources.as_ref().is_some_and(|sources| sources.iter().any(of_folder));
    (options.host && lists).then_some(Trust::Host)
}

/// Makes the places of an isolated session real, and keeps its commands in the sandbox.
pub(super) fn with_isolation(
    mut options: Options,
    sandbox: &mut SandboxSettings,
) -> Result<Options, SetupError> {
    let Some(isolation) = &mut options.isolation else { return Ok(options) };
    for root in isolation.roots.iter_mut().chain(&mut isolation.mounted) {
        *root = super::real_directory("isolation", root)?;
    }
    // A place that is not on this machine cannot be read.
    isolation.readable = isolation.readable.iter().filter_map(|path| path.canonicalize().ok()).collect();
    sandbox.enabled = true;
    sandbox.allow_unsandboxed_commands = false;
    sandbox.excluded_commands.clear();
    Ok(options)
}

/// Names of skills become rules, and no part of a path.
pub(super) fn check_skills(names: Option<&Vec<String>>) -> Result<(), SetupError> {
    let wrong = names.into_iter().flatten().find_map(|name| check_name(name).err());
    wrong.map_or(Ok(()), |problem| Err(SetupError::Option { option: "skills", problem: problem.to_string() }))
}

/// A budget counts what has a price; that some of it has none is worth a word.
pub(super) fn unkept_budget(options: &Options, models: &ModelOptions) -> Option<String> {
    options.max_budget_usd?;
    let model = qoder_models::unpriced_model(models)?;
    Some(format!(
        "the price of the model `{model}` is not known, so --max-budget-usd counts its calls as free; give it a price in \
         `model.prices` of the settings"
    ))
}

pub(super) fn structured_output(options: &Options) -> Result<Option<Arc<dyn Tool>>, SetupError> {
    let Some(schema) = &options.json_schema else { return Ok(None) };
    let tool = StructuredOutput::new(schema)
        .map_err(|problem| SetupError::Option { option: "--json-schema", problem })?;
    Ok(Some(Arc::new(tool)))
}

/// What previews of the options of a question are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviewFormat {
    /// Markdown.
    Markdown,
    /// A fragment of HTML.
    Html,
}

/// What `toolConfig.askUserQuestion.previewFormat` says.
pub(super) fn preview_format(config: Option<&Value>) -> Result<Option<PreviewFormat>, SetupError> {
    let bad = |problem: String| Err(SetupError::Option { option: "toolConfig", problem });
    let Some(config) = config.filter(|config| !config.is_null()) else { return Ok(None) };
    let Some(tools) = config.as_object() else { return bad("it has to be an object".to_owned()) };
    if let Some(name) = tools.keys().find(|name| *name != "askUserQuestion") {
        return bad(format!("`{name}` is not known; accepted is askUserQuestion"));
    }
    match tools.get("askUserQuestion").and_then(|question| question.get("previewFormat")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) if word == "markdown" => Ok(Some(PreviewFormat::Markdown)),
        Some(Value::String(word)) if word == "html" => Ok(Some(PreviewFormat::Html)),
        Some(other) => {
            bad(format!("askUserQuestion.previewFormat is {other}; accepted are \"markdown\" and \"html\""))
        }
    }
}
