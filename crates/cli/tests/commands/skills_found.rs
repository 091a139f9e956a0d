//! Discovery and progressive loading: names and descriptions at the start and no text, from the person's folder and a
//! trusted project; the person's take the names of the project's; without skills there is no tool for them.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::commands::support::{bodies, model, offered, own_skill, skill, trusted, turn};

#[test]
fn names_and_descriptions_at_start() {
    let sandbox = trusted();
    skill(&sandbox, "pdf", "", "THE TEXT OF PDF");
    own_skill(&sandbox, "notes", "", "THE TEXT OF NOTES");
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["hello"]);
    assert_eq!(ran.result()["result"], "done");
    let init = ran.system("init");
    assert_eq!(init["skills"], json!(["notes", "pdf"]));
    assert!(init["tools"].as_array().unwrap().contains(&json!("Skill")));
    let commands = init["slash_commands"].as_array().unwrap();
    assert!(["pdf", "notes", "compact", "clear", "help"].iter().all(|name| commands.contains(&json!(name))));
    let request = &bodies(&server)[0];
    let tool = offered(request, "Skill").unwrap();
    let told = tool["description"].as_str().unwrap();
    assert!(told.contains("- `notes`: Knows notes.\n- `pdf`: Knows pdf."), "{told}");
    assert!(!request.to_string().contains("THE TEXT OF"));
}

#[test]
fn without_skills_there_is_no_skill_tool() {
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&trusted(), &server, &["hello"]);
    assert_eq!(ran.system("init")["skills"], json!([]));
    assert!(offered(&bodies(&server)[0], "Skill").is_none());
}

#[test]
fn the_users_skill_takes_the_name_of_the_projects() {
    let sandbox = trusted();
    sandbox.write(".qoder/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: The project's.\n---\nx");
    own_skill(&sandbox, "pdf", "", "x");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["hello"]);
    let told = offered(&bodies(&server)[0], "Skill").unwrap()["description"].to_string();
    assert!(told.contains("Knows pdf.") && !told.contains("The project's"), "{told}");
}

#[test]
fn nothing_of_an_untrusted_folder_or_of_sources_left_out_is_read() {
    let untrusted = Sandbox::new();
    skill(&untrusted, "pdf", "", "x");
    let server = model(vec![Reply::text("done")]);
    assert_eq!(turn(&untrusted, &server, &["hello"]).system("init")["skills"], json!([]));
    let sandbox = trusted();
    skill(&sandbox, "pdf", "", "x");
    own_skill(&sandbox, "notes", "", "x");
    for (sources, found) in [("", json!([])), ("user", json!(["notes"])), ("project", json!(["pdf"]))] {
        let server = model(vec![Reply::text("done")]);
        let arguments = ["hello", "--trust", "--setting-sources", sources];
        assert_eq!(turn(&sandbox, &server, &arguments).system("init")["skills"], found, "{sources:?}");
    }
}
