//! The rule grammar: `Tool`, `Tool(content)` or `*`. Parsing keeps the text and where it was written, so that a
//! decision can name both.

use qoder_types::{Behavior, RuleOrigin};

use super::words::CommandPattern;
use crate::hosts::DomainPattern;

/// One rule as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The tool's canonical name, or `*`.
    pub tool: String,
    /// What is in the parentheses; `None` covers the whole tool.
    pub content: Option<String>,
    /// The rule as written.
    pub text: String,
    /// Where it was written.
    pub origin: RuleOrigin,
    /// For a rule that denies a whole tool: the model sees the tool all the same, and each call of it is denied.
    pub is_visible: bool,
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permission rule `{text}` cannot be read: {problem}")]
pub struct RuleError {
    /// The rule as written.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str, origin: RuleOrigin) -> Result<Self, RuleError> {
        let text = text.trim();
        let error = |problem| RuleError { text: text.to_owned(), problem };
        let (name, content) = match text.find('(') {
            None => (text, None),
            Some(open) => {
                let inner =
                    text[open + 1..].strip_suffix(')').ok_or_else(|| error("it does not end with `)`"))?;
                (text[..open].trim_end(), Some(unescape(inner)))
            }
        };
        if name.is_empty() {
            return Err(error("it names no tool"));
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*')) {
            return Err(error("a tool name has only letters, digits, `_`, `-` and `*`"));
        }
        if content.as_deref().is_some_and(|content| content.contains('\0')) {
            return Err(error("it contains a NUL character"));
        }
        if !star_stands_well(name) {
            return Err(error("`*` stands alone, or in the tool part of `mcp__server__tool`"));
        }
        let content = content.filter(|content| !matches!(content.trim(), "" | "*" | ":*"));
        if content.is_some() && takes_no_content(canonical_name(name)) {
            return Err(error("this tool takes nothing in parentheses"));
        }
        match (canonical_name(name), content.as_deref()) {
            ("Bash", Some(content)) if CommandPattern::parse(content).is_none() => {
                return Err(error("its command is not one plain command of literal words and `*`"));
            }
            ("WebFetch", Some(content)) if DomainPattern::parse(content).is_none() => {
                return Err(error("it takes `domain:HOST` or `domain:*.HOST`"));
            }
            _ => {}
        }
        let (tool, text) = (canonical_name(name).to_owned(), text.to_owned());
        Ok(Self { tool, content, text, origin, is_visible: false })
    }

    /// True when the rule applies to the whole tool `tool`.
    #[must_use]
    pub fn covers_whole(&self, tool: &str) -> bool {
        self.content.is_none() && self.names(tool)
    }

    /// True when the rule's tool is `tool`, or another name for it.
    #[must_use]
    pub fn names(&self, tool: &str) -> bool {
        if self.tool == "*" || self.tool == tool {
            return true;
        }
        if self.tool == "Edit" && matches!(tool, "Write" | "NotebookEdit" | "ImageGen") {
            return true;
        }
        let Some(server) = self.tool.strip_prefix("mcp__") else { return false };
        if self.tool.contains('*') {
            return fits(&self.tool, tool);
        }
        !server.contains("__") && tool.strip_prefix(&self.tool).is_some_and(|rest| rest.starts_with("__"))
    }
}

/// True when the stars of a tool name stand where they mean something: a rule that could never match must not be
/// silently lost.
fn star_stands_well(name: &str) -> bool {
    if !name.contains('*') || matches!(name, "*" | "mcp__*") {
        return true;
    }
    let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    parts.is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'))
}

/// True when `name` is `pattern`, with every star standing for any text.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Tools of which a rule can only speak as a whole.
fn takes_no_content(name: &str) -> bool {
    const WHOLE: [&str; 11] = [
        "*",
        "WebSearch",
        "TodoWrite",
        "TaskOutput",
        "TaskStop",
        "ExitPlanMode",
        "EnterWorktree",
        "ExitWorktree",
        "Config",
        "AskUserQuestion",
        "Mcp",
    ];
    WHOLE.contains(&name) || name.starts_with("mcp__")
}

/// Older and foreign names of our tools.
fn canonical_name(name: &str) -> &str {
    match name {
        "Task" => "Agent",
        "ask_user" => "AskUserQuestion",
        "ListMcpResourcesTool" => "ListMcpResources",
        "ReadMcpResourceTool" => "ReadMcpResource",
        other => other,
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' && matches!(chars.peek(), Some('(' | ')')) {
            continue;
        }
        out.push(c);
    }
    out
}

/// Splits a list of rules on commas and blanks outside parentheses.
#[must_use]
pub fn split_rules(text: &str) -> Vec<String> {
    let mut rules = Vec::new();
    let mut current = String::new();
    let mut depth = 0_u32;
    let mut escaped = false;
    for c in text.chars() {
        match c {
            '(' if !escaped => depth += 1,
            ')' if !escaped => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                if !current.is_empty() {
                    rules.push(std::mem::take(&mut current));
                }
                continue;
            }
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        current.push(c);
    }
    if !current.is_empty() {
        rules.push(current);
    }
    rules
}

/// All rules in force, of all sources.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Rules that deny.
    pub deny: Vec<Rule>,
    /// Rules that ask.
    pub ask: Vec<Rule>,
    /// Rules that allow.
    pub allow: Vec<Rule>,
}

impl RuleSet {
    /// Adds a rule.
    pub fn add(&mut self, behavior: Behavior, rule: Rule) {
        match behavior {
            Behavior::Allow => self.allow.push(rule),
            Behavior::Ask => self.ask.push(rule),
            Behavior::Deny => self.deny.push(rule),
        }
    }

    /// True when a deny rule takes the whole tool away, so that it is not advertised either.
    #[must_use]
    pub fn hides(&self, tool: &str) -> bool {
        self.deny.iter().any(|rule| rule.covers_whole(tool) && !rule.is_visible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qoder_types::RuleSource;

    fn origin() -> RuleOrigin {
        RuleOrigin { source: RuleSource::CliArg, file: None, line: None }
    }

    #[test]
    fn reads_the_forms_of_the_grammar() {
        let cases = [
            ("Bash", "Bash", None),
            ("Bash(*)", "Bash", None),
            ("Bash(npm run test:*)", "Bash", Some("npm run test:*")),
            ("Edit(src/**)", "Edit", Some("src/**")),
            ("Edit(a\\(x\\))", "Edit", Some("a(x)")),
            ("Task", "Agent", None),
            ("mcp__git__*", "mcp__git__*", None),
        ];
        for (text, tool, content) in cases {
            let rule = Rule::parse(text, origin()).unwrap();
            assert_eq!((rule.tool.as_str(), rule.content.as_deref()), (tool, content), "{text}");
        }
        for text in
            ["", "(x)", "Bash(x", "Ba sh", "Read(a\0b)", "Bash(a && b)", "Bash(echo $X)", "WebFetch(x)"]
        {
            assert!(Rule::parse(text, origin()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_cover_what_they_stand_for() {
        let names = |rule: &str, tool: &str| Rule::parse(rule, origin()).unwrap().names(tool);
        assert!(
            names("Edit", "Write")
                && names("Edit", "NotebookEdit")
                && names("Edit", "ImageGen")
                && !names("Write", "Edit")
        );
        assert!(names("mcp__git", "mcp__git__log") && names("mcp__git__*", "mcp__git__log"));
        assert!(!names("mcp__git", "mcp__github__log") && !names("Bash", "BashX"));
        assert!(names("*", "anything"));
    }

    #[test]
    fn lists_split_outside_parentheses() {
        assert_eq!(
            split_rules("Read,Bash(git status, x) Edit(a b)"),
            ["Read", "Bash(git status, x)", "Edit(a b)"]
        );
        assert!(split_rules(" , ").is_empty());
    }
}
