//! What a person's sentence asks for, as far as the rules go. Every rule is a few words
//! at a known place; a sentence that fits none of them is not understood, and that is
//! said.

use qoder_types::ToolDefinition;
use serde_json::{Map, Value};

use super::everyday::{self, Everyday};
use super::phrases::{
    find_outside_quotes, first_part, left_over, looks_like_path, path_in, quoted, strip_fillers,
    strip_politeness, strip_word_prefix, unquote,
};
use super::{lookup, show};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Intent {
    /// Show files, or some of their lines.
    Show { paths: Vec<String>, lines: Option<Lines> },
    /// Show the README, whatever its ending.
    ShowReadme,
    /// Find a text in files.
    Search { text: String, path: Option<String> },
    /// Find where a name is defined.
    Definition { name: String, path: Option<String> },
    /// Count the lines of a file.
    CountLines { file: String },
    /// Replace a text in a file.
    Replace { old: String, new: String, path: String },
    /// Write a file.
    Create { path: String, content: String },
    /// Run a command.
    Run { command: String },
    /// List files by a pattern.
    List { pattern: String, path: Option<String> },
    /// Say what the project is.
    Describe,
    /// What people ask in their first hour.
    Everyday(Everyday),
    /// Call a tool by name.
    Call { tool: String, input: Value },
    /// The words are clear but something is missing.
    Unclear(String),
    /// Nothing that the rules know.
    Unknown,
}

/// Lines of a file, by the number of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: u64,
    pub(super) count: u64,
}

/// A sentence as far as it is understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) intent: Intent,
    /// Words that the rules can do nothing with. Leaving them out silently would pretend to have obeyed them.
    pub(super) left_over: Option<String>,
}

impl From<Intent> for Reading {
    fn from(intent: Intent) -> Self {
        Self { intent, left_over: None }
    }
}

const POLITE: &[&str] =
    &["please", "can you", "could you", "would you", "kindly", "now", "then", "hey", "hi", "hello"];

/// Reads a sentence.
pub(super) fn read(prompt: &str, tools: &[ToolDefinition]) -> Reading {
    let whole = strip_fillers(without_greeting(prompt).trim_start_matches(','), POLITE);
    // A polite word at the end of a command or of a file's content may belong to it.
    let text = strip_politeness(whole);
    direct_call(whole, tools)
        .map(Reading::from)
        .or_else(|| describe(text))
        .or_else(|| everyday::read(prompt))
        .or_else(|| run(whole).map(Reading::from))
        .or_else(|| replace(text).map(Reading::from))
        .or_else(|| create(whole).map(Reading::from))
        .or_else(|| count(text))
        .or_else(|| lookup::read(text))
        .or_else(|| show::read(text))
        .or_else(|| mentioned(whole, tools).map(Reading::from))
        .unwrap_or_else(|| Intent::Unknown.into())
}

/// `Hello, show me …` without its first word.
fn without_greeting(prompt: &str) -> &str {
    let prompt = prompt.trim();
    let rest = ["hello", "hi", "hey"].iter().find_map(|word| {
        let (first, rest) = prompt.split_at_checked(word.len())?;
        let rest = rest.strip_prefix([',', '!', '.'])?.trim_start();
        (first.eq_ignore_ascii_case(word) && !rest.is_empty()).then_some(rest)
    });
    rest.unwrap_or(prompt)
}

/// `call NAME with {…}` for any tool on offer.
fn direct_call(text: &str, tools: &[ToolDefinition]) -> Option<Intent> {
    let rest = strip_word_prefix(text, &["call", "use", "invoke"])?;
    let rest = strip_fillers(rest, &["the", "tool"]);
    let name = rest.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
    let name = name.trim_matches(['`', '"', '\'', ',', ':', '.']);
    let Some(tool) = tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)) else {
        // `use` begins many sentences; only `call X with {` is certainly meant as a call.
        return (rest.contains('{') && !name.is_empty()).then(|| {
            let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            Intent::Unclear(format!("There is no tool `{name}`. On offer are: {}.", known.join(", ")))
        });
    };
    let input = match (rest.find('{'), rest.rfind('}')) {
        (Some(start), Some(end)) if start < end => match serde_json::from_str(&rest[start..=end]) {
            Ok(input) => input,
            Err(error) => {
                return Some(Intent::Unclear(format!(
                    "The input for {} is not valid JSON: {error}.",
                    tool.name
                )));
            }
        },
        _ => return fill(tool, text).map(|input| Intent::Call { tool: tool.name.clone(), input }),
    };
    Some(Intent::Call { tool: tool.name.clone(), input })
}

fn describe(text: &str) -> Option<Reading> {
    let folded = text.to_ascii_lowercase();
    let asks = [
        "what does this",
        "what is this",
        "what's this",
        "describe",
        "explain",
        "summarize",
        "summarise",
        "tell me about",
        "overview of",
        "what does the",
    ];
    let things = ["repository", "repo", "project", "codebase", "code base"];
    let asked = asks.iter().any(|phrase| folded.starts_with(phrase));
    let about = things.iter().any(|thing| {
        folded.split(|c: char| !c.is_alphanumeric() && c != ' ').any(|part| part.contains(thing))
    });
    const UNDERSTOOD: &[&str] = &[
        "what",
        "what's",
        "does",
        "do",
        "is",
        "this",
        "the",
        "describe",
        "explain",
        "summarize",
        "summarise",
        "tell",
        "me",
        "about",
        "overview",
        "of",
        "an",
        "a",
        "give",
        "for",
        "all",
        "whole",
        "entire",
        "code",
        "base",
        "repository",
        "repo",
        "project",
        "codebase",
        "current",
        "in",
        "here",
    ];
    (asked && about && path_in(text).is_none())
        .then(|| Reading { intent: Intent::Describe, left_over: left_over(text, UNDERSTOOD, &[]) })
}

fn run(text: &str) -> Option<Intent> {
    let rest = strip_word_prefix(text, &["run", "execute", "exec"])?;
    let explicit = strip_word_prefix(rest, &["the command", "command", "the shell command"]);
    let command = explicit.unwrap_or(rest);
    if command.starts_with(['"', '\'', '`']) {
        return Some(Intent::Run { command: unquote(command) });
    }
    if command.is_empty()
        || (explicit.is_none() && strip_word_prefix(command, &["the", "my", "all", "it"]).is_some())
    {
        return Some(Intent::Unclear("Which command? Say, for example: run `cargo test`.".into()));
    }
    let ends_sentence = command.ends_with('.')
        && !command.ends_with(" .")
        && !command.ends_with("..")
        && !command.ends_with("/.");
    let command = if ends_sentence { &command[..command.len() - 1] } else { command };
    Some(Intent::Run { command: command.to_owned() })
}

fn replace(text: &str) -> Option<Intent> {
    let rest = strip_word_prefix(text, &["replace", "substitute", "change", "rename"])?;
    let rest = strip_fillers(
        rest,
        &[
            "all occurrences of",
            "every occurrence of",
            "each occurrence of",
            "all",
            "every",
            "the text",
            "the word",
        ],
    );
    let (middle, width) = [" with ", " by ", " to ", " into "]
        .iter()
        .find_map(|word| find_outside_quotes(rest, word).map(|at| (at, word.len())))?;
    let old = unquote(&rest[..middle]);
    let tail = &rest[middle + width..];
    let Some(place) = find_outside_quotes(tail, " in ") else {
        return Some(Intent::Unclear("In which file? Say: replace `old` with `new` in `file`.".into()));
    };
    let new = unquote(&tail[..place]);
    let (path, rest) = first_part(strip_fillers(&tail[place + 4..], &["the file", "file", "the"]));
    if !rest.is_empty() {
        // Half of a change is worse than none.
        return Some(Intent::Unclear(format!(
            "I understood only a part of this, so nothing was changed. I can do nothing with `{rest}`. Say: replace \
             `old` with `new` in `file`, for one file at a time."
        )));
    }
    if old.is_empty() || path.is_empty() {
        return Some(Intent::Unclear("Say: replace `old` with `new` in `file`.".into()));
    }
    Some(Intent::Replace { old, new, path })
}

fn create(text: &str) -> Option<Intent> {
    if let Some(rest) = strip_word_prefix(text, &["write", "save", "put"])
        && let Some((place, width)) = [" to ", " into "]
            .iter()
            .find_map(|word| find_outside_quotes(rest, word).map(|at| (at, word.len())))
    {
        let path = unquote(strip_fillers(
            &rest[place + width..],
            &["the file", "a file", "file", "named", "called"],
        ));
        let content = content_of(&rest[..place]);
        return (!path.is_empty() && !path.contains(' ')).then_some(Intent::Create { path, content });
    }
    let rest = strip_word_prefix(text, &["create", "make", "write", "add"])?;
    let rest = strip_fillers(rest, &["a", "the", "new", "file", "named", "called"]);
    let split = [" with ", " containing ", " that says ", ": "]
        .iter()
        .filter_map(|word| find_outside_quotes(rest, word).map(|at| (at, word.len())))
        .min();
    let (path, content) = match split {
        Some((at, width)) => (unquote(&rest[..at]), content_of(&rest[at + width..])),
        None => (unquote(rest), String::new()),
    };
    looks_like_path(&path).then_some(Intent::Create { path, content })
}

fn content_of(text: &str) -> String {
    let text = strip_fillers(
        text,
        &["the content", "the contents", "content", "contents", "the text", "text", "the line", "the words"],
    );
    let is_quoted = text.starts_with(['"', '\'', '`', '“', '‘', '«']);
    // Unquoted content keeps its last character: a full stop may well belong to it.
    if is_quoted { unquote(text) } else { text.trim().to_owned() }
}

fn count(text: &str) -> Option<Reading> {
    let folded = text.to_ascii_lowercase();
    if !(folded.contains("how many lines")
        || folded.contains("number of lines")
        || folded.starts_with("count"))
    {
        return None;
    }
    if !folded.contains("line") {
        return None;
    }
    const UNDERSTOOD: &[&str] = &[
        "how", "many", "lines", "line", "does", "do", "is", "are", "there", "in", "the", "file", "have",
        "has", "of", "number", "count", "what", "what's", "a", "all", "contain", "total", "tell", "me",
        "show",
    ];
    Some(match path_in(text) {
        Some(file) => {
            let left_over = left_over(text, UNDERSTOOD, &[file.as_str()]);
            Reading { intent: Intent::CountLines { file }, left_over }
        }
        None => Intent::Unclear("Of which file? Say: how many lines does `main.rs` have?".into()).into(),
    })
}

/// A tool whose name occurs in the sentence and whose required texts are in quotes.
fn mentioned(text: &str, tools: &[ToolDefinition]) -> Option<Intent> {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
    let tool = tools.iter().find(|tool| words.clone().any(|word| word == tool.name)).or_else(|| {
        words.find_map(|word| {
            tools.iter().find(|tool| word.len() > 3 && tool.name.rsplit("__").next() == Some(word))
        })
    })?;
    fill(tool, text).map(|input| Intent::Call { tool: tool.name.clone(), input })
}

/// Fills the required texts of a tool from the quoted parts of a sentence, in order.
fn fill(tool: &ToolDefinition, text: &str) -> Option<Value> {
    let required: Vec<&str> = tool
        .input_schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut parts = quoted(text).into_iter().filter(|part| *part != tool.name);
    let mut input = Map::new();
    for name in required {
        let kind = tool.input_schema.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
        if kind.is_some_and(|kind| kind != "string") {
            return None;
        }
        input.insert(name.to_owned(), Value::String(parts.next()?));
    }
    Some(Value::Object(input))
}
