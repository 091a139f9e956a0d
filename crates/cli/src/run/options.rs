//! From flags to the options of the runtime. A value that is not accepted is named together with those that are.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::ValueEnum;
use qoder_core::OptionNames;
use qoder_core::ports::Thinking;
use qoder_runtime::setup::{Options, Setup, TOOL_NAMES};
use qoder_types::{PermissionMode, RuleSource};
use serde_json::Value;

use crate::command_line::arguments::{Arguments, InputFormat, OutputFormat};
use crate::exit::Fault;
use crate::keys;
use crate::screen;

/// The options that the flags and the environment ask for.
pub fn from_arguments(
    arguments: &Arguments,
    mut environment: BTreeMap<String, String>,
) -> Result<Options, Fault> {
    if let Some(folder) = &arguments.config_dir {
        environment.remove("CLAUDE_AGENT_SDK_VERSION");
        environment.insert("QODER_CONFIG_DIR".to_owned(), folder.display().to_string());
    }
    if let Some(warning) = keys::add_to(&mut environment) {
        screen::print_note(&format!("warning: {warning}"));
    }
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
    let system_prompt = match &arguments.system_prompt_file {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
            Fault::input(
                format!("--system-prompt-file: cannot read {}: {error}", path.display()),
                "check the path",
            )
        })?),
        None => arguments.system_prompt.clone(),
    };
    Ok(Options {
        cwd: arguments
            .cwd
            .clone()
            .or_else(|| variable("QODER_WORKING_DIR").map(Into::into))
            .unwrap_or_default(),
        additional_directories: arguments.add_dir.clone(),
        plugin_dirs: arguments.plugin_dir.clone(),
        model: arguments.model.clone(),
        fallback_model: arguments.fallback_model.clone(),
        base_url: arguments.base_url.clone(),
        api_style: arguments.api_style.clone(),
        api_key_env: arguments.api_key_env.clone(),
        record: arguments.record.clone(),
        max_turns: arguments.max_turns,
        max_budget_usd: number("--max-budget-usd", arguments.max_budget_usd.as_deref(), "of dollars")?,
        task_budget: number("--task-budget", arguments.task_budget.as_deref(), "of tokens")?,
        json_schema: json_schema(arguments)?,
        betas: betas(arguments),
        permission_mode: permission_mode(arguments, variable("QODER_PERMISSION_MODE"))?,
        allowed_tools: arguments.allowed_tools.clone(),
        disallowed_tools: arguments.disallowed_tools.clone(),
        tools: tools(arguments)?,
        system_prompt,
        append_system_prompt: arguments
            .append_system_prompt
            .clone()
            .or_else(|| variable("QODER_APPEND_SYSTEM_PROMPT")),
        settings: arguments.settings.clone(),
        setting_sources: setting_sources(arguments)?,
        trust: arguments.trust,
        host: arguments.input_format == InputFormat::StreamJson
            && !environment.contains_key("QODER_SDK_IMPLIED_SETTING_SOURCES"),
        strict_mcp_config: arguments.protocol.strict_mcp_config,
        thinking: thinking(arguments)?,
        effort: effort(arguments)?,
        max_output_tokens: arguments.max_output_tokens,
        context_window: arguments.context_window,
        replay_user_messages: arguments.replay_user_messages,
        sandbox: arguments.sandbox,
        option_names: option_names(&environment),
        environment,
        ..Options::default()
    })
}

/// How messages name options to the program that started this one.
pub fn option_names(environment: &BTreeMap<String, String>) -> OptionNames {
    let entrypoint =
        ["QODER_ENTRYPOINT", "CLAUDE_CODE_ENTRYPOINT"].iter().find_map(|name| environment.get(*name));
    OptionNames::of_entrypoint(entrypoint.map(String::as_str))
}

fn permission_mode(arguments: &Arguments, variable: Option<String>) -> Result<Option<PermissionMode>, Fault> {
    let skips = arguments.dangerously_skip_permissions;
    let (name, text) = match (&arguments.permission_mode, variable) {
        (Some(text), _) => ("--permission-mode", text.clone()),
        (None, Some(text)) if !skips => ("QODER_PERMISSION_MODE", text),
        (None, _) => return Ok(skips.then_some(PermissionMode::BypassPermissions)),
    };
    let mode = PermissionMode::parse(&text).ok_or_else(|| {
        let accepted = format!("accepted are {}", PermissionMode::ACCEPTED);
        Fault::input(format!("{name}: `{text}` is not a permission mode"), accepted)
    })?;
    if skips && mode != PermissionMode::BypassPermissions {
        return Err(Fault::input(
            format!("`--permission-mode {text}` contradicts --dangerously-skip-permissions"),
            "give one of them",
        ));
    }
    Ok(Some(mode))
}

/// A number of the command line; whether it makes sense is for the runtime to say.
fn number<T: FromStr>(flag: &str, text: Option<&str>, unit: &str) -> Result<Option<T>, Fault> {
    let Some(text) = text else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        Fault::input(format!("{flag}: `{text}` is not a number {unit}"), "give a number above 0")
    })
}

fn json_schema(arguments: &Arguments) -> Result<Option<Value>, Fault> {
    let Some(text) = &arguments.json_schema else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| {
        Fault::input(
            format!("--json-schema: this is not JSON: {error}"),
            "give a JSON Schema, such as {\"type\": \"object\", \"properties\": {…}}",
        )
    })
}

fn betas(arguments: &Arguments) -> Vec<String> {
    let names = arguments.protocol.betas.iter().map(|name| name.trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `None` offers every tool; an empty list offers no tool.
fn tools(arguments: &Arguments) -> Result<Option<Vec<String>>, Fault> {
    let Some(lists) = &arguments.tools else { return Ok(None) };
    let names: Vec<String> = lists
        .iter()
        .flat_map(|list| list.split([',', ' ']))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let is_known = |name: &str| TOOL_NAMES.contains(&name) || name.starts_with("mcp__") || name == "default";
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        return Err(Fault::input(
            format!("--tools: `{name}` is not a tool"),
            format!("accepted are default, {}, and names that start with mcp__", TOOL_NAMES.join(", ")),
        ));
    }
    Ok((!names.iter().any(|name| name == "default")).then_some(names))
}

fn setting_sources(arguments: &Arguments) -> Result<Option<Vec<RuleSource>>, Fault> {
    let Some(list) = &arguments.setting_sources else { return Ok(None) };
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| match name {
            "user" => Ok(RuleSource::UserSettings),
            "project" => Ok(RuleSource::ProjectSettings),
            "local" => Ok(RuleSource::LocalSettings),
            other => Err(Fault::input(
                format!("--setting-sources: `{other}` is not a source"),
                "accepted are user, project and local, separated by commas",
            )),
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

fn thinking(arguments: &Arguments) -> Result<Thinking, Fault> {
    match (arguments.thinking.as_deref(), arguments.max_thinking_tokens) {
        (_, Some(0)) | (Some("disabled"), _) => Ok(Thinking::Disabled),
        (_, Some(tokens)) => Ok(Thinking::Budget(tokens)),
        (Some("adaptive"), None) => Ok(Thinking::Adaptive),
        (None, None) => Ok(Thinking::Default),
        (Some(other), None) => Err(Fault::input(
            format!("--thinking: `{other}` is not accepted"),
            "accepted are adaptive and disabled; --max-thinking-tokens sets a budget",
        )),
    }
}

fn effort(arguments: &Arguments) -> Result<Option<String>, Fault> {
    let levels = ["low", "medium", "high", "xhigh", "max"];
    match &arguments.effort {
        Some(level) if !levels.contains(&level.as_str()) => Err(Fault::input(
            format!("--effort: `{level}` is not a level"),
            format!("accepted are {}", levels.join(", ")),
        )),
        other => Ok(other.clone()),
    }
}

/// The output format: the flag, else the setting.
pub fn output_format(arguments: &Arguments, setup: &Setup) -> Result<OutputFormat, Fault> {
    if let Some(format) = arguments.output_format {
        return Ok(format);
    }
    match setup.config.settings.text("output.format") {
        None => Ok(OutputFormat::default()),
        Some(text) => OutputFormat::from_str(text, true).map_err(|_| Fault {
            exit: crate::exit::Exit::Configuration,
            message: format!("the setting `output.format` is `{text}`"),
            hint: "accepted are text, json and stream-json".to_owned(),
        }),
    }
}
