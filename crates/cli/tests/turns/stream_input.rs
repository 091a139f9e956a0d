//! Messages on stdin as JSON lines: each becomes a turn with a result, in order; its id becomes the id of its entry, and
//! nothing is lost at the end of the input. A line that is no message is named on stderr and skipped.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Wire, bodies, command, feed, records};

fn echo() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or("a picture");
        Reply::text(format!("you said: {text}"))
    }))
}

fn line(id: &str, content: &Value) -> String {
    let message = json!({ "role": "user", "content": content });
    json!({ "type": "user", "uuid": id, "message": message, "parent_tool_use_id": null }).to_string()
}

const IDS: [&str; 3] = [
    "10000000-0000-4000-8000-000000000001",
    "10000000-0000-4000-8000-000000000002",
    "10000000-0000-4000-8000-000000000003",
];

fn run_lines(
    sandbox: &Sandbox,
    server: &ScriptedServer,
    input: &str,
    more: &[&str],
) -> crate::turns::support::Finished {
    let mut command = command(sandbox, server, Wire::Messages);
    command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]).args(more);
    feed(command, input)
}

#[test]
fn every_line_becomes_a_turn_with_a_result() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let input: Vec<String> =
        IDS.iter().zip(["one", "two", "three"]).map(|(id, text)| line(id, &json!(text))).collect();
    // The last line has no line end: the end of the input is as good.
    let finished = run_lines(&sandbox, &server, &input.join("\n"), &[]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let results: Vec<Value> = finished.of("result").iter().map(|result| result["result"].clone()).collect();
    assert_eq!(results, ["you said: one", "you said: two", "you said: three"]);
    let turn = ["system/init", "assistant", "result"];
    assert_eq!(finished.shape(), [turn, turn, turn].concat());
    let prompts: Vec<(Value, Value)> = records(&sandbox, "user")
        .into_iter()
        .map(|entry| (entry["uuid"].clone(), entry["message"]["content"].clone()))
        .collect();
    let expected: Vec<(Value, Value)> =
        IDS.iter().zip(["one", "two", "three"]).map(|(id, text)| (json!(id), json!(text))).collect();
    assert_eq!(prompts, expected);
    let last = bodies(&server).pop().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().len(), 5, "the third turn has the first two before it");
}

#[test]
fn bad_lines_are_named_and_skipped() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let input = [
        "this is no JSON".to_owned(),
        String::new(),
        "[1, 2]".to_owned(),
        json!({ "type": "user" }).to_string(),
        json!({ "type": "user", "message": { "role": "user", "content": "" } }).to_string(),
        json!({ "type": "keep_alive" }).to_string(),
        line(IDS[0], &json!("still there")),
        "{\"type\":\"user\"".to_owned(),
        json!({ "type": "user", "message": { "role": "user", "content": 5 } }).to_string(),
    ]
    .join("\n");
    let finished = run_lines(&sandbox, &server, &input, &[]);
    // Every user message gets a result, also one that cannot be read; what was no message is only named. The exit code is
    // that of the last result.
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let results = finished.of("result");
    let refused: Vec<&Value> = results.iter().filter(|result| result["is_error"] == true).collect();
    assert_eq!(refused.len(), 4, "{results:?}");
    for unreadable in &refused[2..] {
        assert!(unreadable["errors"][0].as_str().unwrap().contains("not a JSON message"), "{unreadable}");
    }
    assert_eq!(refused[0]["errors"], json!(["a user message has no `message.content`"]));
    assert_eq!(refused[1]["errors"], json!(["a user message is empty"]));
    let taken: Vec<&Value> = results.iter().filter(|result| result["is_error"] == false).collect();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0]["result"], "you said: still there");
    let warnings: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 2, "{}", finished.stderr);
    assert!(warnings[0].contains("this is no JSON"), "{}", warnings[0]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_run_whose_last_line_is_refused_fails() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let refused = "{\"type\":\"user\",\"message\":";
    let finished = run_lines(&sandbox, &server, refused, &[]);
    assert_eq!(finished.code, 42, "{}", finished.stderr);
    assert_eq!(finished.result()["is_error"], true);
    assert_eq!(run_lines(&sandbox, &server, "no message at all\n", &[]).code, 42);
}

#[test]
fn pictures_reach_the_model() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let picture = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" } });
    let content = json!([{ "type": "text", "text": "what is this?" }, picture]);
    let finished = run_lines(&sandbox, &server, &line(IDS[0], &content), &[]);
    assert_eq!(finished.success()["result"], "you said: a picture");
    assert_eq!(bodies(&server)[0]["messages"], json!([{ "role": "user", "content": content }]));
}

#[test]
fn prompts_are_echoed_with_their_ids_on_request() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let input = format!("{}\n{}\n", line(IDS[0], &json!("one")), line(IDS[1], &json!("two")));
    let finished = run_lines(&sandbox, &server, &input, &["--replay-user-messages"]);
    let echoed: Vec<(Value, Value, Value)> = finished
        .of("user")
        .into_iter()
        .map(|line| (line["uuid"].clone(), line["message"]["content"].clone(), line["isReplay"].clone()))
        .collect();
    let expected = [(json!(IDS[0]), json!("one"), json!(true)), (json!(IDS[1]), json!("two"), json!(true))];
    assert_eq!(echoed, expected);
}

#[test]
fn input_without_any_message_is_no_turn() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let finished = run_lines(&sandbox, &server, "", &[]);
    assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{}", finished.stderr);
    assert!(server.requests().is_empty());
}

#[test]
fn text_on_stdin_is_added_to_the_prompt() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "review this"]);
    let finished = feed(command, "a change\n");
    assert_eq!(finished.stdout, "you said: review this\n\na change\n", "{}", finished.stderr);
}

#[test]
fn a_message_with_an_empty_id_gets_one() {
    let (sandbox, server) = (Sandbox::new(), echo());
    let input = format!("{}\n{}\n", line("", &json!("one")), line("", &json!("two")));
    let finished = run_lines(&sandbox, &server, &input, &[]);
    let results: Vec<Value> = finished.of("result").iter().map(|result| result["result"].clone()).collect();
    assert_eq!(results, ["you said: one", "you said: two"]);
    let ids: Vec<Value> = records(&sandbox, "user").iter().map(|entry| entry["uuid"].clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids[0] != "", "{ids:?}");
}

#[test]
fn an_error_of_one_turn_does_not_end_the_others() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str() {
            Some("bad") => crate::turns::support::fault(400, "invalid_request_error", "not this"),
            _ => Reply::text("fine"),
        }
    }));
    let texts = ["good", "bad", "good again"];
    let input: Vec<String> = IDS.iter().zip(texts).map(|(id, text)| line(id, &json!(text))).collect();
    let finished = run_lines(&sandbox, &server, &(input.join("\n") + "\n"), &[]);
    let ends: Vec<Value> = finished.of("result").iter().map(|result| result["is_error"].clone()).collect();
    assert_eq!(ends, [false, true, false]);
    assert_eq!(finished.code, 0, "the last turn went well");
}
