//! What the front asks of its session: to be opened, to take a message, an answer, an interrupt. Each runs by itself, and what
//! comes of it arrives as an update.

use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_protocol::control::HostRequest;
use qoder_protocol::{ActionId, Answer, ElicitationAnswer, SessionClient};
use qoder_types::record::InputAdmitted;
use qoder_types::{ContentBlock, ImageSource, Message, MessageContent, Role};

use super::{App, Dirty, Update};
use crate::composer::Draft;
use crate::front::{Driven, Ended, Open, OpenFailure, Opened, SessionRow, opening_words};
use crate::panels::{Panel, PanelRow, sessions_panel};
use crate::state::{Conversation, Level, Prompt};
use crate::text::one_line;

/// What is offered for a session that another process drives.
const HELD_ATTACH: &str = "/held attach";
const HELD_FORK: &str = "/held copy";
const HELD_LEAVE: &str = "/held leave";

impl App {
    /// Opens a session; it arrives as an update.
    pub(super) fn open(&mut self, what: Open) {
        self.is_opening = true;
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            // The front may have ended meanwhile.
            let _ = updates.send(Update::Opened(machine.open(what).await));
        });
    }

    /// Begins with the session that was asked for.
    pub(super) fn begin(&mut self) {
        match self.front.open.clone() {
            Open::Choose => self.list_sessions(),
            what @ (Open::New | Open::Given | Open::Resume(_) | Open::Fork(_) | Open::Attach(_)) => {
                self.open(what)
            }
        }
        if let Some(prompt) = self.front.first_prompt.take() {
            self.run_draft(Draft::of(prompt));
        }
    }

    /// Looks up the sessions that one can be chosen from.
    fn list_sessions(&mut self) {
        self.conversation.is_caught_up = true;
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            // The front may have ended meanwhile.
            let _ = updates.send(Update::Sessions(machine.sessions().await));
        });
    }

    fn choose_session(&mut self, sessions: &[SessionRow]) {
        if sessions.is_empty() {
            self.conversation
                .notice(Level::Info, "There is no earlier session in this folder; this is a new one.");
            self.open(Open::New);
        } else {
            self.show_panel(sessions_panel(sessions));
        }
    }

    /// The last panel was closed while there is no session.
    pub(super) fn panel_was_closed(&mut self) {
        if !self.panels.is_empty() || self.session.is_some() || self.is_opening || self.question.is_some() {
            return;
        }
        match self.held.take() {
            Some(failure) => self.fail_to_open(&failure),
            None => self.open(Open::New),
        }
    }

    /// Offers what can be done about a session that another process drives.
    fn offer_held(&mut self, failure: &OpenFailure) {
        self.conversation.is_caught_up = true;
        let mut panel = Panel::new(one_line(&failure.message), "");
        panel.rows = vec![
            PanelRow::new("Attach to it", "what you type goes to the process that drives it")
                .offering("", HELD_ATTACH),
            PanelRow::new("Work on a copy of it", "a session of its own").offering("", HELD_FORK),
            PanelRow::new("Leave", "").offering("", HELD_LEAVE),
        ];
        self.held = Some(failure.clone());
        self.show_panel(panel);
    }

    /// Does what a panel offers while there is no session. False when it is nothing of that.
    pub(super) fn run_without_session(&mut self, line: &str) -> bool {
        if self.session.is_some() {
            return false;
        }
        let held = self.held.take();
        let id = held.as_ref().and_then(|failure| failure.driven_elsewhere.clone()).unwrap_or_default();
        match (line, held) {
            (HELD_ATTACH, Some(_)) => self.open(Open::Attach(id)),
            (HELD_FORK, Some(_)) => self.open(Open::Fork(id)),
            (_, Some(failure)) => self.fail_to_open(&failure),
            (line, None) => match (line.strip_prefix("/resume "), line.strip_prefix("/branch ")) {
                (Some(id), _) => self.open(Open::Resume(id.to_owned())),
                (None, Some(id)) => self.open(Open::Fork(id.to_owned())),
                (None, None) => return false,
            },
        }
        true
    }

    pub(super) fn take_update(&mut self, update: Update) {
        match update {
            Update::Opened(Ok(opened)) => self.take_session(opened),
            Update::Opened(Err(failure)) => self.take_failure(&failure),
            Update::Sessions(sessions) => self.choose_session(&sessions),
            Update::Problem(text) => self.conversation.notice(Level::Error, text),
            Update::Undelivered { uuid, text, problem } => {
                self.conversation.undelivered(&uuid);
                self.conversation.notice(Level::Error, problem);
                self.composer.put_before(&text);
            }
            Update::NotAnswered(action, problem) => {
                self.answered.retain(|answered| *answered != action);
                self.conversation.notice(Level::Warning, problem);
            }
            Update::Interrupted(Ok(_)) => {}
            Update::Interrupted(Err(error)) => self.conversation.notice(Level::Error, error.to_string()),
            Update::Withdrawn(id, true) => {
                if let Some(queued) = self.conversation.withdrawn(&id) {
                    self.composer.put_before(&queued.text);
                }
            }
            Update::Withdrawn(_, false) => {
                self.hint("It was too late: the message has its turn.", Duration::from_secs(2));
            }
            Update::Command(outcome) => self.take_outcome(*outcome),
            Update::Hint(text) => self.hint(text, Duration::from_secs(3)),
            Update::CopyByTerminal(text) => self.copy_by_terminal(&text),
            Update::Paths(paths) => self.take_paths(paths),
            Update::Candidates(trigger, found) => self.take_candidates(&trigger, found),
            Update::Commands(commands) => self.take_commands(commands),
            Update::History(earlier) => self.composer.recall().load(earlier),
            Update::Image(image) => self.composer.add_image(image),
            Update::Pasted(text) => self.composer.paste(&text),
            Update::Branch(branch) => self.branch = branch,
            Update::StatusLine(line) => {
                self.background.is_asking = false;
                // A command that failed leaves the line blank.
                self.background.status = Some(line.unwrap_or_default());
            }
            Update::Trusted(Ok(settings)) => {
                self.use_settings(*settings);
                self.begin();
            }
            Update::Trusted(Err(problem)) => {
                self.conversation.notice(Level::Error, problem);
                self.begin();
            }
        }
        self.touch(Dirty::Soon);
    }

    fn take_session(&mut self, opened: Opened) {
        self.is_opening = false;
        (self.leaving, self.question) = (None, None);
        let mut conversation = Conversation::new(opened.client.session_id());
        // What the front said before the session was open is said first.
        self.conversation.cells().cloned().for_each(|cell| conversation.adopt(cell));
        conversation.facts.cwd.clone_from(&opened.folder);
        (conversation.facts.model, conversation.facts.offline) = (opened.model.clone(), opened.offline);
        conversation.facts.mode = opened.mode;
        if opened.driven == Driven::Here {
            env!("CARGO_PKG_VERSION").clone_into(&mut conversation.facts.version);
        }
        self.conversation = conversation;
        self.printed.begin_anew();
        self.answered.clear();
        if let Some(words) = self.opened_by.take() {
            self.conversation.rule(words);
        }
        for notice in &opened.notices {
            self.conversation.notice(Level::Warning, notice.clone());
        }
        if let Some(words) = opening_words(&opened) {
            self.conversation.notice(Level::Info, words);
        }
        self.session = Some(opened);
        self.learn_commands();
        for draft in std::mem::take(&mut self.waiting) {
            self.run_draft(draft);
        }
    }

    fn take_failure(&mut self, failure: &OpenFailure) {
        self.is_opening = false;
        if failure.driven_elsewhere.is_some() {
            self.leaving = None;
            return self.offer_held(failure);
        }
        self.fail_to_open(failure);
    }

    fn fail_to_open(&mut self, failure: &OpenFailure) {
        let text = match failure.hint.as_str() {
            "" => failure.message.clone(),
            hint => format!("{}\n{hint}", failure.message),
        };
        match self.leaving.take() {
            // The session that was to be left has ended; another one can be chosen.
            Some(_) => {
                self.conversation.is_caught_up = true;
                self.conversation.notice(Level::Error, text);
                self.open(Open::New);
            }
            None => {
                self.conversation.is_caught_up = true;
                let ended = Ended::Failed(text);
                self.ended = Some(crate::front::Outcome { session_id: None, ended });
            }
        }
    }

    fn client(&self) -> Option<Arc<dyn SessionClient>> {
        self.session.as_ref().map(|session| Arc::clone(&session.client))
    }

    /// Sends a text as if it had been written.
    pub(super) fn submit_text(&mut self, text: &str) {
        self.send(Draft::of(text));
    }

    /// Sends a draft as a message; before the session is open it waits.
    pub(super) fn send(&mut self, draft: Draft) {
        let Some(client) = self.client() else {
            self.waiting.push(draft);
            return;
        };
        let uuid = uuid::Uuid::new_v4().to_string();
        let (text, images) = (draft.expanded(), draft.images());
        let expanded = text.clone();
        let prompt = Prompt { uuid: uuid.clone(), text: text.clone(), images: images.len() };
        let runs = self.conversation.facts.is_running();
        self.conversation.submitted(prompt, Instant::now());
        if !runs {
            self.last_sent = Some((uuid.clone(), draft));
        }
        let content = if images.is_empty() {
            MessageContent::Text(text)
        } else {
            let pictures = images.into_iter().map(|image| ContentBlock::Image {
                source: ImageSource::Base64 { media_type: image.media_type, data: image.data },
            });
            MessageContent::Blocks(std::iter::once(ContentBlock::text(text)).chain(pictures).collect())
        };
        let input = InputAdmitted::user(uuid.clone(), Message { role: Role::User, content });
        let (updates, text) = (self.updates.clone(), expanded);
        tokio::spawn(async move {
            if let Err(error) = client.submit(input).await {
                let problem = format!("the message was not delivered: {error}");
                // The front may have ended meanwhile.
                let _ = updates.send(Update::Undelivered { uuid, text, problem });
            }
        });
        self.touch(Dirty::Now);
    }

    /// Answers a question of the gate.
    pub(super) fn answer(&mut self, action: ActionId, answer: Answer) {
        let Some(client) = self.client() else { return };
        self.answered.push(action.clone());
        self.conversation.answered_here(action.clone(), answer.by.clone());
        self.question = None;
        let updates = self.updates.clone();
        tokio::spawn(async move {
            if let Err(error) = client.answer(action.clone(), answer).await {
                let _ = updates.send(Update::NotAnswered(action, error.to_string()));
            }
        });
        self.touch(Dirty::Now);
    }

    /// Answers a server.
    pub(super) fn answer_elicitation(&mut self, id: String, answer: ElicitationAnswer) {
        let Some(client) = self.client() else { return };
        self.conversation.elicitations.retain(|open| open.elicitation_id != id);
        self.question = None;
        let updates = self.updates.clone();
        tokio::spawn(async move {
            if let Err(error) = client.answer_elicitation(id, answer).await {
                let _ = updates.send(Update::Problem(error.to_string()));
            }
        });
        self.touch(Dirty::Now);
    }

    /// Stops the turn. A prompt to which nothing came back returns to the composer.
    pub(super) fn interrupt(&mut self) {
        let Some(client) = self.client().filter(|_| self.conversation.facts.is_running()) else { return };
        let answered = self.conversation.facts.turn.as_ref().is_some_and(|turn| turn.has_answer);
        if let Some((_, draft)) = self.last_sent.take().filter(|_| !answered) {
            self.composer.put_before(&draft.expanded());
        }
        let (by, updates) = (self.front.machine.person(), self.updates.clone());
        tokio::spawn(async move {
            let _ = updates.send(Update::Interrupted(client.interrupt(by).await));
        });
        self.touch(Dirty::Now);
    }

    /// Takes the last queued message back into the composer.
    pub(super) fn take_back(&mut self) {
        let (Some(client), Some(queued)) = (self.client(), self.conversation.queued.last()) else { return };
        let (id, updates) = (queued.id.clone(), self.updates.clone());
        tokio::spawn(async move {
            let request = HostRequest::CancelAsyncMessage { uuid: id.clone() };
            let taken = match client.request(request).await {
                Ok(answer) => answer["cancelled"].as_bool().unwrap_or(false),
                Err(_) => false,
            };
            let _ = updates.send(Update::Withdrawn(id, taken));
        });
    }

    /// Has a request served; only a problem is reported.
    pub(super) fn request(&mut self, request: HostRequest) {
        let Some(client) = self.client() else { return };
        let updates = self.updates.clone();
        tokio::spawn(async move {
            if let Err(error) = client.request(request).await {
                let _ = updates.send(Update::Problem(error.to_string()));
            }
        });
    }
}
