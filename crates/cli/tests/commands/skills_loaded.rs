//! The full SKILL.md when invoked: by the model through the Skill tool, or by a person with `/name`; files of the skill
//! may then be read, wherever the skill lies.

use qoder_testkit::Reply;
use serde_json::json;

use crate::commands::support::{
    answered, asked, bodies, call, model, own_skill, records, skill, trusted, turn,
};

#[test]
fn the_model_loads_a_skill_and_reads_its_files() {
    let sandbox = trusted();
    own_skill(&sandbox, "pdf", "", "Read forms.md for $ARGUMENTS.");
    let folder = sandbox.config().join("skills/pdf");
    sandbox.write(folder.join("forms.md"), "how forms are filled");
    let secret = sandbox.write(sandbox.config().join("other.txt"), "not the skill's");
    let server = model(vec![
        call("toolu_1", "Skill", json!({ "skill": "pdf", "args": "the tax form" })),
        call("toolu_2", "Read", json!({ "file_path": folder.join("forms.md") })),
        call("toolu_3", "Read", json!({ "file_path": secret })),
        Reply::text("done"),
    ]);
    assert_eq!(turn(&sandbox, &server, &["fill the form"]).result()["result"], "done");
    let requests = bodies(&server);
    let (text, is_error) = answered(&requests[1]);
    assert!(!is_error && text.contains("Read forms.md for the tax form."), "{text}");
    assert!(text.starts_with(&format!("Base folder of the skill pdf: {}\n", folder.display())), "{text}");
    assert!(answered(&requests[2]).0.contains("how forms are filled"));
    let (text, is_error) = answered(&requests[3]);
    assert!(is_error && text.contains("outside the workspace"), "{text}");
}

#[test]
fn other_names_of_the_field_are_accepted() {
    for field in ["name", "command"] {
        let sandbox = trusted();
        skill(&sandbox, "pdf", "", "THE TEXT");
        let server = model(vec![call("toolu_1", "Skill", json!({ field: "pdf" })), Reply::text("done")]);
        turn(&sandbox, &server, &["go"]);
        assert!(answered(&bodies(&server)[1]).0.contains("THE TEXT"), "{field}");
    }
}

#[test]
fn a_person_calls_for_a_skill_by_its_name() {
    let sandbox = trusted();
    skill(&sandbox, "pdf", "disable-model-invocation: true\n", "THE TEXT");
    let server = model(vec![Reply::text("done")]);
    assert_eq!(turn(&sandbox, &server, &["/pdf my.pdf"]).result()["result"], "done");
    let text = asked(&bodies(&server)[0]);
    assert!(text.contains("THE TEXT\n\nARGUMENTS: my.pdf"), "{text}");
    let prompt = &records(&sandbox, "user")[0];
    assert_eq!(prompt["typed"], "/pdf my.pdf");
}

#[test]
fn disable_model_invocation_leaves_a_skill_to_the_person() {
    let sandbox = trusted();
    skill(&sandbox, "mine", "disable-model-invocation: true\n", "x");
    skill(&sandbox, "pdf", "", "x");
    let server = model(vec![call("toolu_1", "Skill", json!({ "skill": "mine" })), Reply::text("done")]);
    turn(&sandbox, &server, &["go"]);
    let requests = bodies(&server);
    assert!(!requests[0]["tools"].to_string().contains("Knows mine"));
    let (text, is_error) = answered(&requests[1]);
    assert!(is_error && text.contains("is for the person to call for, with /mine"), "{text}");
}
