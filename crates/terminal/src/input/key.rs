//! A key with its modifiers, and how keys are written in settings and on the screen.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Which one.
    pub(crate) code: KeyCode,
    /// With Ctrl.
    pub(crate) ctrl: bool,
    /// With Alt or Option.
    pub(crate) alt: bool,
    /// With Shift, where that does not make another character.
    pub(crate) shift: bool,
}

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyCode {
    /// A character.
    Char(char),
    /// Enter or Return.
    Enter,
    /// The tabulator.
    Tab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Escape.
    Esc,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// A function key, from 1.
    F(u8),
}

impl Key {
    /// A key without modifiers.
    pub(crate) const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    /// A character without modifiers.
    pub(crate) const fn char(sign: char) -> Self {
        Self::plain(KeyCode::Char(sign))
    }

    /// A character with Ctrl.
    pub(crate) const fn ctrl(sign: char) -> Self {
        Self { ctrl: true, ..Self::char(sign) }
    }

    /// A key with Alt.
    pub(crate) const fn alt(code: KeyCode) -> Self {
        Self { alt: true, ..Self::plain(code) }
    }

    /// The character that this key writes, if it writes one.
    pub(crate) fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(sign) if !self.ctrl && !self.alt => Some(sign),
            _ => None,
        }
    }

    /// Reads a name such as `ctrl+o`, `alt+enter`, `shift+tab` or `f1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let (mut rest, mut key) = (lower.as_str(), Self::char(' '));
        loop {
            let stripped = [("ctrl+", 0), ("alt+", 1), ("option+", 1), ("meta+", 1), ("shift+", 2)]
                .iter()
                .find_map(|(prefix, which)| rest.strip_prefix(prefix).map(|rest| (rest, *which)));
            let Some((after, which)) = stripped.filter(|(after, _)| !after.is_empty()) else { break };
            match which {
                0 => key.ctrl = true,
                1 => key.alt = true,
                _ => key.shift = true,
            }
            rest = after;
        }
        key.code = match rest {
            "enter" | "return" => KeyCode::Enter,
            "tab" => KeyCode::Tab,
            "backspace" => KeyCode::Backspace,
            "delete" => KeyCode::Delete,
            "insert" => KeyCode::Insert,
            "esc" | "escape" => KeyCode::Esc,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pageup" => KeyCode::PageUp,
            "pagedown" => KeyCode::PageDown,
            "space" => KeyCode::Char(' '),
            other => {
                let number = other.strip_prefix('f').and_then(|number| number.parse().ok());
                let mut signs = other.chars();
                match (number.filter(|number| (1..=24).contains(number)), signs.next(), signs.next()) {
                    (Some(number), ..) => KeyCode::F(number),
                    (None, Some(sign), None) => KeyCode::Char(sign),
                    (None, ..) => return None,
                }
            }
        };
        Some(key)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (is_held, name) in [(self.ctrl, "Ctrl+"), (self.alt, "Alt+"), (self.shift, "Shift+")] {
            if is_held {
                out.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => out.write_str("Space"),
            KeyCode::Char(sign) if self.ctrl || self.alt => write!(out, "{}", sign.to_uppercase()),
            KeyCode::Char(sign) => write!(out, "{sign}"),
            KeyCode::F(number) => write!(out, "F{number}"),
            KeyCode::Esc => out.write_str("Esc"),
            other @ (KeyCode::Enter
            | KeyCode::Tab
            | KeyCode::Backspace
            | KeyCode::Delete
            | KeyCode::Insert
            | KeyCode::Up
            | KeyCode::Down
            | KeyCode::Left
            | KeyCode::Right
            | KeyCode::Home
            | KeyCode::End
            | KeyCode::PageUp
            | KeyCode::PageDown) => write!(out, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (text, key, shown) in [
            ("ctrl+o", Key::ctrl('o'), "Ctrl+O"),
            ("Alt+Enter", Key::alt(KeyCode::Enter), "Alt+Enter"),
            ("shift+tab", Key { shift: true, ..Key::plain(KeyCode::Tab) }, "Shift+Tab"),
            ("f12", Key::plain(KeyCode::F(12)), "F12"),
            ("f", Key::char('f'), "f"),
            ("?", Key::char('?'), "?"),
            ("ctrl++", Key::ctrl('+'), "Ctrl++"),
        ] {
            let read = Key::parse(text).unwrap();
            assert_eq!((read, read.to_string().as_str()), (key, shown), "{text}");
        }
        for text in ["", "ctrl+", "nothing", "f99"] {
            assert_eq!(Key::parse(text), None, "{text}");
        }
    }
}
