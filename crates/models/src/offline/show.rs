//! Sentences that show files: one or several, whole or some of their lines, and the
//! README by its usual name. Also what is done for them. Parts of a sentence that name
//! no file are handed on as not understood.

use serde_json::{Value, json};

use super::conversation::Step;
use super::help;
use super::intent::{Intent, Lines, Reading};
use super::phrases::{
    first_part, left_over, path_in, split_outside_quotes, strip_fillers, strip_word_prefix, unquote,
};
use super::plan::{Action, Offered};
use super::rendering::{bullets, fenced, paths, remark, without_numbers};

const FILLERS: &[&str] =
    &["the", "file", "files", "content", "contents", "of", "from", "in", "me", "whole", "up"];
/// Words beside a path that change nothing.
const IGNORED: &[&str] = &[
    "the", "file", "files", "content", "contents", "of", "me", "whole", "now", "again", "here", "both", "to",
    "is", "s",
];

/// Reads a sentence that shows files.
pub(super) fn read(text: &str) -> Option<Reading> {
    let verbs =
        ["show me", "show", "read", "cat", "open", "print", "display", "view", "what is in", "what's in"];
    let rest = strip_fillers(strip_word_prefix(text, &verbs)?, FILLERS);
    if strip_word_prefix(rest, &["last"]).is_some() {
        let hint = "I can show a file from its start or by line numbers. Say: show lines 3 to 5 of `file`.";
        return path_in(rest).map(|_| Intent::Unclear(hint.into()).into());
    }
    let (lines, rest) = match lines_of(rest) {
        Some((lines, rest)) => (Some(lines), strip_fillers(rest, FILLERS)),
        None => (None, rest),
    };
    let one_word = unquote(rest);
    if lines.is_none() && ["readme", "readme file"].iter().any(|name| one_word.eq_ignore_ascii_case(name)) {
        return Some(Intent::ShowReadme.into());
    }
    let mut paths = Vec::new();
    let mut surplus = Vec::new();
    for part in parts(rest) {
        let part = strip_fillers(part, FILLERS);
        match path_in(part) {
            Some(path) => {
                surplus.extend(left_over(part, IGNORED, &[path.as_str()]));
                paths.push(path);
            }
            None => surplus.extend(left_over(part, IGNORED, &[])),
        }
    }
    if paths.is_empty() {
        let is_name = !one_word.is_empty() && !one_word.contains(' ');
        return is_name.then(|| Intent::Show { paths: vec![one_word], lines }.into());
    }
    let left_over = (!surplus.is_empty()).then(|| surplus.join(", "));
    Some(Reading { intent: Intent::Show { paths, lines }, left_over })
}

/// A list of things, at its commas and at each `and`.
fn parts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut waiting = vec![text];
    while let Some(text) = waiting.pop() {
        match split_outside_quotes(text, ", ").or_else(|| split_outside_quotes(text, " and ")) {
            Some((front, back)) => waiting.extend([back, front]),
            None => found.push(text),
        }
    }
    found
}

/// `first 2 lines of …`, `lines 3 to 5 of …`, `line 7 of …`, and what follows.
fn lines_of(text: &str) -> Option<(Lines, &str)> {
    if let Some(rest) = strip_word_prefix(text, &["first"]) {
        if let Some(rest) = strip_word_prefix(rest, &["line"]) {
            return Some((Lines { first: 1, count: 1 }, rest));
        }
        let (count, rest) = first_part(rest);
        let rest = strip_word_prefix(rest, &["lines", "line"])?;
        return Some((Lines { first: 1, count: number(&count)? }, rest));
    }
    let rest = strip_word_prefix(text, &["lines", "line"])?;
    let (first, rest) = first_part(rest);
    if let Some((first, last)) = first.split_once('-') {
        return Some((between(number(first)?, number(last)?)?, rest));
    }
    let first = number(&first)?;
    match strip_word_prefix(rest, &["to", "through", "and"]) {
        Some(rest) => {
            let (last, rest) = first_part(rest);
            Some((between(first, number(&last)?)?, rest))
        }
        None => Some((Lines { first, count: 1 }, rest)),
    }
}

fn between(first: u64, last: u64) -> Option<Lines> {
    Some(Lines { first, count: last.checked_sub(first)?.checked_add(1)? })
}

fn number(word: &str) -> Option<u64> {
    const WORDS: &[&str] = &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let named = WORDS.iter().zip(1..).find(|(name, _)| name.eq_ignore_ascii_case(word));
    named.map(|(_, value)| value).or_else(|| word.parse().ok()).filter(|value| *value > 0)
}

fn read_input(path: &str, lines: Option<Lines>) -> Value {
    let mut input = json!({"file_path": path});
    if let Some(Lines { first, count }) = lines {
        if first > 1 {
            input["offset"] = first.into();
        }
        input["limit"] = count.into();
    }
    input
}

/// The next action for showing files.
pub(super) fn plan(files: &[String], lines: Option<Lines>, steps: &[Step], offered: &Offered<'_>) -> Action {
    match files {
        [one] => plan_one(one, lines, steps, offered),
        several if steps.is_empty() => {
            let calls = several.iter().map(|path| ("Read".to_owned(), read_input(path, lines))).collect();
            if offered.has("Read") { Action::Call(calls) } else { Action::Say(help::missing_tool("Read")) }
        }
        _ => Action::Say(steps.iter().map(shown).collect::<Vec<_>>().join("\n\n")),
    }
}

fn shown(step: &Step) -> String {
    if step.is_error {
        return format!("{}: {}", step.field("file_path"), help::failed(step));
    }
    // The tool's remark about further lines is no line of the file.
    let remark = remark(&step.output);
    let content = remark.and_then(|words| step.output.trim_end().strip_suffix(words)).unwrap_or(&step.output);
    let text = fenced(&without_numbers(content.trim_end_matches('\n')));
    match remark.filter(|_| step.input.get("limit").is_none()) {
        Some(words) => format!("{}:\n\n{text}\n\n{words}", step.field("file_path")),
        None => format!("{}:\n\n{text}", step.field("file_path")),
    }
}

fn plan_one(path: &str, lines: Option<Lines>, steps: &[Step], offered: &Offered<'_>) -> Action {
    match steps {
        [] => offered.call("Read", read_input(path, lines)),
        [.., last] if last.name == "Read" && !last.is_error => Action::Say(shown(last)),
        // A bare name may be anywhere below.
        [only]
            if only.is_error && !path.contains('/') && offered.has("Glob") && says_missing(&only.output) =>
        {
            offered.call("Glob", json!({"pattern": format!("**/{path}")}))
        }
        [first, last] if last.name == "Glob" && !last.is_error => match &paths(&last.output)[..] {
            [one] => offered.call("Read", read_input(one, lines)),
            [] => Action::Say(help::failed(first)),
            several => {
                Action::Say(format!("Several files are named {path}. Which one?\n\n{}", bullets(several)))
            }
        },
        [.., last] => Action::Say(help::failed(last)),
    }
}

fn says_missing(output: &str) -> bool {
    let folded = output.to_ascii_lowercase();
    ["not exist", "not found", "no such file"].iter().any(|phrase| folded.contains(phrase))
}

/// The next action for showing the README.
pub(super) fn plan_readme(steps: &[Step], offered: &Offered<'_>) -> Action {
    match steps {
        [] => offered.call("Glob", json!({"pattern": "README*"})),
        [.., last] if last.is_error => Action::Say(help::failed(last)),
        [.., last] if last.name == "Read" => Action::Say(shown(last)),
        [.., last] => {
            let found = paths(&last.output);
            let usual = found.iter().find(|path| path.ends_with("README.md")).or(found.first());
            match usual {
                Some(path) => offered.call("Read", read_input(path, None)),
                None => Action::Say("No file here has a name that begins with README.".into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(paths: &[&str], first: u64, count: u64) -> Intent {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        Intent::Show { paths, lines: (count > 0).then_some(Lines { first, count }) }
    }

    #[test]
    fn lines_are_read_in_their_usual_forms() {
        for (text, first, count) in [
            ("read the first 2 lines of a.txt", 1, 2),
            ("show me the first three lines of a.txt", 1, 3),
            ("show the first line of a.txt", 1, 1),
            ("show lines 3 to 5 of a.txt", 3, 3),
            ("show lines 3-5 of a.txt", 3, 3),
            ("print line 7 of a.txt", 7, 1),
        ] {
            assert_eq!(read(text), Some(show(&["a.txt"], first, count).into()), "{text}");
        }
    }

    #[test]
    fn several_files_and_what_is_no_file() {
        assert_eq!(read("show a.txt, b.txt and `c d`"), Some(show(&["a.txt", "b.txt", "c d"], 0, 0).into()));
        let partly = read("show a.txt and explain it").unwrap();
        assert_eq!(
            (partly.intent, partly.left_over.as_deref()),
            (show(&["a.txt"], 0, 0), Some("explain it"))
        );
        assert_eq!(read("show the README."), Some(Intent::ShowReadme.into()));
        assert_eq!(read("show me a joke"), None);
    }
}
