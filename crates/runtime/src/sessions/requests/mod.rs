//! What a front may ask of a session while it runs: one type a request, with the type of its answer. Each is served by
//! itself and once; what cannot be done is an error that says so.

mod context;
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

pub use crate::checkpoints::RewindScope;
use crate::driver::ContextUsage;
use crate::model_policy;

pub use context::PROTOCOL_VERSION;
pub(super) use context::RequestContext;

/// Something that a front asks of a session.
pub trait Request: Send {
    /// What it is answered with.
    type Answer: Serialize + Send;

    /// Serves it.
    #[doc(hidden)]
    fn serve(self, context: &RequestContext) -> BoxFuture<'_, Result<Self::Answer, RequestError>>;
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
       |$context:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name { $($(#[$about])* pub $field: $type),* }

        impl Request for $name {
            type Answer = $answer;

            fn serve(self, $context: &RequestContext) -> BoxFuture<'_, Result<$answer, RequestError>> {
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
    Greeting {} -> Value, |context| Ok(context.greeting());
    /// Stop the turn that runs.
    Interrupt { /** Who wants that. */ by: Actor } -> InterruptReceipt, |context| context.interrupt(by).await;
    /// Another permission mode, from the next decision on.
    SetPermissionMode { /** The mode. */ mode: PermissionMode } -> Done, |context| {
        let update = PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
        context.change_permissions(vec![update]).await
    };
    /// Another model, from the next call of one on; `None` is the default.
    SetModel { /** Its name. */ model: Option<String> } -> Done, |context| context.set_model(model.as_deref());
    /// Stop a background task.
    StopTask { /** The task. */ task_id: String } -> Done, |context| {
        context.engine.shared.stop(&task_id).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Move running commands to the background; all of them without a call.
    MoveToBackground { /** The call. */ tool_use_id: Option<String> } -> Moved, |context| {
        Ok(Moved { moved: context.engine.shared.move_to_background(tool_use_id.as_deref()) > 0 })
    };
    /// Take an input back that waits for its turn.
    CancelInput { /** The input. */ input_id: String } -> Cancelled, |context| {
        Ok(Cancelled { cancelled: context.session.run(move |driver| driver.withdraw(&input_id)).await? })
    };
    /// More directories to work in.
    AddDirectories { /** Their paths. */ directories: Vec<String> } -> Added, |context| {
        context.add_directories(&directories).await
    };
    /// Lay settings on top of those of the command line.
    ApplyFlagSettings { /** The settings. */ settings: Map<String, Value> } -> Done, |context| {
        context.apply_flag_settings(&Value::Object(settings)).await
    };
    /// Go back to a message.
    Rewind {
        /** The user's message. */ user_message_id: String,
        /** What goes back. */ scope: RewindScope,
        /** Only say what would change. */ dry_run: bool
    } -> Value, |context| context.rewind(user_message_id, scope, dry_run).await;
    /// What fills the context.
    GetContextUsage {} -> ContextUsage, |context| {
        context.session.run(|driver| Ok(ContextUsage::of(driver))).await
    };
    /// Which models there are.
    GetAvailableModels {} -> Models, |context| {
        let options = context.setup().model_options().clone();
        Ok(Models { models: model_policy::list(&options).await })
    };
    /// Which providers take a user's own key.
    GetByokConfig {} -> Providers, |context| Ok(Providers { providers: context.setup().provider_catalog() });
    /// Which agents there are.
    SupportedAgents {} -> Agents, |context| Ok(Agents { agents: context.agents() });
    /// Which slash commands there are, those of servers included.
    SupportedCommands {} -> Commands, |context| {
        context.learn_commands().await;
        Ok(Commands { commands: context.commands() })
    };
    /// Who is signed in, and how.
    AccountInfo {} -> Account, |context| Ok(Account { account: context.account() });
    /// What is left of a quota.
    GetUsageInfo {} -> Quota, |context| {
        let _ = context;
        Ok(Quota { usage_info: Value::Null })
    };
    /// Which plugins are loaded.
    ListPlugins {} -> Plugins, |context| Ok(Plugins { plugins: context.plugins() });
    /// Load plugins anew.
    ReloadPlugins {} -> Value, |context| context.reload_plugins().await;
    /// Find a title for the session.
    GenerateTitle { /** What it is about. */ description: String, /** Keep it. */ persist: bool } -> Title, |context| {
        Ok(Title { title: context.generate_title(&description, persist).await? })
    };
    /// Have the session's model grade work, beside the conversation.
    GradeWork { /** Its instructions. */ system: String, /** The work. */ prompt: String } -> Grade, |context| {
        context.grade_work(system, prompt).await
    };
    /// Every definition of an agent, with its source.
    ListAgents {} -> Agents, |context| Ok(Agents { agents: context.agent_definitions() });
    /// The hooks of settings.
    ListHooks {} -> Hooks, |context| Ok(Hooks { hooks: context.hooks() });
    /// The skills.
    ListSkills {} -> Skills, |context| Ok(Skills { skills: context.skills() });
    /// The memory files that the model has.
    ListMemory {} -> MemoryFiles, |context| Ok(MemoryFiles { files: context.memory_files().await? });
    /// The tools that the model sees.
    ListTools {} -> Tools, |context| Ok(Tools { tools: context.tools() });
    /// The end of what a task printed.
    TaskOutput { /** The task. */ task_id: String } -> Output, |context| {
        Ok(Output { output: context.task_output(task_id).await? })
    };
    /// The rules in force.
    ListPermissionRules {} -> Value, |context| context.permission_rules().await;
    /// Change permissions.
    UpdatePermissions { /** The changes. */ updates: Vec<PermissionUpdate> } -> Done, |context| {
        context.change_permissions(updates).await
    };
    /// Another effort, from the next model call on.
    SetEffort { /** Its name. */ effort: Option<String> } -> Done, |context| context.set_effort(effort);
    /// Give the session a title.
    SetSessionTitle { /** The title. */ title: String } -> Done, |context| context.set_title(title).await;
    /// Read the descriptions of MCP servers again.
    McpReload {} -> Value, |context| context.reload_servers().await;
    /// Run a command in the shell, as the user.
    RunCommand { /** The command. */ command: String, /** Identifies it. */ uuid: Option<String> } -> Done, |context| {
        context.run_command(command, uuid).await
    };
    /// How the MCP servers are doing.
    McpStatus {} -> Servers, |context| Ok(Servers { servers: context.servers().rows() });
    /// Other MCP servers in place of these.
    McpSetServers { /** Configurations by name. */ servers: Map<String, Value> } -> Value, |context| {
        context.set_servers(&servers).await
    };
    /// Connect a server anew.
    McpReconnect { /** The server. */ name: String } -> Done, |context| {
        context.servers().reconnect(&name).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Switch a server on or off.
    McpToggle { /** The server. */ name: String, /** On or off. */ enabled: bool } -> Done, |context| {
        context.servers().toggle(&name, enabled).await.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Begin to sign in to a server.
    McpAuthenticate {
        /** The server. */ name: String,
        /** Where the browser comes back to. */ redirect_uri: Option<String>
    } -> Value, |context| {
        let begun = context.servers().authenticate(&name, redirect_uri).await.map_err(RequestError::refused)?;
        serde_json::to_value(begun).map_err(RequestError::refused)
    };
    /// Bring the address to which the browser came back.
    McpSubmitCallback { /** The server. */ name: String, /** The address. */ callback_url: String } -> Done, |context| {
        let submitted = context.servers().submit_callback(&name, callback_url).await;
        submitted.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Give a server's token.
    McpInjectToken { /** The server. */ name: String, /** The token. */ token: TokenLine } -> Done, |context| {
        let injected = context.servers().inject_token(&name, context::read_token(token)).await;
        injected.map(|()| Done {}).map_err(RequestError::refused)
    };
    /// Forget a server's credentials.
    McpClearAuth { /** The server. */ name: String } -> Done, |context| {
        context.servers().clear_credentials(&name).await.map(|()| Done {}).map_err(RequestError::refused)
    };
}
