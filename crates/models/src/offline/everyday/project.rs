//! Answers about the project: how its tests are run, from its manifests and its pages, and what changed lately, from git or
//! from the age of files.

use serde_json::{Value, json};

use super::file::found_line;
use crate::offline::conversation::Step;
use crate::offline::help;
use crate::offline::plan::{Action, Offered};
use crate::offline::rendering::{bullets, fenced, paths};

/// How many commits and files count as recent.
const RECENT: usize = 10;

/// A file at the top, and how the tests of such a project are run.
const RUNNERS: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("pyproject.toml", "pytest"),
    ("setup.py", "pytest"),
    ("tox.ini", "tox"),
    ("go.mod", "go test ./..."),
    ("pom.xml", "mvn test"),
    ("build.gradle", "gradle test"),
    ("build.gradle.kts", "gradle test"),
    ("Gemfile", "bundle exec rake test"),
    ("composer.json", "composer test"),
    ("mix.exs", "mix test"),
    ("Makefile", "make test"),
    ("justfile", "just test"),
];

/// Files in which people write down how to run the tests.
const PAGES: &[&str] =
    &["README.md", "CONTRIBUTING.md", "AGENTS.md", "README.rst", "README", "DEVELOPMENT.md"];

/// A line that names a command which runs tests.
const COMMAND: &str = r"\b(cargo|npm|pnpm|yarn|bun|npx|make|just|pytest|python3?|tox|go|mvn|gradle|\./gradlew|mix|bundle|composer|deno)\b.*\btests?\b|\bpytest\b";

/// How the tests are run.
pub(super) fn tests(steps: &[Step], offered: &Offered<'_>) -> Action {
    if steps.is_empty() {
        return offered.call("Glob", json!({ "pattern": "*" }));
    }
    let Some(glob) = steps.iter().find(|step| step.name == "Glob") else { return Action::Say(String::new()) };
    if glob.is_error {
        return Action::Say(help::failed(glob));
    }
    let top = paths(&glob.output);
    let at_top = |name: &str| top.iter().find(|path| path.rsplit('/').next() == Some(name));
    if steps.len() == 1 {
        let looks: Vec<(String, Value)> = ["package.json", "Makefile", "justfile"]
            .iter()
            .chain(PAGES)
            .filter_map(|name| at_top(name))
            .map(|path| {
                let pattern = match path.rsplit('/').next() {
                    Some("package.json") => r#""test[\w:-]*"\s*:\s*""#,
                    Some("Makefile" | "justfile") => r"^test[\w-]*\s*:",
                    Some(_) | None => COMMAND,
                };
                let input = json!({ "pattern": pattern, "path": path, "output_mode": "content", "-n": true });
                ("Grep".to_owned(), input)
            })
            .collect();
        if !looks.is_empty() && offered.has("Grep") {
            return Action::Call(looks);
        }
    }
    Action::Say(how_to_test(steps, &at_top))
}

fn how_to_test<'a>(steps: &[Step], at_top: &dyn Fn(&str) -> Option<&'a String>) -> String {
    let lines_in = |name: &str| -> Vec<(&str, &str)> {
        let looks = steps.iter().filter(|step| step.name == "Grep" && !step.is_error);
        let mut of_file = looks.filter(|step| step.field("path").rsplit('/').next() == Some(name));
        let output = of_file.next().map_or("", |step| step.output.as_str());
        output.lines().filter_map(found_line).collect()
    };
    let mut ways = Vec::new();
    for (file, command) in RUNNERS {
        // A Makefile or a package without a test in it has none.
        let needs_line = matches!(*file, "Makefile" | "justfile" | "package.json");
        if at_top(file).is_some() && (!needs_line || !lines_in(file).is_empty()) {
            ways.push(format!("`{command}` ({file})"));
        }
    }
    let mut quoted = Vec::new();
    for page in PAGES {
        let told = |(number, text): (&str, &str)| format!("{page}:{number}: {}", text.trim());
        quoted.extend(lines_in(page).into_iter().take(5).map(told));
    }
    if ways.is_empty() && quoted.is_empty() {
        return "I found no file at the top that says how tests are run here: no manifest that I know, and no README \
                that names a test command."
            .to_owned();
    }
    let mut text = String::new();
    if !ways.is_empty() {
        text.push_str(&format!("Run the tests with:\n\n{}", bullets(&ways)));
    }
    if !quoted.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text.push_str(&format!("{gap}The project itself says:\n\n{}", fenced(&quoted.join("\n"))));
    }
    text
}

/// What changed lately.
pub(super) fn changes(steps: &[Step], offered: &Offered<'_>) -> Action {
    let bash = |command: String| ("Bash".to_owned(), json!({ "command": command, "description": "Ask git" }));
    let newest = || offered.call("Glob", json!({ "pattern": "**/*" }));
    if steps.is_empty() {
        if !offered.has("Bash") {
            return newest();
        }
        return Action::Call(vec![
            bash(format!("git log --oneline -n {RECENT}")),
            bash("git status --short".to_owned()),
        ]);
    }
    if let Some(glob) = steps.iter().find(|step| step.name == "Glob") {
        if glob.is_error {
            return Action::Say(help::failed(glob));
        }
        let files: Vec<String> = paths(&glob.output).into_iter().take(RECENT).collect();
        return Action::Say(match files.is_empty() {
            true => "There are no files here, and git says nothing.".to_owned(),
            false => {
                let refused = steps.iter().any(|step| step.output.contains("not trusted"));
                let why = match refused {
                    true => {
                        "Git was not asked, because this folder is not trusted; `qodercli trust` changes that."
                    }
                    false => "Git does not answer here.",
                };
                format!("{why} The files that were changed last:\n\n{}", bullets(&files))
            }
        });
    }
    let of = |word: &str| steps.iter().find(|step| step.field("command").contains(word) && !step.is_error);
    let Some(log) = of("log") else { return newest() };
    let mut text = format!("The last commits:\n\n{}", fenced(log.output.trim()));
    match of("status").map(|step| step.output.trim()).filter(|output| !output.is_empty()) {
        Some(status) if status.lines().all(|line| line.len() > 3) => {
            text.push_str(&format!("\n\nNot committed yet:\n\n{}", fenced(status)));
        }
        Some(_) | None => text.push_str("\n\nEverything is committed."),
    }
    Action::Say(text)
}
