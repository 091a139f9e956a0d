//! Panels: lists in the live area that are filtered by typing. A row does nothing by itself: what it offers are lines of
//! commands, so that everything a panel does can be typed, too.

mod lists;
mod servers;
mod sessions;

use crate::input::{Key, KeyCode};

pub(crate) use lists::{
    agents_panel, commands_panel, context_text, effort_panel, hooks_panel, memory_panel, models_panel,
    plugins_panel, rules_panel, skills_panel, tasks_panel, theme_panel, tools_panel,
};
pub(crate) use servers::{approve_panel, server_panel, servers_panel};
pub(crate) use sessions::{rewind_panel, sessions_panel};

/// Rows of a panel that are shown.
pub(crate) const SHOWN_ROWS: usize = 8;

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PanelRow {
    /// What it is.
    pub(crate) label: String,
    /// More about it, on the same line.
    pub(crate) about: String,
    /// More about it, when it is chosen.
    pub(crate) details: Vec<String>,
    /// What can be done with it: words and the line that does it.
    pub(crate) offers: Vec<(String, String)>,
    /// The session that it stands for, which can be looked at.
    pub(crate) session: Option<String>,
    /// A letter that does what it offers at once, while nothing is filtered.
    pub(crate) letter: Option<char>,
}

impl PanelRow {
    /// A row with a label and a few words.
    pub(crate) fn new(label: impl Into<String>, about: impl Into<String>) -> Self {
        Self { label: label.into(), about: about.into(), ..Self::default() }
    }

    /// Something that can be done with it.
    pub(crate) fn offering(mut self, words: impl Into<String>, line: impl Into<String>) -> Self {
        self.offers.push((words.into(), line.into()));
        self
    }

    /// What it offers is done by this letter, too.
    pub(crate) fn by_letter(self, letter: char) -> Self {
        Self { letter: Some(letter), ..self }
    }

    /// More about it.
    pub(crate) fn with_detail(mut self, line: impl Into<String>) -> Self {
        let line = line.into();
        if !line.is_empty() {
            self.details.push(line);
        }
        self
    }
}

/// A panel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Panel {
    /// What it lists.
    pub(crate) title: String,
    /// Its rows.
    pub(crate) rows: Vec<PanelRow>,
    /// What is said when there are no rows.
    pub(crate) empty: String,
    /// What is typed to filter.
    pub(crate) filter: String,
    /// The chosen row, among those that pass the filter.
    pub(crate) selected: usize,
}

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PanelReply {
    /// It was taken.
    Taken,
    /// The panel is closed.
    Closed,
    /// This line is to be run.
    Run(String),
    /// Another panel: what can be done with a row.
    Offers(Panel),
    /// What is on record of this session is to be shown.
    Preview(String),
}

impl Panel {
    /// A panel with a title, and words for when it is empty.
    pub(crate) fn new(title: impl Into<String>, empty: impl Into<String>) -> Self {
        Self { title: title.into(), empty: empty.into(), ..Self::default() }
    }

    /// The rows that pass the filter.
    pub(crate) fn passing(&self) -> Vec<&PanelRow> {
        let wanted: Vec<String> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let passes = |row: &&PanelRow| {
            let text = format!("{} {}", row.label, row.about).to_lowercase();
            wanted.iter().all(|word| text.contains(word.as_str()))
        };
        self.rows.iter().filter(passes).collect()
    }

    /// The chosen row.
    pub(crate) fn chosen(&self) -> Option<&PanelRow> {
        self.passing().get(self.selected).copied()
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: Key) -> PanelReply {
        let count = self.passing().len();
        match (key.code, key.ctrl) {
            (KeyCode::Esc, _) | (KeyCode::Char('c'), true) => return PanelReply::Closed,
            (KeyCode::Up, _) | (KeyCode::Char('p'), true) => self.selected = self.selected.saturating_sub(1),
            (KeyCode::Down, _) | (KeyCode::Char('n'), true) => {
                self.selected = (self.selected + 1).min(count.saturating_sub(1));
            }
            (KeyCode::PageUp, _) => self.selected = self.selected.saturating_sub(SHOWN_ROWS),
            (KeyCode::PageDown, _) => {
                self.selected = (self.selected + SHOWN_ROWS).min(count.saturating_sub(1))
            }
            (KeyCode::Home, _) => self.selected = 0,
            (KeyCode::End, _) => self.selected = count.saturating_sub(1),
            (KeyCode::Backspace, _) => {
                if self.filter.pop().is_none() {
                    return PanelReply::Closed;
                }
                self.selected = 0;
            }
            (KeyCode::Enter, _) => return self.enter(),
            (KeyCode::Right, _) => {
                if let Some(session) = self.chosen().and_then(|row| row.session.clone()) {
                    return PanelReply::Preview(session);
                }
            }
            (KeyCode::Char(sign), false) if !key.alt => {
                if let Some(line) = self.line_by_letter(sign) {
                    return PanelReply::Run(line);
                }
                self.filter.push(sign);
                self.selected = 0;
            }
            _ => {}
        }
        PanelReply::Taken
    }

    fn line_by_letter(&self, letter: char) -> Option<String> {
        let row = self.rows.iter().find(|row| self.filter.is_empty() && row.letter == Some(letter))?;
        row.offers.first().map(|(_, line)| line.clone())
    }

    fn enter(&self) -> PanelReply {
        let Some(row) = self.chosen() else { return PanelReply::Taken };
        match row.offers.as_slice() {
            [] => PanelReply::Taken,
            [(_, line)] => PanelReply::Run(line.clone()),
            offers => {
                let mut panel = Panel::new(row.label.clone(), "");
                panel.rows = offers
                    .iter()
                    .map(|(words, line)| {
                        PanelRow::new(words.clone(), "").offering(words.clone(), line.clone())
                    })
                    .collect();
                if let Some(first) = panel.rows.first_mut() {
                    first.details.clone_from(&row.details);
                }
                PanelReply::Offers(panel)
            }
        }
    }

    /// The panel as lines, for a front without cursor movement.
    pub(crate) fn as_lines(&self) -> Vec<String> {
        let mut lines = vec![self.title.clone()];
        if self.rows.is_empty() {
            lines.push(self.empty.clone());
        }
        for row in &self.rows {
            let about = if row.about.is_empty() { String::new() } else { format!(": {}", row.about) };
            lines.push(format!("{}{about}", row.label));
            lines.extend(row.details.iter().map(|line| format!("  {line}")));
            lines.extend(row.offers.iter().map(|(words, line)| format!("  {words}: {line}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let mut panel = Panel::new("Things", "nothing");
        panel.rows = vec![
            PanelRow::new("one", "first").offering("use", "/use one"),
            PanelRow::new("two", "second").offering("use", "/use two").offering("remove", "/remove two"),
        ];
        panel
    }

    fn types(panel: &mut Panel, text: &str) {
        text.chars().for_each(|sign| {
            panel.key(Key::char(sign));
        });
    }

    #[test]
    fn typing_filters_and_enter_runs_the_line() {
        let mut panel = panel();
        types(&mut panel, "fir");
        assert_eq!(panel.passing().len(), 1);
        assert_eq!(panel.key(Key::plain(KeyCode::Enter)), PanelReply::Run("/use one".to_owned()));
    }

    #[test]
    fn a_letter_does_what_its_row_offers() {
        let mut panel = Panel::new("Sign in", "");
        panel.rows = vec![PanelRow::new("Open it", "o").offering("", "/open").by_letter('o')];
        assert_eq!(panel.key(Key::char('o')), PanelReply::Run("/open".to_owned()));
        panel.key(Key::char('i'));
        assert_eq!(panel.key(Key::char('o')), PanelReply::Taken);
    }

    #[test]
    fn a_row_with_several_offers_opens_them() {
        let mut panel = panel();
        panel.key(Key::plain(KeyCode::Down));
        let PanelReply::Offers(offers) = panel.key(Key::plain(KeyCode::Enter)) else { panic!() };
        let labels: Vec<&str> = offers.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!((offers.title.as_str(), labels), ("two", vec!["use", "remove"]));
    }

    #[test]
    fn backspace_empties_the_filter_and_then_closes() {
        let mut panel = panel();
        types(&mut panel, "t");
        assert_eq!(panel.key(Key::plain(KeyCode::Backspace)), PanelReply::Taken);
        assert_eq!(panel.key(Key::plain(KeyCode::Backspace)), PanelReply::Closed);
    }

    #[test]
    fn everything_is_reachable_as_lines() {
        let lines = panel().as_lines();
        assert!(lines.contains(&"  remove: /remove two".to_owned()), "{lines:?}");
    }
}
