//! Definitions that are links: a skill whose text lies elsewhere works and may read its own folder only, errors use
//! the name that people know, and a link that leads nowhere is reported, too.

use std::os::unix::fs::symlink;

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::commands::support::{asked, bodies, model, run, trusted, turn};

fn linked_skill(sandbox: &Sandbox, name: &str, target: &str) {
    let folder = sandbox.project().join(".qoder/skills").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    symlink(target, folder.join("SKILL.md")).unwrap();
}

fn problems(sandbox: &Sandbox, kind: &str) -> Vec<String> {
    let listed: Value = serde_json::from_str(&run(sandbox, &[kind, "list", "--json"]).stdout).unwrap();
    let told = |one: &Value| {
        let name = one["path"].as_str().unwrap().rsplit_once("/.qoder/").unwrap().1.to_owned();
        format!("{name}: {}", one["problem"].as_str().unwrap())
    };
    listed["problems"].as_array().unwrap().iter().map(told).collect()
}

#[test]
fn a_skill_whose_text_is_a_link_works_and_its_folder_is_its_own() {
    let sandbox = trusted();
    sandbox.write("docs/forms.md", "---\nname: forms\ndescription: d\n---\nTHE TEXT OF FORMS");
    linked_skill(&sandbox, "forms", "../../../docs/forms.md");
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["/forms"]);
    assert_eq!(ran.result()["result"], "done", "{ran:?}");
    let told = asked(&bodies(&server)[0]);
    assert!(told.contains("THE TEXT OF FORMS") && told.contains("/.qoder/skills/forms\n"), "{told}");
}

#[test]
fn what_is_wrong_behind_a_link_is_told_under_the_name_of_the_link() {
    let sandbox = trusted();
    sandbox.write("docs/open.md", "---\nname: open\n");
    linked_skill(&sandbox, "open", "../../../docs/open.md");
    linked_skill(&sandbox, "nowhere", "missing.md");
    linked_skill(&sandbox, "itself", "SKILL.md");
    symlink("gone", sandbox.project().join(".qoder/skills/gone")).unwrap();
    let told = problems(&sandbox, "skills");
    let starts = [
        "skills/gone: cannot be read: ",
        "skills/itself/SKILL.md: cannot be read: ",
        "skills/nowhere/SKILL.md: cannot be read: ",
        "skills/open/SKILL.md: its head begins",
    ];
    assert!(
        told.len() == 4 && told.iter().zip(starts).all(|(one, start)| one.starts_with(start)),
        "{told:?}"
    );
}

#[test]
fn folders_of_commands_that_are_not_read_are_told() {
    let sandbox = trusted();
    sandbox.write(".qoder/commands/a/b/c/d/e/f/deep.md", "x");
    sandbox.write(".qoder/commands/a/b/c/d/e/near.md", "x");
    symlink(".", sandbox.project().join(".qoder/commands/loop")).unwrap();
    let told = problems(&sandbox, "commands");
    assert!(told.iter().any(|one| one.starts_with("commands/loop: is not read: it is a link")), "{told:?}");
    assert!(told.iter().any(|one| one.starts_with("commands/a/b/c/d/e/f: is not read")), "{told:?}");
    let listed: Value = serde_json::from_str(&run(&sandbox, &["commands", "list", "--json"]).stdout).unwrap();
    let own: Vec<&Value> =
        listed["commands"].as_array().unwrap().iter().filter(|row| row["source"] == "project").collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["name"], json!("a:b:c:d:e:near"));
}
