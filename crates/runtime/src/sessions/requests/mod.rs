//! What a front may ask of a session while it runs: one type a request, with the type of its answer. Each is served by
//! itself and once; what cannot be done is an error that says so.

mod desk;
mod grade;
mod listing;
mod plugins;
mod wire;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::control::TokenLine;
use qoder_protocol::{InterruptReceipt, RequestError};
use qoder_types::{Actor, PermissionMode, PermissionUpdate, UpdateDestination, Usage};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::checkpoints::RewindScope;
use crate::driver::ContextUsage;
use crate::model_policy;

pub(super) use desk::Desk;
pub use desk::PROTOCOL_VERSION;

/// Something that a front asks of a session.
pub trait Request: Send {
    /// What it is answered with.
    type Answer: Serialize + Send;

    /// Serves it.
    #[doc(hidden)]
    fn serve(self, desk: &Desk) -> BoxFuture<'_, Result<Self::Answer, RequestError>>;
}

/// The answer to what only had to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Done {}

/// What a grader says, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grade {
    /// Its words.
    pub text: String,
    /// What it used.
    pub usage: Usage,
}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty),* } -> $answer:ty,
       |$desk:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name { $($(#[$about])* pub $field: $type),* }

        impl Request for $name {
            type Answer = $answer;

            fn serve(self, $desk: &Desk) -> BoxFuture<'_, Result<$answer, RequestError>> {
                let Self { $($field),* } = self;
                async move { $body }.boxed()
            }
        }
    )*};
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $(#[$about:meta])* $field:ident: $type:ty } as $wire:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize)]
        pub struct $name { $(#[$about])* #[serde(rename = $wire)] pub $field: $type }
    )*};
}

answers! {
    /// Whether commands moved to the background.
    Moved { /** True when one did. */ moved: bool } as "moved";
    /// Whether an input was taken back.
    Cancelled { /** False when it was too late. */ cancelled: bool } as "cancelled";
    /// Directories that were added.
    Added { /** Their real paths. */ added: Vec<String> } as "added";
    /// The models that there are.
    Models { /** One row each. */ models: Vec<Value> } as "models";
    /// Providers that take a user's own key.
    Providers { /** One row each. */ providers: Vec<Value> } as "providers";
    /// The agents that there are.
    Agents { /** One row each. */ agents: Vec<Value> } as "agents";
    /// The slash commands that there are.
    Commands { /** One row each. */ commands: Vec<Value> } as "commands";
    /// How the session is signed in.
    Account { /** The account. */ account: Value } as "account";
    /// What is left of a quota; always null.
    Quota { /** Always null. */ usage_info: Value } as "usageInfo";
    /// The plugins that are loaded.
    Plugins { /** One row each. */ plugins: Vec<Value> } as "plugins";
    /// A title.
    Title { /** None when the model finds none. */ title: Option<String> } as "title";
    /// Hooks of settings.
    Hooks { /** One row each. */ hooks: Vec<Value> } as "hooks";
    /// Skills.
    Skills { /** One row each. */ skills: Vec<Value> } as "skills";
    /// Memory files.
    MemoryFiles { /** One row each. */ files: Vec<Value> } as "files";
    /// Tools that the model sees.
    Tools { /** One row each. */ tools: Vec<Value> } as "tools";
    /// Output of a task.
    Output { /** Its end. */ output: String } as "output";
    /// How MCP servers are doing.
    Servers { /** One row each. */ servers: Vec<Value> } as "mcpServers";
}

requests! {
    /// What the session says of itself when it is ready.
    Greeting {} -> Value, |desk| Ok(desk.greeting());
    /// Stop the turn that runs.
    Interrupt { /** Who wants that. */ by: Actor } -> InterruptReceipt, |desk| desk.interrupt(by).await;
    /// Another permission mode, from the next decision on.
    SetPermissionMode { /** The mode. */ mode: PermissionMode } -> Done, |desk| {
        let update = PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
        desk.change_permissions(vec![update]).await
    };
    /// Another model, from the next call of one on; `None` is the default.
    SetModel { /** Its name. */ model: Option<String> } -> Done, |desk| desk.set_model(model.as_deref());
    /// Stop a background task.
    StopTask { /** The task. */ task_id: String } -> Done, |desk| {
        desk.engine.shared.stop(&task_id).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Move running commands to the background; all of them without a call.
    MoveToBackground { /** The call. */ tool_use_id: Option<String> } -> Moved, |desk| {
        Ok(Moved { moved: desk.engine.shared.move_to_background(tool_use_id.as_deref()) > 0 })
    };
    /// Take an input back that waits for its turn.
    CancelInput { /** The input. */ input_id: String } -> Cancelled, |desk| {
        Ok(Cancelled { cancelled: desk.session.run(move |driver| driver.withdraw(&input_id)).await? })
    };
    /// More directories to work in.
    AddDirectories { /** Their paths. */ directories: Vec<String> } -> Added, |desk| {
        desk.add_directories(&directories).await
    };
    /// Lay settings on top of those of the command line.
    ApplyFlagSettings { /** The settings. */ settings: Map<String, Value> } -> Done, |desk| {
        desk.apply_flag_settings(&Value::Object(settings)).await
    };
    /// Go back to a message.
    Rewind {
        /** The user's message. */ user_message_id: String,
        /** What goes back. */ scope: RewindScope,
        /** Only say what would change. */ dry_run: bool
    } -> Value, |desk| desk.rewind(user_message_id, scope, dry_run).await;
    /// What fills the context.
    GetContextUsage {} -> ContextUsage, |desk| {
        desk.session.run(|driver| Ok(ContextUsage::of(driver))).await
    };
    /// Which models there are.
    GetAvailableModels {} -> Models, |desk| {
        let options = desk.setup().model_options().clone();
        Ok(Models { models: model_policy::list(&options).await })
    };
    /// Which providers take a user's own key.
    GetByokConfig {} -> Providers, |desk| Ok(Providers { providers: desk.setup().provider_catalog() });
    /// Which agents there are.
    SupportedAgents {} -> Agents, |desk| Ok(Agents { agents: desk.agents() });
    /// Which slash commands there are, those of servers included.
    SupportedCommands {} -> Commands, |desk| {
        desk.learn_commands().await;
        Ok(Commands { commands: desk.commands() })
    };
    /// Who is signed in, and how.
    AccountInfo {} -> Account, |desk| Ok(Account { account: desk.account() });
    /// What is left of a quota.
    GetUsageInfo {} -> Quota, |desk| {
        let _ = desk;
        Ok(Quota { usage_info: Value::Null })
    };
    /// Which plugins are loaded.
    ListPlugins {} -> Plugins, |desk| Ok(Plugins { plugins: desk.plugins() });
    /// Load plugins anew.
    ReloadPlugins {} -> Value, |desk| desk.reload_plugins().await;
    /// Find a title for the session.
    GenerateTitle { /** What it is about. */ description: String, /** Keep it. */ persist: bool } -> Title, |desk| {
        Ok(Title { title: desk.generate_title(&description, persist).await? })
    };
    /// Have the session's model grade work, beside the conversation.
    GradeWork { /** Its instructions. */ system: String, /** The work. */ prompt: String } -> Grade, |desk| {
        desk.grade_work(system, prompt).await
    };
    /// Every definition of an agent, with its source.
    ListAgents {} -> Agents, |desk| Ok(Agents { agents: desk.agent_definitions() });
    /// The hooks of settings.
    ListHooks {} -> Hooks, |desk| Ok(Hooks { hooks: desk.hooks() });
    /// The skills.
    ListSkills {} -> Skills, |desk| Ok(Skills { skills: desk.skills() });
    /// The memory files that the model has.
    ListMemory {} -> MemoryFiles, |desk| Ok(MemoryFiles { files: desk.memory_files().await? });
    /// The tools that the model sees.
    ListTools {} -> Tools, |desk| Ok(Tools { tools: desk.tools() });
    /// The end of what a task printed.
    TaskOutput { /** The task. */ task_id: String } -> Output, |desk| {
        Ok(Output { output: desk.task_output(task_id).await? })
    };
    /// The rules in force.
    ListPermissionRules {} -> Value, |desk| desk.permission_rules().await;
    /// Change permissions.
    UpdatePermissions { /** The changes. */ updates: Vec<PermissionUpdate> } -> Done, |desk| {
        desk.change_permissions(updates).await
    };
    /// Another effort, from the next model call on.
    SetEffort { /** Its name. */ effort: Option<String> } -> Done, |desk| desk.set_effort(effort);
    /// Give the session a title.
    SetSessionTitle { /** The title. */ title: String } -> Done, |desk| desk.set_title(title).await;
    /// Read the descriptions of MCP servers again.
    McpReload {} -> Value, |desk| desk.reload_servers().await;
    /// Run a command in the shell, as the user.
    RunCommand { /** The command. */ command: String, /** Identifies it. */ uuid: Option<String> } -> Done, |desk| {
        desk.run_command(command, uuid).await
    };
    /// How the MCP servers are doing.
    McpStatus {} -> Servers, |desk| Ok(Servers { servers: desk.servers().rows() });
    /// Other MCP servers in place of these.
    McpSetServers { /** Configurations by name. */ servers: Map<String, Value> } -> Value, |desk| {
        desk.set_servers(&servers).await
    };
    /// Connect a server anew.
    McpReconnect { /** The server. */ name: String } -> Done, |desk| {
        desk.servers().reconnect(&name).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Switch a server on or off.
    McpToggle { /** The server. */ name: String, /** On or off. */ enabled: bool } -> Done, |desk| {
        desk.servers().toggle(&name, enabled).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Begin to sign in to a server.
    McpAuthenticate {
        /** The server. */ name: String,
        /** Where the browser comes back to. */ redirect_uri: Option<String>
    } -> Value, |desk| {
        let begun = desk.servers().authenticate(&name, redirect_uri).await.map_err(RequestError::refused)?;
        serde_json::to_value(begun).map_err(RequestError::refused)
    };
    /// Bring the address to which the browser came back.
    McpSubmitCallback { /** The server. */ name: String, /** The address. */ callback_url: String } -> Done, |desk| {
        let submitted = desk.servers().submit_callback(&name, callback_url).await;
        submitted.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Give a server's token.
    McpInjectToken { /** The server. */ name: String, /** The token. */ token: TokenLine } -> Done, |desk| {
        let injected = desk.servers().inject_token(&name, desk::read_token(token)).await;
        injected.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Forget a server's credentials.
    McpClearAuth { /** The server. */ name: String } -> Done, |desk| {
        desk.servers().clear_credentials(&name).await.map(|()| Done {}).map_err(RequestError::refused)
    };
}
