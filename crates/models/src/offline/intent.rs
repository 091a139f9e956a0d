//! What a person's sentence asks for, as far as the rules go. Every rule is a few words
//! at a known place; a sentence that fits none of them is not understood, and that is
//! said.

use qoder_types::ToolDefinition;
use serde_json::{Map, Value};

use super::phrases::{
    find_outside_quotes, is_here, looks_like_path, path_in, quoted, strip_fillers, strip_word_prefix, unquote,
};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Intent {
    /// Show a file.
    Show { path: String },
    /// Find a text in files.
    Search { text: String, path: Option<String> },
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
    /// Call a tool by name.
    Call { tool: String, input: Value },
    /// The words are clear but something is missing.
    Unclear(String),
    /// Nothing that the rules know.
    Unknown,
}

const POLITE: &[&str] =
    &["please", "can you", "could you", "would you", "kindly", "now", "then", "hey", "hi", "hello"];
const ARTICLES: &[&str] = &["the", "a", "an", "all", "every", "each", "any", "me", "us", "of", "for"];

/// Reads a sentence.
pub(super) fn read(prompt: &str, tools: &[ToolDefinition]) -> Intent {
    let text = strip_fillers(prompt.trim().trim_start_matches(','), POLITE);
    direct_call(text, tools)
        .or_else(|| describe(text))
        .or_else(|| run(text))
        .or_else(|| replace(text))
        .or_else(|| create(text))
        .or_else(|| count(text))
        .or_else(|| list(text))
        .or_else(|| search(text))
        .or_else(|| show(text))
        .or_else(|| mentioned(text, tools))
        .unwrap_or(Intent::Unknown)
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

fn describe(text: &str) -> Option<Intent> {
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
    (asked && about && path_in(text).is_none()).then_some(Intent::Describe)
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
    let path = unquote(strip_fillers(&tail[place + 4..], &["the file", "file", "the"]));
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

fn count(text: &str) -> Option<Intent> {
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
    Some(match path_in(text) {
        Some(file) => Intent::CountLines { file },
        None => Intent::Unclear("Of which file? Say: how many lines does `main.rs` have?".into()),
    })
}

fn list(text: &str) -> Option<Intent> {
    let verbs = ["list", "ls", "show", "find", "what are", "which", "what", "glob"];
    let rest = strip_fillers(strip_word_prefix(text, &verbs)?, ARTICLES);
    let (object, place) = match find_outside_quotes(rest, " in ") {
        Some(at) => (&rest[..at], rest[at + 4..].trim()),
        None => (rest, ""),
    };
    let object = unquote(object);
    let words: Vec<&str> = object.split_whitespace().collect();
    let by_kind = match &words[..] {
        [kind, files] if files.eq_ignore_ascii_case("files") => {
            extension(kind).map(|name| format!("*.{name}"))
        }
        _ => None,
    };
    let pattern = words.iter().copied().find(|word| word.contains('*')).or(by_kind.as_deref());
    let names_files =
        words.iter().any(|word| word.eq_ignore_ascii_case("files") || word.eq_ignore_ascii_case("file"));
    let is_list = strip_word_prefix(text, &["list", "ls", "glob"]).is_some();
    if pattern.is_none() && !(names_files && words.len() == 1) && !(is_list && words.len() <= 1) {
        return None;
    }
    let path = unquote(strip_fillers(place, &["the directory", "the folder", "directory", "folder"]));
    let path = (!is_here(&path)).then_some(path);
    // `ls src` and `list src` name the place without `in`.
    let bare =
        words.first().filter(|_| is_list && !names_files && pattern.is_none()).map(|word| (*word).to_owned());
    let pattern = match pattern {
        Some(pattern) if pattern.contains('/') => pattern.to_owned(),
        Some(pattern) => format!("**/{pattern}"),
        None => "*".into(),
    };
    Some(Intent::List { pattern, path: path.or(bare) })
}

/// The extension of a kind of files: `.rs`, `rs` or `Rust`.
fn extension(kind: &str) -> Option<String> {
    const KINDS: &[(&str, &str)] = &[
        ("rust", "rs"),
        ("python", "py"),
        ("javascript", "js"),
        ("typescript", "ts"),
        ("markdown", "md"),
        ("yaml", "{yaml,yml}"),
    ];
    const EXTENSIONS: &[&str] = &[
        "rs", "py", "js", "ts", "tsx", "md", "json", "toml", "yml", "txt", "go", "java", "html", "css", "sh",
    ];
    let folded = kind.to_ascii_lowercase();
    if let Some(bare) = folded.strip_prefix('.') {
        return bare.chars().all(char::is_alphanumeric).then(|| bare.to_owned());
    }
    let named = KINDS.iter().find(|(name, _)| *name == folded).map(|(_, extension)| *extension);
    named.or_else(|| EXTENSIONS.iter().copied().find(|known| *known == folded)).map(str::to_owned)
}

fn search(text: &str) -> Option<Intent> {
    let rest = strip_word_prefix(text, &["find", "search", "grep", "look for", "where is", "locate"])?;
    let (object, place) = match find_outside_quotes(rest, " in ") {
        Some(at) => (&rest[..at], rest[at + 4..].trim()),
        None => (rest, ""),
    };
    let fillers = [
        "for",
        "every",
        "all",
        "each",
        "any",
        "the",
        "occurrences of",
        "occurrence of",
        "uses of",
        "mentions of",
        "text",
        "word",
        "string",
        "lines with",
        "lines containing",
    ];
    let wanted = strip_fillers(object, &fillers);
    let wanted = unquote(wanted);
    if wanted.is_empty() {
        return Some(Intent::Unclear("What shall I look for? Say: find `text` in `folder`.".into()));
    }
    let path = unquote(strip_fillers(place, &["the file", "the directory", "the folder", "file", "folder"]));
    Some(Intent::Search { text: wanted, path: (!is_here(&path)).then_some(path) })
}

fn show(text: &str) -> Option<Intent> {
    let verbs =
        ["show me", "show", "read", "cat", "open", "print", "display", "view", "what is in", "what's in"];
    let rest = strip_word_prefix(text, &verbs)?;
    let rest = strip_fillers(rest, &["the", "file", "content", "contents", "of", "me", "whole"]);
    let one_word = unquote(rest);
    let path =
        path_in(rest).or_else(|| (!one_word.is_empty() && !one_word.contains(' ')).then_some(one_word))?;
    Some(Intent::Show { path })
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
