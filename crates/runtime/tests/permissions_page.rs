//! The examples of `docs/permissions.md` are true: every one in its tables is put to the gate, and the list of protected
//! files is the one in the code. Calls stand in the tables as the tool's name and its subject, rules as they are
//! written in settings. `UPDATE_DOCS=1` writes the list of protected files anew.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use qoder_policy::{Workspace, is_protected};
use qoder_runtime::permission_check::Checker;
use serde_json::{Value, json};

/// A folder as the page describes it.
struct Place {
    folder: tempfile::TempDir,
    checker: Checker,
}

/// One question to the gate.
#[derive(Default)]
struct Case<'a> {
    rules: Vec<(&'a str, String)>,
    mode: &'a str,
    untrusted: bool,
    call: &'a str,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for below in ["home", "project/src", "project/.git"] {
            std::fs::create_dir_all(folder.path().join(below)).unwrap();
        }
        for file in ["a.txt", "notes.md", ".env", "src/main.rs"] {
            std::fs::write(folder.path().join("project").join(file), "text\n").unwrap();
        }
        let checker = Checker::new(folder.path().join("project"), folder.path().join("home"));
        Self { folder, checker }
    }

    fn ask(&mut self, case: &Case<'_>) -> Value {
        let (tool, subject) = case.call.split_once(' ').unwrap_or((case.call, ""));
        let listed = |behavior: &str| -> Vec<&str> {
            case.rules.iter().filter(|(word, _)| *word == behavior).map(|(_, rule)| rule.as_str()).collect()
        };
        let mode = if case.mode.is_empty() { "default" } else { case.mode };
        let question = json!({
            "rules": {"allow": listed("allow"), "ask": listed("ask"), "deny": listed("deny")},
            "mode": mode, "tool": tool, "input": input(tool, subject), "trusted": !case.untrusted,
            "project_root": self.folder.path().join("project"),
        });
        serde_json::from_str(&self.checker.check(&question.to_string()).line).unwrap()
    }
}

fn input(tool: &str, subject: &str) -> Value {
    let field = match tool {
        "Bash" => "command",
        "Read" | "Edit" | "Write" => "file_path",
        "Grep" | "Glob" => "path",
        "WebFetch" => "url",
        "Agent" => "agent",
        _ => return json!({}),
    };
    json!({ field: subject })
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md")).unwrap()
}

/// The rows of the table between two marks, each with its cells; the first is the heading.
fn table(mark: &str) -> Vec<Vec<String>> {
    let page = page();
    let (start, end) = (format!("<!-- {mark}: start -->"), format!("<!-- {mark}: end -->"));
    let part = &page[page.find(&start).unwrap() + start.len()..page.find(&end).unwrap()];
    let rows = part.lines().filter(|line| line.starts_with('|') && !line.starts_with("| ---"));
    rows.map(cells).collect()
}

fn cells(line: &str) -> Vec<String> {
    let hidden = line.replace("\\|", "\u{1}");
    let inner = hidden.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// The texts in backticks of a cell.
fn spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A call in the table of rules: a subject for the rule's own tool, or another tool and its subject.
fn call(rule: &str, span: &str) -> String {
    const OTHERS: [&str; 4] = ["Bash ", "Edit ", "Read ", "Write "];
    let tool = rule.split('(').next().unwrap();
    if tool.starts_with("mcp__") || OTHERS.iter().any(|other| span.starts_with(other)) {
        span.to_owned()
    } else {
        format!("{tool} {span}")
    }
}

#[test]
fn rules_cover_what_the_page_says() {
    let mut place = Place::new();
    let rows = table("rules");
    assert!(rows.len() > 15, "the table is there");
    for row in &rows[1..] {
        let [rule] = spans(&row[0])[..] else { panic!("one rule a row: {row:?}") };
        let mut decided = |behavior: &'static str, span: &str| {
            let call = call(rule, span);
            let answer =
                place.ask(&Case { rules: vec![(behavior, rule.to_owned())], call: &call, ..Case::default() });
            (answer["decision"].as_str().unwrap().to_owned(), answer["reason"]["rule"] == rule)
        };
        for span in spans(&row[1]) {
            assert_eq!(decided("allow", span), ("allow".to_owned(), true), "`{rule}` allows `{span}`");
            assert_eq!(decided("deny", span), ("deny".to_owned(), true), "`{rule}` denies `{span}`");
        }
        for span in spans(&row[2]) {
            assert_ne!(decided("allow", span).0, "allow", "`{rule}` does not allow `{span}`");
        }
        for span in spans(&row[3]) {
            assert_eq!(decided("deny", span), ("deny".to_owned(), true), "`{rule}` denies `{span}`");
        }
    }
}

#[test]
fn cases_are_decided_as_the_page_says() {
    let mut place = Place::new();
    let rows = table("commands").into_iter().skip(1).chain(table("cases").into_iter().skip(1));
    let mut count = 0;
    for row in rows {
        let [rules, mode, call, decision, reason] = &row[..] else { panic!("five cells: {row:?}") };
        let [call] = spans(call)[..] else { panic!("one call a row: {row:?}") };
        let words = rules.split('`').step_by(2).map(|word| word.trim().trim_start_matches("<br>").trim());
        let rules = words.zip(spans(rules)).map(|(word, rule)| (word, rule.to_owned())).collect();
        let case = Case { rules, mode: spans(mode)[0], untrusted: mode.contains("not trusted"), call };
        let answer = place.ask(&case);
        assert_eq!(answer["decision"].as_str().unwrap(), decision, "{row:?}: {answer}");
        let message = answer["reason"]["message"].as_str().unwrap();
        assert!(message.contains(reason.as_str()), "{row:?}: {message}");
        count += 1;
    }
    assert!(count > 30, "the tables are there");
}

#[test]
fn modes_decide_as_the_page_says() {
    let mut place = Place::new();
    let rows = table("modes");
    let calls: Vec<&str> = rows[0].iter().skip(1).map(|cell| spans(cell)[0]).collect();
    assert_eq!(rows.len(), 7, "the six modes");
    for row in &rows[1..] {
        let mode = spans(&row[0])[0];
        for (call, expected) in calls.iter().zip(&row[1..]) {
            let answer = place.ask(&Case { mode, call, ..Case::default() });
            assert_eq!(answer["decision"].as_str().unwrap(), expected, "{mode}: {call}: {answer}");
        }
    }
}

/// The texts of a list in the source of the policy.
fn listed(name: &str) -> Vec<&'static str> {
    let source = include_str!("../../types/src/workspace.rs");
    let start = source.find(&format!("const PROTECTED_{name}: &[&str]")).unwrap();
    let body = source[start..].split_once("= &[").unwrap().1;
    body[..body.find("];").unwrap()].split('"').skip(1).step_by(2).collect()
}

#[test]
fn the_page_names_the_protected_files() {
    let (folders, files) = (listed("FOLDERS"), listed("FILES"));
    let workspace =
        Workspace { roots: vec!["/w".into()], config_dir: "/h/.qoder".into(), ..Workspace::default() };
    for folder in &folders {
        assert!(is_protected(&Path::new("/w/x").join(folder).join("y"), &workspace), "{folder}");
    }
    for file in &files {
        assert!(is_protected(&Path::new("/w/x").join(file), &workspace), "{file}");
    }
    assert!(!is_protected(Path::new("/w/x/y"), &workspace));
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let list = format!("* folders: {}\n* files: {}\n", quoted(&folders), quoted(&files));
    let (start, end) = ("<!-- protected: start -->\n", "<!-- protected: end -->");
    let page = page();
    let (from, to) = (page.find(start).unwrap() + start.len(), page.find(end).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
        std::fs::write(path, format!("{}{list}{}", &page[..from], &page[to..])).unwrap();
        return;
    }
    assert_eq!(&page[from..to], list, "run the test again with UPDATE_DOCS=1");
}
