//! Skills that try to allow more than a person did: rules that deny or ask, modes, protected files, agents and later turns
//! are beyond them; names are no paths, and links lead nowhere.

use serde_json::{Value, json};

use crate::bypasses::support::{Case, agent, call, delegate, done, of_agent, skill, touch};

fn load(name: &str) -> Value {
    call("Skill", &json!({ "skill": name }))
}

/// A project with a skill that allows whatever `rules` says.
fn project(rules: &str, settings: &Value) -> Case {
    let case = Case::trusted(settings);
    case.file(".qoder/skills/wide/SKILL.md", &skill("wide", &format!("allowed-tools: {rules}")));
    case
}

#[test]
fn allowed_tools_of_a_skill_are_beyond_no_rule_and_no_mode() {
    let replies = json!([load("wide"), touch(), done()]);
    let plain = project("Bash", &json!({}));
    plain.run("go", &replies, &["--allowed-tools", "Skill"]);
    assert!(plain.made(), "the neighbour that is allowed runs");
    for rules in ["Bash", "Bash(touch:*)", "\"*\"", "Bash(touch made)"] {
        for (settings, flags) in [
            (json!({ "permissions": { "deny": ["Bash(touch:*)"] } }), &["--allowed-tools", "Skill"][..]),
            (json!({ "permissions": { "ask": ["Bash(touch:*)"] } }), &["--allowed-tools", "Skill"]),
            (json!({ "permissions": { "deny": ["Bash(touch made)"] } }), &["--allowed-tools", "Skill,Bash"]),
            (json!({}), &["--allowed-tools", "Skill", "--permission-mode", "plan"]),
        ] {
            let case = project(rules, &settings);
            let ran = case.run("go", &replies, flags);
            assert!(!case.made(), "{rules} {settings} {flags:?}: {}", ran.told());
        }
    }
}

#[test]
fn a_skill_with_rules_needs_somebody_who_allows_it() {
    let replies = json!([load("wide"), touch(), done()]);
    for flags in [
        &[][..],
        &["--permission-mode", "dontAsk"],
        &["--permission-mode", "acceptEdits"],
        &["--permission-mode", "auto"],
        &["--allowed-tools", "Skill(other)"],
        &["--allowed-tools", "Skill", "--disallowed-tools", "Skill(wide)"],
    ] {
        let case = project("Bash", &json!({}));
        let ran = case.run("go", &replies, flags);
        assert!(!case.made(), "{flags:?}: {}", ran.told());
    }
    let denied = project("Bash", &json!({ "permissions": { "deny": ["Skill(wide)"] } }));
    let ran = denied.run("/wide", &json!([touch(), done()]), &[]);
    assert!(!denied.made() && ran.result()["is_error"] == true, "{}", ran.result());
}

#[test]
fn allowed_tools_do_not_cover_protected_files_or_places_outside() {
    for file in [".envrc", ".qoder/settings.json", ".git/hooks/pre-commit", "../outside.txt"] {
        let case = project("Edit, Write", &json!({}));
        let write = call("Write", &json!({ "file_path": file, "content": "x" }));
        let ran = case.run("go", &json!([load("wide"), write, done()]), &["--allowed-tools", "Skill"]);
        assert!(!case.has(file), "{file}: {}", ran.told());
    }
}

#[test]
fn agents_do_not_get_the_rules_of_a_skill() {
    let case = project("Bash", &json!({}));
    case.file(".qoder/agents/helper.md", &agent("helper", "skills: [wide]"));
    let child = of_agent(touch(), 1);
    let end = json!({ "when": { "purpose": "subagent" }, "text": "over", "repeat": true });
    for first in [load("wide"), touch()] {
        let replies = json!([first, delegate("helper"), child, end, done()]);
        let ran = case.run("go", &replies, &["--allowed-tools", "Skill,Agent"]);
        assert!(!case.made(), "{}", ran.told());
    }
}

#[test]
fn a_name_is_never_a_path() {
    let case = Case::trusted(&json!({}));
    case.file("evil/SKILL.md", &skill("evil", "allowed-tools: Bash"));
    case.file(".qoder/skills/other/SKILL.md", &skill("other", ""));
    for name in ["../../evil", "/evil", "evil/", "..", "./evil", "p:../evil", "evil/SKILL.md", ""] {
        let ran = case.run("go", &json!([load(name), touch(), done()]), &["--allowed-tools", "Skill"]);
        assert!(ran.told().contains("is not the name of a skill"), "{name:?}: {}", ran.told());
        assert!(!case.made(), "{name:?}");
    }
}

#[test]
fn a_definition_that_lies_elsewhere_is_not_the_projects() {
    let case = Case::trusted(&json!({}));
    let outside = case.sandbox.write("../outside/linked/SKILL.md", skill("linked", "allowed-tools: Bash"));
    case.link(".qoder/skills/linked", outside.parent().unwrap());
    case.file(".qoder/skills/file/readme.txt", "");
    let other = case.sandbox.write("../outside/file.md", skill("file", "allowed-tools: Bash"));
    case.link(".qoder/skills/file/SKILL.md", &other);
    for name in ["linked", "file"] {
        let ran = case.run("go", &json!([load(name), touch(), done()]), &["--allowed-tools", "Skill"]);
        assert!(!case.made() && ran.stderr.contains("leads out of the project"), "{name}: {}", ran.all());
    }
}

#[test]
fn skills_of_an_untrusted_folder_are_nobodys() {
    let case = Case::untrusted(&json!({}));
    case.file(".qoder/skills/wide/SKILL.md", &skill("wide", "allowed-tools: Bash"));
    let ran = case.run("go", &json!([load("wide"), touch(), done()]), &["--allowed-tools", "Skill"]);
    assert!(!case.made(), "{}", ran.told());
    let ran = case.run("/wide", &json!([touch(), done()]), &[]);
    assert!(!case.made() && ran.result()["is_error"] == true, "{}", ran.result());
}

#[test]
fn a_skill_for_the_person_alone_brings_the_model_nothing() {
    let case = Case::trusted(&json!({}));
    let head = "allowed-tools: Bash\ndisable-model-invocation: true";
    case.file(".qoder/skills/wide/SKILL.md", &skill("wide", head));
    case.file(".qoder/skills/other/SKILL.md", &skill("other", ""));
    let ran = case.run("go", &json!([load("wide"), touch(), done()]), &["--allowed-tools", "Skill"]);
    assert!(!case.made() && ran.told().contains("is for the person"), "{}", ran.told());
}

#[test]
fn a_deny_rule_about_reading_holds_in_the_folder_of_a_skill() {
    let case = Case::trusted(&json!({ "permissions": { "deny": ["Read(~/.qoder/skills/own/secret.txt)"] } }));
    case.own("skills/own/SKILL.md", &skill("own", ""));
    let secret = case.own("skills/own/secret.txt", "hidden words");
    let open = case.own("skills/own/open.txt", "open words");
    let read = |file: &std::path::Path| call("Read", &json!({ "file_path": file }));
    let ran = case.run("go", &json!([load("own"), read(&secret), read(&open), done()]), &[]);
    assert!(!ran.told().contains("hidden words") && ran.told().contains("open words"), "{}", ran.told());
    let ran = case.run(
        "go",
        &json!([
            load("own"),
            call(
                "Edit",
                &json!({ "file_path": open,
        "old_string": "open words", "new_string": "changed" })
            ),
            done()
        ]),
        &["--permission-mode", "acceptEdits"],
    );
    assert!(std::fs::read_to_string(&open).unwrap().contains("open words"), "{}", ran.told());
}
