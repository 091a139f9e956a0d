//! What commands come to. Most are a request to the session and a panel or a text made of its answer; those that concern the
//! screen are left to the front.

use std::sync::Arc;
use std::time::Instant;

use qoder_protocol::control::HostRequest;
use qoder_protocol::{RequestError, SessionClient};
use qoder_types::PermissionMode;
use serde_json::Value;

use super::manage;
use super::table::{COMMANDS, Command};
use crate::cells::{duration, plural};
use crate::front::{Machine, MachineError, Open, UiSettings};
use crate::panels::{self, Panel};
use crate::state::{Conversation, Denial, Facts, Prompt, Task};
use crate::text::one_line;

/// What a command came to.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// A text for the person.
    Output(String),
    /// A panel.
    Panel(Panel),
    /// Another session.
    Open(Open),
    /// A prompt for the session.
    Submit(String),
    /// A file to edit.
    EditFile(String),
    /// Text for the clipboard.
    Copy(String),
    /// A sign-in to a server: its name and the address.
    SignIn(String, String),
    /// The output of a task, to be shown whole.
    Page(String, String),
    /// The transcript of an agent.
    AgentTranscript(String),
    /// Something the front itself does.
    Front(Command, String),
    /// The permission mode was set to this.
    Mode(PermissionMode),
    /// This model answers from the next call on.
    Model(String),
    /// Files or the conversation went back to a message; true for the conversation.
    Rewound(String, bool),
    /// The title of the session.
    Title(String),
}

/// Why a command could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    /// The session refused.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The machine could not do it.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// It was not understood.
    #[error("{0}")]
    Usage(String),
}

/// What commands are carried out with.
pub(crate) struct CommandContext {
    /// The session.
    pub(crate) client: Arc<dyn SessionClient>,
    /// The machine.
    pub(crate) machine: Arc<dyn Machine>,
    /// What the front knows.
    pub(crate) known: KnownFacts,
}

/// What the front knows at the moment of a command.
#[derive(Debug, Clone)]
pub(crate) struct KnownFacts {
    /// Figures of the session.
    pub(crate) facts: Facts,
    /// Background tasks.
    pub(crate) tasks: Vec<Task>,
    /// Denials.
    pub(crate) denials: Vec<Denial>,
    /// Prompts.
    pub(crate) prompts: Vec<Prompt>,
    /// The last reply.
    pub(crate) last_reply: String,
    /// Names of the user's own themes.
    pub(crate) custom_themes: Vec<String>,
}

impl KnownFacts {
    /// What is known of a conversation.
    pub(crate) fn of(conversation: &Conversation, settings: &UiSettings) -> Self {
        Self {
            facts: conversation.facts.clone(),
            tasks: conversation.tasks.all().to_vec(),
            denials: conversation.denials.iter().cloned().collect(),
            prompts: conversation.prompts.clone(),
            last_reply: conversation.last_reply.clone(),
            custom_themes: settings.custom_themes.keys().cloned().collect(),
        }
    }
}

type Performed = Result<Outcome, CommandError>;

/// Carries a command out.
pub(crate) async fn perform(command: Command, rest: &str, context: &CommandContext) -> Performed {
    match command {
        Command::Help | Command::Commands => commands(context).await,
        Command::Agents => manage::agents(rest, context).await,
        Command::Mcp => manage::mcp(rest, context).await,
        Command::Permissions => manage::permissions(rest, context).await,
        Command::Tasks => manage::tasks(rest, context).await,
        Command::Memory => manage::memory(rest, context).await,
        Command::Plugins => manage::plugins(rest, context).await,
        Command::Rewind => manage::rewind(rest, context).await,
        Command::Settings => manage::settings(rest, context).await,
        Command::Model => model(rest, context).await,
        Command::Effort => effort(rest, context).await,
        Command::Plan => plan(context).await,
        Command::Tools => {
            let tools = list(context, HostRequest::ListTools {}, "tools").await?;
            let servers = list(context, HostRequest::McpStatus {}, "mcpServers").await?;
            Ok(Outcome::Panel(panels::tools_panel(&tools, &servers)))
        }
        Command::Skills => {
            let skills = list(context, HostRequest::ListSkills {}, "skills").await?;
            Ok(Outcome::Panel(panels::skills_panel(&skills)))
        }
        Command::Hooks => {
            let hooks = list(context, HostRequest::ListHooks {}, "hooks").await?;
            Ok(Outcome::Panel(panels::hooks_panel(&hooks)))
        }
        Command::Context => {
            let usage = context.client.request(HostRequest::GetContextUsage {}).await?;
            Ok(Outcome::Output(panels::context_text(&usage)))
        }
        Command::Cost => Ok(Outcome::Output(cost(&context.known.facts))),
        Command::Status => Ok(Outcome::Output(status(context))),
        Command::Resume if rest.is_empty() => {
            Ok(Outcome::Panel(panels::sessions_panel(&context.machine.sessions().await)))
        }
        Command::Resume => Ok(Outcome::Open(Open::Resume(rest.to_owned()))),
        Command::Continue => match context.machine.sessions().await.first() {
            Some(newest) => Ok(Outcome::Open(Open::Resume(newest.id.clone()))),
            None => Err(CommandError::Usage("there is no earlier session in this folder".to_owned())),
        },
        Command::New => Ok(Outcome::Open(Open::New)),
        Command::Branch => {
            let id = if rest.is_empty() { context.client.session_id() } else { rest };
            Ok(Outcome::Open(Open::Fork(id.to_owned())))
        }
        Command::Rename => rename(rest, context).await,
        Command::Copy => copy(rest, context),
        Command::Review => Ok(Outcome::Submit(review(rest))),
        Command::Init => init(context).await,
        Command::Login => login(rest, context).await,
        Command::Logout => {
            let count = context.machine.logout().await?;
            Ok(Outcome::Output(format!("Removed {}.", plural(count as u64, "stored key"))))
        }
        Command::Theme if rest.is_empty() => {
            Ok(Outcome::Panel(panels::theme_panel(&context.known.custom_themes)))
        }
        Command::Editor => {
            let otherwise = "$VISUAL, $EDITOR or vi is used";
            change_or_show("general.preferredEditor", otherwise, rest, context).await
        }
        Command::StatusLine => {
            let otherwise = "/statusline COMMAND sets it";
            change_or_show("statusLine.command", otherwise, rest, context).await
        }
        Command::Theme
        | Command::Vim
        | Command::Diff
        | Command::Export
        | Command::Shortcuts
        | Command::Todo
        | Command::Transcript
        | Command::Quit => Ok(Outcome::Front(command, rest.to_owned())),
    }
}

/// The rows of a list that a request is answered with.
pub(super) async fn list(
    context: &CommandContext,
    request: HostRequest,
    field: &str,
) -> Result<Vec<Value>, RequestError> {
    let answer = context.client.request(request).await?;
    Ok(answer[field].as_array().cloned().unwrap_or_default())
}

async fn commands(context: &CommandContext) -> Performed {
    let own = COMMANDS.iter().map(|row| (row.names[0].to_owned(), row.hint.to_owned(), row.about.to_owned()));
    let others = list(context, HostRequest::SupportedCommands {}, "commands").await.unwrap_or_default();
    let is_ours = |name: &str| COMMANDS.iter().any(|row| row.names.contains(&name));
    let others = others.into_iter().filter_map(|row| {
        let name = row["name"].as_str().filter(|name| !is_ours(name))?.to_owned();
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        Some((name, text("argumentHint"), text("description")))
    });
    Ok(Outcome::Panel(panels::commands_panel(own.chain(others))))
}

async fn model(rest: &str, context: &CommandContext) -> Performed {
    if rest.is_empty() {
        let models =
            list(context, HostRequest::GetAvailableModels { fetch_strategy: None }, "models").await?;
        return Ok(Outcome::Panel(panels::models_panel(&models, &one_line(&context.known.facts.model))));
    }
    context.client.request(HostRequest::SetModel { model: Some(rest.to_owned()) }).await?;
    Ok(Outcome::Model(rest.to_owned()))
}

async fn effort(rest: &str, context: &CommandContext) -> Performed {
    if rest.is_empty() {
        return Ok(Outcome::Panel(panels::effort_panel()));
    }
    let effort = (rest != "default").then(|| rest.to_owned());
    context.client.request(HostRequest::SetEffort { effort }).await?;
    Ok(Outcome::Output(format!("Effort {} from the next call on.", one_line(rest))))
}

async fn plan(context: &CommandContext) -> Performed {
    let mode = match context.known.facts.mode {
        PermissionMode::Plan => PermissionMode::Default,
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::BypassPermissions
        | PermissionMode::DontAsk
        | PermissionMode::Auto => PermissionMode::Plan,
    };
    context.client.request(HostRequest::SetPermissionMode { mode: mode.as_str().to_owned() }).await?;
    Ok(Outcome::Mode(mode))
}

fn cost(facts: &Facts) -> String {
    let mut text = format!("The session has cost ${:.4} so far.", facts.cost);
    for (model, totals) in &facts.totals {
        text.push_str(&format!(
            "\n{}: {} tokens in, {} out, {} read from and {} written to the cache, ${:.4}",
            one_line(model),
            totals.input_tokens,
            totals.output_tokens,
            totals.cache_read_input_tokens,
            totals.cache_creation_input_tokens,
            totals.cost_usd
        ));
    }
    text
}

fn status(context: &CommandContext) -> String {
    let facts = &context.known.facts;
    let running = context.known.tasks.iter().filter(|task| task.end.is_none()).count();
    let turn = facts.turn.as_ref().map(|turn| duration(Instant::now().saturating_duration_since(turn.since)));
    let lines = [
        format!("session {}", facts.session_id),
        format!("model {}", one_line(&facts.model)),
        format!("mode {}", facts.mode.as_str()),
        format!("folder {}", one_line(&facts.cwd)),
        format!("version {}", one_line(&facts.version)),
        format!("turn {}", turn.map_or_else(|| "none".to_owned(), |time| format!("running for {time}"))),
        format!("background tasks {running}"),
        format!("cost ${:.4}", facts.cost),
    ];
    lines.join("\n")
}

async fn rename(rest: &str, context: &CommandContext) -> Performed {
    if rest.is_empty() {
        return Err(CommandError::Usage("give a title: /rename TITLE".to_owned()));
    }
    context.client.request(HostRequest::SetSessionTitle { title: rest.to_owned() }).await?;
    Ok(Outcome::Title(rest.to_owned()))
}

/// The last reply, or its last code block.
fn copy(rest: &str, context: &CommandContext) -> Performed {
    let reply = &context.known.last_reply;
    if reply.is_empty() {
        return Err(CommandError::Usage("there is no reply to copy".to_owned()));
    }
    if rest != "code" {
        return Ok(Outcome::Copy(reply.clone()));
    }
    let mut block: Option<String> = None;
    let mut last = None;
    for line in reply.lines() {
        if line.trim_start().starts_with("```") {
            match block.take() {
                Some(done) => last = Some(done),
                None => block = Some(String::new()),
            }
        } else if let Some(block) = &mut block {
            block.push_str(line);
            block.push('\n');
        }
    }
    match last.or(block) {
        Some(code) => Ok(Outcome::Copy(code)),
        None => Err(CommandError::Usage("the last reply has no code block".to_owned())),
    }
}

fn review(rest: &str) -> String {
    let what = if rest.is_empty() {
        "the uncommitted changes of this repository".to_owned()
    } else {
        rest.to_owned()
    };
    format!(
        "Review {what}. Look at the difference first (git status, git diff), then read the code around it. Report \
         mistakes that would matter to a user: wrong behaviour, lost data, security, races, missing tests. For each say \
         file and line, what happens, and how to fix it; the worst first. Change nothing."
    )
}

async fn init(context: &CommandContext) -> Performed {
    let path = context.machine.init_memory_file().await?;
    if context.known.facts.offline {
        return Ok(Outcome::Output(format!(
            "Wrote a draft: {path}. The built-in offline model cannot improve it; edit it, or set a key with /login."
        )));
    }
    Ok(Outcome::Submit(format!(
        "A draft of the memory file for agents was written to {path}. Improve it: read the build files, the README and \
         the main sources, and describe how the project is built, tested and laid out, and its conventions, in at most \
         80 lines. Keep what is right in the draft."
    )))
}

async fn login(rest: &str, context: &CommandContext) -> Performed {
    let (provider, key) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if provider.is_empty() || key.trim().is_empty() {
        return Ok(Outcome::Front(Command::Login, provider.to_owned()));
    }
    let stored = context.machine.login(provider.to_owned(), key.trim().to_owned()).await?;
    Ok(Outcome::Output(format!(
        "Stored the key for {} in {}. Sessions that begin from now on use it: /new",
        stored.provider, stored.place
    )))
}

/// Shows a setting, or changes it.
async fn change_or_show(key: &str, otherwise: &str, rest: &str, context: &CommandContext) -> Performed {
    if rest.is_empty() {
        let shown = context.machine.settings_text().await;
        let line = shown.lines().find(|line| line.starts_with(key));
        let text = line.map_or_else(|| format!("{key} is not set; {otherwise}"), str::to_owned);
        return Ok(Outcome::Output(text));
    }
    let file = context.machine.change_setting(key.to_owned(), Value::from(rest)).await?;
    Ok(Outcome::Output(format!("{key} is set in {file}; it counts from the next start.")))
}
