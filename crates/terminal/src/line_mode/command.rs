//! Commands in line mode: what a panel would list is printed, with the lines that do what it offers.

use std::sync::Arc;
use std::time::Instant;

use qoder_protocol::control::HostRequest;

use super::{LineMode, Update};
use crate::cells::markdown;
use crate::commands::{
    Command, CommandContext, CommandRow, KnownFacts, Outcome, perform, whole_conversation,
};
use crate::front::{Ended, Open};
use crate::state::{Conversation, Level, Prompt, TodoProgress};
use crate::text::{one_line, plain_lines};

impl LineMode {
    /// Carries a command out.
    pub(super) async fn command(
        &mut self,
        row: &'static CommandRow,
        rest: &str,
    ) -> Option<crate::front::Outcome> {
        if row.idle_only && self.conversation.facts.is_running() {
            self.printer.line(&format!("/{} works when no turn runs; Ctrl+C stops it.", row.names[0]));
            return None;
        }
        let context = CommandContext {
            client: Arc::clone(&self.session.client),
            machine: Arc::clone(&self.front.machine),
            known: KnownFacts::of(&self.conversation, &self.front.settings),
        };
        match perform(row.command, rest, &context).await {
            Ok(outcome) => self.take_outcome(outcome).await,
            Err(error) => {
                self.printer.line(&format!("error: {}", one_line(&error.to_string())));
                None
            }
        }
    }

    async fn take_outcome(&mut self, outcome: Outcome) -> Option<crate::front::Outcome> {
        match outcome {
            Outcome::Output(text) => self.print(&text),
            Outcome::Panel(panel) => panel.as_lines().iter().for_each(|line| self.printer.line(line)),
            Outcome::Open(what) => return self.switch(what).await,
            Outcome::Submit(text) => self.submit(text),
            Outcome::EditFile(path) => self.print(&format!("Edit this file: {path}")),
            Outcome::Copy(text) => match self.front.machine.copy(text).await {
                Ok(()) => self.print("Copied."),
                Err(error) => self.print(&format!("error: {error}")),
            },
            Outcome::SignIn(server, address) => {
                self.print(&format!("Open this address to sign in to {server}:\n{address}"));
                self.print(&format!(
                    "If the browser runs elsewhere: /mcp auth {server} ADDRESS-IT-CAME-BACK-TO"
                ));
            }
            Outcome::Page(title, text) => self.print(&format!("{title}\n{text}")),
            Outcome::AgentTranscript(agent) => self.agent_transcript(&agent),
            Outcome::Mode(mode) => {
                self.conversation.facts.mode = mode;
                self.print(&format!("mode: {}", mode.as_str()));
            }
            Outcome::Model(model) => {
                self.print(&format!("{} answers from the next call on.", one_line(&model)));
                self.conversation.facts.choose_model(model);
            }
            Outcome::Rewound(text, _) => self.print(&text),
            Outcome::Title(title) => self.print(&format!("title: {title}")),
            Outcome::Front(command, rest) => return self.front_command(command, &rest).await,
        }
        None
    }

    fn print(&mut self, text: &str) {
        plain_lines(text).iter().for_each(|line| self.printer.line(line));
    }

    async fn front_command(&mut self, command: Command, rest: &str) -> Option<crate::front::Outcome> {
        match command {
            Command::Quit => return Some(self.leave(Ended::Quit).await),
            Command::Export => {
                let whole = whole_conversation(&*self.session.client).await;
                let text = markdown(whole.cells(), &whole.facts.cwd);
                let name = if rest.is_empty() {
                    format!("{}.md", self.session.client.session_id())
                } else {
                    rest.to_owned()
                };
                match self.front.machine.write_new(name, text).await {
                    Ok(path) => self.print(&format!("Wrote {path}")),
                    Err(error) => self.print(&format!("error: {error}")),
                }
            }
            Command::Diff => {
                let changes: Vec<String> = self
                    .conversation
                    .changes
                    .iter()
                    .map(|change| format!("{}\n{}", change.path, change.diff))
                    .collect();
                let text =
                    if changes.is_empty() { "no file was changed".to_owned() } else { changes.join("\n") };
                self.print(&text);
            }
            Command::Todo => {
                let lines: Vec<String> = self
                    .conversation
                    .todo
                    .iter()
                    .map(|item| {
                        let word = match item.progress {
                            TodoProgress::Open => "open",
                            TodoProgress::Active => "in progress",
                            TodoProgress::Done => "done",
                        };
                        format!("{word}: {}", item.text)
                    })
                    .collect();
                self.print(&if lines.is_empty() { "no list of steps".to_owned() } else { lines.join("\n") });
            }
            Command::Transcript => {
                let whole = whole_conversation(&*self.session.client).await;
                self.print(&markdown(whole.cells(), &whole.facts.cwd));
            }
            Command::Shortcuts => {
                self.print("Enter sends. Ctrl+C stops the turn; twice it leaves. Ctrl+D leaves. Lines with ! go to the shell.");
            }
            Command::Login => {
                self.print(
                    "Type /login PROVIDER KEY, with the provider anthropic, openai or one of your settings.",
                );
            }
            Command::Theme | Command::Vim => self.print("Line mode has no colours and no keys of its own."),
            other => self.print(&format!("{other:?} does nothing here")),
        }
        None
    }

    /// Leaves this session for another one.
    async fn switch(&mut self, what: Open) -> Option<crate::front::Outcome> {
        match self.front.machine.open(what).await {
            Ok(opened) => {
                let before = std::mem::replace(&mut self.session, opened);
                before.client.close(qoder_protocol::Leave::EndTurn).await;
                self.conversation = Conversation::new(self.session.client.session_id());
                self.dialog = None;
                self.print(&format!("session {}", self.session.client.session_id()));
                for notice in self.session.notices.clone() {
                    self.conversation.notice(Level::Info, notice);
                }
            }
            Err(failure) => self.print(&format!("error: {failure}")),
        }
        None
    }

    /// Prints what an agent did so far.
    fn agent_transcript(&mut self, agent: &str) {
        let Some(mut events) = self.session.client.subscribe_agent(agent) else {
            self.print("error: the transcript of this agent cannot be read");
            return;
        };
        let mut conversation = Conversation::holding_all(agent);
        while let Some(event) = events.try_next() {
            let is_last = matches!(event, qoder_protocol::SessionEvent::CaughtUp);
            conversation.fold(&event, Instant::now());
            if is_last {
                break;
            }
        }
        let text = markdown(conversation.cells(), &self.conversation.facts.cwd);
        self.print(&text);
    }

    /// Runs a command in the shell.
    pub(super) fn run_shell(&mut self, command: &str) {
        let uuid = uuid::Uuid::new_v4().to_string();
        self.printer.was_typed(&uuid);
        let prompt = Prompt { uuid: uuid.clone(), text: format!("!{command}"), images: 0 };
        self.conversation.submitted(prompt, Instant::now());
        let request = HostRequest::RunCommand { command: command.to_owned(), uuid: Some(uuid.clone()) };
        let (client, updates) = (Arc::clone(&self.session.client), self.updates.clone());
        tokio::spawn(async move {
            if let Err(error) = client.request(request).await {
                // The front may have ended meanwhile.
                let _ = updates.send(Update::Undelivered(uuid, error.to_string()));
            }
        });
    }
}
