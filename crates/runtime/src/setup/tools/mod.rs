//! From settings to the built-in tools: their limits, the search service, the hosts they may reach, the sandbox, and the
//! tools that need the runtime itself.

pub(in crate::setup) mod external;
mod reworded;

use std::sync::Arc;

use qoder_core::images::ImageModel;
use qoder_core::ports::{McpPort, Tool};
use qoder_policy::{Confinement, RuleSet};
use qoder_process::sandbox::{Sandbox, SandboxSettings};
use qoder_tools::{
    DeniedHosts, PrivateHosts, SearchService, SearchSettings, ToolSettings, is_excluded, leaves_sandbox,
};
use qoder_types::tool::TOOL_NAMES;
use secrecy::SecretString;
use serde_json::Value;

use self::reworded::Reworded;
use crate::engine::{Confined, Confines};
use crate::mcp::ByName;
use crate::permissions::Gate;
use crate::setup::Setup;
use crate::setup::options::PreviewFormat;
use crate::setup::sandbox;
use crate::tools::config::ConfigTool;

/// Results of a search when the settings name no number.
const SEARCH_RESULTS: u64 = 10;

/// The built-in tools of a session but those that start other sessions.
pub(in crate::setup) fn built_in(
    setup: &Setup,
    gate: &Arc<Gate>,
    servers: &Arc<ByName>,
    image_model: Option<Arc<dyn ImageModel>>,
) -> Vec<Arc<dyn Tool>> {
    let number = |path: &str| setup.config.settings.get(path).and_then(Value::as_u64);
    let defaults = ToolSettings::default();
    let (hosts, guarded) = (Arc::clone(gate), Arc::clone(gate));
    let settings = ToolSettings {
        bash_default_timeout_ms: number("tools.shell.timeoutMs").unwrap_or(defaults.bash_default_timeout_ms),
        bash_inactivity_seconds: number("tools.shell.inactivityTimeout")
            .unwrap_or(defaults.bash_inactivity_seconds),
        respect_gitignore: setup.config.settings.flag("context.fileFiltering.respectGitIgnore", true),
        private_hosts: PrivateHosts::new(move |host| hosts.names_host(host)),
        denied_hosts: DeniedHosts::new(move |host| guarded.guards_host(host)),
        search: search(setup),
        sandbox: setup.sandbox.enabled.then(|| {
            let places = sandbox::places(&setup.rules, &gate.workspace);
            Arc::new(Sandbox::new(setup.sandbox.clone(), places))
        }),
        mcp: Some(Arc::clone(servers) as Arc<dyn McpPort>),
        image_model,
        ..defaults
    };
    let mut tools = match &setup.options.tool_host {
        Some(host) => qoder_tools::built_in_with_host(&settings, host),
        None => qoder_tools::built_in(&settings),
    };
    tools.push(Arc::new(ConfigTool::new(&setup.config.settings, setup.updates())));
    tools
}

/// Whether a command would run in the sandbox, as the gate wants to know it. A command that the settings keep outside is
/// judged like any other; one that asks to leave is a question of its own.
pub(in crate::setup) fn confines(settings: &SandboxSettings) -> Confines {
    let settings = settings.clone();
    Arc::new(move |input| {
        let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
        let (confinement, sandboxed) = if !settings.enabled || is_excluded(command, &settings) {
            (Confinement::None, false)
        } else if leaves_sandbox(input, &settings) {
            (Confinement::Leaving, false)
        } else if settings.auto_allow_bash_if_sandboxed {
            (Confinement::Enforced, true)
        } else {
            (Confinement::None, true)
        };
        Confined { confinement, sandboxed }
    })
}

/// The search service that the settings name. Loading has refused any other word.
fn search(setup: &Setup) -> Option<SearchSettings> {
    let text = |key: &str| setup.config.settings.text(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let provider = SearchService::from_name(&text("tools.webSearch.provider")?)?;
    let most = setup.config.settings.get("tools.webSearch.maxResults").and_then(Value::as_u64);
    Some(SearchSettings {
        provider,
        base_url: text("tools.webSearch.baseUrl"),
        api_key: text("tools.webSearch.apiKey").map(SecretString::from),
        api_key_env: text("tools.webSearch.apiKeyEnv"),
        max_results: usize::try_from(most.unwrap_or(SEARCH_RESULTS)).unwrap_or(10),
    })
}

/// Adds to a tool's description what previews of options are written in, when a front says it.
pub(in crate::setup) fn describe_previews(tools: &mut [Arc<dyn Tool>], format: Option<PreviewFormat>) {
    let Some(format) = format else { return };
    let sentence = match format {
        PreviewFormat::Markdown => "The `preview` of an option is shown to the person as Markdown.",
        PreviewFormat::Html => {
            "The `preview` of an option is shown to the person as HTML: write a fragment, without scripts and without \
             anything that is loaded from elsewhere."
        }
    };
    for tool in tools.iter_mut().filter(|tool| tool.definition().name == "AskUserQuestion") {
        *tool = Arc::new(Reworded::with(Arc::clone(tool), sentence));
    }
}

/// A rule for a tool that does not exist can never match; that is worth a word.
pub(in crate::setup) fn warn_unknown(rules: &RuleSet, warnings: &mut Vec<String>) {
    for rule in rules.deny.iter().chain(&rules.ask).chain(&rules.allow) {
        let known =
            rule.tool == "*" || rule.tool.starts_with("mcp__") || TOOL_NAMES.contains(&rule.tool.as_str());
        if !known {
            warnings.push(format!("the rule `{}` names no known tool and will never match", rule.text));
        }
    }
}

/// The tools in the documented order, whatever order they were made in.
pub(in crate::setup) fn in_order(mut tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let place = |tool: &Arc<dyn Tool>| {
        let name = tool.definition().name.as_str();
        TOOL_NAMES.iter().position(|known| *known == name).unwrap_or(TOOL_NAMES.len())
    };
    tools.sort_by_key(place);
    tools
}
