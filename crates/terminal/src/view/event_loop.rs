//! The loop: waits for a key, an event, a signal or the time, takes all of it that is there, and draws when the terminal has
//! taken the last frame. When nothing happens nothing runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_protocol::{Leave, SessionEvent, SessionState};

use super::{App, Dirty, QuestionView, Update};
use crate::front::{Driven, Ended, Front, Outcome, farewell};
use crate::input::{Sign, Typed};
use crate::questions::Asked;
use crate::screen::{closing_for_others, give_back, give_back_on_panic, leave_overlay, take, terminal_size};
use crate::state::Level;
use crate::theme::{Extent, Look, Theme};

/// Sizes have to rest for this long before the area is drawn anew.
const SETTLE: Duration = Duration::from_millis(50);
/// The most events that are taken before keys are looked at again.
const MOST_EVENTS: usize = 2_000;
/// How long the end may wait for a terminal that takes nothing.
const FAREWELL: Duration = Duration::from_millis(500);

/// What woke the loop up.
enum Wake {
    Typed(Option<Typed>),
    Event(SessionEvent),
    Update(Update),
    Sign(Sign),
    Overlay(SessionEvent),
    Written,
    Time,
}

/// Runs the front to its end.
pub(crate) async fn run(front: Front) -> std::io::Result<Outcome> {
    front.machine.hold_terminal(&closing_for_others(&front.environment));
    take(&front.environment)?;
    give_back_on_panic();
    let mut app = match App::new(front) {
        Ok(app) => app,
        Err(error) => {
            give_back();
            return Err(error);
        }
    };
    app.prepare();
    app.draw(Instant::now());
    let outcome = loop {
        // This may find that the session is over; nothing else would wake the loop up then.
        app.sync();
        if let Some(outcome) = app.ended.take() {
            break outcome;
        }
        let wake = app.wait().await;
        app.take_wake(wake).await;
        app.edit_if_wanted().await;
        app.leave_if_wanted().await;
        app.look_around(Instant::now());
        app.draw_if_due(Instant::now());
    };
    app.finish(&outcome).await;
    Ok(outcome)
}

impl App {
    /// Reads what the user configured, and begins: with the question about the folder, or with the session.
    fn prepare(&mut self) {
        self.use_settings(self.front.settings.clone());
        if let Some(text) = self.front.machine.key_bindings() {
            let (bindings, problems) = super::Bindings::read(&text);
            self.bindings = bindings;
            problems.into_iter().for_each(|problem| self.conversation.notice(Level::Warning, problem));
        }
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let earlier = machine.history().await;
            // The front may have ended meanwhile.
            let _ = updates.send(Update::History(earlier));
        });
        match self.front.machine.trust_question() {
            Some(facts) => {
                self.conversation.is_caught_up = true;
                self.question = Some(QuestionView::new(Asked::Trust(facts)));
            }
            None => self.begin(),
        }
    }

    /// These settings count from now on.
    pub(super) fn use_settings(&mut self, settings: crate::front::UiSettings) {
        self.theme = Theme::new(settings.theme.as_deref(), &settings.custom_themes, self.colors);
        self.composer.set_vim(settings.vim);
        self.front.settings = settings;
    }

    /// Waits for something to do.
    async fn wait(&mut self) -> Wake {
        // Looked at once: the writer's end wakes the loop up whenever the deadline was chosen without a frame.
        let is_writing = self.writer.is_busy();
        let deadline = self.deadline(Instant::now(), is_writing);
        let Self { session, reader, arrived, signals, writer, overlay, .. } = self;
        let event = async {
            match session {
                Some(session) => session.events.next().await,
                None => std::future::pending().await,
            }
        };
        let overlaid = async {
            match overlay {
                Some((overlay, _)) => overlay.next().await,
                None => std::future::pending().await,
            }
        };
        let time = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let written = async {
            if is_writing {
                writer.idle().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            typed = reader.typed.recv() => Wake::Typed(typed),
            sign = signals.next() => Wake::Sign(sign),
            Some(update) = arrived.recv() => Wake::Update(update),
            () = written => Wake::Written,
            event = event => Wake::Event(event),
            event = overlaid => Wake::Overlay(event),
            () = time => Wake::Time,
        }
    }

    /// When something happens by itself; never, when nothing moves. What has to be written waits for the frame that
    /// `is_writing`.
    fn deadline(&self, now: Instant, is_writing: bool) -> Option<Instant> {
        let frame = match self.dirty {
            Dirty::No => None,
            _ if is_writing || self.resized.is_some() => None,
            Dirty::Soon => Some(self.frame_due),
            Dirty::Now => Some(now),
        };
        let spinner = self.is_spinning().then_some(self.spinner_due);
        let hint = self.hint.as_ref().map(|hint| hint.until);
        let focus = self.question.as_ref().and_then(|question| question.focus_due(self.last_key));
        let settle = self.resized.filter(|_| !is_writing).map(|since| since + SETTLE);
        let title = self.title_due().filter(|_| !is_writing);
        let status = self.status_due();
        [frame, spinner, hint, focus, settle, title, status].into_iter().flatten().min()
    }

    /// True while something on the screen moves by itself.
    fn is_spinning(&self) -> bool {
        let runs = self.conversation.facts.is_running() || self.is_opening;
        runs && !self.front.settings.still && self.question.is_none()
    }

    async fn take_wake(&mut self, wake: Wake) {
        match wake {
            Wake::Typed(Some(typed)) => self.take_typed(typed).await,
            // The terminal is gone.
            Wake::Typed(None) => self.leave(Ended::Signal("SIGHUP")).await,
            Wake::Event(event) => self.take_events(&event),
            Wake::Update(update) => self.take_update(update),
            Wake::Sign(Sign::Resized) => self.resized = Some(Instant::now()),
            Wake::Sign(Sign::Interrupt) if self.conversation.facts.is_running() => self.interrupt(),
            Wake::Sign(Sign::Interrupt) => self.leave(Ended::Signal("SIGINT")).await,
            Wake::Sign(Sign::End(name)) => self.leave(Ended::Signal(name)).await,
            Wake::Sign(Sign::Suspend) if self.ignored_suspends > 0 => self.ignored_suspends -= 1,
            Wake::Sign(Sign::Suspend) => self.stop_until_continued().await,
            Wake::Overlay(event) => {
                if let Some((overlay, _)) = &mut self.overlay {
                    overlay.take(&event, Instant::now());
                }
                self.touch(Dirty::Soon);
            }
            Wake::Written => {
                if self.writer.has_failed() {
                    self.leave(Ended::Signal("SIGHUP")).await;
                }
            }
            Wake::Time => {}
        }
        self.take_time(Instant::now());
    }

    /// What is due by now.
    fn take_time(&mut self, now: Instant) {
        if self.is_spinning() && now >= self.spinner_due {
            self.spinner = self.spinner.wrapping_add(1);
            self.spinner_due = now + if self.has_focus { self.pace.spinner } else { Duration::from_secs(1) };
            self.touch(Dirty::Soon);
        }
        if self.hint.as_ref().is_some_and(|hint| now >= hint.until) {
            self.hint = None;
            self.touch(Dirty::Now);
        }
        if self.title_due().is_some_and(|due| now >= due) {
            self.touch(Dirty::Soon);
        }
        let last_key = self.last_key;
        if let Some(question) = &mut self.question
            && question.focus_due(last_key).is_some_and(|due| now >= due)
        {
            question.focus(now);
            self.touch(Dirty::Now);
        }
        if self.resized.is_some_and(|since| now >= since + SETTLE) && !self.writer.is_busy() {
            if self.overlay.is_some() {
                // The area below is brought up to date when the overlay is closed.
                self.resized = None;
            } else {
                self.resized = None;
                let (width, height) = terminal_size();
                let bytes = self.surface.resize(width, height);
                self.raw.extend(bytes);
            }
            self.touch(Dirty::Now);
        }
    }

    /// True when the terminal has another size than the area was drawn for.
    pub(super) fn has_other_size(&self) -> bool {
        terminal_size() != (self.surface.width(), self.surface.height())
    }

    /// Writes a sequence before the next frame.
    pub(super) fn write_raw(&mut self, sequence: &str) {
        self.raw.extend_from_slice(sequence.as_bytes());
        self.touch(Dirty::Now);
    }

    /// Takes an event and all others that are there.
    fn take_events(&mut self, first: &SessionEvent) {
        let now = Instant::now();
        self.conversation.fold(first, now);
        for _ in 0..MOST_EVENTS {
            let Some(event) = self.session.as_mut().and_then(|session| session.events.try_next()) else {
                break;
            };
            self.conversation.fold(&event, now);
        }
        if self.conversation.facts.turn.as_ref().is_some_and(|turn| turn.has_answer) {
            self.last_sent = None;
        }
        self.touch(Dirty::Soon);
    }

    /// Brings what is derived up to date: the question that is shown, and the end of the session.
    fn sync(&mut self) {
        let open = |conversation: &crate::state::Conversation, action: &qoder_protocol::ActionId| {
            conversation.questions.iter().any(|question| question.action() == *action)
        };
        self.answered.retain(|action| open(&self.conversation, action));
        if self.question.as_ref().is_some_and(|question| !question.is_open(&self.conversation)) {
            self.question = None;
            self.touch(Dirty::Now);
        }
        if self.question.is_none() && self.session.is_some() {
            let files = self.front.machine.settings_files();
            let has_judge = self.front.machine.has_judge();
            self.question = QuestionView::next(&self.conversation, &files, has_judge, &self.answered);
            if self.question.is_some() {
                self.touch(Dirty::Now);
            }
        }
        if let Some(problem) = self.conversation.ended.take().filter(|_| !self.is_opening) {
            self.is_over = true;
            let ended = problem.map_or(Ended::Quit, Ended::Failed);
            self.ended = Some(self.outcome(ended));
        }
    }

    fn draw_if_due(&mut self, now: Instant) {
        let is_due = match self.dirty {
            Dirty::No => false,
            Dirty::Soon => now >= self.frame_due,
            Dirty::Now => true,
        };
        if is_due && !self.writer.is_busy() && self.resized.is_none() && self.ended.is_none() {
            self.draw(now);
        }
    }

    /// Draws the newest state.
    pub(super) fn draw(&mut self, now: Instant) {
        let mut bytes = std::mem::take(&mut self.raw);
        bytes.extend(self.announcements(now).into_bytes());
        if let Some((mut overlay, mut sheet)) = self.overlay.take() {
            let (width, height) = terminal_size();
            let screen = {
                let look = Look { width, ..self.look(Extent::Whole, now) };
                overlay.screen(&look, height)
            };
            bytes.extend(sheet.draw(&screen, width));
            self.overlay = Some((overlay, sheet));
            self.writer.write(bytes);
            (self.dirty, self.frame_due) = (Dirty::No, now + self.pace.frame);
            return;
        }
        let mut printed = std::mem::take(&mut self.printed);
        let mut conversation = std::mem::replace(&mut self.conversation, crate::state::Conversation::new(""));
        let cwd = conversation.facts.cwd.clone();
        let look = Look { cwd: &cwd, ..self.look(Extent::Short, now) };
        let commits = printed.take(&mut conversation, &look);
        (self.printed, self.conversation) = (printed, conversation);
        self.unprinted.extend(commits);
        let count = self.pace.lines.min(self.unprinted.len());
        let commits: Vec<_> = self.unprinted.drain(..count).collect();
        let frame = self.frame(now);
        bytes.extend(self.surface.draw(&commits, &frame));
        self.writer.write(bytes);
        if self.unprinted.is_empty() {
            (self.dirty, self.frame_due) = (Dirty::No, now + self.pace.frame);
        } else {
            // The rest follows as soon as the terminal has taken this; keys are shown in between.
            (self.dirty, self.frame_due) = (Dirty::Soon, now);
        }
        if let Some(question) = &mut self.question {
            question.painted.get_or_insert(now);
        }
    }

    /// Leaves the session. What waits for an answer stays open.
    pub(super) async fn leave(&mut self, ended: Ended) {
        // Closing takes the questions away from this front; in the log they stay open.
        self.leaves_question = !self.conversation.questions.is_empty();
        let waits = self.conversation.facts.state == SessionState::RequiresAction || self.leaves_question;
        let by_signal = matches!(ended, Ended::Signal(_));
        let leave = if waits || by_signal { Leave::KeepTurnOpen } else { Leave::EndTurn };
        if let Some(session) = &mut self.session {
            session.client.close(leave).await;
            let now = Instant::now();
            while let Some(event) = session.events.try_next() {
                self.conversation.fold(&event, now);
            }
        }
        self.conversation.ended = None;
        self.ended = Some(self.outcome(ended));
    }

    fn outcome(&self, ended: Ended) -> Outcome {
        let session_id = self.session.as_ref().map(|session| session.client.session_id().to_owned());
        Outcome { session_id, ended }
    }

    /// Prints what is finished, takes the area away, gives the terminal back and says how to continue.
    async fn finish(&mut self, outcome: &Outcome) {
        // A terminal that takes nothing does not hold the end up.
        let _ = tokio::time::timeout(FAREWELL, self.writer.idle()).await;
        if let Some(keeping) = self.keeping.take() {
            let _ = tokio::time::timeout(FAREWELL, keeping).await;
        }
        if self.overlay.take().is_some() {
            self.raw.extend_from_slice(leave_overlay().as_bytes());
        }
        if !self.writer.is_busy() && !self.writer.has_failed() {
            if let Ended::Failed(problem) = &outcome.ended {
                self.conversation.notice(Level::Error, problem.clone());
            }
            // Whatever is left is printed now.
            self.pace.lines = usize::MAX;
            self.draw(Instant::now());
            let _ = tokio::time::timeout(FAREWELL, self.writer.idle()).await;
            let mut bytes = self.surface.erase();
            if let Some(session) = &self.session {
                let id = session.client.session_id();
                // One that was deleted, or never kept, cannot be resumed.
                let is_kept = session.driven != Driven::Here || self.front.machine.transcript(id).is_some();
                if is_kept {
                    let words = farewell(id, session.driven, self.is_over, self.leaves_question);
                    bytes.extend(words.replace('\n', "\r\n").into_bytes());
                    bytes.extend(b"\r\n");
                }
            }
            self.writer.write(bytes);
            let _ = tokio::time::timeout(FAREWELL, self.writer.idle()).await;
        }
        give_back();
        self.front.machine.set_terminal_taken(false);
    }

    /// Gives the terminal back, stops, and takes it again when the program is continued.
    pub(super) async fn stop_until_continued(&mut self) {
        if !is_below_a_shell() {
            self.hint("No shell waits behind this program: it cannot be suspended.", Duration::from_secs(3));
            return;
        }
        self.writer.idle().await;
        self.writer.write(self.surface.erase());
        self.writer.idle().await;
        self.hand_over();
        // A script around this program stops too, or the shell would wait for it. Here the signal is handled, not obeyed.
        self.ignored_suspends += 1;
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        // Stops the whole program here; it continues behind this line.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
        self.take_again();
    }

    /// Gives the terminal to another program.
    pub(super) fn hand_over(&mut self) {
        self.reader.pause();
        give_back();
        self.front.machine.set_terminal_taken(false);
    }

    /// Takes the terminal again.
    pub(super) fn take_again(&mut self) {
        self.front.machine.set_terminal_taken(true);
        // A terminal that is gone is met by the next read.
        let _ = take(&self.front.environment);
        self.reader.resume();
        let now = Instant::now();
        (self.resized, self.last_key) = (Some(now), now);
        self.touch(Dirty::Now);
    }
}

/// True when a shell with jobs started this program: its jobs are not in the shell's own process group.
fn is_below_a_shell() -> bool {
    let group = rustix::process::getpgid(None);
    let session = rustix::process::getsid(None);
    !matches!((group, session), (Ok(group), Ok(session)) if group == session)
}
