//! What is wrong with options, reported before anything is started. Each complaint names the option as it is written and
//! says what to do about it.

use std::path::Path;

use qoder_runtime::catalog::is_session_id;
use qoder_runtime::config::skills::check_name;
use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::setup::TOOL_NAMES;

use super::{QoderAgentOptions, Skills, ToolSet};
use crate::error::{Error, Result};
use crate::mcp::{McpServerConfig, McpServers};
use crate::options::permission::PermissionMode;

impl QoderAgentOptions {
    /// Says what cannot be used, if something cannot.
    ///
    /// ```
    /// # use qoder_agent_sdk::{PermissionMode, QoderAgentOptions};
    /// let options = QoderAgentOptions::new().permission_mode(PermissionMode::BypassPermissions);
    /// let error = options.validate().unwrap_err();
    /// assert!(error.to_string().starts_with("permission_mode: bypassPermissions"));
    /// assert!(error.hint().contains("allow_dangerously_skip_permissions"));
    /// ```
    ///
    /// # Errors
    /// When an option or a combination is invalid.
    pub fn validate(&self) -> Result<()> {
        self.check_permissions()?;
        self.check_session()?;
        self.check_store()?;
        self.check_limits()?;
        self.check_tools()?;
        self.check_skills()?;
        self.check_servers()?;
        self.check_places()?;
        for name in [&self.model, &self.fallback_model].into_iter().flatten() {
            if name.trim().is_empty() {
                return Err(Error::option(
                    "model",
                    "the name of a model is empty",
                    "leave it out for the default",
                ));
            }
        }
        if let Some(auth) = &self.auth {
            auth.token(&self.environment())?;
        }
        Ok(())
    }

    fn check_permissions(&self) -> Result<()> {
        if self.permission_mode == Some(PermissionMode::BypassPermissions)
            && !self.allow_dangerously_skip_permissions
        {
            return Err(Error::option(
                "permission_mode",
                "bypassPermissions runs every call without a question",
                "say that you mean it with allow_dangerously_skip_permissions = true",
            ));
        }
        if self.can_use_tool.is_some() && self.permission_prompt_tool_name.is_some() {
            return Err(Error::option(
                "permission_prompt_tool_name",
                "it cannot be combined with can_use_tool: both would decide",
                "leave one of them out",
            ));
        }
        Ok(())
    }

    fn check_cut(&self) -> Result<()> {
        for (option, value) in
            [("resume_session_at", &self.resume_session_at), ("resume_drops_turn", &self.resume_drops_turn)]
        {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                return Err(Error::option(
                    option,
                    "the UUID is empty",
                    "take it from a message of the session",
                ));
            }
        }
        if self.resume_session_at.is_some() && self.resume.is_none() && !self.continue_conversation {
            return Err(Error::option(
                "resume_session_at",
                "there is no session that it could belong to",
                "name the session with resume",
            ));
        }
        if self.resume_drops_turn.is_some() && self.resume_session_at.is_none() {
            return Err(Error::option(
                "resume_drops_turn",
                "it needs resume_session_at",
                "name the last message to keep",
            ));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<()> {
        if let Some(money) = self.max_budget_usd.filter(|money| !money.is_finite() || *money <= 0.0) {
            return Err(Error::option(
                "max_budget_usd",
                format!("{money} is no budget"),
                "give a number of dollars above 0",
            ));
        }
        if self.task_budget == Some(0) {
            return Err(Error::option("task_budget", "0 is no budget", "give a number of tokens above 0"));
        }
        if self.schema().is_some_and(|schema| !schema.is_object()) {
            return Err(Error::option(
                "output_format",
                "there is no schema in it",
                "write {\"type\": \"json_schema\", \"schema\": {…}}",
            ));
        }
        Ok(())
    }

    fn check_session(&self) -> Result<()> {
        self.check_cut()?;
        if self.resume.as_deref() == Some("") {
            return Err(Error::option("resume", "the session ID is empty", "list_sessions() shows them"));
        }
        if self.resume.is_some() && self.continue_conversation {
            return Err(Error::option(
                "continue_conversation",
                "it cannot be combined with resume",
                "leave one of them out",
            ));
        }
        let resumes = self.session_choice().resumes();
        if self.fork_session && !resumes {
            return Err(Error::option(
                "fork_session",
                "there is nothing to copy",
                "name the session with resume, or take the newest with continue_conversation",
            ));
        }
        if let Some(id) = &self.session_id {
            if !is_session_id(id) {
                return Err(Error::option(
                    "session_id",
                    format!("`{id}` is not a UUID"),
                    "write one such as 123e4567-e89b-42d3-a456-426614174000, or leave it out",
                ));
            }
            if resumes && !self.fork_session {
                return Err(Error::option(
                    "session_id",
                    "it cannot be combined with resume or continue_conversation",
                    "add fork_session to work on a copy under that ID",
                ));
            }
        }
        if !self.persist_session && resumes {
            return Err(Error::option(
                "persist_session",
                "a session that is gone on with is kept",
                "leave resume and continue_conversation out",
            ));
        }
        Ok(())
    }

    fn check_store(&self) -> Result<()> {
        if self.session_store.is_none() {
            return Ok(());
        }
        if self.enable_file_checkpointing == Some(true) {
            return Err(Error::option(
                "session_store",
                "it cannot be combined with enable_file_checkpointing: checkpoints are files of this machine",
                "leave one of them out",
            ));
        }
        if !self.persist_session {
            return Err(Error::option(
                "session_store",
                "it needs persist_session = true: it holds copies of the local log",
                "leave persist_session as it is",
            ));
        }
        match &self.resume {
            Some(id) if !is_session_id(id) => Err(Error::option(
                "resume",
                format!("with a session_store it must be the id of a session, and `{id}` is not one"),
                "StoredSessions lists what the store has",
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn check_tools(&self) -> Result<()> {
        let Some(ToolSet::Only(names)) = &self.tools else { return Ok(()) };
        let known = |name: &&String| TOOL_NAMES.contains(&name.as_str()) || name.starts_with("mcp__");
        match names.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => Err(Error::option(
                "tools",
                format!("`{name}` is not a tool"),
                format!("accepted are {}, and names that start with mcp__", TOOL_NAMES.join(", ")),
            )),
        }
    }

    /// Names become rules, so nothing in them may mean something in a rule or in a path.
    fn check_skills(&self) -> Result<()> {
        let Some(Skills::Only(names)) = &self.skills else { return Ok(()) };
        match names.iter().find_map(|name| check_name(name).err()) {
            None => Ok(()),
            Some(problem) => {
                Err(Error::option("skills", problem.to_string(), "write `name`, or `plugin:name`"))
            }
        }
    }

    fn check_servers(&self) -> Result<()> {
        let McpServers::Map(servers) = &self.mcp_servers else { return Ok(()) };
        for (name, server) in servers {
            let wrong = |problem: &str, hint: &str| {
                Err(Error::option(format!("mcp_servers.{name}"), problem.to_owned(), hint.to_owned()))
            };
            if name.trim().is_empty() {
                return wrong("the name of a server is empty", "its tools are called mcp__name__tool");
            }
            match server {
                McpServerConfig::Stdio(config) if config.command.trim().is_empty() => {
                    return wrong("`command` is empty", "name the program that is the server");
                }
                McpServerConfig::Sse(config) | McpServerConfig::Http(config)
                    if !config.url.starts_with("http://") && !config.url.starts_with("https://") =>
                {
                    return wrong("`url` is not an address", "write one that starts with https://");
                }
                McpServerConfig::Sdk(_)
                | McpServerConfig::Stdio(_)
                | McpServerConfig::Sse(_)
                | McpServerConfig::Http(_) => {}
            }
        }
        Ok(())
    }

    fn check_places(&self) -> Result<()> {
        if let Some(cwd) = &self.cwd {
            directory("cwd", cwd)?;
        }
        for folder in &self.add_dirs {
            // Relative ones are taken from the working directory, as an external program does.
            let base = self.cwd.clone().unwrap_or_default();
            directory("add_dirs", &base.join(folder))?;
        }
        if let Some(path) = &self.cli_path
            && !path.is_file()
        {
            return Err(Error::CliNotFound {
                path: path.display().to_string(),
                problem: "there is no such file".to_owned(),
            });
        }
        Ok(())
    }

    pub(crate) fn session_choice(&self) -> SessionChoice {
        SessionChoice {
            session_id: self.session_id.clone(),
            resume: self.resume.clone(),
            continue_newest: self.continue_conversation,
            fork: self.fork_session,
            forget: !self.persist_session,
            resume_at: self.resume_session_at.clone(),
            drops_turn: self.resume_drops_turn.clone(),
        }
    }
}

fn directory(option: &str, path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    Err(Error::option(
        option,
        format!("{} is not a directory", path.display()),
        "check the path; it must exist on this machine",
    ))
}
