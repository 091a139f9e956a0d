//! `model` in the head of a command or skill: the turn that a person begins with it runs with that model, the next one
//! with the session's again. A model that does not exist refuses the command; where a front chooses the model, its choice
//! stands.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::commands::support::{Talk, bodies, call, command, model, records, run, skill, trusted, turn};

const HEAD: &str = "---\nmodel: other-model\n---\n";

/// The models of the requests, in order.
fn asked_models(bodies: &[Value]) -> Vec<String> {
    bodies.iter().filter_map(|body| body["model"].as_str()).map(str::to_owned).collect()
}

fn project() -> Sandbox {
    let sandbox = trusted();
    command(&sandbox, "fast", &format!("{HEAD}Be fast."));
    skill(&sandbox, "quick", "model: other-model\n", "Be quick.");
    sandbox
}

#[test]
fn the_turn_of_a_command_or_skill_runs_with_its_model_and_the_next_with_the_sessions() {
    for name in ["/fast", "/quick"] {
        let sandbox = project();
        let list = call("toolu_1", "Bash", json!({ "command": "ls" }));
        let server = model(vec![list, Reply::text("first"), Reply::text("second")]);
        let ran = turn(&sandbox, &server, &[name, "--model", "main-model"]);
        assert_eq!(ran.system("init")["model"], "other-model", "{name}");
        turn(&sandbox, &server, &["-c", "continue", "--model", "main-model"]);
        assert_eq!(asked_models(&bodies(&server)), ["other-model", "other-model", "main-model"], "{name}");
        let epochs: Vec<Value> =
            records(&sandbox, "epoch").iter().map(|epoch| epoch["model"].clone()).collect();
        assert_eq!(epochs, ["other-model", "main-model"]);
    }
}

#[test]
fn in_one_process_the_sessions_model_comes_back_and_may_be_changed_meanwhile() {
    let sandbox = project();
    let server = model(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let mut talk = Talk::start(&sandbox, &server, &["--model", "main-model"]);
    talk.request(&json!({ "subtype": "initialize" }));
    for prompt in ["/fast", "plain"] {
        talk.prompt(prompt);
        talk.result();
    }
    talk.request(&json!({ "subtype": "set_model", "model": "third-model" }));
    talk.prompt("plain again");
    talk.result();
    assert_eq!(asked_models(&bodies(&server)), ["other-model", "main-model", "third-model"]);
}

#[test]
fn a_skill_that_the_model_loads_changes_no_model() {
    let sandbox = project();
    let load = call("toolu_1", "Skill", json!({ "skill": "quick" }));
    let server = model(vec![load, Reply::text("done")]);
    turn(&sandbox, &server, &["go", "--model", "main-model"]);
    assert_eq!(asked_models(&bodies(&server)), ["main-model", "main-model"]);
}

#[test]
fn inherit_is_the_sessions_model() {
    let sandbox = trusted();
    command(&sandbox, "same", "---\nmodel: inherit\n---\nBe as you are.");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/same", "--model", "main-model"]);
    assert_eq!(asked_models(&bodies(&server)), ["main-model"]);
}

#[test]
fn a_model_that_does_not_exist_refuses_the_command_before_anything_runs() {
    let sandbox = trusted();
    command(&sandbox, "lost", "---\nmodel: scripted:absent.json\nallowed-tools: Bash\n---\n!`touch made`");
    skill(&sandbox, "astray", "model: scripted:absent.json\n", "Be lost.");
    let known = run(&sandbox, &["-p", "x", "--model", "scripted:absent.json"]).stderr;
    for name in ["/lost", "/astray"] {
        let server = model(vec![Reply::text("never")]);
        let error = turn(&sandbox, &server, &[name]).error();
        assert!(error.contains("absent.json"), "{error}");
        assert!(known.contains("absent.json"), "the same error as elsewhere: {known}");
        assert!(bodies(&server).is_empty() && !sandbox.project().join("made").exists());
    }
}

#[test]
fn a_model_that_is_no_text_is_a_problem_with_its_line() {
    let sandbox = trusted();
    command(&sandbox, "bad", "---\ndescription: x\nmodel: { a: b }\n---\nBe bad.");
    let told = run(&sandbox, &["commands", "list"]).stderr;
    assert!(told.contains("bad.md:3: `model` has to be text"), "{told}");
}

#[test]
fn where_a_front_chooses_the_model_its_choice_stands() {
    let sandbox = project();
    command(&sandbox, "lost", "---\nmodel: scripted:absent.json\n---\nBe lost.");
    let server = model(vec![Reply::text("one"), Reply::text("two")]);
    let mut talk = Talk::start(&sandbox, &server, &["--model", "main-model"]);
    talk.request(&json!({ "subtype": "initialize", "modelPolicy": true }));
    for prompt in ["/fast", "/lost"] {
        talk.prompt(prompt);
        let question = talk.asked("get_model_policy");
        talk.respond(&question, &json!({ "model": "chosen-model" }));
        assert_eq!(talk.result()["is_error"], false, "{prompt}");
    }
    assert_eq!(asked_models(&bodies(&server)), ["chosen-model", "chosen-model"]);
}
