//! Where keys go: to an overlay, to the question when it has the focus, to a panel, to what they are bound to, to the composer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_protocol::control::HostRequest;

use super::bindings::KeyAction;
use super::editor::Edit;
use super::overlay::OverlayReply;
use super::popups::Search;
use super::question::Reply;
use super::{App, Dirty, Update};
use crate::composer::VimMode;
use crate::front::Ended;
use crate::input::{Input, Key, KeyCode, Typed};
use crate::panels::PanelReply;
use crate::screen::leave_overlay;
use crate::state::Level;
use crate::theme::{Extent, Look};

/// How soon a key has to come again to mean more.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a hint stays.
const HINT: Duration = Duration::from_secs(3);
/// Files with these endings are images.
const IMAGES: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

impl App {
    pub(super) async fn take_typed(&mut self, typed: Typed) {
        for input in typed.inputs {
            match input {
                Input::Key(key) => {
                    self.take_key(key, typed.at).await;
                    self.last_key = typed.at;
                }
                Input::Paste(text) => self.take_paste(&text),
                Input::Focus(has) => {
                    self.has_focus = has;
                    self.spinner_due = Instant::now();
                }
            }
            if self.ended.is_some() {
                return;
            }
        }
        self.touch(Dirty::Now);
    }

    /// A paste never answers a question. The path of an image is the image.
    fn take_paste(&mut self, text: &str) {
        if let Some((_, key)) = &mut self.secret {
            key.push_str(text.trim());
            return;
        }
        if let Some(question) = &mut self.question
            && question.paste(text)
        {
            return;
        }
        if let Some(panel) = self.panels.last_mut() {
            panel.filter.push_str(text.lines().next().unwrap_or_default());
            return;
        }
        let path = text.trim().trim_matches(['\'', '"']).replace("\\ ", " ");
        let is_image =
            !path.contains('\n') && IMAGES.iter().any(|ending| path.to_lowercase().ends_with(ending));
        if is_image && (path.starts_with('/') || path.starts_with('~')) {
            self.load_image(path);
        } else {
            self.composer.paste(text);
        }
    }

    /// Reads an image from a file; where that fails its path is text.
    fn load_image(&mut self, path: String) {
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let update = match machine.image_file(path.clone()).await {
                Ok(image) => Update::Image(image),
                Err(_) => Update::Pasted(path),
            };
            // The front may have ended meanwhile.
            let _ = updates.send(update);
        });
    }

    /// Pastes an image of the clipboard, or its text.
    fn paste_clipboard(&mut self) {
        if self.over_network {
            let text = "The clipboard is at the other end of the network: paste with the terminal, or use @path for an image.";
            self.hint(text, HINT);
            return;
        }
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let update = match machine.clipboard_image().await {
                Ok(image) => Update::Image(image),
                Err(_) => match machine.clipboard_text().await {
                    Ok(text) => Update::Pasted(text),
                    Err(error) => Update::Hint(error.to_string()),
                },
            };
            let _ = updates.send(update);
        });
    }

    async fn take_key(&mut self, key: Key, at: Instant) {
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if self.secret.is_some() {
            return self.secret_key(key);
        }
        if self.question_key(key, at) {
            return;
        }
        if let Some(panel) = self.panels.last_mut() {
            match panel.key(key) {
                PanelReply::Taken => {}
                PanelReply::Closed => {
                    self.panels.pop();
                    self.panel_was_closed();
                }
                PanelReply::Preview(session) => self.preview(&session),
                PanelReply::Offers(offers) => self.panels.push(offers),
                PanelReply::Run(line) => {
                    self.panels.clear();
                    self.run_offer(&line);
                }
            }
            return;
        }
        if self.search.is_some() {
            return self.search_key(key);
        }
        if self.popup_key(key) {
            return;
        }
        self.prompt_key(key).await;
        self.update_popup();
    }

    /// A key while a question is shown. False when it is for the prompt.
    fn question_key(&mut self, key: Key, at: Instant) -> bool {
        let by = self.front.machine.person();
        let Some(question) = &mut self.question else { return false };
        match question.key(key, at, &by) {
            Reply::Taken => {}
            Reply::NotMine => {
                question.unfocus();
                return false;
            }
            Reply::Answer(action, answer) => self.answer(action, *answer),
            Reply::Elicitation(id, answer) => self.answer_elicitation(id, answer),
            Reply::Edit(text) => self.edit = Some(Edit::Question(text)),
            Reply::Trust(yes) => self.decide_trust(yes),
        }
        true
    }

    async fn prompt_key(&mut self, key: Key) {
        let width = self.surface.width().saturating_sub(2);
        // Vim's Escape comes before every other.
        if key.code == KeyCode::Esc
            && matches!(self.composer.vim_mode(), Some(VimMode::Insert | VimMode::Visual))
            && self.composer.key(key, width)
        {
            return;
        }
        let is_command = self.composer.vim_mode() == Some(VimMode::Normal);
        let writes =
            key.text().is_some() && (is_command || !(key == Key::char('?') && self.composer.is_empty()));
        if !writes
            && let Some(action) = self.bindings.find(key)
            && self.act(action).await
        {
            return;
        }
        if self.composer.key(key, width) {
            self.composer.recall().rest();
            return;
        }
        self.walk_history(key);
    }

    /// Up and Down at the edges of the draft: earlier prompts.
    fn walk_history(&mut self, key: Key) {
        let draft = self.composer.draft().clone();
        let found = match key.code {
            KeyCode::Up if !key.alt && !key.ctrl => self.composer.recall().older(&draft),
            KeyCode::Down if !key.alt && !key.ctrl => self.composer.recall().newer(),
            _ => None,
        };
        if let Some(found) = found {
            self.composer.set(found);
            // The next Up or Down walks on, and does not choose from a list.
            self.dismissed = crate::popup::trigger(self.composer.draft());
        }
    }

    /// Does what a key is bound to. False when the key is for the composer after all.
    async fn act(&mut self, action: KeyAction) -> bool {
        if action != KeyAction::Cancel {
            self.last_cancel = None;
        }
        if action != KeyAction::Escape {
            self.last_escape = None;
        }
        match action {
            KeyAction::Submit => self.submit(),
            KeyAction::Newline => self.composer.insert("\n"),
            KeyAction::Escape => self.escape(),
            KeyAction::Cancel => self.cancel().await,
            KeyAction::Quit if self.composer.is_empty() => self.leave(Ended::Quit).await,
            KeyAction::Quit => return false,
            KeyAction::NextMode => self.next_mode(),
            KeyAction::Bypass if self.composer.has_cut() || !self.composer.is_empty() => return false,
            KeyAction::Bypass => self.bypass(),
            KeyAction::Background => self.request(HostRequest::BackgroundTasks { tool_use_id: None }),
            KeyAction::Transcript => {
                if !self.composer.expand_token() {
                    self.show_transcript();
                }
            }
            KeyAction::Redraw => self.redraw(),
            KeyAction::Suspend => self.stop_until_continued().await,
            KeyAction::FocusQuestion => {
                if let Some(question) = &mut self.question {
                    question.focus(Instant::now());
                }
            }
            KeyAction::TakeBack => self.take_back(),
            KeyAction::Todo => self.show_todo(),
            KeyAction::Editor => self.edit = Some(Edit::Draft),
            KeyAction::Search => self.search = Some(Search::default()),
            KeyAction::Paste => self.paste_clipboard(),
            KeyAction::Shortcuts if self.composer.is_empty() => self.show_shortcuts(),
            KeyAction::Shortcuts => return false,
        }
        true
    }

    /// Sends what was written. A backslash at its end means a new line.
    fn submit(&mut self) {
        let text = self.composer.draft().text();
        let cursor = self.composer.draft().cursor();
        if cursor > 0 && text.as_bytes().get(cursor - 1) == Some(&b'\\') {
            self.composer.replace(cursor - 1..cursor, "\n");
            return;
        }
        if text.trim().is_empty() {
            return;
        }
        let draft = self.composer.take();
        self.remember(&draft.expanded());
        self.popup = None;
        self.run_draft(draft);
    }

    /// Keeps a prompt among the earlier ones. A key that was given to a command is not kept.
    fn remember(&mut self, text: &str) {
        if text.trim_start().starts_with("/login ") || text.trim_start().starts_with("/signin ") {
            return;
        }
        self.composer.recall().add(text);
        let (machine, text) = (Arc::clone(&self.front.machine), text.to_owned());
        let before = self.keeping.take();
        self.keeping = Some(tokio::spawn(async move {
            if let Some(before) = before {
                // One that failed is not worth a word.
                let _ = before.await;
            }
            machine.keep_history(text).await;
        }));
    }

    fn escape(&mut self) {
        let again = self.last_escape.take().is_some_and(|last| last.elapsed() < AGAIN);
        if self.conversation.facts.is_running() {
            if self.front.settings.double_escape && !again {
                self.last_escape = Some(Instant::now());
                self.hint("Esc again stops the turn.", AGAIN);
                return;
            }
            self.interrupt();
            return;
        }
        if !again {
            self.last_escape = Some(Instant::now());
            if !self.composer.is_empty() {
                self.hint("Esc again clears the draft; it stays in the history.", HINT);
            }
            return;
        }
        if self.composer.is_empty() {
            self.run_command("/rewind");
        } else {
            self.clear_draft();
        }
    }

    /// The draft goes into the history.
    fn clear_draft(&mut self) {
        let draft = self.composer.take();
        self.composer.recall().add(&draft.expanded());
        self.hint = None;
    }

    async fn cancel(&mut self) {
        if self.conversation.facts.is_running() {
            self.interrupt();
        } else if !self.composer.is_empty() {
            self.clear_draft();
        } else if self.last_cancel.is_some_and(|last| last.elapsed() < AGAIN) {
            self.leave(Ended::Quit).await;
        } else {
            self.last_cancel = Some(Instant::now());
            self.hint("Press Ctrl+C again to leave.", AGAIN);
        }
    }

    /// Prints the last screenful again, at the present width.
    fn redraw(&mut self) {
        let look = self.look(Extent::Short, Instant::now());
        let lines = self.printed.again(self.surface.height(), &look);
        let frame = self.frame(Instant::now());
        // What is finished comes before it is printed again.
        if !self.writer.is_busy() && self.unprinted.is_empty() {
            let bytes = self.surface.draw(&lines, &frame);
            self.writer.write(bytes);
        }
    }

    fn overlay_key(&mut self, key: Key) {
        let height = self.surface.height();
        let Some((mut overlay, sheet)) = self.overlay.take() else { return };
        let reply = {
            let look = Look { ..self.look(Extent::Whole, Instant::now()) };
            overlay.key(key, &look, height)
        };
        match reply {
            OverlayReply::Taken => self.overlay = Some((overlay, sheet)),
            OverlayReply::Closed => {
                // The terminal shows again what was there before, cursor included.
                self.write_raw(leave_overlay());
                self.front.machine.set_terminal_overlay(false);
                self.write_raw("\u{1b}[?25h");
                self.resized = self.resized.or_else(|| self.has_other_size().then(Instant::now));
            }
        }
    }

    /// A key that is entered is not shown and not kept.
    fn secret_key(&mut self, key: Key) {
        let Some((provider, mut secret)) = self.secret.take() else { return };
        match (key.code, key.ctrl) {
            (KeyCode::Esc, _) | (KeyCode::Char('c'), true) => return,
            (KeyCode::Enter, _) if !secret.is_empty() => {
                let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
                tokio::spawn(async move {
                    let update = match machine.login(provider, secret).await {
                        Ok(stored) => Update::Hint(format!(
                            "Stored the key for {} in {}; /new begins a session with it.",
                            stored.provider, stored.place
                        )),
                        Err(error) => Update::Problem(error.to_string()),
                    };
                    let _ = updates.send(update);
                });
                return;
            }
            (KeyCode::Char('u'), true) => secret.clear(),
            (KeyCode::Backspace, _) => drop(secret.pop()),
            (KeyCode::Char(sign), false) => secret.push(sign),
            _ => {}
        }
        self.secret = Some((provider, secret));
    }

    /// The person decided about the folder: the session is opened.
    fn decide_trust(&mut self, yes: bool) {
        self.question = None;
        if !yes {
            self.front.machine.refuse_trust();
            self.conversation.notice(
                Level::Info,
                "The folder is not trusted; its files do not count. `qodercli trust` changes that.",
            );
            return self.begin();
        }
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let trusted = machine.trust().await.map(Box::new).map_err(|error| error.to_string());
            let _ = updates.send(Update::Trusted(trusted));
        });
    }
}
