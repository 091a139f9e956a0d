//! A complete front without cursor movement: lines in, lines out, each with a label. For screen readers, for terminals that
//! cannot do more, and for slow links. Nothing is drawn twice, nothing ticks; menus are numbered and answered by typing.

mod command;
mod dialog;
mod print;
mod start;
mod typed;

use std::time::{Duration, Instant};

use qoder_protocol::{Leave, SessionEvent, SessionState};
use qoder_types::Message;
use qoder_types::record::InputAdmitted;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::commands;
use crate::front::LineModeReason;
use crate::front::{Driven, Open, OpenFailure, Opened};
use crate::front::{Ended, Front, Outcome, farewell, opening_words};
use crate::state::{Conversation, Level, Prompt};
use crate::text::one_line;
use dialog::{Dialog, Reply};
use print::Printer;
use start::{ask_trust, choose_session, open};

/// How long after the first Ctrl+C a second one leaves.
const AGAIN: Duration = Duration::from_secs(1);

/// What a task of the front came to.
enum Update {
    /// Something that was sent did not arrive.
    Problem(String),
    /// The prompt with this id did not arrive, for this reason.
    Undelivered(String, String),
}

struct LineMode {
    front: Front,
    session: Opened,
    conversation: Conversation,
    printer: Printer,
    dialog: Option<Dialog>,
    updates: mpsc::UnboundedSender<Update>,
    warned: Option<Instant>,
}

/// Runs the front to its end.
pub(crate) async fn run(mut front: Front, reason: LineModeReason) -> Outcome {
    let mut printer = Printer::new(&front.environment);
    printer.line(&format!(
        "qodercli: line mode, because {}. Type a message and press Enter. /help lists commands. Ctrl+C stops a turn, \
         Ctrl+D leaves.",
        reason.words()
    ));
    let mut lines = typed::lines();
    ask_trust(&mut front, &mut printer, &mut lines).await;
    let what = match &front.open {
        Open::Choose => choose_session(&front, &mut printer, &mut lines).await,
        what => what.clone(),
    };
    let session = match open(&front, what, &mut printer, &mut lines).await {
        Ok(session) => session,
        Err(failure) => return failed(&mut printer, &failure),
    };
    let (updates, mut arrived) = mpsc::unbounded_channel();
    let conversation = Conversation::new(session.client.session_id());
    let mut mode = LineMode { front, session, conversation, printer, dialog: None, updates, warned: None };
    mode.session.notices.clone().into_iter().for_each(|text| mode.conversation.notice(Level::Info, text));
    if let Some(words) = opening_words(&mode.session) {
        mode.conversation.notice(Level::Info, words);
    }
    if let Some(prompt) = mode.front.first_prompt.take() {
        mode.submit(prompt);
    }
    let mut signals = Signals::new();
    loop {
        mode.print_state();
        let ended = tokio::select! {
            event = mode.session.events.next() => mode.take_event(&event),
            line = lines.recv() => match line {
                Some((at, line)) => mode.take_line(&line, at).await,
                None => Some(mode.leave(Ended::Quit).await),
            },
            Some(update) = arrived.recv() => {
                let text = match update {
                    Update::Problem(text) => text,
                    Update::Undelivered(uuid, text) => {
                        mode.conversation.undelivered(&uuid);
                        text
                    }
                };
                mode.conversation.notice(Level::Error, text);
                None
            }
            signal = signals.next() => match signal {
                None => mode.interrupted().await,
                Some(name) => Some(mode.leave(Ended::Signal(name)).await),
            },
        };
        if let Some(outcome) = ended {
            return outcome;
        }
    }
}

fn failed(printer: &mut Printer, failure: &OpenFailure) -> Outcome {
    printer.line(&format!("error: {}", failure.message));
    if !failure.hint.is_empty() {
        printer.line(&format!("  hint: {}", failure.hint));
    }
    Outcome { session_id: None, ended: Ended::Failed(failure.message.clone()) }
}

impl LineMode {
    /// Prints what is finished, asks what is to be asked, and waits for the person where it is their turn.
    fn print_state(&mut self) {
        self.printer.print_cells(&mut self.conversation);
        self.printer.announce_calls(&self.conversation);
        let is_open = |dialog: &Dialog| dialog.is_open(&self.conversation);
        if self.dialog.as_ref().is_some_and(|dialog| !is_open(dialog)) {
            self.dialog = None;
        }
        if self.dialog.is_none()
            && let Some(dialog) = Dialog::next(
                &self.conversation,
                &self.front.machine.settings_files(),
                self.front.machine.has_judge(),
            )
        {
            self.printer.bell();
            dialog.print(&mut self.printer);
            self.dialog = Some(dialog);
        }
        let idle = !self.conversation.facts.is_running() && self.conversation.is_caught_up;
        if idle || self.dialog.is_some() {
            self.printer.prompt(if self.dialog.is_some() { "answer: " } else { "you: " });
        }
    }

    fn take_event(&mut self, event: &SessionEvent) -> Option<Outcome> {
        self.conversation.fold(event, Instant::now());
        let problem = self.conversation.ended.take()?;
        self.printer.print_cells(&mut self.conversation);
        if let Some(problem) = &problem {
            self.printer.line(&format!("error: the session ended: {problem}"));
        }
        Some(self.farewell(problem.map_or(Ended::Quit, Ended::Failed), true, false))
    }

    async fn take_line(&mut self, line: &str, at: Instant) -> Option<Outcome> {
        self.printer.line_was_typed();
        self.warned = None;
        let by = self.front.machine.person();
        match self.dialog.as_mut().map(|dialog| dialog.take_line(line, at, &by)) {
            Some(Reply::Answer(action, answer)) => {
                self.conversation.answered_here(action.clone(), answer.by.clone());
                let (client, updates) = (self.session.client.clone(), self.updates.clone());
                tokio::spawn(async move {
                    if let Err(error) = client.answer(action, *answer).await {
                        // The front may have ended meanwhile.
                        let _ = updates.send(Update::Problem(error.to_string()));
                    }
                });
                self.close_dialog();
                return None;
            }
            Some(Reply::Elicitation(id, answer)) => {
                let (client, updates) = (self.session.client.clone(), self.updates.clone());
                tokio::spawn(async move {
                    if let Err(error) = client.answer_elicitation(id, answer).await {
                        let _ = updates.send(Update::Problem(error.to_string()));
                    }
                });
                self.close_dialog();
                return None;
            }
            Some(Reply::More) => {
                if let Some(dialog) = &self.dialog {
                    dialog.print_step(&mut self.printer);
                }
                return None;
            }
            Some(Reply::Refused(problem)) => {
                self.printer.line(&format!("error: {}", one_line(&problem)));
                return None;
            }
            Some(Reply::NotAnAnswer) => {
                self.printer.line("The question above still waits for an answer; this line is a message.");
            }
            None => {}
        }
        if line.trim().is_empty() {
            return None;
        }
        if let Some(command) = line.trim().strip_prefix('!').filter(|command| !command.trim().is_empty()) {
            self.run_shell(command.trim());
            return None;
        }
        match commands::parse(line) {
            Some((row, rest)) => self.command(row, rest).await,
            None => {
                self.submit(line.to_owned());
                None
            }
        }
    }

    /// The question was answered here; the next one is asked when this is confirmed.
    fn close_dialog(&mut self) {
        if let Some(dialog) = self.dialog.take() {
            dialog.forget(&mut self.conversation);
        }
    }

    fn submit(&mut self, text: String) {
        let uuid = uuid::Uuid::new_v4().to_string();
        let waits = self.conversation.facts.is_running();
        if waits {
            self.printer.line(&format!("queued: {}", one_line(&text)));
        }
        self.printer.was_typed(&uuid);
        let prompt = Prompt { uuid: uuid.clone(), text: text.clone(), images: 0 };
        self.conversation.submitted(prompt, Instant::now());
        let input = InputAdmitted::user(uuid.clone(), Message::user(text));
        let (client, updates) = (self.session.client.clone(), self.updates.clone());
        tokio::spawn(async move {
            if let Err(error) = client.submit(input).await {
                // The front may have ended meanwhile.
                let problem = format!("the message was not delivered: {error}");
                let _ = updates.send(Update::Undelivered(uuid, problem));
            }
        });
    }

    /// Ctrl+C: stops the turn; without one the second of two leaves.
    async fn interrupted(&mut self) -> Option<Outcome> {
        self.printer.line_was_typed();
        if self.conversation.facts.is_running() {
            let by = self.front.machine.person();
            if let Err(error) = self.session.client.interrupt(by).await {
                self.conversation.notice(Level::Error, error.to_string());
            }
            return None;
        }
        if self.warned.is_some_and(|warned| warned.elapsed() < AGAIN) {
            return Some(self.leave(Ended::Quit).await);
        }
        self.warned = Some(Instant::now());
        self.printer.line("Press Ctrl+C again within a second, or Ctrl+D, to leave.");
        None
    }

    /// Leaves the session. What waits for an answer stays open.
    async fn leave(&mut self, ended: Ended) -> Outcome {
        // Closing takes the questions away from this front; in the log they stay open.
        let asks = !self.conversation.questions.is_empty();
        let waits = self.conversation.facts.state == SessionState::RequiresAction || asks;
        let by_signal = matches!(ended, Ended::Signal(_));
        let leave = if waits || by_signal { Leave::KeepTurnOpen } else { Leave::EndTurn };
        self.session.client.close(leave).await;
        while let Some(event) = self.session.events.try_next() {
            self.conversation.fold(&event, Instant::now());
        }
        self.printer.print_cells(&mut self.conversation);
        self.farewell(ended, false, asks)
    }

    fn farewell(&mut self, ended: Ended, is_over: bool, waits: bool) -> Outcome {
        let id = self.session.client.session_id().to_owned();
        if self.session.driven != Driven::Here || self.front.machine.transcript(&id).is_some() {
            let words = farewell(&id, self.session.driven, is_over, waits);
            words.lines().for_each(|line| self.printer.line(line));
        }
        Outcome { session_id: Some(id), ended }
    }
}

/// The signals that concern a front without a screen.
struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
}

impl Signals {
    /// Without a handler a signal ends the program, and the session is resumed from its log.
    fn new() -> Self {
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            hang_up: signal(SignalKind::hangup()).ok(),
        }
    }

    /// `None` for an interrupt, else the name of the signal that ends the program.
    async fn next(&mut self) -> Option<&'static str> {
        tokio::select! {
            () = received(&mut self.interrupt) => None,
            () = received(&mut self.terminate) => Some("SIGTERM"),
            () = received(&mut self.hang_up) => Some("SIGHUP"),
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}
