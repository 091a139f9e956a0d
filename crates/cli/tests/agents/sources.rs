//! Built-in < user < project (trusted only) < flag: the winner shadows, and what it hides is shown.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::agents::support::{file, listed, requests, rows, run, stream, told};

fn everywhere() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "of the user", ""));
    sandbox.write(".qoder/agents/other-name.md", file("r", "of the project", ""));
    let flag = json!({ "r": { "description": "of the flag", "prompt": "p" } }).to_string();
    (sandbox, flag)
}

fn descriptions(listed: &Value, name: &str) -> Vec<String> {
    rows(listed, name).iter().map(|row| row["description"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_winner_shadows_same_named_agents_and_agents_list_marks_them() {
    let (sandbox, flag) = everywhere();
    let all = listed(&sandbox, &["--agents", &flag]);
    assert_eq!(descriptions(&all, "r"), ["of the flag", "of the project", "of the user"]);
    let standing: Vec<(&Value, &Value)> =
        rows(&all, "r").iter().map(|row| (&row["active"], &row["shadowedBy"]["source"])).collect();
    let hidden = (&json!(false), &json!("flag"));
    assert_eq!(standing, [(&json!(true), &Value::Null), hidden, hidden]);

    let all = listed(&sandbox, &[]);
    let shadowed = rows(&all, "r")[1];
    assert_eq!(shadowed["shadowedBy"]["source"], "project");
    assert!(shadowed["shadowedBy"]["path"].as_str().unwrap().ends_with(".qoder/agents/other-name.md"));
    let text = run(&sandbox, &["agents", "list", "--trust"]).ok();
    assert!(text.contains("(shadowed by project: "), "{text}");
}

#[test]
fn the_name_comes_from_the_head_and_not_from_the_file() {
    let (sandbox, _) = everywhere();
    assert!(rows(&listed(&sandbox, &[]), "other-name").is_empty());
}

#[test]
fn built_in_agents_can_be_shadowed_too() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/e.md"), file("Explore", "mine", ""));
    let all = listed(&sandbox, &[]);
    assert_eq!(descriptions(&all, "Explore")[0], "mine");
    assert_eq!(rows(&all, "Explore")[1]["source"], "built-in");
}

#[test]
fn nothing_of_an_untrusted_folder_is_read() {
    let sandbox = Sandbox::new();
    sandbox.write(".qoder/agents/r.md", file("r", "of the project", ""));
    sandbox.write(".qoder/agents/broken.md", "---\nname: [\n---\n");
    let ran = run(&sandbox, &["agents", "list"]);
    assert!(!ran.stdout.contains("of the project") && ran.stderr.lines().count() == 1, "{ran:?}");
    assert!(
        ran.stderr.contains(
            "is not trusted, so these files are not used: .qoder/agents/broken.md, .qoder/agents/r.md"
        ),
        "{ran:?}"
    );
    assert!(run(&sandbox, &["agents", "list", "--trust"]).ok().contains("of the project"));
}

#[test]
fn setting_sources_that_are_left_out_leave_their_agents_out() {
    let (sandbox, _) = everywhere();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
    let ran = stream(&sandbox, &server, &["go", "--trust", "--setting-sources", "user"]);
    assert_eq!(ran.init()["agents"], json!(["general-purpose", "Explore", "Plan", "r"]));
    assert!(told(&requests(&server)[0]).contains("of the user"));
    let ran = stream(&sandbox, &server, &["go", "--trust", "--setting-sources", ""]);
    assert_eq!(ran.init()["agents"], json!(["general-purpose", "Explore", "Plan"]));
}

#[test]
fn the_second_of_a_name_in_one_source_is_left_out_and_named() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("agents/a.md"), file("r", "first", ""));
    sandbox.write(sandbox.config().join("agents/b.md"), file("r", "second", ""));
    let all = listed(&sandbox, &[]);
    assert_eq!(descriptions(&all, "r"), ["first"]);
    let problem = &all["problems"][0];
    assert!(problem["path"].as_str().unwrap().ends_with("agents/b.md"), "{problem}");
    assert!(problem["problem"].as_str().unwrap().contains("agents/a.md already"), "{problem}");
}

#[test]
fn the_model_is_told_of_agents_in_bounded_words() {
    let sandbox = Sandbox::new();
    let long = "word ".repeat(20_000);
    for number in 0..60 {
        let name = format!("a{number:02}");
        sandbox.write(sandbox.config().join(format!("agents/{name}.md")), file(&name, &long, ""));
    }
    let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
    assert_eq!(stream(&sandbox, &server, &["go"]).code, 0);
    let asked = requests(&server);
    let told = told(&asked[0]);
    assert!(told.contains("- `Explore`: ") && told.contains("- `a10`: word"), "{told}");
    assert!(told.contains("12 more agents are not described here"), "{told}");
    assert!(told.len() < 30_000, "{}", told.len());
}
