//! Hostile text, a pseudo-terminal, and the judge of what came out of it.

use std::process::{Command, Stdio};

use qoder_testkit::{Sandbox, ScriptedServer};
use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

/// Sequences and characters that no terminal may get: colours that we never use, titles, links, the clipboard, device
/// strings, single control characters in both ranges, direction changes, what cannot be seen, and line separators.
pub const HOSTILE: [&str; 34] = [
    "\u{1b}[41m",
    "\u{1b}[2J",
    "\u{1b}[6n",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http:evil\u{1b}\\",
    "\u{1b}]52;c;aGk=\u{7}",
    "\u{1b}P+q544e\u{1b}\\",
    "\u{1b}c",
    "\u{1b}",
    "\u{9b}41m",
    "\u{9d}0;title\u{9c}",
    "\u{90}q\u{9c}",
    "\u{85}",
    "\u{7}",
    "\u{8}",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{e}",
    "\u{7f}",
    "\u{202a}",
    "\u{202e}",
    "\u{2066}",
    "\u{2069}",
    "\u{200e}",
    "\u{200f}",
    "\u{61c}",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{fe0f}",
    "\u{e0041}\u{e007f}",
    "\u{2028}\u{2029}",
];

/// All of it in one text that can be the name of a file.
pub fn hostile() -> String {
    format!("x{}y", HOSTILE.join("."))
}

/// The same as the right side of something in YAML.
pub fn hostile_yaml() -> String {
    // JSON is YAML; what YAML does not take raw is escaped there.
    ascii(&hostile())
}

/// A JSON string in ASCII alone.
pub fn ascii(text: &str) -> String {
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if (0x20..0x7F).contains(&byte) && !matches!(byte, b'"' | b'\\') => {
            char::from(byte).to_string()
        }
        _ => format!("\\u{unit:04x}"),
    };
    format!("\"{}\"", text.encode_utf16().map(unit).collect::<String>())
}

/// A project that the user trusts, with more user settings.
pub fn trusted(more: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut settings =
        json!({ "permissions": { "trustDirectories": [sandbox.project().to_str().unwrap()] } });
    for (group, value) in more.as_object().unwrap() {
        match settings[group].as_object_mut() {
            Some(present) => present.extend(value.as_object().unwrap().clone()),
            None => settings[group] = value.clone(),
        }
    }
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    sandbox
}

/// A command on a terminal made by `script`: both of its streams lead there. Answers with everything that was shown.
pub fn on_terminal(plain: &Command) -> String {
    let mut shown = Command::new("script");
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"));
    let words: Vec<String> =
        std::iter::once(plain.get_program()).chain(plain.get_args()).map(quoted).collect();
    shown.arg("-qec").arg(format!("{} < /dev/null", words.join(" "))).arg("/dev/null");
    shown.env_clear().stdin(Stdio::null());
    if let Some(folder) = plain.get_current_dir() {
        shown.current_dir(folder);
    }
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            shown.env(name, value);
        }
    }
    String::from_utf8_lossy(&Sandbox::finish(shown).stdout).into_owned()
}

/// Runs `qodercli` on a terminal without a model.
pub fn shown(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let mut command = sandbox.command(BINARY);
    command.args(arguments);
    on_terminal(&command)
}

/// Runs `qodercli` on a terminal with a model.
pub fn shown_with(sandbox: &Sandbox, server: &ScriptedServer, arguments: &[&str]) -> String {
    let mut command = sandbox.command_with(BINARY, server);
    command.env("QODER_RETRY_BASE_MS", "1").args(arguments);
    on_terminal(&command)
}

/// Nothing in it steers a terminal but what the program itself put there: its few colours, and its sign of life.
pub fn assert_tame(shown: &str, what: &str) {
    let mut rest = shown.replace("\r\n", "\n").replace("\r\u{1b}[K", "");
    for code in ["0", "1", "2", "31", "32", "33", "36"] {
        rest = rest.replace(&format!("\u{1b}[{code}m"), "");
    }
    for frame in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".chars() {
        rest = rest.replace(&format!("\r{frame}"), "");
    }
    for sign in rest.chars() {
        assert!(!is_wild(sign), "{what}: {sign:?} in {shown:?}");
    }
}

/// It is tame, and the hostile text was in it.
pub fn assert_escaped(shown: &str, what: &str) {
    assert_tame(shown, what);
    // Inside JSON the escape is JSON's own.
    assert!(shown.contains("\\u{1b}[41m") || shown.contains("\\u001b[41m"), "{what}: {shown:?}");
}

/// Written here anew, so that a hole in the program's own table shows.
fn is_wild(sign: char) -> bool {
    (sign.is_control() && !matches!(sign, '\n' | '\t'))
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(sign, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(sign, '\u{e0000}'..='\u{e0fff}')
}
