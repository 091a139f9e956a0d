//! What a host may ask for while a session runs, whether it is behind a pipe or in this process. Each request is answered
//! by itself and once; what is not known or cannot be done is an error that says so.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qoder_core::ports::Model;
use qoder_types::control::{HostRequest, TokenLine};
use qoder_types::{PermissionMode, PermissionUpdate, UpdateDestination};
use serde_json::{Map, Value, json};

use super::{ContextUsage, Handle};
use crate::callbacks::Callbacks;
use crate::checkpoints::{Checkpoints, RewindRequest, RewindScope};
use crate::commands::{self, CommandRow};
use crate::driver::CAPABILITIES;
use crate::mcp::McpServers;
use crate::mcp::authorization::OAuthToken;
use crate::setup::Setup;
use crate::{VERSION, agent, model_policy};

/// The version of the control protocol.
pub const PROTOCOL_VERSION: u64 = 1;

/// How long servers may take to list their prompts for whoever asks.
const COMMANDS_PATIENCE: Duration = Duration::from_secs(5);

/// What requests are answered with.
pub struct Desk {
    pub(super) handle: Handle,
    setup: Mutex<Arc<Setup>>,
    pub(super) callbacks: Callbacks,
}

impl Desk {
    /// Answers for the session behind `handle`.
    #[must_use]
    pub fn new(handle: Handle, setup: Arc<Setup>, callbacks: Callbacks) -> Self {
        Self { handle, setup: Mutex::new(setup), callbacks }
    }

    /// The session.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What the session says of itself when it is ready: the answer to `initialize`.
    #[must_use]
    pub fn greeting(&self) -> Value {
        let facts = self.handle.engine().model.facts();
        json!({
            "commands": self.commands(), "agents": self.agents(), "models": [], "skills": self.skills(),
            "plugins": self.plugins(),
            "account": self.account(), "output_style": "default", "available_output_styles": ["default"],
            "model": facts.name, "protocol_version": PROTOCOL_VERSION, "qodercli_version": VERSION,
            "capabilities": CAPABILITIES, "session_id": self.handle.session_id(), "pid": std::process::id(),
            "hook_on_failure_supported": true, "hooks_applied": true,
        })
    }

    /// Answers one request in the shape in which it travels.
    ///
    /// # Errors
    /// When it is not known, cannot be read or cannot be done.
    pub async fn answer(&self, request: Value) -> Result<Value, String> {
        match read(request)? {
            HostRequest::Initialize(_) => {
                Err("the session is initialized already; `initialize` comes once, first".to_owned())
            }
            HostRequest::Interrupt {} => {
                let receipt = self.handle.interrupt().await.map_err(text)?;
                Ok(json!({ "still_queued": receipt.still_queued, "cancelled": receipt.cancelled }))
            }
            HostRequest::SetPermissionMode { mode } => self.set_mode(&mode).await,
            HostRequest::SetModel { model } => self.set_model(model.as_deref()),
            HostRequest::StopTask { task_id } => {
                self.handle.stop_task(&task_id).await.map(done).map_err(text)
            }
            HostRequest::BackgroundTasks { tool_use_id } => {
                Ok(json!({ "moved": self.handle.move_to_background(tool_use_id.as_deref()) }))
            }
            HostRequest::CancelAsyncMessage { uuid } => {
                Ok(json!({ "cancelled": self.handle.cancel_input(uuid).await.map_err(text)? }))
            }
            HostRequest::AddDirectories { directories } => self.add_directories(&directories).await,
            HostRequest::ApplyFlagSettings { settings } => {
                self.apply_flag_settings(&Value::Object(settings)).await
            }
            HostRequest::RewindFiles { user_message_id, dry_run } => {
                self.rewind(user_message_id, RewindScope::Files, dry_run).await
            }
            HostRequest::Rewind { user_message_id, scope, dry_run } => {
                self.rewind(user_message_id, scope_of(scope.as_deref())?, dry_run).await
            }
            HostRequest::GetContextUsage {} => {
                let usage = self.handle.run(|driver| Ok(ContextUsage::of(driver))).await.map_err(text)?;
                serde_json::to_value(usage).map_err(text)
            }
            HostRequest::GetAvailableModels { .. } => {
                let options = self.setup().model_options().clone();
                Ok(json!({ "models": model_policy::list(&options).await }))
            }
            HostRequest::GetByokConfig {} => Ok(json!({ "providers": self.setup().provider_catalog() })),
            HostRequest::SupportedAgents {} => Ok(json!({ "agents": self.agents() })),
            HostRequest::SupportedCommands {} => {
                self.learn_commands().await;
                Ok(json!({ "commands": self.commands() }))
            }
            HostRequest::AccountInfo {} => Ok(json!({ "account": self.account() })),
            HostRequest::GetUsageInfo {} => Ok(json!({ "usageInfo": null })),
            HostRequest::ListPlugins {} => Ok(json!({ "plugins": self.plugins() })),
            HostRequest::ReloadPlugins {} => self.reload_plugins().await,
            HostRequest::GenerateSessionTitle { description, persist } => {
                Ok(json!({ "title": self.handle.generate_title(&description, persist).await.map_err(text)? }))
            }
            HostRequest::McpStatus {} => Ok(json!({ "mcpServers": self.servers().rows() })),
            HostRequest::McpSetServers { servers } => self.set_servers(&servers).await,
            HostRequest::McpReconnect { server_name } => {
                self.servers().reconnect(&server_name).await.map(done)
            }
            HostRequest::McpToggle { server_name, enabled } => {
                self.servers().toggle(&server_name, enabled).await.map(done)
            }
            HostRequest::McpAuthenticate { server_name, redirect_uri } => {
                let begun = self.servers().authenticate(&server_name, redirect_uri).await?;
                serde_json::to_value(begun).map_err(text)
            }
            HostRequest::McpSubmitOauthCallbackUrl { server_name, callback_url } => {
                self.servers().submit_callback(&server_name, callback_url).await.map(done)
            }
            HostRequest::InjectMcpToken { server_name, token } => {
                self.servers().inject_token(&server_name, read_token(token)).await.map(done)
            }
            HostRequest::McpClearAuth { server_name } => {
                self.servers().clear_credentials(&server_name).await.map(done)
            }
        }
    }

    async fn set_servers(&self, servers: &Map<String, Value>) -> Result<Value, String> {
        let (wanted, refused) = self.setup().read_servers(servers);
        let replaced = self.servers().replace(wanted, refused).await;
        self.handle.engine().gate.replace_rules(self.setup().rules_with(self.servers()));
        serde_json::to_value(replaced).map_err(text)
    }

    /// What `/name` stands for; prompts of servers as far as they are known.
    pub(super) fn commands(&self) -> Vec<Value> {
        commands::rows(self.handle.engine()).iter().map(CommandRow::to_wire).collect()
    }

    fn skills(&self) -> Vec<Value> {
        self.handle.engine().extensions.current().skills.rows()
    }

    /// Whoever asks for commands gets those of all servers that can be reached.
    async fn learn_commands(&self) {
        self.servers().ready().await;
        if let Some(prompts) = self.handle.engine().toolbox.prompts() {
            prompts.gather(COMMANDS_PATIENCE).await;
        }
    }

    pub(super) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn go_on_with(&self, setup: Arc<Setup>) {
        self.handle.engine().extensions.read_by(setup.reader(self.callbacks.agents.clone()));
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = setup;
    }

    async fn set_mode(&self, mode: &str) -> Result<Value, String> {
        let mode = PermissionMode::parse(mode).ok_or_else(|| {
            format!("`{mode}` is not a permission mode; accepted are {}", PermissionMode::ACCEPTED)
        })?;
        self.handle.set_permission_mode(mode).await.map_err(text)?;
        Ok(json!({}))
    }

    fn set_model(&self, name: Option<&str>) -> Result<Value, String> {
        if name.is_some_and(|name| name.trim().is_empty()) {
            return Err(
                "set_model: `model` is empty; give a model's name, or null for the default".to_owned()
            );
        }
        let model = self.setup().model(name, &self.callbacks);
        let model = model.map_err(|error| format!("set_model: {error}. {}", error.hint()))?;
        self.handle.set_model(model);
        Ok(json!({}))
    }

    async fn add_directories(&self, wanted: &[String]) -> Result<Value, String> {
        let mut added = Vec::new();
        for path in wanted {
            let real = PathBuf::from(path).canonicalize();
            let real = real.map_err(|error| format!("add_directories: {path} cannot be used: {error}"))?;
            if !real.is_dir() {
                return Err(format!("add_directories: {path} is not a directory"));
            }
            added.push(real.to_string_lossy().into_owned());
        }
        let update = PermissionUpdate::AddDirectories {
            directories: added.clone(),
            destination: UpdateDestination::Session,
        };
        self.handle.change_permissions(vec![update]).await.map_err(text)?;
        Ok(json!({ "added": added }))
    }

    /// Goes back to a message, or says what that would change. That it cannot be done is a part of what a dry run says;
    /// otherwise it is an error, which nobody can overlook.
    async fn rewind(&self, id: String, scope: RewindScope, dry_run: Option<bool>) -> Result<Value, String> {
        let dry_run = dry_run.unwrap_or(false);
        let request = RewindRequest { user_message_id: id, scope, dry_run, by: "host".to_owned() };
        let idle = Checkpoints::of(&self.setup());
        let made = self.handle.run(move |driver| Ok(driver.rewind(&request, &idle))).await.map_err(text)?;
        match made {
            Ok(report) => serde_json::to_value(report).map_err(text),
            Err(error) if dry_run => Ok(json!({ "canRewind": false, "error": error.to_string() })),
            Err(error) => Err(format!("{error}. {}", error.hint())),
        }
    }

    /// The `--settings` layer with these keys on top. What can change while a session runs takes effect at once: rules,
    /// the mode and the model.
    async fn apply_flag_settings(&self, settings: &Value) -> Result<Value, String> {
        let before = self.setup();
        let after = before.with_flag_settings(settings);
        let after = after.map_err(|error| format!("apply_flag_settings: {error}. {}", error.hint()))?;
        if after.names_another_model(&before) {
            let model = after.model(None, &self.callbacks);
            self.handle.set_model(model.map_err(|error| format!("apply_flag_settings: {error}"))?);
        }
        self.handle.engine().gate.replace_rules(after.rules_with(self.servers()));
        self.handle.engine().hooks.take_settings(after.settings_hooks());
        if after.mode() != before.mode() {
            self.handle.set_permission_mode(after.mode()).await.map_err(text)?;
        }
        self.go_on_with(Arc::new(after));
        Ok(json!({}))
    }

    pub(super) fn servers(&self) -> &McpServers {
        self.handle.engine().toolbox.servers()
    }

    pub(super) fn agents(&self) -> Vec<Value> {
        if self.handle.engine().toolbox.get(agent::NAME).is_none() {
            return Vec::new();
        }
        self.handle.engine().extensions.current().agents.rows()
    }

    fn account(&self) -> Value {
        json!({ "apiKeySource": self.handle.engine().model.facts().key_source })
    }
}

/// Times come as numbers of either kind; a fraction of a second, or a time before 1970, means nothing here.
fn read_token(line: TokenLine) -> OAuthToken {
    // A cast of a float stays within the range of what it is cast to.
    let whole = |seconds: f64| seconds as u64;
    OAuthToken {
        access_token: line.access_token,
        token_type: line.token_type,
        refresh_token: line.refresh_token,
        expires_in: line.expires_in.map(whole),
        expires_at: line.expires_at.map(whole),
        scope: line.scope,
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The answer to what only had to be done.
fn done((): ()) -> Value {
    json!({})
}

fn scope_of(word: Option<&str>) -> Result<RewindScope, String> {
    let word = word.unwrap_or("both");
    RewindScope::parse(word)
        .ok_or_else(|| format!("rewind: `{word}` is no scope; accepted are {}", RewindScope::ACCEPTED))
}

/// Requests that are documented and not built; named apart from those that nobody has heard of.
const NOT_BUILT: [&str; 1] = ["set_goal_max_turns"];

fn read(request: Value) -> Result<HostRequest, String> {
    let Some(subtype) = request.get("subtype").and_then(Value::as_str).map(str::to_owned) else {
        return Err("the control request has no `subtype`".to_owned());
    };
    if NOT_BUILT.contains(&subtype.as_str()) {
        return Err(format!("{subtype} is not supported by qodercli {VERSION}"));
    }
    serde_json::from_value(request).map_err(|error| {
        let problem = error.to_string();
        if problem.starts_with("unknown variant") {
            format!("Unsupported control request subtype: {subtype}")
        } else {
            format!("{subtype}: {problem}")
        }
    })
}
