//! What the front starts with: the settings that concern it, and what the environment says about the terminal.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::theme::ColorSupport;

/// Settings of the front.
#[derive(Debug, Clone, PartialEq)]
pub struct UiSettings {
    /// The theme (`ui.theme`).
    pub theme: Option<String>,
    /// Themes of the user (`ui.customThemes`).
    pub custom_themes: Map<String, Value>,
    /// True: no spinner and no counter that ticks (`ui.showSpinner` is false).
    pub still: bool,
    /// True: thinking is shown whole (`ui.inlineThinkingMode` is `full`).
    pub full_thinking: bool,
    /// Lines of output that a finished command shows (`ui.toolOutputLines`, 0 with `ui.compactToolOutput`).
    pub output_lines: usize,
    /// True: the title of the window is left alone (`ui.hideWindowTitle`).
    pub hide_title: bool,
    /// True: Escape has to be pressed twice to stop a turn (`ui.doubleEscToInterrupt`).
    pub double_escape: bool,
    /// True: vim keys (`general.vimMode`).
    pub vim: bool,
    /// True: notifications while the terminal has no focus (`general.enableNotifications`).
    pub notifications: bool,
    /// How they are sent (`general.notificationMethod`).
    pub notification_method: NotificationMethod,
    /// True when a command makes the status line (`statusLine.command`).
    pub status_command: bool,
}

/// How a notification is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NotificationMethod {
    /// As the terminal is known to understand it.
    #[default]
    Auto,
    /// OSC 9.
    Osc9,
    /// OSC 777.
    Osc777,
    /// The bell.
    Bell,
}

impl Default for UiSettings {
    fn default() -> Self {
        Self {
            theme: None,
            custom_themes: Map::new(),
            still: false,
            full_thinking: false,
            output_lines: 5,
            hide_title: false,
            double_escape: false,
            vim: false,
            notifications: false,
            notification_method: NotificationMethod::Auto,
            status_command: false,
        }
    }
}

impl UiSettings {
    /// Reads them: `get` gives the effective value of a key.
    #[must_use]
    pub fn read(get: impl Fn(&str) -> Option<Value>) -> Self {
        let flag = |key: &str, default: bool| get(key).and_then(|value| value.as_bool()).unwrap_or(default);
        let text = |key: &str| get(key).and_then(|value| value.as_str().map(str::to_owned));
        let plain = Self::default();
        let lines = get("ui.toolOutputLines").and_then(|value| value.as_u64());
        let lines = lines.and_then(|lines| usize::try_from(lines).ok()).unwrap_or(plain.output_lines);
        Self {
            theme: text("ui.theme"),
            custom_themes: match get("ui.customThemes") {
                Some(Value::Object(themes)) => themes,
                Some(_) | None => Map::new(),
            },
            still: !flag("ui.showSpinner", true),
            full_thinking: text("ui.inlineThinkingMode").as_deref() == Some("full"),
            output_lines: if flag("ui.compactToolOutput", false) { 0 } else { lines },
            hide_title: flag("ui.hideWindowTitle", false),
            double_escape: flag("ui.doubleEscToInterrupt", false),
            vim: flag("general.vimMode", false),
            notifications: flag("general.enableNotifications", false),
            notification_method: match text("general.notificationMethod").as_deref() {
                Some("osc9") => NotificationMethod::Osc9,
                Some("osc777") => NotificationMethod::Osc777,
                Some("bell") => NotificationMethod::Bell,
                Some(_) | None => NotificationMethod::Auto,
            },
            status_command: text("statusLine.command").is_some_and(|command| !command.is_empty()),
        }
    }
}

/// Why the front is a sequence of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineModeReason {
    /// `--screen-reader`.
    Flag,
    /// `QODER_SCREEN_READER`.
    Variable,
    /// `ui.accessibility.screenReader`.
    Setting,
    /// The terminal cannot move its cursor, or does not say what it is.
    Dumb,
}

impl LineModeReason {
    /// Why, if the front has to be one: flag, variable, setting, terminal.
    #[must_use]
    pub fn find(flag: bool, setting: bool, environment: &BTreeMap<String, String>) -> Option<Self> {
        let asked = environment.get("QODER_SCREEN_READER");
        if flag {
            Some(Self::Flag)
        } else if asked.is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false")) {
            Some(Self::Variable)
        } else if setting {
            Some(Self::Setting)
        } else {
            let term = environment.get("TERM").map(String::as_str);
            matches!(term, None | Some("" | "dumb")).then_some(Self::Dumb)
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Flag => "--screen-reader is given",
            Self::Variable => "QODER_SCREEN_READER is set",
            Self::Setting => "ui.accessibility.screenReader is on",
            Self::Dumb => "the terminal cannot move its cursor (TERM)",
        }
    }
}

/// What the environment says about the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalTraits {
    /// The colours it shows.
    pub(crate) colors: ColorSupport,
    /// True when text is UTF-8; otherwise signs are ASCII.
    pub(crate) unicode: bool,
    /// True when it is at the other end of a network.
    pub(crate) over_network: bool,
    /// True when it breaks rows anew when its width changes.
    pub(crate) reflows: bool,
}

impl TerminalTraits {
    pub(crate) fn of(environment: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let colors = if get("NO_COLOR").is_some() || get("TERM") == Some("dumb") {
            ColorSupport::None
        } else if matches!(get("COLORTERM"), Some("truecolor" | "24bit")) {
            ColorSupport::True
        } else {
            ColorSupport::Named
        };
        let locale = get("LC_ALL").or_else(|| get("LC_CTYPE")).or_else(|| get("LANG"));
        // Most terminals are UTF-8 without saying so; only a locale that says otherwise is believed.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let over_network = get("SSH_CONNECTION").or_else(|| get("SSH_TTY")).is_some();
        let reflows = get("XTERM_VERSION").is_none() && !matches!(get("TERM"), Some("linux"));
        Self { colors, unicode, over_network, reflows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_reason_for_line_mode_is_the_first_that_holds() {
        let find =
            |flag, setting, pairs: &[(&str, &str)]| LineModeReason::find(flag, setting, &environment(pairs));
        assert_eq!(find(true, true, &[]), Some(LineModeReason::Flag));
        assert_eq!(find(false, true, &[("QODER_SCREEN_READER", "1")]), Some(LineModeReason::Variable));
        assert_eq!(find(false, true, &[("QODER_SCREEN_READER", "0")]), Some(LineModeReason::Setting));
        assert_eq!(find(false, false, &[("TERM", "dumb")]), Some(LineModeReason::Dumb));
        assert_eq!(find(false, false, &[]), Some(LineModeReason::Dumb));
        assert_eq!(find(false, false, &[("TERM", "xterm")]), None);
    }

    #[test]
    fn colours_and_letters_follow_the_environment() {
        let of = |pairs: &[(&str, &str)]| TerminalTraits::of(&environment(pairs));
        assert_eq!(of(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]).colors, ColorSupport::None);
        assert_eq!(of(&[("COLORTERM", "truecolor")]).colors, ColorSupport::True);
        assert_eq!(of(&[("NO_COLOR", "")]).colors, ColorSupport::Named);
        assert!(of(&[("LANG", "C.UTF-8")]).unicode && of(&[]).unicode);
        assert!(!of(&[("LANG", "C.UTF-8"), ("LC_ALL", "POSIX")]).unicode);
    }

    #[test]
    fn settings_are_read_with_their_defaults() {
        let plain = UiSettings::read(|_| None);
        assert_eq!(plain, UiSettings::default());
        let other = UiSettings::read(|key| match key {
            "ui.theme" => Some(json!("Dracula")),
            "ui.showSpinner" => Some(json!(false)),
            "ui.toolOutputLines" => Some(json!(12)),
            _ => None,
        });
        assert_eq!((other.theme.as_deref(), other.still, other.output_lines), (Some("Dracula"), true, 12));
        let compact = UiSettings::read(|key| (key == "ui.compactToolOutput").then(|| json!(true)));
        assert_eq!(compact.output_lines, 0);
    }
}
