//! A call that is unattended is pending in the log: the program ends with code 54 and loses nothing. A later answer
//! decides once; the session then continues from its log.

use qoder_testkit::Reply;
use serde_json::json;

use crate::turns::parked::{
    SESSION, answer, explained, model, park, pending, permissions, resume, sandbox, settle, turn,
};
use crate::turns::support::{assert_calls_in_order, bodies, calls, records, results_in, run};

/// Appends a line, so that running it twice shows.
const APPEND: &str = "echo ran >> ran.txt";

fn one_call() -> Vec<Reply> {
    vec![calls(&[("toolu_run", "Bash", json!({ "command": APPEND }))]), Reply::text("done")]
}

#[test]
fn a_question_ends_the_program_and_is_told() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    let finished = park(&sandbox, &server, &[]);
    let result = finished.result();
    assert_eq!((&result["is_error"], &result["session_id"]), (&json!(true), &json!(SESSION)));
    assert_eq!(result["subtype"], "error_during_execution");
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.contains("toolu_run") && error.contains("Bash"), "{error}");
    assert_eq!((&result["num_turns"], &result["usage"]["output_tokens"]), (&json!(1), &json!(5)));
    assert!(finished.stderr.contains("permissions answer"), "{}", finished.stderr);
    assert!(!sandbox.project().join("ran.txt").exists());
    assert_eq!(records(&sandbox, "permission-ask").len(), 1);
    assert_eq!(records(&sandbox, "decision").len(), 0);

    assert_eq!(pending(&sandbox), ["toolu_run"]);
    let text = permissions(&sandbox, &["pending", SESSION]);
    assert!(text.stdout.contains("toolu_run  Bash") && text.stdout.contains(APPEND), "{}", text.stdout);
    let again = resume(&sandbox, &server, &[]);
    assert_eq!(again.code, 54, "it still waits: {}", again.stdout);
    assert_eq!(records(&sandbox, "permission-ask").len(), 1, "it is asked once");
    assert_eq!(server.requests().len(), 1, "the model is not asked again");
}

#[test]
fn text_output_says_how_to_answer() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    let mut command =
        crate::turns::support::command(&sandbox, &server, crate::turns::support::Wire::Messages);
    command.args(["-p", "go", "--session-id", SESSION]);
    let finished = run(command);
    assert_eq!(finished.code, 54);
    assert_eq!(finished.stdout, "");
    assert!(
        finished.stderr.contains(&format!("permissions answer {SESSION} toolu_run")),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_json_format_has_one_result() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    let mut command =
        crate::turns::support::command(&sandbox, &server, crate::turns::support::Wire::Messages);
    command.args(["-p", "go", "--session-id", SESSION, "--output-format", "json"]);
    let finished = run(command);
    assert_eq!((finished.code, finished.lines().len()), (54, 1), "{}", finished.stdout);
    assert_eq!(finished.result()["session_id"], SESSION);
}

#[test]
fn an_allowed_call_runs_once() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    let told = answer(&sandbox, "toolu_run", &["allow", "--by", "Ada"]);
    assert!(told.stdout.contains(&format!("--resume {SESSION}")), "{}", told.stdout);
    assert_eq!(pending(&sandbox), Vec::<String>::new());
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("ran.txt")).unwrap(), "ran\n");
    assert_calls_in_order(&sandbox);
    let why = explained(&sandbox, "toolu_run");
    assert_eq!((&why["decision"], &why["reason"]["answeredBy"]), (&json!("allow"), &json!("Ada")));
    assert_eq!((&why["answer"]["by"], &why["outcome"]), (&json!("Ada"), &json!("completed")));
    assert_eq!(resume(&sandbox, &server, &[]).success()["result"], "done");
    assert_eq!(std::fs::read_to_string(sandbox.project().join("ran.txt")).unwrap(), "ran\n");
}

#[test]
fn a_denied_call_tells_the_model_why() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["deny", "--message", "use the make target"]);
    let finished = resume(&sandbox, &server, &[]);
    assert_eq!(finished.success()["permission_denials"][0]["tool_use_id"], "toolu_run");
    assert_eq!(finished.system("permission_denied")[0]["message"], "use the make target");
    assert!(!sandbox.project().join("ran.txt").exists());
    let told = results_in(&bodies(&server)[1]);
    assert_eq!(told, [("toolu_run".to_owned(), "use the make target".to_owned(), true)]);
}

#[test]
fn the_first_answer_counts() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["deny", "--by", "Ada"]);
    let second = permissions(&sandbox, &["answer", SESSION, "toolu_run", "allow", "--by", "Bob"]);
    assert_eq!(second.code, 42, "{}", second.stderr);
    assert!(second.stderr.contains("deny by Ada"), "{}", second.stderr);
    resume(&sandbox, &server, &[]).success();
    assert!(!sandbox.project().join("ran.txt").exists());
    let late = permissions(&sandbox, &["answer", SESSION, "toolu_run", "allow"]);
    assert_eq!(late.code, 42, "{}", late.stderr);
    let unknown = permissions(&sandbox, &["answer", SESSION, "toolu_other", "allow"]);
    assert_eq!(unknown.code, 42);
    assert!(unknown.stderr.contains("toolu_other"), "{}", unknown.stderr);
}

#[test]
fn a_changed_input_is_what_runs() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["allow", "--input", r#"{"command":"echo other > other.txt"}"#]);
    resume(&sandbox, &server, &[]).success();
    assert!(sandbox.project().join("other.txt").exists() && !sandbox.project().join("ran.txt").exists());
}

#[test]
fn a_changed_input_is_judged_again() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    settle(&sandbox, &json!({ "permissions": { "deny": ["Bash(mkdir:*)"] } }));
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["allow", "--input", r#"{"command":"mkdir forbidden"}"#]);
    let finished = resume(&sandbox, &server, &[]);
    assert_eq!(finished.system("permission_denied")[0]["decision_reason_type"], "rule");
    assert!(!sandbox.project().join("forbidden").exists() && !sandbox.project().join("ran.txt").exists());
    let told = results_in(&bodies(&server)[1]);
    assert!(told[0].2 && told[0].1.contains("Bash(mkdir:*)"), "{told:?}");
}

#[test]
fn an_input_that_makes_no_sense_is_refused_where_it_is_given() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    for input in ["not json", "[1]", "\"text\""] {
        let refused = permissions(&sandbox, &["answer", SESSION, "toolu_run", "allow", "--input", input]);
        assert_eq!(refused.code, 42, "{input}: {}", refused.stderr);
    }
    let input = r#"{"command":"true"}"#;
    let denial = permissions(&sandbox, &["answer", SESSION, "toolu_run", "deny", "--input", input]);
    assert_eq!(denial.code, 42, "{}", denial.stderr);
    assert_eq!(pending(&sandbox), ["toolu_run"]);
}

#[test]
fn a_new_prompt_closes_what_waits() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    let finished = run(turn(&sandbox, &server, &["never mind", "--resume", SESSION]));
    assert_eq!(finished.success()["result"], "done");
    assert_calls_in_order(&sandbox);
    assert!(!sandbox.project().join("ran.txt").exists());
    let late = permissions(&sandbox, &["answer", SESSION, "toolu_run", "allow"]);
    assert_eq!(late.code, 42, "{}", late.stderr);
    assert_eq!(explained(&sandbox, "toolu_run")["outcome"], "not_run");
    let messages = bodies(&server)[1]["messages"].clone();
    assert!(messages.to_string().contains("Bash was not run"), "{messages:#}");
}

#[test]
fn some_calls_of_a_reply_wait_and_nothing_is_lost() {
    let wanted = [
        ("toolu_read", "Read", json!({ "file_path": "notes.txt" })),
        ("toolu_one", "Bash", json!({ "command": "mkdir one" })),
        ("toolu_free", "Bash", json!({ "command": "touch free" })),
        ("toolu_two", "Bash", json!({ "command": "mkdir two" })),
        ("toolu_bad", "Bash", json!({ "command": "rmdir one" })),
    ];
    let (sandbox, server) = (sandbox(), model(vec![calls(&wanted), Reply::text("done")]));
    settle(&sandbox, &json!({ "permissions": { "allow": ["Bash(touch:*)"], "deny": ["Bash(rmdir:*)"] } }));
    sandbox.write("notes.txt", "hello\n");
    park(&sandbox, &server, &[]);
    assert_eq!(pending(&sandbox), ["toolu_one", "toolu_two"]);
    answer(&sandbox, "toolu_two", &["deny", "--message", "not two"]);
    assert_eq!(resume(&sandbox, &server, &[]).code, 54, "one still waits");
    assert_eq!(pending(&sandbox), ["toolu_one"]);
    answer(&sandbox, "toolu_one", &["allow"]);
    resume(&sandbox, &server, &[]).success();
    assert_calls_in_order(&sandbox);
    let made = |name: &str| sandbox.project().join(name).exists();
    assert!(made("one") && made("free") && !made("two"));
    let told: Vec<(String, bool)> =
        results_in(&bodies(&server)[1]).into_iter().map(|(id, _, failed)| (id, failed)).collect();
    let expected = [
        ("toolu_read", false),
        ("toolu_one", false),
        ("toolu_free", false),
        ("toolu_two", true),
        ("toolu_bad", true),
    ];
    assert_eq!(told, expected.map(|(id, failed)| (id.to_owned(), failed)));
}

#[test]
fn the_loser_of_two_answers_hears_who_won_and_with_what() {
    let (sandbox, server) = (sandbox(), model(one_call()));
    park(&sandbox, &server, &[]);
    let names = ["Ada", "Bob", "Cleo", "Dan", "Eve", "Finn"];
    let told: Vec<_> = std::thread::scope(|scope| {
        let answers: Vec<_> = names
            .iter()
            .map(|name| {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    permissions(
                        sandbox,
                        &["answer", SESSION, "toolu_run", "deny", "--by", name, "--message", "not now"],
                    )
                })
            })
            .collect();
        answers.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    let recorded = records(&sandbox, "permission-answer");
    assert_eq!(recorded.len(), 1);
    let winner = recorded[0]["by"].as_str().unwrap();
    for (name, told) in names.iter().zip(&told) {
        assert_eq!(told.code == 0, *name == winner, "{name}: {}", told.stderr);
        if *name != winner {
            let expected = format!("was answered before: deny by {winner}, with the message: not now");
            assert!(told.stderr.contains(&expected), "{}", told.stderr);
        }
    }
}

#[test]
fn an_answer_that_comes_while_the_session_runs_hears_of_the_first_one() {
    let (sandbox, server) = (
        sandbox(),
        model(vec![
            calls(&[(
                "toolu_run",
                "Bash",
                json!({ "command": "touch began; until test -e go; do sleep 0.01; done" }),
            )]),
            Reply::text("done"),
        ]),
    );
    park(&sandbox, &server, &[]);
    answer(&sandbox, "toolu_run", &["allow", "--by", "Ada"]);
    let live = crate::turns::support::Live::start(turn(&sandbox, &server, &["--resume", SESSION]));
    crate::turns::support::wait_until("the call runs", || sandbox.project().join("began").exists());
    let late = permissions(&sandbox, &["answer", SESSION, "toolu_run", "deny"]);
    assert_eq!(late.code, 42, "{}", late.stderr);
    assert!(late.stderr.contains("was answered before: allow by Ada"), "{}", late.stderr);
    sandbox.write("go", "");
    assert_eq!(live.finish().success()["result"], "done");
    let later = permissions(&sandbox, &["answer", SESSION, "toolu_run", "deny"]);
    assert!(later.stderr.contains("was answered before: allow by Ada"), "{}", later.stderr);
}
