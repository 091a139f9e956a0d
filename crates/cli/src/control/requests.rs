//! What the program that started us may ask for while a session runs. Each request is answered by itself and once; what
//! is not known or cannot be done is an error that says so.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use qoder_core::ports::Model;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::driver::CAPABILITIES;
use qoder_runtime::live::{ContextUsage, Handle};
use qoder_runtime::setup::Setup;
use qoder_runtime::{VERSION, agent, model_policy};
use qoder_types::{PermissionMode, PermissionUpdate, UpdateDestination};
use serde_json::{Value, json};

use super::initialize::PROTOCOL_VERSION;

/// What requests are answered with.
pub struct Desk {
    handle: Handle,
    setup: Mutex<Arc<Setup>>,
    callbacks: Callbacks,
}

impl Desk {
    /// Answers for the session behind `handle`.
    pub fn new(handle: Handle, setup: Arc<Setup>, callbacks: Callbacks) -> Self {
        Self { handle, setup: Mutex::new(setup), callbacks }
    }

    /// The session.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The answer to `initialize`.
    pub fn greeting(&self) -> Value {
        let facts = self.handle.engine().model.facts();
        json!({
            "commands": [], "agents": self.agents(), "models": [], "skills": [], "plugins": [],
            "account": self.account(), "output_style": "default", "available_output_styles": ["default"],
            "model": facts.name, "protocol_version": PROTOCOL_VERSION, "qodercli_version": VERSION,
            "capabilities": CAPABILITIES, "session_id": self.handle.session_id(), "pid": std::process::id(),
            "hook_on_failure_supported": true, "hooks_applied": true,
        })
    }

    /// Answers one request.
    pub async fn answer(&self, request: &Value) -> Result<Value, String> {
        let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default();
        match subtype {
            "interrupt" => {
                let receipt = self.handle.interrupt().await.map_err(text)?;
                Ok(json!({ "still_queued": receipt.still_queued, "cancelled": receipt.cancelled }))
            }
            "set_permission_mode" => self.set_mode(word(request, "mode")?).await,
            "set_model" => self.set_model(request.get("model")),
            "stop_task" => {
                self.handle.stop_task(word(request, "task_id")?).await.map_err(text)?;
                Ok(json!({}))
            }
            "background_tasks" => {
                let id = request.get("tool_use_id").and_then(Value::as_str);
                Ok(json!({ "moved": self.handle.move_to_background(id) }))
            }
            "cancel_async_message" => {
                let uuid = word(request, "uuid")?.to_owned();
                Ok(json!({ "cancelled": self.handle.cancel_input(uuid).await.map_err(text)? }))
            }
            "add_directories" => self.add_directories(request).await,
            "apply_flag_settings" => self.apply_flag_settings(request.get("settings")).await,
            "get_context_usage" => {
                let usage = self.handle.run(|driver| Ok(ContextUsage::of(driver))).await.map_err(text)?;
                serde_json::to_value(usage).map_err(|error| error.to_string())
            }
            "get_available_models" => {
                let options = self.setup().model_options().clone();
                Ok(json!({ "models": model_policy::list(&options).await }))
            }
            "get_byok_config" => Ok(json!({ "providers": self.setup().provider_catalog() })),
            "supported_agents" => Ok(json!({ "agents": self.agents() })),
            "supported_commands" => Ok(json!({ "commands": [] })),
            "account_info" => Ok(json!({ "account": self.account() })),
            "get_usage_info" => Ok(json!({ "usageInfo": null })),
            "list_plugins" => Ok(json!({ "plugins": [] })),
            "reload_plugins" => Ok(json!({
                "commands": [], "agents": self.agents(), "plugins": [],
                "mcpServers": self.handle.engine().toolbox.servers().summary(), "error_count": 0,
            })),
            "mcp_status" | "mcp_reconnect" | "mcp_toggle" => self.servers(subtype, request).await,
            "initialize" => {
                Err("the session is initialized already; `initialize` comes once, first".to_owned())
            }
            "rewind_files"
            | "rewind"
            | "mcp_set_servers"
            | "mcp_authenticate"
            | "mcp_submit_oauth_callback_url"
            | "inject_mcp_token"
            | "mcp_clear_auth"
            | "generate_session_title"
            | "set_goal_max_turns" => Err(format!("{subtype} is not supported by qodercli {VERSION}")),
            "" => Err("the control request has no `subtype`".to_owned()),
            other => Err(format!("Unsupported control request subtype: {other}")),
        }
    }

    fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn set_mode(&self, mode: &str) -> Result<Value, String> {
        let mode = PermissionMode::parse(mode).ok_or_else(|| {
            format!("`{mode}` is not a permission mode; accepted are {}", PermissionMode::ACCEPTED)
        })?;
        self.handle.set_permission_mode(mode).await.map_err(text)?;
        Ok(json!({}))
    }

    fn set_model(&self, name: Option<&Value>) -> Result<Value, String> {
        let name = match name {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if !name.trim().is_empty() => Some(name.as_str()),
            Some(other) => {
                return Err(format!(
                    "set_model: `model` is {other}; give a model's name, or null for the default"
                ));
            }
        };
        let model = self.setup().model(name, &self.callbacks);
        let model = model.map_err(|error| format!("set_model: {error}. {}", error.hint()))?;
        self.handle.set_model(model);
        Ok(json!({}))
    }

    async fn add_directories(&self, request: &Value) -> Result<Value, String> {
        let wanted = request
            .get("directories")
            .and_then(Value::as_array)
            .ok_or("add_directories: `directories` is missing")?;
        let mut added = Vec::new();
        for directory in wanted {
            let path =
                directory.as_str().ok_or_else(|| format!("add_directories: {directory} is not a path"))?;
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

    /// The `--settings` layer with these keys on top. What can change while a session runs takes effect at once: rules,
    /// the mode and the model.
    async fn apply_flag_settings(&self, settings: Option<&Value>) -> Result<Value, String> {
        let settings = settings
            .filter(|value| value.is_object())
            .ok_or("apply_flag_settings: `settings` is not an object")?;
        let before = self.setup();
        let after = before.with_flag_settings(settings);
        let after = after.map_err(|error| format!("apply_flag_settings: {error}. {}", error.hint()))?;
        if after.names_another_model(&before) {
            let model = after.model(None, &self.callbacks);
            self.handle.set_model(model.map_err(|error| format!("apply_flag_settings: {error}"))?);
        }
        self.handle.engine().gate.replace_rules(after.rules().clone());
        if after.mode() != before.mode() {
            self.handle.set_permission_mode(after.mode()).await.map_err(text)?;
        }
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        Ok(json!({}))
    }

    async fn servers(&self, subtype: &str, request: &Value) -> Result<Value, String> {
        let servers = self.handle.engine().toolbox.servers();
        match subtype {
            "mcp_reconnect" => servers.reconnect(word(request, "serverName")?).await?,
            "mcp_toggle" => {
                let enabled = request.get("enabled").and_then(Value::as_bool);
                let enabled = enabled.ok_or("mcp_toggle: `enabled` is not a boolean")?;
                servers.toggle(word(request, "serverName")?, enabled).await?;
            }
            _ => return Ok(json!({ "mcpServers": servers.rows() })),
        }
        Ok(json!({}))
    }

    fn agents(&self) -> Vec<Value> {
        if self.handle.engine().toolbox.get(agent::NAME).is_none() {
            return Vec::new();
        }
        agent::AGENTS.iter().map(|name| json!({ "name": name, "description": agent::DESCRIPTION })).collect()
    }

    fn account(&self) -> Value {
        json!({ "apiKeySource": self.handle.engine().model.facts().key_source })
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn word<'a>(request: &'a Value, key: &str) -> Result<&'a str, String> {
    let subtype = request.get("subtype").and_then(Value::as_str).unwrap_or_default();
    request
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("{subtype}: `{key}` is missing or not a text"))
}
