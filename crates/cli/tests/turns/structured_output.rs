//! Answers in a shape (`--json-schema`): the model gives them by calling a tool, what does not fit goes back to it, and the
//! result has what fits. The calls are in the log like any other, so a session with them can be continued.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Wire, assert_calls_in_order, bodies, command, records, results_in, run, stream};

const SCHEMA: &str = r#"{"type":"object","properties":{"city":{"type":"string"},"people":{"type":"integer"}},
    "required":["city","people"],"additionalProperties":false}"#;
const TOOL: &str = "StructuredOutput";

fn answer() -> Value {
    json!({ "city": "Bern", "people": 134_000 })
}

#[test]
fn the_answer_is_in_the_result_and_ends_the_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("facts.txt", "Bern has 134000 people\n");
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Read", json!({ "file_path": "facts.txt" })),
        Reply::tool(TOOL, answer()),
    ]));
    let finished = stream(&sandbox, &server, &["which city?", "--json-schema", SCHEMA]);
    let result = finished.success();
    assert_eq!(result["structured_output"], answer());
    assert_eq!(serde_json::from_str::<Value>(result["result"].as_str().unwrap()).unwrap(), answer());
    assert_eq!((&result["num_turns"], &result["permission_denials"]), (&json!(2), &json!([])));
    let bodies = bodies(&server);
    assert_eq!(bodies.len(), 2, "nothing is asked after the answer");
    let tools = bodies[0]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == TOOL).unwrap();
    assert_eq!(tool["input_schema"], serde_json::from_str::<Value>(SCHEMA).unwrap());
    assert!(finished.system("init")[0]["tools"].as_array().unwrap().contains(&json!(TOOL)));
    assert_calls_in_order(&sandbox);
}

#[test]
fn it_needs_no_permission_and_no_other_tool() {
    for more in [&["--tools", ""][..], &["--permission-mode", "plan"], &["--permission-mode", "dontAsk"]] {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::by_assistant_count(vec![Reply::tool(TOOL, answer())]));
        let arguments = [&["which city?", "--json-schema", SCHEMA], more].concat();
        assert_eq!(
            stream(&sandbox, &server, &arguments).success()["structured_output"],
            answer(),
            "{more:?}"
        );
    }
}

#[test]
fn what_does_not_fit_goes_back_to_the_model() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool(TOOL, json!({ "city": "Bern" })),
        Reply::tool(TOOL, json!({ "city": "Bern", "people": "134000" })),
    ]));
    let result = stream(&sandbox, &server, &["which city?", "--json-schema", SCHEMA]).success();
    // A number that came as text is read, as in every call.
    assert_eq!(result["structured_output"], answer());
    let told = results_in(&bodies(&server)[1]);
    assert!(told[0].2 && told[0].1.contains("people"), "{told:?}");
    assert_calls_in_order(&sandbox);
}

#[test]
fn a_model_that_only_speaks_is_reminded() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::text("It is Bern."),
        Reply::tool(TOOL, answer()),
    ]));
    let result = stream(&sandbox, &server, &["which city?", "--json-schema", SCHEMA]).success();
    assert_eq!((&result["result"], &result["structured_output"]), (&json!("It is Bern."), &answer()));
    let messages = bodies(&server)[1]["messages"].as_array().unwrap().clone();
    assert!(messages.last().unwrap().to_string().contains("StructuredOutput"), "{messages:#?}");
}

#[test]
fn five_fruitless_attempts_are_an_error_of_its_own() {
    let wrong = || Reply::tool(TOOL, json!({ "city": 3 }));
    for replies in [vec![Reply::text("It is Bern.")], vec![wrong()], vec![Reply::text("Bern"), wrong()]] {
        let sandbox = Sandbox::new();
        let count = replies.len();
        let server =
            ScriptedServer::start(Script::by(move |_, number| replies[number.min(count - 1)].clone()));
        let finished = stream(&sandbox, &server, &["which city?", "--json-schema", SCHEMA]);
        let result = finished.result();
        assert_eq!(finished.code, 1);
        assert_eq!(result["subtype"], "error_max_structured_output_retries");
        assert_eq!((&result["is_error"], &result["structured_output"]), (&json!(true), &Value::Null));
        assert!(result["errors"][0].as_str().unwrap().contains("5 attempts"), "{result:#}");
        assert_eq!(server.requests().len(), 5);
        assert_calls_in_order(&sandbox);
    }
}

#[test]
fn text_output_is_the_answer_alone() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::text("Let me say it properly."),
        Reply::tool(TOOL, answer()),
    ]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "which city?", "--json-schema", SCHEMA]);
    let finished = run(command);
    assert_eq!(serde_json::from_str::<Value>(&finished.stdout).unwrap(), answer());
}

#[test]
fn every_protocol_can_give_it() {
    for wire in Wire::ALL {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::by_assistant_count(vec![Reply::tool(TOOL, answer())]));
        let mut command = command(&sandbox, &server, wire);
        command.args(["-p", "which city?", "--output-format", "stream-json", "--json-schema", SCHEMA]);
        assert_eq!(run(command).success()["structured_output"], answer(), "{wire:?}");
    }
}

#[test]
fn a_session_with_such_an_answer_goes_on() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool(TOOL, answer()),
        Reply::text("You are welcome."),
    ]));
    let session = "30000000-0000-4000-8000-000000000077";
    stream(&sandbox, &server, &["which city?", "--json-schema", SCHEMA, "--session-id", session]).success();
    assert_eq!(records(&sandbox, "turn-end")[0]["structuredOutput"], answer());
    let again = stream(&sandbox, &server, &["--resume", session]);
    assert_eq!(
        again.success()["structured_output"],
        answer(),
        "the result of the finished turn is printed again"
    );
    let result = stream(&sandbox, &server, &["thanks", "--resume", session]).success();
    assert_eq!((&result["result"], &result["structured_output"]), (&json!("You are welcome."), &Value::Null));
    let last = &bodies(&server)[1];
    assert!(!last["tools"].to_string().contains(TOOL), "the tool is there only when it is wanted");
    assert!(last["messages"].to_string().contains("The answer was taken."));
}

#[test]
fn a_schema_that_is_none_is_bad_input() {
    let sandbox = Sandbox::new();
    for (schema, problem) in [
        ("{", "not JSON"),
        ("[]", "a schema is a JSON object"),
        (r#"{"type":"array"}"#, "has to be an object"),
        (r#"{"type":"object","properties":{"n":{"type":"whole"}}}"#, "no JSON Schema"),
    ] {
        let output = sandbox.run(env!("CARGO_BIN_EXE_qodercli"), &["-p", "hi", "--json-schema", schema]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(42), "{told}");
        assert!(told.contains("--json-schema") && told.contains(problem), "{schema}: {told}");
    }
    assert!(sandbox.session_files().is_empty());
}
