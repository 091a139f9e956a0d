//! `qodercli skills list` and `qodercli commands list`: what there is, where it comes from, whose name is taken.

use serde_json::{Value, json};

use crate::commands::support::{command, own_skill, run, skill, trusted};

#[test]
fn skills_list_names_sources_and_taken_names() {
    let sandbox = trusted();
    skill(&sandbox, "pdf", "allowed-tools: Read, Bash(git log:*)\nargument-hint: [file]\n", "x");
    own_skill(&sandbox, "pdf", "", "x");
    let ran = run(&sandbox, &["skills", "list", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = listed["skills"].as_array().unwrap();
    assert_eq!((&rows[0]["source"], &rows[0]["active"]), (&json!("user"), &json!(true)), "{listed}");
    assert_eq!((&rows[1]["source"], &rows[1]["active"]), (&json!("project"), &json!(false)), "{listed}");
    assert_eq!(rows[1]["allowedTools"], json!(["Read", "Bash(git log:*)"]));
    assert_eq!(rows[1]["argumentHint"], "[file]");
    let text = run(&sandbox, &["skills", "list"]).stdout;
    assert!(text.contains("pdf  user      Knows pdf.") && text.contains("(its name is taken)"), "{text}");
    assert!(run(&trusted(), &["skills", "list"]).stdout.contains("There are no skills here"));
}

#[test]
fn commands_list_has_built_in_commands_and_those_of_files() {
    let sandbox = trusted();
    command(&sandbox, "team/fix", "---\nargument-hint: <issue>\n---\n# Fix an issue\nmore");
    let listed: Value = serde_json::from_str(&run(&sandbox, &["commands", "list", "--json"]).stdout).unwrap();
    let rows = listed["commands"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["agents", "clear", "compact", "context", "cost", "help", "team:fix"]);
    assert_eq!(rows[6]["description"], "Fix an issue");
    assert_eq!(rows[6]["argumentHint"], "<issue>");
    let text = run(&sandbox, &["commands", "list"]).stdout;
    assert!(text.contains("/team:fix  project   Fix an issue"), "{text}");
}
