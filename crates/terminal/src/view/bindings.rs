//! Which key does what. Every binding can be changed in `keybindings.json`; the keys that edit text are fixed.

use serde::Deserialize;

use crate::input::Key;

/// What a key can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyAction {
    /// Send what was written.
    Submit,
    /// Begin a new line.
    Newline,
    /// Stop the turn, close what is open, or take back.
    Escape,
    /// Stop the turn, clear the draft, or leave.
    Cancel,
    /// Leave, when nothing is written.
    Quit,
    /// The next permission mode.
    NextMode,
    /// The mode that asks nothing.
    Bypass,
    /// Move the running command to the background.
    Background,
    /// Show the transcript.
    Transcript,
    /// Show the list of steps.
    Todo,
    /// Draw the screen again.
    Redraw,
    /// Write in the editor.
    Editor,
    /// Search earlier prompts.
    Search,
    /// Paste from the clipboard.
    Paste,
    /// Stop this program until `fg`.
    Suspend,
    /// Go to the question that waits.
    FocusQuestion,
    /// Take the last queued message back.
    TakeBack,
    /// Show the keys.
    Shortcuts,
}

/// A row of the table: what, its name in settings, the keys, and words for people.
pub(crate) struct BindingRow {
    /// What it does.
    pub(crate) action: KeyAction,
    /// Its name in `keybindings.json`.
    pub(crate) name: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static str],
    /// What it does, for people.
    pub(crate) about: &'static str,
}

/// All of them.
pub(crate) const BINDINGS: &[BindingRow] = &[
    row(KeyAction::Submit, "submit", &["enter"], "Send; while a turn runs, queue"),
    row(
        KeyAction::Newline,
        "newline",
        &["shift+enter", "alt+enter", "ctrl+j"],
        "New line; also \\ and Enter",
    ),
    row(KeyAction::Escape, "escape", &["esc"], "Stop the turn; twice: clear the draft, or rewind"),
    row(KeyAction::Cancel, "cancel", &["ctrl+c"], "Stop the turn, clear the draft; twice: leave"),
    row(KeyAction::Quit, "quit", &["ctrl+d"], "Leave, when nothing is written"),
    row(KeyAction::NextMode, "nextMode", &["shift+tab", "alt+m"], "Next permission mode"),
    row(KeyAction::Bypass, "bypass", &["ctrl+y"], "Ask nothing (only where allowed at the start)"),
    row(KeyAction::Background, "background", &["ctrl+b"], "Move the running command to the background"),
    row(KeyAction::Transcript, "transcript", &["ctrl+o"], "Transcript; on a pasted text: show it whole"),
    row(KeyAction::Todo, "todo", &["ctrl+t"], "List of steps"),
    row(KeyAction::Redraw, "redraw", &["ctrl+l"], "Draw the screen again"),
    row(
        KeyAction::Editor,
        "editor",
        &["ctrl+g"],
        "Write in $VISUAL or $EDITOR; on a question: edit the input",
    ),
    row(KeyAction::Search, "search", &["ctrl+r"], "Search earlier prompts"),
    row(KeyAction::Paste, "paste", &["ctrl+v", "alt+v"], "Paste an image or text"),
    row(KeyAction::Suspend, "suspend", &["ctrl+z"], "Suspend; fg resumes"),
    row(KeyAction::FocusQuestion, "focusQuestion", &["ctrl+]"], "Go to the question"),
    row(KeyAction::TakeBack, "takeBack", &["alt+up"], "Take the last queued message back"),
    row(KeyAction::Shortcuts, "shortcuts", &["?"], "Show the keys, when nothing is written"),
];

const fn row(
    action: KeyAction,
    name: &'static str,
    keys: &'static [&'static str],
    about: &'static str,
) -> BindingRow {
    BindingRow { action, name, keys, about }
}

/// The bindings in force.
#[derive(Debug, Clone)]
pub(crate) struct Bindings(Vec<(Key, KeyAction)>);

/// An entry of `keybindings.json`.
#[derive(Debug, Deserialize)]
struct Entry {
    command: String,
    key: String,
}

impl Default for Bindings {
    fn default() -> Self {
        let pairs = BINDINGS
            .iter()
            .flat_map(|row| row.keys.iter().filter_map(|key| Key::parse(key)).map(|key| (key, row.action)));
        Self(pairs.collect())
    }
}

impl Bindings {
    /// The bindings with the user's own on top, and what is wrong with those.
    pub(crate) fn read(text: &str) -> (Self, Vec<String>) {
        let mut bindings = Self::default();
        let entries: Vec<Entry> = match serde_json::from_str(text) {
            Ok(entries) => entries,
            Err(error) => {
                let problem = format!(
                    "keybindings.json: {error}; write a list such as [{{\"command\": \"redraw\", \"key\": \"f5\"}}]"
                );
                return (bindings, vec![problem]);
            }
        };
        let mut problems = Vec::new();
        for entry in entries {
            let (name, binds) = match entry.command.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry.command.as_str(), true),
            };
            let action = BINDINGS.iter().find(|row| row.name == name).map(|row| row.action);
            match (action, Key::parse(&entry.key)) {
                (Some(action), Some(key)) => {
                    bindings.0.retain(|(bound, what)| *bound != key || (!binds && *what != action));
                    if binds {
                        bindings.0.push((key, action));
                    }
                }
                (None, _) => problems
                    .push(format!("keybindings.json: `{name}` is not a command; /shortcuts lists them")),
                (Some(_), None) => problems.push(format!("keybindings.json: `{}` is not a key", entry.key)),
            }
        }
        (bindings, problems)
    }

    /// What a key does.
    pub(crate) fn find(&self, key: Key) -> Option<KeyAction> {
        self.0.iter().rev().find(|(bound, _)| *bound == key).map(|(_, action)| *action)
    }

    /// The keys of a action, for people.
    pub(crate) fn keys(&self, action: KeyAction) -> String {
        let keys = self.0.iter().filter(|(_, bound)| *bound == action).map(|(key, _)| key.to_string());
        keys.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::KeyCode;

    #[test]
    fn every_key_of_the_table_is_one_and_none_is_bound_twice() {
        let mut keys: Vec<Key> = Vec::new();
        for row in BINDINGS {
            for name in row.keys {
                let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
                assert!(!keys.contains(&key), "{name}");
                keys.push(key);
            }
        }
    }

    #[test]
    fn the_user_binds_and_unbinds() {
        let (bindings, problems) = Bindings::read(
            r#"[{"command": "redraw", "key": "f5"}, {"command": "-suspend", "key": "ctrl+z"},
                {"command": "todo", "key": "ctrl+o"}, {"command": "nothing", "key": "a"}, {"command": "todo", "key": "x+y"}]"#,
        );
        assert_eq!(bindings.find(Key::plain(KeyCode::F(5))), Some(KeyAction::Redraw));
        assert_eq!(bindings.find(Key::ctrl('z')), None);
        assert_eq!(bindings.find(Key::ctrl('o')), Some(KeyAction::Todo));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(Bindings::read("{").1.len(), 1);
    }
    #[test]
    fn the_page_lists_the_keys() {
        let mut table = String::from("| key | what it does | name |\n| --- | --- | --- |\n");
        for row in BINDINGS {
            let keys: Vec<String> =
                row.keys.iter().filter_map(|key| Key::parse(key)).map(|key| format!("`{key}`")).collect();
            table.push_str(&format!("| {} | {} | `{}` |\n", keys.join(", "), row.about, row.name));
        }
        crate::commands::page::check_table("keys", &table);
    }
}
