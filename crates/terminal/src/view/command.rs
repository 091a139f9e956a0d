//! Lines that are commands: `/name` of the front, `!command` for the shell, everything else for the session. What a command
//! comes to arrives as an update, so that a slow one holds nothing up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_protocol::control::HostRequest;
use qoder_types::PermissionMode;
use ratatui_core::text::Line;

use super::overlay::Overlay;
use super::{App, Dirty, Update};
use crate::cells::{self, diff_lines, markdown};
use crate::commands::{self, Command, CommandContext, KnownFacts, Outcome, perform, whole_conversation};
use crate::composer::Draft;
use crate::front::{Ended, Open};
use crate::panels::{Panel, PanelRow};
use crate::screen::{clipboard_sequence, enter_overlay};
use crate::state::{Level, Prompt};
use crate::text::{ansi, one_line};
use crate::theme::{Extent, Ink, Theme};

impl App {
    /// Runs a line that was written or that a panel offers.
    pub(super) fn run_draft(&mut self, draft: Draft) {
        let text = draft.expanded();
        let line = text.trim();
        if self.session.is_none() {
            // Without a session there is nothing to leave; everything else waits for it.
            match commands::parse(line) {
                Some((row, _)) if row.command == Command::Quit => self.wants_to_leave = true,
                Some(_) | None => self.waiting.push(draft),
            }
            return;
        }
        if let Some(command) = line.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            self.run_shell(command);
        } else if !self.run_command(line) {
            self.send(draft);
        }
    }

    /// Runs a command of the front. False when the line does not name one.
    pub(super) fn run_command(&mut self, line: &str) -> bool {
        let Some((row, rest)) = commands::parse(line) else { return false };
        self.choices.use_command(row.names[0]);
        if row.idle_only && self.conversation.facts.is_running() {
            self.hint(
                format!("/{} works when no turn runs; Esc stops it.", row.names[0]),
                Duration::from_secs(3),
            );
            return true;
        }
        let Some(session) = &self.session else {
            self.hint("The session is not open yet.", Duration::from_secs(2));
            return true;
        };
        let context = CommandContext {
            client: Arc::clone(&session.client),
            machine: Arc::clone(&self.front.machine),
            known: KnownFacts::of(&self.conversation, &self.front.settings),
        };
        let (command, rest, updates) = (row.command, rest.to_owned(), self.updates.clone());
        tokio::spawn(async move {
            let update = match perform(command, &rest, &context).await {
                Ok(outcome) => Update::Command(Box::new(outcome)),
                Err(error) => Update::Problem(error.to_string()),
            };
            // The front may have ended meanwhile.
            let _ = updates.send(update);
        });
        true
    }

    /// Runs a command in the shell; its output joins the conversation.
    fn run_shell(&mut self, command: &str) {
        let uuid = uuid::Uuid::new_v4().to_string();
        let prompt = Prompt { uuid: uuid.clone(), text: format!("!{command}"), images: 0 };
        self.conversation.submitted(prompt, Instant::now());
        let Some(client) = self.session.as_ref().map(|session| Arc::clone(&session.client)) else { return };
        let request = HostRequest::RunCommand { command: command.to_owned(), uuid: Some(uuid.clone()) };
        let (updates, text) = (self.updates.clone(), format!("!{command}"));
        tokio::spawn(async move {
            if let Err(error) = client.request(request).await {
                // The front may have ended meanwhile.
                let _ = updates.send(Update::Undelivered { uuid, text, problem: error.to_string() });
            }
        });
    }

    /// Takes what a command came to.
    pub(super) fn take_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Output(text) => self.conversation.command_output(text),
            Outcome::Panel(panel) => self.show_panel(panel),
            Outcome::Open(what) => self.switch(what),
            Outcome::Submit(text) => self.submit_text(&text),
            Outcome::EditFile(path) => self.edit = Some(super::editor::Edit::File(path)),
            Outcome::Copy(text) => self.copy(text),
            Outcome::SignIn(server, address) => self.offer_sign_in(&server, &address),
            Outcome::Page(title, text) => {
                let lines = ansi::lines(&text, self.theme.has_colors());
                self.open_overlay(Overlay::of_lines(&title, lines));
            }
            Outcome::AgentTranscript(agent) => {
                let events = self.session.as_ref().and_then(|session| session.client.subscribe_agent(&agent));
                match events {
                    Some(events) => self.open_overlay(Overlay::of_conversation("Agent", &agent, events)),
                    None => {
                        self.conversation.notice(Level::Error, "the transcript of this agent cannot be read")
                    }
                }
            }
            Outcome::Mode(mode) => {
                self.conversation.facts.mode = mode;
                self.hint(format!("Mode: {}", mode.as_str()), Duration::from_secs(1));
            }
            Outcome::Model(model) => {
                let text = format!("{} answers from the next call on.", one_line(&model));
                self.conversation.command_output(text);
                self.conversation.facts.choose_model(model);
            }
            Outcome::Rewound(text, conversation) => {
                if conversation {
                    self.conversation.rule("the conversation was taken back");
                }
                self.conversation.command_output(text);
            }
            Outcome::Title(title) => {
                self.conversation.notice(Level::Info, format!("The session is called {}", one_line(&title)));
                self.conversation.facts.title = Some(title);
            }
            Outcome::Front(command, rest) => self.front_command(command, &rest),
        }
        self.touch(Dirty::Now);
    }

    fn front_command(&mut self, command: Command, rest: &str) {
        match command {
            Command::Quit => self.wants_to_leave = true,
            Command::Theme => self.set_theme(rest),
            Command::Vim => self.toggle_vim(),
            Command::Todo => self.show_todo(),
            Command::Transcript => self.show_transcript(),
            Command::Shortcuts => self.show_shortcuts(),
            Command::Diff => self.show_diff(),
            Command::Export => self.export(rest),
            Command::Login => self.ask_for_key(rest),
            // These are carried out without the front.
            _ => {}
        }
    }

    pub(super) fn show_panel(&mut self, panel: Panel) {
        self.panels.push(panel);
    }

    /// Leaves this session for another one.
    fn switch(&mut self, what: Open) {
        self.leaving = self.session.take();
        if let Some(session) = &self.leaving {
            let client = Arc::clone(&session.client);
            tokio::spawn(async move { client.close(qoder_protocol::Leave::EndTurn).await });
        }
        self.question = None;
        self.opened_by = Some(match &what {
            Open::New => "new session".to_owned(),
            Open::Fork(id) => format!("copy of session {}", one_line(id)),
            Open::Resume(id) | Open::Attach(id) => format!("session {}", one_line(id)),
            Open::Given | Open::Choose => "session".to_owned(),
        });
        self.open(what);
    }

    /// Uses another theme from now on, and keeps it.
    fn set_theme(&mut self, name: &str) {
        self.theme = Theme::new(Some(name), &self.front.settings.custom_themes, self.colors);
        self.front.settings.theme = Some(name.to_owned());
        self.keep_setting("ui.theme", serde_json::Value::from(name));
    }

    fn toggle_vim(&mut self) {
        let on = self.composer.vim_mode().is_none();
        self.composer.set_vim(on);
        self.keep_setting("general.vimMode", serde_json::Value::from(on));
    }

    fn keep_setting(&mut self, key: &str, value: serde_json::Value) {
        let (machine, updates, key) = (Arc::clone(&self.front.machine), self.updates.clone(), key.to_owned());
        tokio::spawn(async move {
            let shown = format!("{key} = {value}");
            let kept = machine.change_setting(key.clone(), value).await;
            let update = match kept {
                Ok(file) => Update::Command(Box::new(Outcome::Output(format!("{shown} is set in {file}.")))),
                Err(error) => Update::Problem(format!("{key} could not be kept: {error}")),
            };
            let _ = updates.send(update);
        });
    }

    /// The list of steps, whole.
    pub(super) fn show_todo(&mut self) {
        let look = self.look(Extent::Short, Instant::now());
        let lines: Vec<Line<'static>> =
            self.conversation.todo.iter().flat_map(|item| cells::todo_lines(item, &look)).collect();
        if lines.is_empty() {
            self.hint("The model has no list of steps.", Duration::from_secs(2));
            return;
        }
        self.open_overlay(Overlay::of_lines("Steps", lines));
    }

    pub(super) fn show_transcript(&mut self) {
        let Some(session) = &self.session else {
            self.hint("The session is not open yet.", Duration::from_secs(2));
            return;
        };
        let events = session.client.subscribe(Some(0), qoder_protocol::Wants::default());
        let id = session.client.session_id().to_owned();
        self.open_overlay(Overlay::of_conversation("Transcript", &id, events));
    }

    /// Shows what is on record of another session.
    pub(super) fn preview(&mut self, session: &str) {
        match self.front.machine.transcript(session) {
            Some(events) => self.open_overlay(Overlay::of_conversation("Session", session, events)),
            None => self.hint("This session cannot be read.", Duration::from_secs(2)),
        }
    }

    fn show_diff(&mut self) {
        let look = self.look(Extent::Whole, Instant::now());
        let mut lines = Vec::new();
        for change in &self.conversation.changes {
            lines.push(Line::from(look.span(Ink::Strong, one_line(&change.path))));
            lines.extend(diff_lines(&change.diff, usize::MAX, &look));
            lines.push(Line::default());
        }
        if lines.is_empty() {
            self.hint("No file was changed in this session.", Duration::from_secs(2));
            return;
        }
        self.open_overlay(Overlay::of_lines("Changes of this session", lines));
    }

    pub(super) fn show_shortcuts(&mut self) {
        let mut panel = Panel::new("Keys", "");
        for row in super::bindings::BINDINGS {
            panel.rows.push(PanelRow::new(self.bindings.keys(row.action), row.about));
        }
        for (keys, about) in [
            ("Ctrl+A E B F, Alt+B F", "Move by lines, letters and words"),
            ("Ctrl+W U K, Alt+D", "Cut a word or a part of the line"),
            ("Ctrl+Y", "Put back what was cut"),
            ("Ctrl+_", "Take the last change back"),
            ("@  /  !", "File, command, shell"),
        ] {
            panel.rows.push(PanelRow::new(keys, about));
        }
        self.show_panel(panel);
    }

    pub(super) fn open_overlay(&mut self, overlay: Overlay) {
        let sequence = enter_overlay();
        self.front.machine.set_terminal_overlay(true);
        self.overlay = Some((overlay, crate::screen::Sheet::default()));
        self.write_raw(sequence);
        self.touch(Dirty::Now);
    }

    /// Writes the conversation to a file.
    fn export(&mut self, rest: &str) {
        let Some(session) = &self.session else { return };
        let (client, machine) = (Arc::clone(&session.client), Arc::clone(&self.front.machine));
        let (updates, name) = (self.updates.clone(), rest.to_owned());
        tokio::spawn(async move {
            let whole = whole_conversation(&*client).await;
            let text = markdown(whole.cells(), &whole.facts.cwd);
            let name = if name.is_empty() { format!("{}.md", client.session_id()) } else { name };
            let update = match machine.write_new(name, text).await {
                Ok(path) => Update::Command(Box::new(Outcome::Output(format!("Wrote {path}")))),
                Err(error) => Update::Problem(error.to_string()),
            };
            let _ = updates.send(update);
        });
    }

    /// Puts text into the clipboard: over a network the terminal does it, else a program.
    pub(super) fn copy(&mut self, text: String) {
        if self.over_network {
            return self.copy_by_terminal(&text);
        }
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let update = match machine.copy(text.clone()).await {
                Ok(()) => Update::Hint("Copied.".to_owned()),
                // Without a program the terminal may know how.
                Err(_) => Update::CopyByTerminal(text),
            };
            let _ = updates.send(update);
        });
    }

    /// Asks the terminal to put text into its clipboard. It does not say whether it did.
    pub(super) fn copy_by_terminal(&mut self, text: &str) {
        let (sequence, is_cut) = clipboard_sequence(text);
        self.write_raw(&sequence);
        let what = if is_cut { "Copied the first 74 kB" } else { "Copied" };
        self.hint(format!("{what}, if the terminal allows it (OSC 52)."), Duration::from_secs(3));
    }

    /// A sign-in is never opened by itself: the address is shown, and what can be done with it.
    fn offer_sign_in(&mut self, server: &str, address: &str) {
        let host = address
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split(['/', '?', '#']).next())
            .unwrap_or_default();
        self.conversation.notice(
            Level::Info,
            format!("Sign in to MCP server {} at {}:\n{address}", one_line(server), one_line(host)),
        );
        self.sign_in = Some(address.to_owned());
        let mut panel = Panel::new(format!("Sign in to {}: {}", one_line(server), one_line(host)), "");
        panel.rows = vec![
            PanelRow::new("Open it in a browser", "o").offering("", "/sign-in open").by_letter('o'),
            PanelRow::new("Copy the address", "c").offering("", "/sign-in copy").by_letter('c'),
            PanelRow::new("The browser is elsewhere", "paste the address that it came back to")
                .offering("", format!("/mcp auth {server} ")),
        ];
        self.show_panel(panel);
    }

    /// Runs what a row of a panel offers. A line that ends in a blank is put into the composer.
    pub(super) fn run_offer(&mut self, line: &str) {
        if self.run_without_session(line) {
            return;
        }
        match (line, self.sign_in.clone()) {
            ("/sign-in open", Some(address)) => {
                let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
                tokio::spawn(async move {
                    if let Err(error) = machine.open_address(address).await {
                        let _ = updates.send(Update::Problem(error.to_string()));
                    }
                });
            }
            ("/sign-in copy", Some(address)) => self.copy(address),
            _ if line.ends_with(' ') => self.composer.set(Draft::of(line)),
            _ => self.run_draft(Draft::of(line)),
        }
    }

    /// Asks for a key without showing it.
    fn ask_for_key(&mut self, provider: &str) {
        if provider.is_empty() {
            let mut panel = Panel::new("Store an API key for", "");
            for (name, about) in [
                ("anthropic", "Anthropic (ANTHROPIC_API_KEY)"),
                ("openai", "OpenAI and compatible servers (OPENAI_API_KEY)"),
            ] {
                panel.rows.push(PanelRow::new(name, about).offering("", format!("/login {name}")));
            }
            self.show_panel(panel);
            return;
        }
        self.secret = Some((provider.to_owned(), String::new()));
    }

    /// The next mode: default, acceptEdits, plan, and auto where a model judges.
    pub(super) fn next_mode(&mut self) {
        let after_plan =
            if self.front.machine.has_judge() { PermissionMode::Auto } else { PermissionMode::Default };
        let next = match self.conversation.facts.mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            PermissionMode::Plan => after_plan,
            PermissionMode::DontAsk | PermissionMode::Auto | PermissionMode::BypassPermissions => {
                PermissionMode::Default
            }
        };
        self.set_mode(next);
    }

    pub(super) fn set_mode(&mut self, mode: PermissionMode) {
        self.conversation.facts.mode = mode;
        self.request(HostRequest::SetPermissionMode { mode: mode.as_str().to_owned() });
        self.hint(format!("Mode: {}", mode.as_str()), Duration::from_secs(1));
    }

    /// The mode that asks nothing: only where it was allowed at the start, and only when it is asked for twice.
    pub(super) fn bypass(&mut self) {
        if !self.front.machine.allows_bypass() {
            let text = "bypassPermissions is only available when the program was started with it.";
            self.hint(text, Duration::from_secs(3));
        } else if self.last_bypass.take().is_some_and(|last| last.elapsed() < Duration::from_secs(3)) {
            self.set_mode(PermissionMode::BypassPermissions);
        } else {
            self.last_bypass = Some(Instant::now());
            self.hint(
                "Ctrl+Y again: every call that no rule denies runs without a question.",
                Duration::from_secs(3),
            );
        }
    }

    /// Leaves when a command asked for it.
    pub(super) async fn leave_if_wanted(&mut self) {
        if std::mem::take(&mut self.wants_to_leave) {
            self.leave(Ended::Quit).await;
        }
    }
}
