//! What reaches a person who looks elsewhere: the title of the window, and notifications while the terminal has no focus.

use std::time::{Duration, Instant};

use super::App;
use crate::front::NotificationMethod;
use crate::text::{clipped, one_line};

/// A turn that took longer is worth a notification.
const LONG_TURN: Duration = Duration::from_secs(10);
/// Titles are at least this far apart.
const TITLE_PAUSE: Duration = Duration::from_millis(100);

/// What was announced last.
#[derive(Debug, Default)]
pub(super) struct Announced {
    title: String,
    titled: Option<Instant>,
    /// The turn that runs, since when.
    turn: Option<Instant>,
    /// True when the question that waits was announced.
    question: bool,
}

impl App {
    /// The sequences for what is to be announced now.
    pub(super) fn announcements(&mut self, now: Instant) -> String {
        let mut sequences = String::new();
        if !self.front.settings.hide_title {
            let title = self.title();
            let may = self.announced.titled.is_none_or(|last| now >= last + TITLE_PAUSE);
            if title != self.announced.title && may {
                sequences.push_str(&format!("\u{1b}]2;{title}\u{7}"));
                (self.announced.title, self.announced.titled) = (title, Some(now));
            }
        }
        let news = self.news(now);
        if let Some(text) = news.filter(|_| self.front.settings.notifications && !self.has_focus) {
            sequences.push_str(&notification(
                &text,
                self.front.settings.notification_method,
                &self.front.environment,
            ));
        }
        sequences
    }

    /// When a title can be written that had to wait for the one before.
    pub(super) fn title_due(&self) -> Option<Instant> {
        let last = self.announced.titled?;
        let waits = !self.front.settings.hide_title && self.title() != self.announced.title;
        waits.then(|| last + TITLE_PAUSE)
    }

    /// Project and state, with a mark when a question waits.
    fn title(&self) -> String {
        let folder = self.conversation.facts.cwd.rsplit('/').next().unwrap_or_default();
        let name = self.conversation.facts.title.as_deref().unwrap_or(folder);
        if name.is_empty() {
            return "qodercli".to_owned();
        }
        let state = if self.question.is_some() {
            "? "
        } else if self.conversation.facts.is_running() {
            "* "
        } else {
            ""
        };
        clipped(&one_line(&format!("{state}{name} - qodercli")), 80)
    }

    /// What happened that is worth a notification.
    fn news(&mut self, now: Instant) -> Option<String> {
        let running = self.conversation.facts.turn.as_ref().map(|turn| turn.since);
        let ended = match (self.announced.turn, running) {
            (Some(since), None) => Some(now.saturating_duration_since(since)),
            _ => None,
        };
        self.announced.turn = running;
        let asked = self.question.as_ref().map(|question| question.asked.headline());
        let is_new = asked.is_some() && !self.announced.question;
        self.announced.question = asked.is_some();
        if is_new {
            return asked;
        }
        ended.filter(|took| *took >= LONG_TURN).map(|_| "The turn has ended".to_owned())
    }
}

/// The sequence of a notification. tmux passes it on only where that is allowed, so that a bell goes with it.
fn notification(
    text: &str,
    method: NotificationMethod,
    environment: &std::collections::BTreeMap<String, String>,
) -> String {
    let text = one_line(text).replace(';', ",");
    let known = |name: &str| environment.get(name).map(String::as_str).unwrap_or_default();
    let method = match method {
        NotificationMethod::Auto
            if known("TERM_PROGRAM") == "iTerm.app" || known("TERM").contains("kitty") =>
        {
            NotificationMethod::Osc9
        }
        NotificationMethod::Auto
            if known("TERM_PROGRAM").contains("ghostty") || known("TERM").contains("foot") =>
        {
            NotificationMethod::Osc777
        }
        NotificationMethod::Auto => NotificationMethod::Bell,
        other @ (NotificationMethod::Osc9 | NotificationMethod::Osc777 | NotificationMethod::Bell) => other,
    };
    let sequence = match method {
        NotificationMethod::Osc9 => format!("\u{1b}]9;{text}\u{7}"),
        NotificationMethod::Osc777 => format!("\u{1b}]777;notify;qodercli;{text}\u{7}"),
        NotificationMethod::Bell | NotificationMethod::Auto => return "\u{7}".to_owned(),
    };
    if environment.contains_key("TMUX") {
        return format!("\u{1b}Ptmux;{}\u{1b}\\\u{7}", sequence.replace('\u{1b}', "\u{1b}\u{1b}"));
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_notification_cannot_carry_a_sequence() {
        let shown = notification("a\u{1b}]0;t\u{7};b", NotificationMethod::Osc9, &BTreeMap::new());
        assert_eq!(shown, "\u{1b}]9;a\\u{1b}]0,t\\u{7},b\u{7}");
    }

    #[test]
    fn inside_tmux_it_is_wrapped_and_rings() {
        let tmux = BTreeMap::from([("TMUX".to_owned(), "/tmp/x".to_owned())]);
        let shown = notification("x", NotificationMethod::Osc777, &tmux);
        assert!(
            shown.starts_with("\u{1b}Ptmux;\u{1b}\u{1b}]777;") && shown.ends_with("\u{1b}\\\u{7}"),
            "{shown:?}"
        );
        assert_eq!(notification("x", NotificationMethod::Bell, &tmux), "\u{7}");
    }
}
