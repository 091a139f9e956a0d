//! From options to the arguments and the environment of the program. Nothing secret is in either: what may hold keys
//! goes through private files, the token through the handshake. Callbacks and agents come with the handshake too.

use std::ffi::OsString;

use serde_json::json;
use tokio::process::Command;

use crate::VERSION;
use crate::error::{Error, Result};
use crate::mcp::{McpServerConfig, McpServers};
use crate::options::{
    QoderAgentOptions, SdkPluginConfig, Settings, Skills, SystemPrompt, ThinkingConfig, ToolSet,
};
use crate::session::{LONGEST_ARGUMENT, PrivateFiles};

/// Collects arguments.
struct Arguments(Vec<OsString>);

impl Arguments {
    fn switch(&mut self, name: &str, wanted: bool) {
        if wanted {
            self.0.push(name.into());
        }
    }

    fn pair(&mut self, name: &str, value: Option<impl Into<OsString>>) {
        if let Some(value) = value {
            self.0.push(name.into());
            self.0.push(value.into());
        }
    }

    /// For values that may begin with a dash.
    fn joined(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.0.push(format!("{name}={value}").into());
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        self.pair(name, (!values.is_empty()).then(|| values.join(",")));
    }
}

/// The arguments.
pub(super) fn arguments(options: &QoderAgentOptions, files: &mut PrivateFiles) -> Result<Vec<OsString>> {
    let mut out = Arguments(Vec::new());
    out.pair("--output-format", Some("stream-json"));
    out.switch("--verbose", true);
    prompt(options, files, &mut out)?;
    permissions(options, &mut out);
    out.pair("--max-turns", options.max_turns.map(|turns| turns.to_string()));
    out.pair("--max-budget-usd", options.max_budget_usd.map(|money| money.to_string()));
    out.pair("--task-budget", options.task_budget.map(|tokens| tokens.to_string()));
    out.pair("--model", options.model.as_ref());
    out.pair("--fallback-model", options.fallback_model.as_ref());
    out.list("--betas", &options.betas);
    session(options, &mut out);
    match crate::transport::in_process::settings(options)? {
        Some(path) if matches!(options.settings, Some(Settings::File(_))) => {
            out.pair("--settings", Some(path))
        }
        Some(json) => out.pair("--settings", Some(files.write("settings.json", &json)?)),
        None => {}
    }
    let sources = options.sources();
    let sources = sources.map(|list| list.iter().map(|each| each.as_str()).collect::<Vec<_>>().join(","));
    out.joined("--setting-sources", sources.as_deref());
    for folder in &options.add_dirs {
        out.pair("--add-dir", Some(folder));
    }
    for SdkPluginConfig::Local(folder) in &options.plugins {
        out.pair("--plugin-dir", Some(folder));
    }
    out.switch("--trust", options.trust);
    servers(options, files, &mut out)?;
    out.switch("--include-partial-messages", options.include_partial_messages);
    out.switch("--include-hook-events", options.include_hook_events);
    out.switch("--session-mirror", options.session_store.is_some());
    match options.thinking {
        None => {}
        Some(ThinkingConfig::Adaptive) => out.pair("--thinking", Some("adaptive")),
        Some(ThinkingConfig::Disabled) => out.pair("--thinking", Some("disabled")),
        Some(ThinkingConfig::Enabled { budget_tokens }) => {
            out.pair("--max-thinking-tokens", Some(budget_tokens.to_string()));
        }
    }
    out.pair("--effort", options.effort.map(crate::options::Effort::as_str));
    out.pair("--json-schema", options.schema().map(|schema| schema.to_string()));
    out.pair("--agent", options.agent.as_ref());
    for (name, value) in &options.extra_args {
        match value {
            None => out.switch(&format!("--{name}"), true),
            Some(value) if value.starts_with('-') => out.joined(&format!("--{name}"), Some(value)),
            Some(value) => out.pair(&format!("--{name}"), Some(value)),
        }
    }
    out.pair("--input-format", Some("stream-json"));
    Ok(out.0)
}

fn prompt(options: &QoderAgentOptions, files: &mut PrivateFiles, out: &mut Arguments) -> Result<()> {
    match &options.system_prompt {
        None => {}
        Some(SystemPrompt::Text(text)) if text.len() > LONGEST_ARGUMENT => {
            out.pair("--system-prompt-file", Some(files.write("system-prompt.txt", text)?));
        }
        Some(SystemPrompt::Text(text)) => out.pair("--system-prompt", Some(text)),
        Some(SystemPrompt::Preset { append }) => out.pair("--append-system-prompt", append.as_ref()),
        Some(SystemPrompt::File(path)) => out.pair("--system-prompt-file", Some(path)),
    }
    Ok(())
}

fn permissions(options: &QoderAgentOptions, out: &mut Arguments) {
    match &options.tools {
        None => {}
        Some(ToolSet::Preset) => out.pair("--tools", Some("default")),
        Some(ToolSet::Only(names)) => out.pair("--tools", Some(names.join(","))),
    }
    let mut allowed = options.allowed_tools.clone();
    allowed.extend(options.skills.iter().flat_map(Skills::rules));
    out.list("--allowedTools", &allowed);
    out.list("--disallowedTools", &options.disallowed_tools);
    let prompts = options.can_use_tool.as_ref().map(|_| "stdio");
    out.pair("--permission-prompt-tool", options.permission_prompt_tool_name.as_deref().or(prompts));
    out.pair(
        "--permission-mode",
        options.permission_mode.map(crate::options::permission::PermissionMode::as_str),
    );
    out.switch("--allow-dangerously-skip-permissions", options.allow_dangerously_skip_permissions);
}

fn session(options: &QoderAgentOptions, out: &mut Arguments) {
    out.switch("--continue", options.continue_conversation);
    out.joined("--resume", options.resume.as_deref());
    out.joined("--session-id", options.session_id.as_deref());
    out.switch("--fork-session", options.fork_session);
    out.joined("--resume-session-at", options.resume_session_at.as_deref());
    out.joined("--resume-drops-turn", options.resume_drops_turn.as_deref());
    out.switch("--no-session-persistence", !options.persist_session);
}

fn servers(options: &QoderAgentOptions, files: &mut PrivateFiles, out: &mut Arguments) -> Result<()> {
    match &options.mcp_servers {
        McpServers::File(path) => out.pair("--mcp-config", Some(path)),
        McpServers::Map(servers) if servers.is_empty() => {}
        McpServers::Map(servers) => {
            let is_ours = |server: &McpServerConfig| matches!(server, McpServerConfig::Sdk(_));
            let ours = servers.values().all(is_ours);
            let json = serde_json::to_value(servers).map_err(|error| Error::Protocol(error.to_string()))?;
            let json = json!({ "mcpServers": json }).to_string();
            if ours && json.len() <= LONGEST_ARGUMENT {
                out.pair("--mcp-config", Some(json));
            } else {
                out.pair("--mcp-config", Some(files.write("servers.json", &json)?));
            }
        }
    }
    out.switch("--strict-mcp-config", options.strict_mcp_config);
    out.list("--allowed-mcp-server-names", &options.allowed_mcp_server_names);
    Ok(())
}

/// The environment: the process's own, the options' on top, and the variables by which the program recognises this SDK.
pub(super) fn environment(options: &QoderAgentOptions, command: &mut Command) {
    command.env("QODER_ENTRYPOINT", "sdk-rust").env("QODER_SDK_VERSION", VERSION);
    command.env("QODER_SDK_READS_SESSION_STATE", "1");
    command.env_remove("QODER_SDK_IMPLIED_SETTING_SOURCES");
    if options.implies_sources() {
        command.env("QODER_SDK_IMPLIED_SETTING_SOURCES", "1");
    }
    if options.enable_file_checkpointing == Some(true) {
        command.env("QODER_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    }
    if let Some(cwd) = &options.cwd {
        command.env("PWD", cwd);
    }
    for (name, value) in &options.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::permission::PermissionMode;
    use crate::{NoArguments, create_sdk_mcp_server, tool};

    fn text(options: &QoderAgentOptions) -> Vec<String> {
        let mut files = PrivateFiles::default();
        arguments(options, &mut files).unwrap().into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_special_needs_no_more_than_the_protocol() {
        assert_eq!(
            text(&QoderAgentOptions::new()),
            ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
        );
    }

    #[test]
    fn what_may_hold_keys_is_in_a_file_that_vanishes() {
        let mut server =
            crate::McpHttpServerConfig { url: "https://example.com".to_owned(), ..Default::default() };
        server.headers.insert("Authorization".to_owned(), "Bearer key-1".to_owned());
        let settings = json!({ "providers": { "p": { "apiKey": "key-2" } } });
        let options = QoderAgentOptions::new()
            .mcp_server("kb", McpServerConfig::Http(server))
            .settings(Settings::Inline(settings.as_object().unwrap().clone()));
        let mut files = PrivateFiles::default();
        let words: Vec<String> = arguments(&options, &mut files)
            .unwrap()
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        assert!(words.iter().all(|word| !word.contains("key-")), "{words:?}");
        let at = words.iter().position(|word| word == "--settings").unwrap() + 1;
        let path = std::path::PathBuf::from(&words[at]);
        assert!(std::fs::read_to_string(&path).unwrap().contains("key-2"));
        drop(files);
        assert!(!path.exists());
    }

    #[test]
    fn options_become_flags() {
        let server =
            create_sdk_mcp_server("kb", "1", [tool("t", "does", |_: NoArguments| async { "x" })]).unwrap();
        let options = QoderAgentOptions::new()
            .allowed_tools(["Read", "Bash(git status)"])
            .tools(["Read"])
            .permission_mode(PermissionMode::AcceptEdits)
            .can_use_tool(|_, _, _| async { crate::PermissionResult::allow() })
            .resume("-odd")
            .mcp_server("kb", server)
            .extra_arg("replay-user-messages", None);
        let words = text(&options);
        let has = |pair: [&str; 2]| words.windows(2).any(|window| window == pair);
        assert!(has(["--allowedTools", "Read,Bash(git status)"]), "{words:?}");
        assert!(has(["--tools", "Read"]));
        assert!(has(["--permission-mode", "acceptEdits"]));
        assert!(has(["--permission-prompt-tool", "stdio"]));
        assert!(has(["--mcp-config", r#"{"mcpServers":{"kb":{"type":"sdk","name":"kb"}}}"#]));
        assert!(words.contains(&"--resume=-odd".to_owned()));
        assert!(words.contains(&"--replay-user-messages".to_owned()));
    }
}
