//! How the tables are written. `# title` begins a block; `mode:`, `trusted:`, `cwd:`, `also:`, `allow:`, `ask:` and
//! `deny:` lines say what holds in it. A case is a line with the decision (`allow`, `ask`, `deny`, `stop` for either of
//! the last two, `error` for a case that makes no sense) and then `$ command`, a tool with its input, or `raw` with a
//! whole case. `␊ ␉ ␍ ␀ ␛` and `‹hex›` stand for characters that would not show; `{W}`, `{H}` and `{O}` for the
//! workspace, the home directory and a folder outside both.

use serde_json::{Value, json};

use crate::permission_cases::place::Place;

/// What a case must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Allow,
    Ask,
    Deny,
    /// Anything but an allowance.
    Stop,
    /// A denial because the case itself cannot be used.
    Error,
}

impl Expected {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "allow" => Self::Allow,
            "ask" => Self::Ask,
            "deny" => Self::Deny,
            "stop" => Self::Stop,
            "error" => Self::Error,
            _ => return None,
        })
    }

    /// True when the decision is the expected one.
    pub fn is(self, decision: &str, is_error: bool) -> bool {
        match self {
            Self::Allow => decision == "allow" && !is_error,
            Self::Ask => decision == "ask" && !is_error,
            Self::Deny => decision == "deny" && !is_error,
            Self::Stop => decision != "allow" && !is_error,
            Self::Error => decision == "deny" && is_error,
        }
    }
}

/// What holds for all cases of a block.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    mode: Option<String>,
    trusted: Option<bool>,
    cwd: Option<String>,
    also: Vec<String>,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

/// A title, what holds, and the cases.
#[derive(Debug)]
pub struct Block {
    pub title: String,
    pub terms: Terms,
    pub cases: Vec<Case>,
}

/// One case.
#[derive(Debug)]
pub struct Case {
    pub line: usize,
    pub expected: Expected,
    pub text: String,
}

/// Reads a table.
pub fn read(name: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if line.trim().is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix("# ") {
            blocks.push(Block { title: title.to_owned(), terms: Terms::default(), cases: Vec::new() });
            continue;
        }
        let block = blocks.last_mut().unwrap_or_else(|| panic!("{name}:{number} stands before any title"));
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(expected) = Expected::parse(word) {
            block.cases.push(Case { line: number, expected, text: rest.trim_start().to_owned() });
        } else {
            assert!(
                block.cases.is_empty(),
                "{name}:{number} says too late what holds, or is no case: {line}"
            );
            block.terms.set(word, rest.trim(), &format!("{name}:{number}"));
        }
    }
    blocks
}

impl Terms {
    fn set(&mut self, word: &str, value: &str, place: &str) {
        let value = value.to_owned();
        match word {
            "mode:" => self.mode = Some(value),
            "trusted:" => self.trusted = Some(value == "yes"),
            "cwd:" => self.cwd = Some(value),
            "also:" => self.also.push(value),
            "allow:" => self.allow.push(value),
            "ask:" => self.ask.push(value),
            "deny:" => self.deny.push(value),
            other => panic!("{place}: {other} is no term"),
        }
    }
}

impl Block {
    /// The case as it is asked.
    pub fn case(&self, case: &Case, place: &Place) -> String {
        let put = |text: &str| place.put(&shown(text));
        let all = |texts: &[String]| -> Vec<String> { texts.iter().map(|text| put(text)).collect() };
        let (tool, input): (&str, Value) = match case.text.split_once(' ') {
            Some(("raw", whole)) => return put(whole),
            Some(("$", command)) => ("Bash", json!({"command": put(command)})),
            Some((tool, input)) => {
                let input = serde_json::from_str(&put(input));
                (tool, input.unwrap_or_else(|error| panic!("line {}: {error}", case.line)))
            }
            None => (case.text.as_str(), json!({})),
        };
        let terms = &self.terms;
        let mut asked = json!({
            "rules": {"allow": all(&terms.allow), "ask": all(&terms.ask), "deny": all(&terms.deny)},
            "tool": tool,
            "input": input,
            "cwd": place.workspace().join(terms.cwd.as_deref().unwrap_or_default()),
            "project_root": place.workspace(),
            "home": place.home(),
            "additional_directories": all(&terms.also),
        });
        if let Some(mode) = &terms.mode {
            asked["mode"] = json!(mode);
        }
        if let Some(trusted) = terms.trusted {
            asked["trusted"] = json!(trusted);
        }
        asked.to_string()
    }
}

/// The text with the characters that its signs stand for.
fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '␊' => out.push('\n'),
            '␉' => out.push('\t'),
            '␍' => out.push('\r'),
            '␀' => out.push('\0'),
            '␛' => out.push('\u{1b}'),
            '‹' => {
                let (hex, after) = rest.split_once('›').unwrap();
                out.push(char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap());
                rest = after;
            }
            other => out.push(other),
        }
    }
    out
}
