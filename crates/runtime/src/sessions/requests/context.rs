//! What requests are served with: the session's engine, its log, and the settings that may be laid over it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qoder_core::ports::Model;
use qoder_protocol::control::TokenLine;
use qoder_protocol::{InterruptReceipt, RequestError};
use qoder_store::SessionLocation;
use qoder_types::record::{PermissionsChanged, RecordBody};
use qoder_types::{Actor, PermissionUpdate, UpdateDestination};
use serde_json::{Map, Value, json};

use super::{Added, Done};
use crate::VERSION;
use crate::agents::NAME as AGENT_TOOL;
use crate::callbacks::Callbacks;
use crate::checkpoints::{RewindRequest, RewindScope};
use crate::driver::CAPABILITIES;
use crate::driver::DriverLink;
use crate::elicitations::Elicitations;
use crate::engine::Engine;
use crate::engine::command_rows;
use crate::mcp::McpServers;
use crate::mcp::authorization::OAuthToken;
use crate::setup::Setup;
use qoder_config::extensions::CommandRow;

/// The version of the control protocol.
pub const PROTOCOL_VERSION: u64 = 1;

/// How long servers may take to list their prompts for a request.
const COMMANDS_PATIENCE: Duration = Duration::from_secs(5);

/// What requests are served with.
pub struct RequestContext {
    pub(in crate::sessions) engine: Arc<Engine>,
    pub(in crate::sessions) session: DriverLink,
    pub(in crate::sessions) session_id: String,
    location: SessionLocation,
    setup: Mutex<Arc<Setup>>,
    pub(super) callbacks: Callbacks,
}

impl RequestContext {
    pub(in crate::sessions) fn new(
        engine: Arc<Engine>,
        session: DriverLink,
        (session_id, location): (String, SessionLocation),
        setup: Arc<Setup>,
        callbacks: Callbacks,
    ) -> Self {
        Self { engine, session, session_id, location, setup: Mutex::new(setup), callbacks }
    }

    /// Where the session is kept.
    pub(in crate::sessions) fn location(&self) -> &SessionLocation {
        &self.location
    }

    /// Questions of servers, where the fronts of the session answer them.
    pub(in crate::sessions) fn elicitations(&self) -> Option<&Elicitations> {
        self.callbacks.elicitations.as_ref()
    }

    /// What the session says of itself when it is ready: the answer to `initialize`.
    pub(super) fn greeting(&self) -> Value {
        let facts = self.engine.model.facts();
        json!({
            "commands": self.commands(), "agents": self.agents(), "models": [], "skills": self.skills(),
            "plugins": self.plugins(),
            "account": self.account(), "output_style": "default", "available_output_styles": ["default"],
            "model": facts.name, "protocol_version": PROTOCOL_VERSION, "qodercli_version": VERSION,
            "capabilities": CAPABILITIES, "session_id": self.session_id, "pid": std::process::id(),
            "hook_on_failure_supported": true, "hooks_applied": true,
        })
    }

    pub(super) async fn interrupt(&self, by: Actor) -> Result<InterruptReceipt, RequestError> {
        let stopped = self.session.run(|driver| {
            driver.interrupt_by(by)?;
            Ok(InterruptReceipt { still_queued: driver.queued(), cancelled: Vec::new() })
        });
        stopped.await
    }

    /// Changes of permissions, from the next decision on.
    pub(super) async fn change_permissions(
        &self,
        updates: Vec<PermissionUpdate>,
    ) -> Result<Done, RequestError> {
        if let Some(problem) = updates.iter().find_map(|update| self.engine.common.updates.complaint(update))
        {
            return Err(RequestError::Refused(problem));
        }
        let changed = self.session.run(move |driver| {
            let changed = PermissionsChanged { updates: updates.clone(), by: Actor::Host };
            driver.session.append(RecordBody::PermissionsChanged(changed))?;
            driver.took_updates(&updates)
        });
        changed.await?;
        Ok(Done {})
    }

    pub(super) async fn set_servers(&self, servers: &Map<String, Value>) -> Result<Value, RequestError> {
        let (wanted, refused) = self.setup().read_servers(servers);
        let replaced = self.servers().replace(wanted, refused).await;
        self.engine.gate.replace_rules(self.setup().rules_with(self.servers()));
        serde_json::to_value(replaced).map_err(RequestError::refused)
    }

    /// What `/name` stands for; prompts of servers as far as they are known.
    pub(super) fn commands(&self) -> Vec<Value> {
        command_rows::rows(&self.engine).iter().map(CommandRow::to_wire).collect()
    }

    pub(super) fn skills(&self) -> Vec<Value> {
        self.engine.common.extensions.current().skills.rows()
    }

    /// A request for commands gets those of all servers that can be reached.
    pub(super) async fn learn_commands(&self) {
        self.servers().ready().await;
        if let Some(prompts) = self.engine.toolbox.prompts() {
            prompts.gather(COMMANDS_PATIENCE).await;
        }
    }

    pub(super) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn go_on_with(&self, setup: Arc<Setup>) {
        self.engine.common.extensions.read_by(setup.reader(self.callbacks.agents.clone()));
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = setup;
    }

    pub(super) fn set_model(&self, name: Option<&str>) -> Result<Done, RequestError> {
        if name.is_some_and(|name| name.trim().is_empty()) {
            let problem = "set_model: `model` is empty; give a model's name, or null for the default";
            return Err(RequestError::refused(problem));
        }
        let model = self.setup().model(name, &self.callbacks);
        let model = model.map_err(|error| refused(&format!("set_model: {error}. {}", error.hint())))?;
        self.engine.model.switch(model);
        Ok(Done {})
    }

    pub(super) async fn add_directories(&self, wanted: &[String]) -> Result<Added, RequestError> {
        let mut added = Vec::new();
        for path in wanted {
            let real = PathBuf::from(path).canonicalize();
            let real =
                real.map_err(|error| refused(&format!("add_directories: {path} cannot be used: {error}")))?;
            if !real.is_dir() {
                return Err(refused(&format!("add_directories: {path} is not a directory")));
            }
            added.push(real.to_string_lossy().into_owned());
        }
        let update = PermissionUpdate::AddDirectories {
            directories: added.clone(),
            destination: UpdateDestination::Session,
        };
        self.change_permissions(vec![update]).await?;
        Ok(Added { added })
    }

    /// Goes back to a message, or says what that would change. That it cannot be done is a part of what a dry run says;
    /// otherwise it is an error.
    pub(super) async fn rewind(
        &self,
        id: String,
        scope: RewindScope,
        dry_run: bool,
    ) -> Result<Value, RequestError> {
        let request = RewindRequest { user_message_id: id, scope, dry_run, by: Actor::Host };
        let idle = self.setup().checkpoints();
        let made = self.session.run(move |driver| Ok(driver.rewind(&request, &idle))).await?;
        match made {
            Ok(report) => serde_json::to_value(report).map_err(RequestError::refused),
            Err(error) if dry_run => Ok(json!({ "canRewind": false, "error": error.to_string() })),
            Err(error) => Err(refused(&format!("{error}. {}", error.hint()))),
        }
    }

    /// The `--settings` layer with these keys on top. What can change while a session runs takes effect at once: rules,
    /// the mode and the model.
    pub(super) async fn apply_flag_settings(&self, settings: &Value) -> Result<Done, RequestError> {
        let before = self.setup();
        let after = before.with_flag_settings(settings);
        let after =
            after.map_err(|error| refused(&format!("apply_flag_settings: {error}. {}", error.hint())))?;
        if after.names_another_model(&before) {
            let model = after.model(None, &self.callbacks);
            let model = model.map_err(|error| refused(&format!("apply_flag_settings: {error}")))?;
            self.engine.model.switch(model);
        }
        self.engine.gate.replace_rules(after.rules_with(self.servers()));
        self.engine.hooks.take_settings(after.settings_hooks());
        if after.mode() != before.mode() {
            let (mode, destination) = (after.mode(), UpdateDestination::Session);
            self.change_permissions(vec![PermissionUpdate::SetMode { mode, destination }]).await?;
        }
        self.go_on_with(Arc::new(after));
        Ok(Done {})
    }

    pub(super) fn servers(&self) -> &McpServers {
        self.engine.toolbox.servers()
    }

    pub(super) fn agents(&self) -> Vec<Value> {
        if self.engine.toolbox.get(AGENT_TOOL).is_none() {
            return Vec::new();
        }
        self.engine.common.extensions.current().agents.rows()
    }

    pub(super) fn account(&self) -> Value {
        json!({ "apiKeySource": self.engine.model.facts().key_source })
    }
}

/// Times come as numbers of either kind; a fraction of a second, or a time before 1970, means nothing here.
pub(super) fn read_token(line: TokenLine) -> OAuthToken {
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

fn refused(problem: &str) -> RequestError {
    RequestError::refused(problem)
}
