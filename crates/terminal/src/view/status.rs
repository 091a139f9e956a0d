//! The status line: model, mode, folder and branch, context, money, changes, tasks. What matters least goes first when the
//! terminal is narrow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui_core::text::{Line, Span};
use serde_json::{Value, json};

use super::{App, Update};
use crate::state::Facts;
use crate::text::{columns, one_line};
use crate::theme::{Ink, Look};

/// The branch is looked up at most this often, and the status line command asked.
const BRANCH_PAUSE: Duration = Duration::from_secs(2);
const STATUS_PAUSE: Duration = Duration::from_millis(300);

impl App {
    /// Looks up what is shown beside the session, when something has changed; never while nothing happens.
    pub(super) fn look_around(&mut self, now: Instant) {
        let folder = &self.conversation.facts.cwd;
        let is_due = self.background.branch.is_none_or(|last| now >= last + BRANCH_PAUSE);
        if !folder.is_empty() && is_due {
            self.background.branch = Some(now);
            let (machine, updates, folder) =
                (Arc::clone(&self.front.machine), self.updates.clone(), folder.clone());
            let known = self.branch.clone();
            tokio::spawn(async move {
                let branch = machine.branch(folder).await;
                if branch != known {
                    // The front may have ended meanwhile.
                    let _ = updates.send(Update::Branch(branch));
                }
            });
        }
        if self.front.settings.status_command && self.session.is_some() && !self.background.is_asking {
            self.ask_status_line(now);
        }
    }

    /// Asks the user's command for a line, when what it is given has changed.
    fn ask_status_line(&mut self, now: Instant) {
        let facts = self.status_json();
        if self.status_due_for(&facts).is_none_or(|due| now < due) {
            return;
        }
        self.background.status_for = Some((facts.clone(), now));
        self.background.is_asking = true;
        let (machine, updates) = (Arc::clone(&self.front.machine), self.updates.clone());
        tokio::spawn(async move {
            let line = machine.status_line(facts).await;
            let _ = updates.send(Update::StatusLine(line));
        });
    }

    /// When the command is to be asked again; never while it is asked, or knows all there is.
    pub(super) fn status_due(&self) -> Option<Instant> {
        let asks = self.front.settings.status_command && self.session.is_some();
        (asks && !self.background.is_asking).then(|| self.status_due_for(&self.status_json())).flatten()
    }

    /// When the command may be asked about this; never when it was asked about just this.
    fn status_due_for(&self, facts: &Value) -> Option<Instant> {
        match &self.background.status_for {
            None => Some(self.frame_due),
            Some((known, _)) if known == facts => None,
            Some((_, last)) => Some(*last + STATUS_PAUSE),
        }
    }

    /// What the command reads.
    fn status_json(&self) -> Value {
        let facts = &self.conversation.facts;
        let percent = facts.context_percent();
        json!({
            "session_id": facts.session_id, "cwd": facts.cwd,
            "model": { "id": facts.model, "display_name": facts.model },
            "workspace": { "current_dir": facts.cwd, "project_dir": facts.cwd },
            "version": facts.version, "output_style": { "name": facts.output_style },
            "cost": {
                "total_cost_usd": facts.cost, "total_duration_ms": facts.durations.0,
                "total_api_duration_ms": facts.durations.1, "total_lines_added": facts.lines.0,
                "total_lines_removed": facts.lines.1,
            },
            "context_window": {
                "context_window_size": facts.context_window, "used_percentage": percent,
                "remaining_percentage": percent.map(|percent| 100 - percent), "current_usage": facts.context_tokens,
            },
            "vim": self.composer.vim_mode().map(|mode| json!({ "mode": mode.word() })),
            "git_branch": self.branch,
        })
    }
}

/// What the status line shows besides the facts of the session.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusFacts {
    /// The branch of the working directory.
    pub(crate) branch: Option<String>,
    /// Background tasks that run.
    pub(crate) tasks: usize,
    /// The mode of vim keys.
    pub(crate) vim: Option<&'static str>,
    /// The home directory, which is shown as `~`.
    pub(crate) home: String,
}

/// The default status line.
pub(crate) fn line(facts: &Facts, more: &StatusFacts, look: &Look<'_>) -> Line<'static> {
    let mut parts: Vec<(usize, Span<'static>)> = Vec::new();
    if let Some(vim) = more.vim {
        parts.push((0, look.span(Ink::Strong, vim)));
    }
    if !facts.model.is_empty() {
        let name =
            if facts.offline { "offline (no language model)".to_owned() } else { one_line(&facts.model) };
        parts.push((1, look.span(Ink::Accent, name)));
    }
    parts.push((0, look.span(Ink::Dim, facts.mode.as_str())));
    if !facts.cwd.is_empty() {
        let place = match &more.branch {
            Some(branch) => format!("{} ({})", short_folder(&facts.cwd, &more.home), one_line(branch)),
            None => short_folder(&facts.cwd, &more.home),
        };
        parts.push((3, look.span(Ink::Dim, place)));
    }
    if let Some(percent) = facts.context_percent() {
        let ink = if percent >= 80 { Ink::Strong } else { Ink::Dim };
        parts.push((2, look.span(ink, format!("ctx {percent} %"))));
    }
    if facts.cost > 0.0 {
        parts.push((4, look.span(Ink::Dim, format!("${:.2}", facts.cost))));
    }
    if facts.lines != (0, 0) {
        let (added, removed) = facts.lines;
        parts.push((5, look.span(Ink::Dim, format!("+{added} {}{removed}", look.signs.minus))));
    }
    if more.tasks > 0 {
        let word = if more.tasks == 1 { "task" } else { "tasks" };
        parts.push((2, look.span(Ink::Dim, format!("{} {word}", more.tasks))));
    }
    fitted(parts, look)
}

/// Drops the parts that matter least until the rest fits.
fn fitted(mut parts: Vec<(usize, Span<'static>)>, look: &Look<'_>) -> Line<'static> {
    let width = |parts: &[(usize, Span<'_>)]| {
        let texts: usize = parts.iter().map(|(_, span)| columns(&span.content)).sum();
        texts + 3 * parts.len().saturating_sub(1)
    };
    while width(&parts) > look.width && parts.len() > 1 {
        let least = parts.iter().map(|(weight, _)| *weight).max().unwrap_or(0);
        let Some(place) = parts.iter().rposition(|(weight, _)| *weight == least) else { break };
        parts.remove(place);
    }
    let mut spans = Vec::new();
    for (at, (_, span)) in parts.into_iter().enumerate() {
        if at > 0 {
            spans.push(look.span(Ink::Dim, format!(" {} ", look.signs.dot)));
        }
        spans.push(span);
    }
    Line::from(spans)
}

/// A folder for people: the home directory is `~`, and of a long path the last two names are shown.
fn short_folder(path: &str, home: &str) -> String {
    let below =
        path.strip_prefix(home).filter(|rest| !home.is_empty() && (rest.is_empty() || rest.starts_with('/')));
    let path = below.map_or_else(|| path.to_owned(), |rest| format!("~{rest}"));
    let path = one_line(&path);
    if columns(&path) <= 40 {
        return path;
    }
    let mut names = path.rsplit('/');
    match (names.next(), names.next()) {
        (Some(last), Some(before)) => format!("…/{before}/{last}"),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_short() {
        assert_eq!(short_folder("/home/ana/project", "/home/ana"), "~/project");
        assert_eq!(short_folder("/home/anabel/project", "/home/ana"), "/home/anabel/project");
        assert_eq!(
            short_folder(&format!("/srv/{}/deep/project", "x".repeat(60)), "/home/ana"),
            "…/deep/project"
        );
    }
}
