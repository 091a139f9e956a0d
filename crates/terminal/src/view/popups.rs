//! The popup behind `@` and `/`, and the search in earlier prompts: kept up to date while one types, never waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use qoder_protocol::control::HostRequest;

use super::{App, Dirty, Update};
use crate::commands::COMMANDS;
use crate::composer::Draft;
use crate::input::{Key, KeyCode};
use crate::popup::{self, Candidate, CommandChoice, Kind, Popup, PopupReply, Trigger};

/// After this long the files of the folder are looked at again.
const PATHS_AGE: Duration = Duration::from_secs(20);
/// How many paths that were used are remembered.
const MOST_RECENT: usize = 30;

/// What popups choose from.
#[derive(Debug, Default)]
pub(super) struct Choices {
    paths: Arc<Vec<String>>,
    walked: Option<Instant>,
    is_walking: bool,
    recent: Vec<String>,
    /// Name, what may follow, what it does.
    commands: Vec<(String, String, String)>,
    uses: HashMap<String, usize>,
}

impl Choices {
    /// A path was used.
    pub(super) fn use_path(&mut self, path: &str) {
        self.recent.retain(|recent| recent != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(MOST_RECENT);
    }

    /// A command was used.
    pub(super) fn use_command(&mut self, name: &str) {
        *self.uses.entry(name.to_owned()).or_default() += 1;
    }

    fn all_commands(&self) -> Vec<CommandChoice> {
        let own =
            COMMANDS.iter().map(|row| (row.names[0].to_owned(), row.hint.to_owned(), row.about.to_owned()));
        let is_ours = |name: &str| COMMANDS.iter().any(|row| row.names.contains(&name));
        let others = self.commands.iter().filter(|(name, ..)| !is_ours(name)).cloned();
        let used = |name: &str| self.uses.get(name).copied().unwrap_or(0);
        own.chain(others).map(|(name, hint, about)| (name.clone(), hint, about, used(&name))).collect()
    }
}

/// A search in earlier prompts.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) word: String,
    pub(super) selected: usize,
}

impl App {
    /// The draft has changed: is something to be offered?
    pub(super) fn update_popup(&mut self) {
        let trigger = popup::trigger(self.composer.draft());
        if self.dismissed.is_some() && self.dismissed != trigger {
            self.dismissed = None;
        }
        let Some(trigger) = trigger.filter(|trigger| self.dismissed.as_ref() != Some(trigger)) else {
            self.popup = None;
            return;
        };
        if self.popup.as_ref().is_some_and(|popup| popup.trigger == trigger) {
            return;
        }
        match trigger.kind {
            Kind::Command => {
                let candidates = popup::best_commands(&trigger.word, &self.choices.all_commands());
                self.popup = Some(Popup { trigger, candidates, selected: 0 });
            }
            Kind::Path => {
                self.walk_paths();
                self.match_paths(trigger);
            }
        }
    }

    /// Looks at the files of the folder, unless that was done a moment ago.
    fn walk_paths(&mut self) {
        let is_fresh = self.choices.walked.is_some_and(|walked| walked.elapsed() < PATHS_AGE);
        if is_fresh || self.choices.is_walking {
            return;
        }
        self.choices.is_walking = true;
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        let folder = self.conversation.facts.cwd.clone();
        tokio::spawn(async move {
            let paths = machine.paths(folder).await;
            // The front may have ended meanwhile.
            let _ = updates.send(Update::Paths(paths));
        });
    }

    pub(super) fn take_paths(&mut self, paths: Vec<String>) {
        self.choices.paths = Arc::new(paths);
        (self.choices.walked, self.choices.is_walking) = (Some(Instant::now()), false);
        if let Some(trigger) =
            popup::trigger(self.composer.draft()).filter(|trigger| trigger.kind == Kind::Path)
        {
            self.match_paths(trigger);
        }
    }

    /// Matching takes a while with many files: it runs on a thread of its own.
    fn match_paths(&mut self, trigger: Trigger) {
        // What was found for the shorter word stays until the new finding is there.
        match &mut self.popup {
            Some(popup) if popup.trigger.kind == Kind::Path => popup.trigger = trigger.clone(),
            Some(_) | None => {
                self.popup = Some(Popup { trigger: trigger.clone(), candidates: Vec::new(), selected: 0 })
            }
        }
        let (paths, recent) = (Arc::clone(&self.choices.paths), self.choices.recent.clone());
        let updates = self.updates.clone();
        tokio::task::spawn_blocking(move || {
            let found = popup::best_paths(&trigger.word, &paths, &recent);
            let _ = updates.send(Update::Candidates(trigger, found));
        });
    }

    pub(super) fn take_candidates(&mut self, trigger: &Trigger, found: Vec<Candidate>) {
        if let Some(popup) = self.popup.as_mut().filter(|popup| popup.trigger == *trigger) {
            popup.candidates = found;
            popup.selected = 0;
        }
    }

    /// A key while a popup is open. False when it is for others.
    pub(super) fn popup_key(&mut self, key: Key) -> bool {
        let Some(popup) = &mut self.popup else { return false };
        let range = popup.trigger.range.clone();
        let kind = popup.trigger.kind;
        match popup.key(key) {
            PopupReply::Taken => true,
            PopupReply::NotMine => false,
            PopupReply::Closed => {
                self.dismissed = self.popup.take().map(|popup| popup.trigger);
                true
            }
            PopupReply::Chosen(candidate, by_enter) => {
                self.popup = None;
                self.choose(kind, range, &candidate, by_enter)
            }
        }
    }

    /// Puts what was chosen in place. False when Enter is to send the line.
    fn choose(
        &mut self,
        kind: Kind,
        range: std::ops::Range<usize>,
        candidate: &Candidate,
        by_enter: bool,
    ) -> bool {
        match kind {
            Kind::Path => {
                let is_folder = candidate.text.ends_with('/');
                let text = if is_folder { candidate.text.clone() } else { format!("{} ", candidate.text) };
                self.composer.replace(range, &text);
                self.choices.use_path(&candidate.label);
                if is_folder {
                    self.update_popup();
                }
                true
            }
            Kind::Command => {
                let hint = candidate.label.get(candidate.text.len()..).unwrap_or_default().trim_start();
                let takes_more = !hint.is_empty() && !hint.starts_with('[');
                let is_typed = self.composer.draft().text().trim() == candidate.text;
                if by_enter && (is_typed || !takes_more) {
                    self.composer.set(Draft::of(candidate.text.clone()));
                    return false;
                }
                self.composer.replace(range, &format!("{} ", candidate.text));
                true
            }
        }
    }

    /// Asks the session for its commands.
    pub(super) fn learn_commands(&mut self) {
        let Some(session) = &self.session else { return };
        let (client, updates) = (Arc::clone(&session.client), self.updates.clone());
        tokio::spawn(async move {
            let Ok(answer) = client.request(HostRequest::SupportedCommands {}).await else { return };
            let rows = answer["commands"].as_array().cloned().unwrap_or_default();
            let text =
                |row: &serde_json::Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let commands = rows
                .iter()
                .map(|row| (text(row, "name"), text(row, "argumentHint"), text(row, "description")));
            let _ = updates.send(Update::Commands(commands.collect()));
        });
    }

    pub(super) fn take_commands(&mut self, commands: Vec<(String, String, String)>) {
        self.choices.commands = commands;
    }

    /// A key while earlier prompts are searched.
    pub(super) fn search_key(&mut self, key: Key) {
        let Some(search) = &mut self.search else { return };
        let found: Vec<String> =
            self.composer.recall().search(&search.word).into_iter().map(str::to_owned).collect();
        match (key.code, key.ctrl) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), true) => self.search = None,
            (KeyCode::Enter | KeyCode::Tab, _) => {
                let chosen = found.get(search.selected).cloned();
                self.search = None;
                if let Some(text) = chosen {
                    self.composer.set(Draft::of(text));
                }
            }
            (KeyCode::Char('r'), true) | (KeyCode::Down, _) => {
                search.selected = (search.selected + 1).min(found.len().saturating_sub(1));
            }
            (KeyCode::Up, _) => search.selected = search.selected.saturating_sub(1),
            (KeyCode::Backspace, _) => {
                search.word.pop();
                search.selected = 0;
            }
            (KeyCode::Char(sign), false) if !key.alt => {
                search.word.push(sign);
                search.selected = 0;
            }
            _ => {}
        }
        self.touch(Dirty::Now);
    }
}
