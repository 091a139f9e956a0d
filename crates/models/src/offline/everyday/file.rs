//! Answers about one file: what is in it, in short, and which functions it has. Lines are told apart by how they begin; no
//! language is parsed.

use serde_json::json;

use crate::offline::conversation::Step;
use crate::offline::help;
use crate::offline::plan::{Action, Offered};
use crate::offline::rendering::{bullets, without_numbers};

/// How many headings or functions are listed.
const MOST_LISTED: usize = 60;

/// What is in a file, in short.
pub(super) fn summary(path: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else { return offered.call("Read", json!({ "file_path": path })) };
    if last.is_error {
        return Action::Say(help::failed(last));
    }
    let content = without_numbers(&last.output);
    let count = content.lines().count();
    let mut text = format!("{path} has {count} lines.");
    if let Some(first) = first_words(&content) {
        text.push_str(&format!(" It begins:\n\n> {first}"));
    }
    let is_prose = matches!(ending(path), "md" | "markdown" | "rst" | "txt");
    let listed: Vec<String> = match is_prose {
        true => content.lines().filter(|line| line.starts_with('#')).map(heading).collect(),
        false => content.lines().filter(|line| is_definition(line)).map(signature).collect(),
    };
    let what = if is_prose { "Headings" } else { "Definitions" };
    if !listed.is_empty() {
        let more = listed.len().saturating_sub(MOST_LISTED);
        let shown: Vec<String> = listed.into_iter().take(MOST_LISTED).collect();
        text.push_str(&format!("\n\n{what}:\n\n{}", bullets(&shown)));
        if more > 0 {
            text.push_str(&format!("\n\nand {more} more."));
        }
    }
    Action::Say(text)
}

/// The first lines of words, as one paragraph.
fn first_words(content: &str) -> Option<String> {
    let is_mark = |line: &&str| {
        let line = line.trim();
        line.starts_with("#!")
            || line.starts_with("<!--")
            || line.starts_with("---")
            || line.starts_with("[![")
    };
    let mut lines = content.lines().filter(|line| !is_mark(line)).skip_while(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with("# ")
    });
    let first: Vec<&str> = lines.by_ref().take_while(|line| !line.trim().is_empty()).take(4).collect();
    let text = first.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let text: String = text.chars().take(400).collect();
    (!text.is_empty()).then_some(text)
}

fn heading(line: &str) -> String {
    line.trim_start_matches('#').trim().to_owned()
}

/// A line without what follows the signature.
fn signature(line: &str) -> String {
    line.trim().trim_end_matches(['{', ':']).trim_end().to_owned()
}

fn is_definition(line: &str) -> bool {
    const BEFORE: &[&str] = &[
        "pub",
        "pub(crate)",
        "pub(super)",
        "export",
        "default",
        "async",
        "const",
        "unsafe",
        "static",
        "public",
        "private",
        "protected",
        "final",
        "abstract",
        "extern",
    ];
    const KINDS: &[&str] = &[
        "fn",
        "def",
        "function",
        "func",
        "fun",
        "class",
        "struct",
        "enum",
        "trait",
        "interface",
        "impl",
        "type",
    ];
    let mut words = line.split_whitespace().skip_while(|word| BEFORE.contains(word));
    words.next().is_some_and(|word| KINDS.contains(&word)) && words.next().is_some()
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The functions of a file.
pub(super) fn functions(path: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else {
        let input =
            json!({ "pattern": pattern(ending(path)), "path": path, "output_mode": "content", "-n": true });
        return offered.call("Grep", input);
    };
    if last.is_error {
        return Action::Say(help::failed(last));
    }
    let found: Vec<String> = last.output.lines().filter_map(numbered).collect();
    Action::Say(match found.len() {
        0 => format!("I found no functions in {path}: no line looks like a definition that I know."),
        1 => format!("1 function in {path}:\n\n{}", bullets(&found)),
        count => {
            let more = count.saturating_sub(MOST_LISTED);
            let shown: Vec<String> = found.into_iter().take(MOST_LISTED).collect();
            let more = if more > 0 { format!("\n\nand {more} more.") } else { String::new() };
            format!("{count} functions in {path}:\n\n{}{more}", bullets(&shown))
        }
    })
}

/// How a function begins in files with this ending.
fn pattern(ending: &str) -> &'static str {
    match ending {
        "java" | "cs" => {
            r"^\s*((public|private|protected|internal|static|final|abstract|async|override|virtual)\s+)+[\w<>\[\],\s]+\s+\w+\s*\("
        }
        "c" | "h" | "cc" | "cpp" | "hpp" => r"^[A-Za-z_][\w\s\*&:<>,~]*\b[\w:~]+\s*\([^;]*$",
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" => {
            r"^\s*(export\s+)?(default\s+)?(async\s+)?(function\s*\*?\s*\w*\s*\(|(const|let|var)\s+\w+\s*=\s*(async\s*)?(\([^)]*\)|\w+)\s*=>)"
        }
        "sh" | "bash" | "zsh" => r"^\s*(function\s+[\w-]+|[\w-]+\s*\(\))",
        _ => {
            r"^\s*(pub(\([a-z]+\))?\s+|export\s+|default\s+|async\s+|const\s+|unsafe\s+|static\s+|public\s+|private\s+|protected\s+)*(fn|def|function|func|fun|sub)\s+\S"
        }
    }
}

/// A found line as it is for people.
fn numbered(line: &str) -> Option<String> {
    found_line(line).map(|(number, text)| format!("line {number}: {}", signature(text)))
}

/// The number and the text of `src/main.rs:12:fn main() {` or `12:fn main() {`.
pub(super) fn found_line(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if digits > 0
            && let Some(text) = rest[digits..].strip_prefix(':')
        {
            return Some((&rest[..digits], text));
        }
        rest = rest.split_once(':')?.1;
    }
}
