//! `/name args` runs a command: arguments take their places, sub-directories are part of the name, and both what was typed
//! and what the model saw are on record.

use qoder_testkit::Reply;
use serde_json::json;

use crate::commands::support::{asked, bodies, command, model, records, trusted, turn};

#[test]
fn arguments_take_their_places() {
    let sandbox = trusted();
    command(&sandbox, "fix", "---\ndescription: Fixes.\n---\nFix $1 in [$2]. All: $ARGUMENTS");
    let server = model(vec![Reply::text("done")]);
    let ran = turn(&sandbox, &server, &["/fix 12 'two words'"]);
    assert_eq!(ran.result()["result"], "done");
    assert_eq!(asked(&bodies(&server)[0]), "Fix 12 in [two words]. All: 12 'two words'");
    assert!(ran.system("init")["slash_commands"].as_array().unwrap().contains(&json!("fix")));
}

#[test]
fn without_a_place_arguments_follow_the_text() {
    let sandbox = trusted();
    command(&sandbox, "team/fix", "Fix it.");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/team:fix  now "]);
    assert_eq!(asked(&bodies(&server)[0]), "Fix it.\n\nARGUMENTS: now");
}

#[test]
fn what_was_typed_and_what_the_model_saw_are_on_record() {
    let sandbox = trusted();
    command(&sandbox, "fix", "Fix $1.");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/fix 12"]);
    assert_eq!(records(&sandbox, "input")[0]["message"]["content"], "/fix 12");
    let prompt = &records(&sandbox, "user")[0];
    assert_eq!((&prompt["typed"], &prompt["message"]["content"]), (&json!("/fix 12"), &json!("Fix 12.")));
}

#[test]
fn what_an_argument_says_asks_for_nothing() {
    let sandbox = trusted();
    sandbox.write("secret.txt", "THE SECRET");
    command(&sandbox, "echo", "You said: $ARGUMENTS");
    let server = model(vec![Reply::text("done")]);
    turn(&sandbox, &server, &["/echo @secret.txt !`touch made`"]);
    assert_eq!(asked(&bodies(&server)[0]), "You said: @secret.txt !`touch made`");
    assert!(!sandbox.project().join("made").exists());
}
