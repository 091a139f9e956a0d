//! The next action for an intent, from the steps already taken. Every
//! function here is a small table: nothing done yet, this came back, that
//! came back.

use qoder_types::ToolDefinition;
use serde_json::{Value, json};

use super::conversation::{Conversation, Step};
use super::everyday;
use super::help;
use super::intent::{self, Intent};
use super::phrases::escape_pattern;
use super::rendering::{bullets, cut, fenced, line_number, paths, remark, without_numbers};
use super::show;

/// At most this many files of the same name are looked into.
const MOST_FILES: usize = 10;

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Say this and stop.
    Say(String),
    /// Call these tools together.
    Call(Vec<(String, Value)>),
}

/// The next action.
pub(super) fn next(conversation: &Conversation, tools: &[ToolDefinition]) -> Action {
    let offered = Offered { tools };
    let steps = &conversation.steps[..];
    let reading = intent::read(&conversation.prompt, tools);
    let action = match reading.intent {
        Intent::Show { paths, lines } => show::plan(&paths, lines, steps, &offered),
        Intent::ShowReadme => show::plan_readme(steps, &offered),
        Intent::Definition { name, path } => definition(&name, path.as_deref(), steps, &offered),
        Intent::Search { text, path } => search(&text, path.as_deref(), steps, &offered),
        Intent::CountLines { file } => count_lines(&file, steps, &offered),
        Intent::Replace { old, new, path } => replace(&old, &new, &path, steps, &offered),
        Intent::Create { path, content } => create(&path, &content, steps, &offered),
        Intent::Run { command } => run(&command, steps, &offered),
        Intent::List { pattern, path } => list(&pattern, path.as_deref(), steps, &offered),
        Intent::Describe => describe(steps, &offered),
        Intent::Everyday(asked) => everyday::plan(&asked, steps, &offered),
        Intent::Call { tool, input } => call(&tool, input, steps),
        Intent::Unclear(question) => Action::Say(question),
        Intent::Unknown => Action::Say(help::not_understood(&conversation.prompt)),
    };
    match (action, reading.left_over) {
        (Action::Say(text), Some(words)) => Action::Say(format!("{text}\n\n{}", help::partly(&words))),
        (action, _) => action,
    }
}

/// The tools that may be called.
pub(super) struct Offered<'a> {
    /// Their definitions.
    pub(super) tools: &'a [ToolDefinition],
}

impl Offered<'_> {
    /// True when the tool may be called.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Calls the tool, or says that it is not on offer.
    pub(super) fn call(&self, name: &str, input: Value) -> Action {
        if self.has(name) {
            Action::Call(vec![(name.to_owned(), input)])
        } else {
            Action::Say(help::missing_tool(name))
        }
    }
}

/// Searches a pattern, with line numbers.
fn grep(pattern: &str, path: Option<&str>, offered: &Offered<'_>) -> Action {
    let mut input = json!({"pattern": pattern, "output_mode": "content", "-n": true});
    if let Some(path) = path {
        input["path"] = path.into();
    }
    offered.call("Grep", input)
}

/// What a search found; none when it found nothing.
fn found(step: &Step) -> Option<&str> {
    let text = step.output.trim();
    let nothing = text.is_empty()
        || text.to_ascii_lowercase().starts_with("no match")
        || text.starts_with("No files found");
    (!nothing).then_some(text)
}

fn place_of(path: Option<&str>) -> String {
    path.map(|path| format!(" in {path}")).unwrap_or_default()
}

fn search(text: &str, path: Option<&str>, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else { return grep(&escape_pattern(text), path, offered) };
    if last.is_error {
        return Action::Say(help::failed(last));
    }
    let place = place_of(path);
    Action::Say(match found(last) {
        Some(found) => format!("`{text}`{place}:\n\n{}", fenced(found)),
        None if text.contains(' ') => format!(
            "`{text}` does not occur{place}: I looked for exactly these words, not for what they mean."
        ),
        None => format!("`{text}` does not occur{place}."),
    })
}

fn definition(name: &str, path: Option<&str>, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else {
        let name = escape_pattern(name);
        return grep(&format!(r"\b(fn|def|function|class|struct)\s+{name}\b"), path, offered);
    };
    if last.is_error {
        return Action::Say(help::failed(last));
    }
    let place = place_of(path);
    Action::Say(match found(last) {
        Some(found) => {
            format!("`{name}` behind fn, def, function, class or struct{place}:\n\n{}", fenced(found))
        }
        None => format!(
            "I found no `{name}` behind fn, def, function, class or struct{place}. It may be defined in a form that I do \
             not know; `find {name}` shows every line that contains it."
        ),
    })
}

fn count_lines(file: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else {
        if file.contains('/') || !offered.has("Glob") {
            return count_in(&[file.to_owned()], offered);
        }
        return offered.call("Glob", json!({"pattern": format!("**/{file}")}));
    };
    if last.name == "Glob" {
        if last.is_error {
            return Action::Say(help::failed(last));
        }
        let mut found = paths(&last.output);
        if found.is_empty() {
            return Action::Say(format!("There is no file named {file} here."));
        }
        found.truncate(MOST_FILES);
        return count_in(&found, offered);
    }
    let named = steps.iter().find(|step| step.name == "Glob").map_or(0, |step| paths(&step.output).len());
    let mut counted: Vec<String> = steps
        .iter()
        .filter(|step| step.name == "Grep" || step.name == "Read")
        .map(|step| {
            let path = if step.name == "Grep" { step.field("path") } else { step.field("file_path") };
            if step.is_error {
                return help::failed(step);
            }
            let known =
                if step.name == "Grep" { count_of(&step.output) } else { numbered_lines(&step.output) };
            match known {
                Some(1) => format!("{path} has 1 line."),
                Some(count) => format!("{path} has {count} lines."),
                None => format!("No lines could be counted in {path}: it is empty, or not text."),
            }
        })
        .collect();
    if named > MOST_FILES {
        counted.push(format!("These are {MOST_FILES} of {named} files named {file}."));
    }
    Action::Say(counted.join("\n"))
}

fn count_in(files: &[String], offered: &Offered<'_>) -> Action {
    if offered.has("Grep") {
        let call = |path: &String| {
            ("Grep".to_owned(), json!({"pattern": "^", "path": path, "output_mode": "count"}))
        };
        return Action::Call(files.iter().map(call).collect());
    }
    if offered.has("Read") {
        return Action::Call(
            files.iter().map(|path| ("Read".to_owned(), json!({"file_path": path}))).collect(),
        );
    }
    Action::Say(help::missing_tool("Grep"))
}

/// The number in the output of a count: `path:12`, or `12` alone.
fn count_of(output: &str) -> Option<u64> {
    output
        .lines()
        .find_map(|line| line.rsplit([':', ' ']).next().and_then(|word| word.trim().parse().ok()))
        .or_else(|| output.split_whitespace().find_map(|word| word.parse().ok()))
}

/// The number of lines in what Read shows; none when it shows only a part, behind which a remark stands.
fn numbered_lines(output: &str) -> Option<u64> {
    let mut last = None;
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        last = Some(line_number(line)?.0);
    }
    last
}

fn replace(old: &str, new: &str, path: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    match steps {
        [] if !offered.has("Edit") => Action::Say(help::missing_tool("Edit")),
        [] => offered.call("Read", json!({"file_path": path})),
        [.., last] if last.is_error => Action::Say(help::failed(last)),
        [.., last] if last.name == "Edit" => {
            Action::Say(format!("Replaced `{old}` with `{new}` in {path}.\n\n{}", cut(last.output.trim())))
        }
        [..] => offered.call(
            "Edit",
            json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": true}),
        ),
    }
}

fn create(path: &str, content: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    match steps {
        [] => offered.call("Write", json!({"file_path": path, "content": content})),
        [.., last] if last.is_error => Action::Say(help::failed(last)),
        [.., last] => Action::Say(format!("Wrote {path}.\n\n{}", cut(last.output.trim()))),
    }
}

fn run(command: &str, steps: &[Step], offered: &Offered<'_>) -> Action {
    match steps {
        [] => offered.call("Bash", json!({"command": command, "description": format!("Run {command}")})),
        [.., last] if last.is_error => Action::Say(help::failed(last)),
        [.., last] if last.output.trim().is_empty() => {
            Action::Say(format!("`{command}` ran without output."))
        }
        [.., last] => Action::Say(format!("`{command}`:\n\n{}", fenced(last.output.trim_end()))),
    }
}

fn list(pattern: &str, path: Option<&str>, steps: &[Step], offered: &Offered<'_>) -> Action {
    let Some(last) = steps.last() else {
        let mut input = json!({"pattern": pattern});
        if let Some(path) = path {
            input["path"] = path.into();
        }
        return offered.call("Glob", input);
    };
    if last.is_error {
        return Action::Say(help::failed(last));
    }
    let found = paths(&last.output);
    let place = place_of(path);
    if found.is_empty() {
        return Action::Say(format!("No file matches `{pattern}`{place}."));
    }
    let count = match (found.len(), remark(&last.output)) {
        (1, None) => "1 file matches".to_owned(),
        (count, None) => format!("{count} files match"),
        (count, Some(_)) => format!("More than {count} files match"),
    };
    let remark = remark(&last.output).map(|words| format!("\n\n{words}")).unwrap_or_default();
    Action::Say(format!("{count} `{pattern}`{place}:\n\n{}{remark}", bullets(&found)))
}

fn call(tool: &str, input: Value, steps: &[Step]) -> Action {
    match steps.last() {
        None => Action::Call(vec![(tool.to_owned(), input)]),
        Some(last) if last.is_error => Action::Say(help::failed(last)),
        Some(last) if last.output.trim().is_empty() => {
            Action::Say(format!("{tool} ran and returned nothing."))
        }
        Some(last) => Action::Say(format!("{tool} returned:\n\n{}", fenced(last.output.trim_end()))),
    }
}

const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "setup.py",
    "Gemfile",
    "composer.json",
    "CMakeLists.txt",
];

fn describe(steps: &[Step], offered: &Offered<'_>) -> Action {
    if steps.is_empty() {
        if !offered.has("Glob") || !offered.has("Read") {
            return Action::Say(help::missing_tool(if offered.has("Glob") { "Read" } else { "Glob" }));
        }
        let glob = |pattern: &str| ("Glob".to_owned(), json!({"pattern": pattern}));
        return Action::Call(vec![glob("*"), glob("*/*"), glob("*/*/*")]);
    }
    let globs: Vec<&Step> = steps.iter().filter(|step| step.name == "Glob").collect();
    let reads: Vec<&Step> = steps.iter().filter(|step| step.name == "Read").collect();
    let top: Vec<String> =
        globs.iter().take(1).filter(|step| !step.is_error).flat_map(|step| paths(&step.output)).collect();
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    if reads.is_empty() {
        if let Some(refused) = globs.iter().find(|step| step.is_error) {
            return Action::Say(help::failed(refused));
        }
        let readme = top.iter().find(|path| name(path).to_ascii_lowercase().starts_with("readme"));
        let manifest = MANIFESTS.iter().find_map(|wanted| top.iter().find(|path| name(path) == *wanted));
        let wanted: Vec<(String, Value)> = readme
            .into_iter()
            .chain(manifest)
            .map(|path| ("Read".to_owned(), json!({"file_path": path})))
            .collect();
        if !wanted.is_empty() {
            return Action::Call(wanted);
        }
    }
    Action::Say(overview(&reads, &top, &globs))
}

fn overview(reads: &[&Step], top: &[String], globs: &[&Step]) -> String {
    let mut text = String::new();
    for read in reads {
        let path = read.field("file_path");
        let file = path.rsplit('/').next().unwrap_or(path);
        if read.is_error {
            text.push_str(&help::failed(read));
            text.push_str("\n\n");
            continue;
        }
        let content = without_numbers(&read.output);
        if file.to_ascii_lowercase().starts_with("readme") {
            text.push_str(&format!("{file} begins:\n\n{}\n\n", first_paragraphs(&content)));
        } else {
            let head: Vec<&str> = content.lines().take(15).collect();
            text.push_str(&format!("{file} begins:\n\n{}\n\n", fenced(&head.join("\n"))));
        }
    }
    if reads.is_empty() {
        text.push_str("There is no README and no manifest that I know at the top.\n\n");
    }
    let last_part = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut folders: Vec<String> = globs
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, step)| !step.is_error)
        .flat_map(|(depth, step)| paths(&step.output).into_iter().map(move |path| (depth, path)))
        .filter_map(|(depth, path)| path.rsplit('/').nth(depth).map(|folder| format!("{folder}/")))
        .collect();
    folders.sort_unstable();
    folders.dedup();
    let mut files: Vec<String> = top.iter().map(last_part).collect();
    files.sort_unstable();
    folders.extend(files);
    text.push_str(&format!("Layout:\n\n{}\n\n", bullets(&folders)));
    text.push_str("(Quoted by fixed rules from the files named above; a language model could say more.)");
    text
}

/// The first two paragraphs of prose, with the heading.
fn first_paragraphs(content: &str) -> String {
    let paragraphs: Vec<&str> =
        content.split("\n\n").map(str::trim).filter(|part| !part.is_empty()).take(3).collect();
    let quoted: Vec<String> = paragraphs
        .join("\n\n")
        .lines()
        .map(|line| if line.is_empty() { ">".into() } else { format!("> {line}") })
        .collect();
    cut(&quoted.join("\n"))
}
