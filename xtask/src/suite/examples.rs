//! The documentation's examples. A fenced block marked `sh runnable` in README.md or docs/*.md is run by bash in an
//! empty project with an empty home and the installed program first on the path. `exit=N` after the mark expects that exit
//! code, and a line `#=> text` expects that text somewhere in the output. No variable of the caller reaches it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::newcomer;
use super::report::Report;
use xtask::process::{self, Finished, Scratch};

/// A guard against an example that hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// One block that can be run.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    /// The line of its opening fence, from 1.
    line: usize,
    script: String,
    expected_exit: i32,
    expected_texts: Vec<String>,
}

/// Runs every example of the documentation.
pub(super) fn run(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    for page in pages(root)? {
        let text = std::fs::read_to_string(&page)?;
        for example in examples(&text) {
            let name = page.strip_prefix(root).unwrap_or(&page).display().to_string();
            let complaints = perform(root, &example)?;
            let word = if complaints.is_empty() { "ok" } else { "FAILED" };
            report.line(format!("{word:>6}  {name}:{}", example.line));
            for complaint in &complaints {
                report.line(complaint);
            }
            report.add(&Report::of(complaints.is_empty()));
        }
    }
    Ok(report)
}

fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs")).context("cannot list docs")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

fn examples(text: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
        let words: Vec<&str> = info.split_whitespace().collect();
        if words.first() != Some(&"sh") || !words.contains(&"runnable") {
            continue;
        }
        let exit =
            words.iter().find_map(|word| word.strip_prefix("exit=")).and_then(|code| code.parse().ok());
        let expectation = |line: &&str| line.strip_prefix("#=> ").map(str::to_owned);
        found.push(Example {
            line: index + 1,
            expected_exit: exit.unwrap_or(0),
            expected_texts: body.iter().filter_map(expectation).collect(),
            script: body.join("\n"),
        });
    }
    found
}

/// Runs one example and says what was not as expected.
fn perform(root: &Path, example: &Example) -> Result<Vec<String>> {
    let scratch = Scratch::new("example")?;
    let home = scratch.path().join("home");
    let project = scratch.path().join("project");
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&project)?;
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &example.script]).current_dir(&project);
    command.env_clear().env("PATH", newcomer::search_path(root)).env("HOME", &home).env("LANG", "C.UTF-8");
    Ok(judge(example, &process::capture_within(&mut command, LIMIT)?))
}

fn judge(example: &Example, finished: &Finished) -> Vec<String> {
    let mut complaints = Vec::new();
    if finished.code != Some(example.expected_exit) {
        complaints.push(format!("expected exit code {}, got {:?}", example.expected_exit, finished.code));
    }
    for text in example.expected_texts.iter().filter(|text| !finished.output.contains(text.as_str())) {
        complaints.push(format!("expected in the output: {text}"));
    }
    if !complaints.is_empty() {
        complaints.push(format!("the output was:\n{}", finished.output.trim_end()));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n```sh\nnot run\n```\n\n```sh runnable\necho hello\n#=> hello\n```\n\n\
                        ```text\n```sh runnable exit=3\nexit 3\n```\n";

    #[test]
    fn only_marked_blocks_are_taken() {
        let found = examples(PAGE);
        assert_eq!(found.len(), 1, "a fence inside a block of another kind closes that block: {found:?}");
        assert_eq!(found[0].line, 7);
        assert_eq!(found[0].expected_texts, ["hello"]);
        assert_eq!(found[0].expected_exit, 0);
    }

    #[test]
    fn an_expected_exit_code_is_read() {
        let found = examples("```sh runnable exit=42\nexit 42\n```\n");
        assert_eq!(found[0].expected_exit, 42);
        assert_eq!(perform(Path::new("."), &found[0]).unwrap(), [""; 0]);
    }

    #[test]
    fn what_differs_is_named() {
        let found = examples("```sh runnable\necho one\n#=> two\nexit 5\n```\n");
        let complaints = perform(Path::new("."), &found[0]).unwrap();
        assert_eq!(complaints[0], "expected exit code 0, got Some(5)");
        assert_eq!(complaints[1], "expected in the output: two");
        assert!(complaints[2].contains("one"));
    }

    #[test]
    fn examples_run_in_an_empty_project_and_home() {
        let found =
            examples("```sh runnable\nfind . \"$HOME\" | wc -l\n#=> 2\ntest -z \"${CARGO:-}\"\n```\n");
        assert_eq!(perform(Path::new("."), &found[0]).unwrap().len(), 0);
    }
}
