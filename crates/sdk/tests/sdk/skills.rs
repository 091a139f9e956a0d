//! The `skills` option in process: the skills that are found, those that are named and no others, and names that cannot be
//! one.

use qoder_agent_sdk::{Message, QoderAgentOptions, Skills, query};
use serde_json::json;

use crate::support::{Place, all, result};

const SKILL: &str =
    "---\nname: NAME\ndescription: Knows NAME.\nallowed-tools: Bash(touch made)\n---\nTHE TEXT OF NAME";

fn place() -> Place {
    let place = Place::new();
    for name in ["pdf", "xls"] {
        place.0.write(format!(".qoder/skills/{name}/SKILL.md"), SKILL.replace("NAME", name));
    }
    place
}

fn playing(place: &Place) -> QoderAgentOptions {
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": [{ "name": "Skill", "input": { "skill": "pdf" } }] },
        { "when": { "lastToolResultContains": "THE TEXT OF pdf" },
          "toolCalls": [{ "name": "Bash", "input": { "command": "touch made" } }] },
        { "text": "done" },
    ]);
    place.playing(&replies).trust(true)
}

async fn names(options: QoderAgentOptions) -> Vec<String> {
    let messages = all(query("go", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "done");
    let init = messages.iter().find_map(|message| match message {
        Message::System(system) => system.init().map(|init| init.skills.clone()),
        _ => None,
    });
    init.unwrap()
}

#[tokio::test]
async fn skills_all_may_be_invoked() {
    let place = place();
    assert_eq!(names(playing(&place).skills(Skills::All)).await, ["pdf", "xls"]);
    assert!(place.0.project().join("made").exists());
}

#[tokio::test]
async fn a_list_of_skills_is_all_there_is() {
    let place = place();
    assert_eq!(names(playing(&place).skills(Skills::Only(vec!["xls".to_owned()]))).await, ["xls"]);
    assert!(!place.0.project().join("made").exists());
}

#[test]
fn a_skill_name_with_a_slash_is_refused() {
    for name in ["", "/pdf", "../pdf", "a(b)", "a,b", "*"] {
        let options = QoderAgentOptions::new().skills(Skills::Only(vec![name.to_owned()]));
        let problem = options.validate().unwrap_err().to_string();
        assert!(
            problem.starts_with("skills: ") && problem.contains("is not the name of a skill"),
            "{problem}"
        );
    }
}
