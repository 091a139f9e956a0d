//! Definition files with broken frontmatter: named in a message with file and line, and the rest loads. Links do not lead
//! out of the project.

use qoder_testkit::Reply;
use serde_json::{Value, json};

use crate::commands::support::{command, model, run, skill, trusted, turn};

#[test]
fn broken_files_are_named_and_the_rest_loads() {
    let sandbox = trusted();
    skill(&sandbox, "good", "", "x");
    command(&sandbox, "fine", "Do it.");
    for (name, text, _) in CASES {
        sandbox.write(format!(".qoder/{name}"), text);
    }
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["hello"]);
    assert_eq!(ran.result()["result"], "done");
    assert_eq!(ran.system("init")["skills"], json!(["good"]));
    let commands = ran.system("init")["slash_commands"].to_string();
    assert!(commands.contains("\"fine\"") && !commands.contains("bad"), "{commands}");
    for (name, _, problem) in CASES {
        let told = format!("{}{problem}", sandbox.project().join(".qoder").join(name).display());
        assert!(ran.stderr.contains(&told), "{told}\n{}", ran.stderr);
    }
}

const CASES: &[(&str, &str, &str)] = &[
    ("skills/open/SKILL.md", "---\nname: open\n", ":1: its head begins with `---` and never ends"),
    (
        "skills/twice/SKILL.md",
        "---\nname: twice\nname: twice\n---\n",
        ":3: its head is not valid YAML: duplicate mapping key: name\n",
    ),
    ("skills/list/SKILL.md", "---\n- a\n---\n", ":2: its head has to be"),
    ("skills/nameless/SKILL.md", "---\ndescription: d\n---\n", ": `name` is missing"),
    ("skills/silent/SKILL.md", "---\nname: silent\n---\n", ": `description` is missing"),
    ("skills/slash/SKILL.md", "---\ndescription: d\nname: ../slash\n---\n", ":3: `name` is \"../slash\""),
    (
        "skills/other/SKILL.md",
        "---\nname: another\ndescription: d\n---\n",
        ":2: `name` is `another`, and the folder",
    ),
    (
        "skills/rules/SKILL.md",
        "---\nname: rules\ndescription: d\nallowed-tools: Bash(a && b)\n---\n",
        ":4: `allowed-tools`: the permission rule",
    ),
    (
        "skills/paths/SKILL.md",
        "---\nname: paths\ndescription: d\npaths: [\"a[\"]\n---\n",
        ":4: `paths`: \"a[\" is no pattern",
    ),
    ("commands/bad.md", "---\ndescription: [1, {}]\n---\nx", ":2: `description` has to be text"),
    ("commands/bad name.md", "x", ": \"bad name\" cannot be the name of a command"),
    ("commands/clear.md", "x", ": /clear is a built-in command"),
];

#[test]
fn links_do_not_lead_out_of_the_project() {
    let sandbox = trusted();
    let outside = sandbox.home().join("outside");
    sandbox.write(outside.join("SKILL.md"), "---\nname: far\ndescription: d\n---\nx");
    sandbox.write(outside.join("far.md"), "x");
    std::fs::create_dir_all(sandbox.project().join(".qoder/skills")).unwrap();
    std::fs::create_dir_all(sandbox.project().join(".qoder/commands")).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.project().join(".qoder/skills/far")).unwrap();
    std::os::unix::fs::symlink(outside.join("far.md"), sandbox.project().join(".qoder/commands/far.md"))
        .unwrap();
    let listed: Value = serde_json::from_str(&run(&sandbox, &["skills", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed["skills"], json!([]), "{listed}");
    let problems = listed["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 2, "{listed}");
    assert!(
        problems.iter().all(|one| one["problem"] == "leads out of the project it belongs to"),
        "{listed}"
    );
}

#[test]
fn a_folder_with_too_many_entries_is_read_in_part() {
    let sandbox = trusted();
    for number in (0..510).rev() {
        command(&sandbox, &format!("c{number:03}"), "x");
    }
    let listed: Value = serde_json::from_str(&run(&sandbox, &["commands", "list", "--json"]).stdout).unwrap();
    let own = listed["commands"].as_array().unwrap().iter().filter(|row| row["source"] == "project").count();
    assert_eq!(own, 500);
    let has = |name: &str| listed["commands"].to_string().contains(&format!("\"{name}\""));
    assert!(has("c000") && has("c499") && !has("c500"), "the first ones by name count");
    assert!(listed["problems"][0]["problem"].as_str().unwrap().contains("more than 500"), "{listed}");
}
