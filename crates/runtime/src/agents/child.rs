//! A child before it runs: which agent it is, its engine, its log, and the permissions with which it begins. Whatever is
//! wrong is found here, before anything is announced.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use qoder_core::ports::{Thinking, Tool, ToolContext};
use qoder_tools::agent_worktree;
use qoder_types::record::{PermissionsChanged, RecordBody};
use qoder_types::{Actor, Message, PermissionMode, PermissionUpdate, Purpose, UpdateDestination, Worktree};

use super::memory::{MemoryPlaces, OwnMemory};
use super::outlet::{AgentOutlet, Used};
use super::tool::AgentInput;
use super::{AgentTool, AgentTree, Agents, Parent, own_hooks};
use crate::engine::{AgentIdentity, AgentParts, Engine, RequestStyle, SystemPrompt};
use crate::error::SessionError;
use crate::events::Event;
use crate::mcp::McpServers;
use crate::session::Session;
use crate::session::sidecar::Sidecar;
use crate::store::SessionLocation;
use crate::tools::toolbox::{Offered, Toolbox};
use qoder_config::agents::{AgentDefinition, Isolation};
use qoder_models::SwitchedModel;

/// Model calls a child may make.
const MOST_TURNS: u64 = 150;
/// Tools that need the person or the main conversation.
const NOT_FOR_CHILDREN: [&str; 5] =
    ["AskUserQuestion", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "Config"];

/// How long the servers that an agent brings may take to start.
const OWN_SERVERS_WAIT: Duration = Duration::from_secs(30);

/// The beginning of a child's system prompt.
const ROLE: &str = "You work on one task for another agent. You see nothing of its conversation, and it sees nothing of \
yours but your last message: end with a complete answer that says what you found or did, where (path:line), and what is \
left open. You cannot ask anybody. Do exactly the task, and nothing beside it.";

/// A child that can run.
pub(super) struct Child {
    pub(super) agent_id: String,
    pub(super) sidecar: Sidecar,
    pub(super) definition: Option<AgentDefinition>,
    pub(super) engine: Engine,
    pub(super) session: Session,
    /// Those that its definition describes for it alone.
    own_servers: Option<McpServers>,
}

impl Child {
    /// Says goodbye to its own servers.
    pub(super) async fn leave_servers(&mut self) {
        if let Some(servers) = self.own_servers.take() {
            servers.close().await;
        }
    }

    /// Removes its worktree, if it has one and changed nothing in it. Answers with the one that is left.
    pub(super) async fn leave_worktree(&mut self, context: &ToolContext) -> Option<Worktree> {
        let worktree = self.sidecar.worktree.take()?;
        (!agent_worktree::settle(&worktree, context).await).then_some(worktree)
    }
}

impl AgentTool {
    /// A child of this name; `earlier` is the one that the call has started before.
    pub(super) async fn child(
        &self,
        name: String,
        definition: Option<AgentDefinition>,
        input: &AgentInput,
        earlier: Option<(String, Sidecar)>,
        context: &ToolContext,
    ) -> Result<Child, String> {
        let agent_id = earlier.as_ref().map_or_else(new_id, |(id, _)| id.clone());
        let is_new = earlier.is_none();
        let mut sidecar = earlier.map_or_else(
            || Sidecar {
                agent_type: name,
                tool_use_id: context.tool_use_id.clone(),
                parent_agent_id: self.tree.parent.as_ref().map(|one| one.location.key().id().to_owned()),
                description: input.about(),
                worktree: None,
            },
            |(_, sidecar)| sidecar,
        );
        let wants_own = input.isolation.is_some()
            || definition.as_ref().is_some_and(|one| one.isolation == Some(Isolation::Worktree));
        if is_new && wants_own {
            let name = format!("agent-{}", &agent_id[..12.min(agent_id.len())]);
            sidecar.worktree = Some(agent_worktree::isolate(&name, context).await?);
        }
        let own = self.connect(definition.as_ref(), context).await;
        if let Ok(own) = &own {
            self.warn_of_missing_servers(&sidecar.agent_type, definition.as_ref(), own.as_ref());
        }
        let made = own.and_then(|own| self.made(&agent_id, &sidecar, definition, input, context, own));
        if let (Err(_), true, Some(worktree)) = (&made, is_new, &sidecar.worktree) {
            agent_worktree::settle(worktree, context).await;
        }
        made
    }

    /// The servers that its definition describes for it alone. Each has been tried, or had its time: the tools of one that
    /// came later would not be the agent's.
    async fn connect(
        &self,
        definition: Option<&AgentDefinition>,
        context: &ToolContext,
    ) -> Result<Option<McpServers>, String> {
        let servers = definition.map(|definition| (self.tree.own_servers)(definition)).transpose()?.flatten();
        if let Some(servers) = &servers {
            let interrupted = tokio::select! {
                biased;
                () = context.cancelled.clone() => true,
                _ = tokio::time::timeout(OWN_SERVERS_WAIT, servers.connect()) => false,
            };
            if interrupted {
                servers.close().await;
                return Err("it was interrupted while its servers were started".to_owned());
            }
        }
        Ok(servers)
    }

    fn made(
        &self,
        agent_id: &str,
        sidecar: &Sidecar,
        definition: Option<AgentDefinition>,
        input: &AgentInput,
        context: &ToolContext,
        own_servers: Option<McpServers>,
    ) -> Result<Child, String> {
        let own = own_servers.as_ref().map(McpServers::tools).unwrap_or_default();
        let location = self.location()?.agent(agent_id);
        let engine = self.child_engine(sidecar, definition.as_ref(), &location, (input, own), context);
        let engine = engine.map_err(|problem| {
            format!("{problem}{}", own_servers.as_ref().map_or_else(String::new, failures))
        })?;
        let session = self.open(&location, sidecar, context).map_err(|error| error.to_string())?;
        Ok(Child {
            agent_id: agent_id.to_owned(),
            sidecar: sidecar.clone(),
            definition,
            engine,
            session,
            own_servers,
        })
    }

    fn child_engine(
        &self,
        sidecar: &Sidecar,
        definition: Option<&AgentDefinition>,
        location: &SessionLocation,
        (input, own): (&AgentInput, Vec<Arc<dyn Tool>>),
        context: &ToolContext,
    ) -> Result<Engine, String> {
        let (name, agent_id) = (sidecar.agent_type.as_str(), location.key().id());
        let outlet = Arc::new(AgentOutlet {
            parent: Arc::clone(&self.outlet),
            agent_id: agent_id.to_owned(),
            tool_use_id: context.tool_use_id.clone(),
            session_id: location.key().session.clone(),
            forwards_text: self.tree.forwards_text,
            used: Used::new(Arc::clone(&context.progress), agent_id),
        });
        let cwd = sidecar.worktree.as_ref().map_or(context.cwd.as_path(), |tree| Path::new(&tree.path));
        let may_park = self.tree.may_park && location.outlives_process();
        let mut tools = self.child_tools(definition, own, may_park);
        let memory = self.memory(name, definition, &tools);
        let blocks = self.blocks(definition, cwd, memory.as_ref())?;
        let model = self.child_model(definition, input)?;
        let mode = definition.map_or(context.mode, |definition| definition.mode(context.mode));
        let policies = definition.and_then(|definition| definition.policies.as_ref());
        let child_gate = || self.gate.of_child(mode, may_park).with_policies(policies);
        let gate = Arc::new(child_gate());
        let hooks = own_hooks::of_child(&self.hooks, definition)?;
        let prompt = definition.map_or("", |definition| definition.prompt.as_str());
        let source = format!("{}+agent {name} {prompt}", self.system.source);
        if let Some(nested) = self.nested(definition, location) {
            tools.push(Arc::new(Agents::new(AgentTool {
                outlet: Arc::clone(&outlet) as _,
                gate: Arc::clone(&gate),
                hooks: Arc::new(hooks.below()),
                tree: nested,
                ..self.clone()
            })));
        }
        // Its memory is its own: agents that it starts do not reach it.
        let own_gate = |memory: OwnMemory| child_gate().reaching(memory.folder);
        let gate = memory.map_or(gate, |memory| Arc::new(own_gate(memory)));
        let style = RequestStyle {
            purpose: Purpose::Subagent,
            thinking: definition
                .and_then(|one| one.thinking_tokens)
                .map_or(Thinking::Default, Thinking::Budget),
            effort: RwLock::new(definition.and_then(|definition| definition.effort.clone())),
            temperature: definition.and_then(|definition| definition.temperature),
            max_output_tokens: None,
        };
        let parts = AgentParts {
            model,
            toolbox: self.toolbox(tools, name, definition)?,
            hooks,
            gate,
            agent: self.identity(name, location)?,
            max_turns: definition.and_then(|definition| definition.max_turns).unwrap_or(MOST_TURNS),
            style,
            system: SystemPrompt { blocks, source },
            outlet,
        };
        Ok(Engine::for_agent(&self.common, parts))
    }

    /// The beginning of its system prompt.
    fn blocks(
        &self,
        definition: Option<&AgentDefinition>,
        cwd: &Path,
        memory: Option<&OwnMemory>,
    ) -> Result<Vec<String>, String> {
        let mut blocks = match definition {
            Some(definition) => {
                vec![definition.prompt.clone(), format!("Working directory: {}", cwd.display())]
            }
            None => self.system.blocks.clone(),
        };
        blocks.extend(self.skills(definition)?);
        blocks.extend(memory.map(|memory| memory.text.clone()));
        blocks.push(ROLE.to_owned());
        Ok(blocks)
    }

    /// Its memory, when it has one. Without it the agent works all the same, and a warning says why.
    fn memory(
        &self,
        name: &str,
        definition: Option<&AgentDefinition>,
        tools: &[Arc<dyn Tool>],
    ) -> Option<OwnMemory> {
        let scope = definition?.memory?;
        let workspace = &self.gate.workspace;
        let places = MemoryPlaces {
            config_root: &workspace.config_dir,
            project_root: &workspace.project_root,
            trusted: self.gate.trusted,
        };
        let writes = tools.iter().any(|tool| matches!(tool.definition().name.as_str(), "Write" | "Edit"));
        OwnMemory::of(name, scope, places, writes).unwrap_or_else(|problem| {
            // The next event notices a host that is gone.
            let _ = self.outlet.emit(Event::Warning(&problem));
            None
        })
    }

    /// The model of the call, else that of the definition, else the session's.
    fn child_model(
        &self,
        definition: Option<&AgentDefinition>,
        input: &AgentInput,
    ) -> Result<Arc<SwitchedModel>, String> {
        let wanted = input.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
        let wanted = wanted.or_else(|| definition.and_then(AgentDefinition::other_model));
        Ok(match wanted.filter(|model| *model != "inherit") {
            Some(other) => Arc::new(SwitchedModel::new((self.models)(other)?)),
            None => Arc::clone(&self.model),
        })
    }

    /// The texts of the skills that it begins with.
    fn skills(&self, definition: Option<&AgentDefinition>) -> Result<Vec<String>, String> {
        let loaded = self.common.extensions.current();
        let names = definition.into_iter().flat_map(|definition| &definition.skills);
        let text = |name: &String| {
            let body = loaded.skills.body(name);
            let body = body.ok_or_else(|| format!("there is no skill named {name}, with which it begins"))?;
            Ok(format!("# Skill {name}\n\n{}", body.trim()))
        };
        names.map(text).collect()
    }

    /// The built-in tools of a child, and those of the servers that it alone has. A call that runs outside may have to wait
    /// for longer than the process lives, so a child that cannot park has no such tool.
    fn child_tools(
        &self,
        definition: Option<&AgentDefinition>,
        own: Vec<Arc<dyn Tool>>,
        may_park: bool,
    ) -> Vec<Arc<dyn Tool>> {
        let for_children = |tool: &&Arc<dyn Tool>| {
            let name = tool.definition().name.as_str();
            !NOT_FOR_CHILDREN.contains(&name)
                && (may_park || !tool.runs_outside())
                && definition.is_none_or(|definition| definition.has(name))
        };
        let own = own.into_iter().filter(|tool| !self.gate.hides(&tool.definition().name));
        self.tools.iter().cloned().chain(own).filter(|tool| for_children(&tool)).collect()
    }

    /// Its tools with those of servers. An agent without tools is an error.
    fn toolbox(
        &self,
        tools: Vec<Arc<dyn Tool>>,
        name: &str,
        definition: Option<&AgentDefinition>,
    ) -> Result<Toolbox, String> {
        let (offered, limits) = (Arc::clone(&self.offered), definition.cloned());
        let offered: Offered = Arc::new(move |tool| {
            offered(tool) && limits.as_ref().is_none_or(|definition| definition.has(tool))
        });
        let toolbox = Toolbox::new(tools, Arc::clone(&self.servers), offered).lazily(Arc::clone(&self.lazy));
        if toolbox.names().is_empty() {
            let listed = definition.and_then(|definition| definition.tools.clone()).unwrap_or_default();
            return Err(format!(
                "{name} has no tool: none of those it lists exists in this session ({})",
                listed.join(", ")
            ));
        }
        Ok(toolbox)
    }

    /// Where this child starts agents of its own: nowhere, unless its definition lists the Agent tool by name.
    fn nested(&self, definition: Option<&AgentDefinition>, location: &SessionLocation) -> Option<AgentTree> {
        let definition = definition?;
        let depth = self.tree.depth();
        let agents = Arc::clone(&self.common.extensions.current().agents);
        let delegates = agents.names().iter().any(|name| definition.may_delegate(name));
        (delegates && self.tree.slots.has_depth_below(depth)).then(|| AgentTree {
            parent: Some(Arc::new(Parent {
                location: location.clone(),
                depth,
                definition: definition.clone(),
            })),
            ..self.tree.clone()
        })
    }

    fn open(
        &self,
        location: &SessionLocation,
        sidecar: &Sidecar,
        context: &ToolContext,
    ) -> Result<Session, SessionError> {
        sidecar.write(location)?;
        let cwd =
            sidecar.worktree.as_ref().map_or_else(|| context.cwd.clone(), |tree| PathBuf::from(&tree.path));
        let mut session = Session::open(location.clone(), self.common.redactor.clone(), &cwd)?;
        if let Some(mirror) = self.common.log.get().and_then(|log| log.mirror.as_ref()) {
            if let Some(log) = session.log_path() {
                mirror(log, &[sidecar.entry()]);
            }
            session.mirror_to(Arc::clone(mirror));
        }
        Ok(session)
    }

    /// The child starts with what the parent's session changed about its permissions. A resumed child has begun before.
    pub(super) fn begin(
        &self,
        child: &mut Child,
        prompt: &str,
        context: &ToolContext,
    ) -> Result<(), SessionError> {
        let session = &mut child.session;
        if session.state.prompts > 0 {
            return Ok(());
        }
        let mut updates: Vec<PermissionUpdate> = context.permissions.updates().to_vec();
        if let Some(worktree) = &child.sidecar.worktree {
            updates.push(PermissionUpdate::AddDirectories {
                directories: vec![worktree.path.clone()],
                destination: UpdateDestination::Session,
            });
        }
        let mode = self.mode_in_force(context);
        let mode = child.definition.as_ref().map_or(mode, |definition| definition.mode(mode));
        updates.push(PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session });
        let changed = PermissionsChanged { updates, by: Actor::Parent(context.session_id.clone()) };
        session.append(RecordBody::PermissionsChanged(changed)).map_err(SessionError::Store)?;
        session.prompt(Message::user(prompt)).map_err(SessionError::Store)?;
        Ok(())
    }

    /// The parent's mode as it counts. One that only the settings chose loosens nothing in a folder that is not trusted;
    /// the child, for which the mode is chosen here, must not take it for a person's choice.
    fn mode_in_force(&self, context: &ToolContext) -> PermissionMode {
        let counts = self.gate.trusted || self.gate.mode_holds_anywhere || context.permissions.mode.is_some();
        match context.mode {
            PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::BypassPermissions
                if !counts =>
            {
                PermissionMode::Default
            }
            mode @ (PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto
            | PermissionMode::BypassPermissions
            | PermissionMode::Plan
            | PermissionMode::DontAsk) => mode,
        }
    }

    fn identity(&self, name: &str, location: &SessionLocation) -> Result<AgentIdentity, String> {
        let log = self.location()?.files().map(|files| files.log.display().to_string());
        Ok(AgentIdentity {
            agent_id: location.key().id().to_owned(),
            agent_type: name.to_owned(),
            session_id: location.key().session.clone(),
            transcript_path: log.unwrap_or_default(),
        })
    }
}

/// What is wrong with servers, behind a problem that may come of it.
fn failures(servers: &McpServers) -> String {
    let rows = servers.rows();
    let told = rows.iter().filter(|row| row["status"] != "connected").map(|row| {
        let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let why = Some(field("error")).filter(|error| !error.is_empty());
        let why = why.map_or_else(|| format!("is {}", field("status")), |error| format!("failed: {error}"));
        format!("; its server {} {why}", field("name"))
    });
    told.collect()
}

/// An id that no other agent has.
fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
