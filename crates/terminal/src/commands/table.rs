//! The table of commands.

/// A command of the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Definitions of agents.
    Agents,
    /// A copy of a session.
    Branch,
    /// The list of commands.
    Commands,
    /// What fills the context.
    Context,
    /// The newest session of the folder.
    Continue,
    /// The last reply into the clipboard.
    Copy,
    /// What was used.
    Cost,
    /// Changes of the session.
    Diff,
    /// Which editor is used.
    Editor,
    /// How hard the model thinks.
    Effort,
    /// The conversation as a file.
    Export,
    /// The list of commands.
    Help,
    /// Hooks of settings.
    Hooks,
    /// A draft of AGENTS.md.
    Init,
    /// Stores a key.
    Login,
    /// Removes stored keys.
    Logout,
    /// MCP servers.
    Mcp,
    /// Memory files.
    Memory,
    /// The model.
    Model,
    /// A new session.
    New,
    /// Rules and denials.
    Permissions,
    /// Plan mode on or off.
    Plan,
    /// Plugins.
    Plugins,
    /// Leave.
    Quit,
    /// A title.
    Rename,
    /// An earlier session.
    Resume,
    /// A review of the changes.
    Review,
    /// Back to a message.
    Rewind,
    /// Effective settings.
    Settings,
    /// Keys.
    Shortcuts,
    /// Skills.
    Skills,
    /// What the session is.
    Status,
    /// The command of the status line.
    StatusLine,
    /// Background commands and agents.
    Tasks,
    /// Colours.
    Theme,
    /// The list of steps.
    Todo,
    /// Tools of the model.
    Tools,
    /// The whole transcript.
    Transcript,
    /// Vim keys.
    Vim,
}

/// A row of the table.
pub(crate) struct CommandRow {
    /// The command.
    pub(crate) command: Command,
    /// Its names, the first for lists.
    pub(crate) names: &'static [&'static str],
    /// What may follow the name.
    pub(crate) hint: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// True when it only works while no turn runs.
    pub(crate) idle_only: bool,
}

const fn row(
    command: Command,
    names: &'static [&'static str],
    hint: &'static str,
    about: &'static str,
) -> CommandRow {
    CommandRow { command, names, hint, about, idle_only: false }
}

const fn idle(
    command: Command,
    names: &'static [&'static str],
    hint: &'static str,
    about: &'static str,
) -> CommandRow {
    CommandRow { command, names, hint, about, idle_only: true }
}

/// All of them.
pub(crate) const COMMANDS: &[CommandRow] = &[
    row(Command::Help, &["help"], "", "List the commands"),
    row(Command::Shortcuts, &["shortcuts"], "", "List the keys"),
    row(Command::Model, &["model"], "[NAME]", "Choose the model"),
    row(Command::Effort, &["effort"], "[LEVEL]", "Choose how hard the model thinks"),
    row(Command::Plan, &["plan"], "", "Switch plan mode on or off"),
    row(Command::Permissions, &["permissions"], "[add|remove …]", "Show and change rules; recent denials"),
    idle(Command::Resume, &["resume"], "[ID]", "Resume an earlier session"),
    idle(Command::Continue, &["continue"], "", "Resume the newest session of this folder"),
    idle(Command::New, &["new"], "", "Begin a new session"),
    idle(Command::Branch, &["branch"], "[ID]", "Continue in a copy of a session"),
    idle(Command::Rewind, &["rewind"], "", "Go back to a message: files, conversation or both"),
    row(Command::Rename, &["rename"], "TITLE", "Give the session a title"),
    row(Command::Export, &["export"], "[FILE]", "Write the conversation as Markdown"),
    row(Command::Copy, &["copy"], "[code]", "Copy the last reply, or its last code block"),
    row(Command::Diff, &["diff"], "", "Show what this session changed"),
    row(Command::Review, &["review"], "[WHAT]", "Review the uncommitted changes"),
    row(Command::Init, &["init"], "", "Write a draft of AGENTS.md"),
    row(Command::Tasks, &["tasks", "bashes"], "[show|stop ID]", "Background commands and agents"),
    row(
        Command::Agents,
        &["agents"],
        "[new|edit|delete NAME]",
        "Agents, where they come from, which are shadowed",
    ),
    row(
        Command::Mcp,
        &["mcp"],
        "[reload|show|approve|reconnect|enable|disable|auth|clear NAME]",
        "MCP servers and their tools",
    ),
    row(Command::Tools, &["tools"], "", "Tools that the model sees"),
    row(Command::Skills, &["skills"], "", "Skills"),
    row(Command::Commands, &["commands"], "", "List the commands"),
    row(Command::Hooks, &["hooks"], "", "Hooks of the settings"),
    row(Command::Plugins, &["plugins", "plugin"], "[reload]", "Plugins"),
    row(Command::Memory, &["memory"], "[edit FILE]", "Memory files that the model has"),
    row(Command::Context, &["context"], "", "What fills the model's context"),
    row(Command::Cost, &["cost", "usage"], "", "Tokens and dollars by model"),
    row(Command::Status, &["status"], "", "Session, model, folder, mode"),
    row(Command::Todo, &["todo"], "", "The model's list of steps"),
    row(Command::Transcript, &["transcript"], "", "The whole conversation, with search"),
    row(Command::Settings, &["settings", "config"], "[KEY VALUE]", "Show or change settings"),
    row(Command::Theme, &["theme"], "[NAME]", "Choose the colours"),
    row(Command::StatusLine, &["statusline"], "[COMMAND]", "Show or set the command of the status line"),
    row(Command::Editor, &["editor"], "[PROGRAM]", "Show or set the editor"),
    row(Command::Vim, &["vim"], "", "Switch vim keys on or off"),
    row(Command::Login, &["login", "signin"], "[PROVIDER KEY]", "Store an API key"),
    row(Command::Logout, &["logout"], "", "Remove stored API keys"),
    row(Command::Quit, &["quit", "exit"], "", "Leave; the session can be resumed"),
];

/// The command of the front that a line names, and what follows its name.
pub(crate) fn parse(line: &str) -> Option<(&'static CommandRow, &str)> {
    let body = line.trim().strip_prefix('/')?;
    let (name, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    let row = COMMANDS.iter().find(|row| row.names.contains(&name))?;
    Some((row, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_command_or_goes_to_the_session() {
        let found = |line: &'static str| parse(line).map(|(row, rest)| (row.command, rest));
        assert_eq!(found("/quit"), Some((Command::Quit, "")));
        assert_eq!(found(" /model  opus now "), Some((Command::Model, "opus now")));
        for line in ["quit", "/etc/hosts is broken", "/nothing", "/", "/clear"] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn no_name_is_a_duplicate() {
        let mut names: Vec<&str> = COMMANDS.iter().flat_map(|row| row.names.iter().copied()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
    #[test]
    fn the_page_lists_the_commands() {
        let mut table = String::from("| command | what it does |\n| --- | --- |\n");
        for row in COMMANDS {
            let names: Vec<String> = row.names.iter().map(|name| format!("`/{name}`")).collect();
            let hint = if row.hint.is_empty() { String::new() } else { format!(" `{}`", row.hint) };
            let hint = hint.replace('|', "\\|");
            let idle = if row.idle_only { "; only while no turn runs" } else { "" };
            table.push_str(&format!("| {}{hint} | {}{idle} |\n", names.join(", "), row.about));
        }
        crate::commands::page::check_table("commands", &table);
    }
}
