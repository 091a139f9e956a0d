//! A skill name with a slash, dots or anything else that could be a path is refused wherever it comes from: in a file, in
//! a call, in the `skills` option. A list of names is all that a session has.

use qoder_testkit::Reply;
use serde_json::json;

use crate::commands::support::{Talk, answered, bodies, call, model, skill, trusted, turn};

#[test]
fn a_skill_name_with_a_slash_is_refused_in_a_call() {
    for name in ["../../etc", "/pdf", "a/b", "pdf.md", ""] {
        let sandbox = trusted();
        skill(&sandbox, "pdf", "", "x");
        let server = model(vec![call("toolu_1", "Skill", json!({ "skill": name })), Reply::text("done")]);
        turn(&sandbox, &server, &["go"]);
        let (text, is_error) = answered(&bodies(&server)[1]);
        assert!(is_error && text.contains("is not the name of a skill"), "{name}: {text}");
    }
    let sandbox = trusted();
    skill(&sandbox, "pdf", "", "x");
    let server = model(vec![call("toolu_1", "Skill", json!({ "skill": "xls" })), Reply::text("done")]);
    turn(&sandbox, &server, &["go"]);
    let (text, is_error) = answered(&bodies(&server)[1]);
    assert!(is_error && text.contains("There is no skill named xls. The skills are: pdf."), "{text}");
}

#[test]
fn a_skills_list_is_all_that_a_session_has() {
    let sandbox = trusted();
    skill(&sandbox, "pdf", "", "THE TEXT");
    skill(&sandbox, "xls", "", "OTHER TEXT");
    let server = model(vec![call("toolu_1", "Skill", json!({ "skill": "xls" })), Reply::text("done")]);
    let mut talk =
        Talk::start(&sandbox, &server, &["--allowedTools", "Skill(pdf)", "--disable-builtin-skills"]);
    let hello = talk.request(&json!({ "subtype": "initialize", "skills": ["pdf"] }));
    let skills = &hello["response"]["skills"];
    let row = json!({ "name": "pdf", "description": "Knows pdf.", "source": "project", "argumentHint": "" });
    assert_eq!(*skills, json!([row]), "{hello}");
    talk.prompt("go");
    assert_eq!(talk.until(|line| line["subtype"] == "init")["skills"], json!(["pdf"]));
    assert_eq!(talk.result()["result"], "done");
    let requests = bodies(&server);
    assert!(!requests[0].to_string().contains("Knows xls"));
    assert!(answered(&requests[1]).1);
    let usage = talk.request(&json!({ "subtype": "get_context_usage" }));
    let items = &usage["response"]["skills"]["items"];
    assert_eq!(items[0]["name"], "pdf", "{usage}");
    assert!(items[0]["percentageOfContext"].is_number() && items.as_array().unwrap().len() == 1);
    let commands = talk.request(&json!({ "subtype": "supported_commands" }))["response"]["commands"].clone();
    let row = json!({ "name": "pdf", "description": "Knows pdf.", "argumentHint": "" });
    assert!(commands.as_array().unwrap().contains(&row), "{commands}");
    assert!(!commands.to_string().contains("xls"));
}

#[test]
fn a_skills_list_with_a_path_is_refused() {
    for name in ["../pdf", "/pdf", "a b", "*", "a(b)", ""] {
        let sandbox = trusted();
        let server = model(vec![]);
        let mut talk = Talk::start(&sandbox, &server, &[]);
        let answer = talk.request(&json!({ "subtype": "initialize", "skills": [name] }));
        assert_eq!(answer["subtype"], "error", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("is not the name of a skill"), "{answer}");
    }
}
