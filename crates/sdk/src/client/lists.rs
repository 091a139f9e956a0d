//! What a session has, as lists, and the changes that go with them: agents, hooks, skills, memory files, tools, rules.

use serde_json::Value;

use super::QoderSdkClient;
use crate::error::Result;
use crate::options::permission::PermissionUpdate;
use crate::session::Control;

impl QoderSdkClient {
    /// Every definition of an agent with its source, shadowed ones included.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_agents(&self) -> Result<Vec<Value>> {
        self.part(Control::ListAgents, "agents").await
    }

    /// The hooks that the settings define.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_hooks(&self) -> Result<Vec<Value>> {
        self.part(Control::ListHooks, "hooks").await
    }

    /// The skills of the session.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_skills(&self) -> Result<Vec<Value>> {
        self.part(Control::ListSkills, "skills").await
    }

    /// The memory files that the model has read.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_memory(&self) -> Result<Vec<Value>> {
        self.part(Control::ListMemory, "files").await
    }

    /// The tools that the model sees, with their annotations.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_tools(&self) -> Result<Vec<Value>> {
        self.part(Control::ListTools, "tools").await
    }

    /// The permission mode and the rules in force, with the file and line of each.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn list_permission_rules(&self) -> Result<Value> {
        self.ask(Control::ListPermissionRules).await
    }

    /// Changes rules, the mode or the directories.
    ///
    /// # Errors
    /// When a change is refused; then none is made.
    pub async fn update_permissions(&self, updates: Vec<PermissionUpdate>) -> Result<()> {
        self.control(Control::UpdatePermissions(updates)).await
    }

    /// The effort from the next model call on; `None` is the default of the model.
    ///
    /// # Errors
    /// When there is no such level.
    pub async fn set_effort(&self, effort: Option<&str>) -> Result<()> {
        self.control(Control::SetEffort(effort.map(str::to_owned))).await
    }

    /// Gives the session a title.
    ///
    /// # Errors
    /// When it is empty, or cannot be written.
    pub async fn set_session_title(&self, title: &str) -> Result<()> {
        self.control(Control::SetSessionTitle(title.to_owned())).await
    }

    /// Runs a command in the shell, as the user; the model reads its output with the next prompt.
    ///
    /// # Errors
    /// When it is empty, or the session has ended.
    pub async fn run_command(&self, command: &str) -> Result<()> {
        self.control(Control::RunCommand(command.to_owned())).await
    }

    /// The end of what a background task has printed.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn task_output(&self, task_id: &str) -> Result<String> {
        self.part(Control::TaskOutput(task_id.to_owned()), "output").await
    }

    /// Reads the descriptions of MCP servers in settings and files again.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn reload_mcp_servers(&self) -> Result<Value> {
        self.ask(Control::McpReload).await
    }
}
