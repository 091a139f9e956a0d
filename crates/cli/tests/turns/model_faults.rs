//! Faults of the endpoint. What may pass is tried again and announced; what will not pass ends the turn with a result
//! that says what the endpoint said. Nothing of a broken attempt gets into the log.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{
    Finished, MODEL, Wire, bodies, command, command_at, fault, keys, records, run, stream,
};

/// Runs with a fault first and a good reply afterwards.
fn recovers_from(fault: Reply, environment: &[(&str, &str)]) -> (Finished, Sandbox, ScriptedServer) {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![fault, Reply::text("all is well")]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.envs(environment.iter().copied());
    command.args(["-p", "hello", "--output-format", "stream-json"]);
    (run(command), sandbox, server)
}

/// Asserts that one retry was announced and that nothing of the broken attempt was kept.
fn assert_one_retry(finished: &Finished, sandbox: &Sandbox, server: &ScriptedServer) -> Value {
    assert_eq!(finished.success()["result"], "all is well");
    assert_eq!(finished.shape(), ["system/init", "system/api_retry", "assistant", "result"]);
    let retry = finished.system("api_retry").pop().unwrap();
    let expected = [
        "attempt",
        "error",
        "error_status",
        "max_retries",
        "retry_delay_ms",
        "session_id",
        "subtype",
        "type",
        "uuid",
    ];
    assert_eq!(keys(&retry), expected);
    assert_eq!((&retry["attempt"], &retry["max_retries"]), (&json!(1), &json!(9)));
    let replies = records(sandbox, "assistant");
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0]["message"]["content"], json!([{ "type": "text", "text": "all is well" }]));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body, "the same request is sent again");
    retry
}

#[test]
fn a_rate_limit_is_waited_for_as_asked() {
    let limited = Reply::HttpError {
        status: 429,
        headers: vec![("retry-after-ms".to_owned(), "7".to_owned())],
        body: r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#.to_owned(),
    };
    let (finished, sandbox, server) = recovers_from(limited, &[]);
    let retry = assert_one_retry(&finished, &sandbox, &server);
    assert_eq!((&retry["error_status"], &retry["retry_delay_ms"]), (&json!(429), &json!(7)));
    assert!(retry["error"].as_str().unwrap().contains("slow down"), "{retry}");
}

#[test]
fn faults_that_may_pass_are_tried_again() {
    let text = || Box::new(Reply::text("half of a sentence"));
    let cases = [
        (fault(529, "overloaded_error", "busy"), json!(529), "busy"),
        (fault(500, "api_error", "oops"), json!(500), "oops"),
        (Reply::CutStream { after_events: 4, reply: text() }, Value::Null, ""),
        (Reply::CutStream { after_events: 0, reply: text() }, Value::Null, ""),
        (Reply::Malformed, Value::Null, ""),
    ];
    for (broken, status, words) in cases {
        let (finished, sandbox, server) = recovers_from(broken, &[]);
        let retry = assert_one_retry(&finished, &sandbox, &server);
        assert_eq!(retry["error_status"], status, "{retry}");
        let error = retry["error"].as_str().unwrap();
        assert!(!error.is_empty() && error.contains(words), "{retry}");
    }
}

#[test]
fn a_body_without_content_is_tried_again_and_then_an_error() {
    let empty =
        |status: u16, body: &str| Reply::HttpError { status, headers: Vec::new(), body: body.to_owned() };
    for (status, body) in [(200, ""), (200, " \n\n"), (204, "")] {
        let (finished, ..) = recovers_from(empty(status, body), &[]);
        assert_eq!(finished.success()["result"], "all is well", "{status} {body:?}");
        for wire in Wire::ALL {
            let sandbox = Sandbox::new();
            let server = ScriptedServer::start(Script::list(vec![empty(status, body)]));
            let mut command = command(&sandbox, &server, wire);
            command.args(["-p", "hello", "--output-format", "stream-json"]);
            let finished = run(command);
            assert_eq!(finished.code, 1, "{wire:?} {status} {body:?}: {}", finished.stderr);
            let result = finished.result();
            assert!(result["errors"][0].as_str().unwrap().contains("empty body"), "{result:#}");
            assert_eq!(server.requests().len(), 10);
        }
    }
}

#[test]
fn a_failed_call_is_told_in_the_models_place() {
    let cases = [
        (fault(401, "authentication_error", "who are you"), "authentication_failed", "who are you"),
        (fault(402, "billing_error", "pay first"), "billing_error", "pay first"),
        (
            fault(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API.",
            ),
            "billing_error",
            "credit balance",
        ),
        (fault(429, "rate_limit_error", "slow down"), "rate_limit", "slow down"),
        (fault(400, "invalid_request_error", "not this"), "invalid_request", "not this"),
        (fault(500, "api_error", "oops"), "server_error", "oops"),
    ];
    for (reply, label, words) in cases {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::list(vec![reply]));
        let finished = stream(&sandbox, &server, &["hello"]);
        let shape = finished.shape();
        assert_eq!(shape[shape.len() - 2..], ["assistant", "result"], "{label}");
        let told = finished.of("assistant").pop().unwrap();
        assert_eq!((&told["error"], &told["parent_tool_use_id"]), (&json!(label), &Value::Null));
        let message = &told["message"];
        assert_eq!((&message["role"], &message["model"]), (&json!("assistant"), &json!("<synthetic>")));
        assert!(message["content"][0]["text"].as_str().unwrap().contains(words), "{told:#}");
        assert_eq!(told["session_id"], finished.result()["session_id"]);
        assert!(records(&sandbox, "assistant").is_empty(), "it is no part of the conversation");
        let mut text = command(&sandbox, &server, Wire::Messages);
        text.args(["-p", "hello"]);
        assert_eq!(run(text).stdout, "", "{label}");
    }
}

#[test]
fn an_address_where_nothing_listens_is_tried_again_three_times_and_the_first_is_said() {
    for format in ["text", "json", "stream-json"] {
        let sandbox = Sandbox::new();
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = command_at(&sandbox, &format!("http://127.0.0.1:{port}"), Wire::Messages);
        command.args(["-p", "hello", "--output-format", format]);
        let finished = run(command);
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        let told = finished.stderr.lines().filter(|line| line.starts_with("retrying a model call")).count();
        assert_eq!(told, 1, "{}", finished.stderr);
        assert!(finished.stderr.contains("at most 3 times"), "{}", finished.stderr);
        if format == "stream-json" {
            assert_eq!(finished.system("api_retry").len(), 3);
            assert!(finished.result()["errors"][0].as_str().unwrap().contains("after 4 attempts"));
        }
    }
}

#[test]
fn the_fallback_takes_over_after_three_failures_or_a_long_wait() {
    let overloaded = || fault(529, "overloaded_error", "busy");
    let later = Reply::HttpError {
        status: 429,
        headers: vec![("retry-after".to_owned(), "11".to_owned())],
        body: String::new(),
    };
    for (first, failures) in [(vec![overloaded(), overloaded(), overloaded()], 3), (vec![later], 1)] {
        let sandbox = Sandbox::new();
        let replies = first.into_iter().chain([Reply::text("from the second")]).collect();
        let server = ScriptedServer::start(Script::list(replies));
        let finished = stream(&sandbox, &server, &["hello", "--fallback-model", "second"]);
        assert_eq!(finished.success()["result"], "from the second");
        let models: Vec<Value> = bodies(&server).iter().map(|body| body["model"].clone()).collect();
        assert_eq!(models.len(), failures + 1);
        assert!(models[..failures].iter().all(|model| model == MODEL) && models[failures] == "second");
    }
}

#[test]
fn silence_is_waited_for_only_so_long() {
    let late = || Box::new(Reply::text("too late"));
    let silent = [
        Reply::SlowFirstByte { ms: 60_000, reply: late() },
        Reply::StalledStream { after_events: 3, ms: 60_000, reply: late() },
    ];
    for reply in silent {
        let (finished, sandbox, server) = recovers_from(reply, &[("QODER_API_TIMEOUT_MS", "400")]);
        let retry = assert_one_retry(&finished, &sandbox, &server);
        assert_eq!(retry["error_status"], Value::Null);
        assert!(retry["error"].as_str().unwrap().contains("400 ms"), "{retry}");
    }
}

#[test]
fn a_slow_first_byte_is_no_fault() {
    let sandbox = Sandbox::new();
    let slow = Reply::SlowFirstByte { ms: 100, reply: Box::new(Reply::text("here")) };
    let server = ScriptedServer::start(Script::list(vec![slow]));
    let finished = stream(&sandbox, &server, &["hello"]);
    assert_eq!(finished.success()["result"], "here");
    assert_eq!(finished.shape(), ["system/init", "assistant", "result"]);
}

#[test]
fn pieces_of_a_broken_attempt_are_followed_by_the_whole_reply() {
    let sandbox = Sandbox::new();
    let cut = Reply::CutStream { after_events: 4, reply: Box::new(Reply::text("all is well")) };
    let server = ScriptedServer::start(Script::list(vec![cut, Reply::text("all is well")]));
    let finished = stream(&sandbox, &server, &["hello", "--include-partial-messages"]);
    assert_eq!(finished.success()["result"], "all is well");
    let lines = finished.lines();
    let retry = lines.iter().position(|line| line["subtype"] == "api_retry").unwrap();
    let begins = |line: &&Value| line["event"]["type"] == "message_start";
    assert_eq!(lines[..retry].iter().filter(begins).count(), 1);
    assert_eq!(lines[retry..].iter().filter(begins).count(), 1, "the second attempt begins anew");
    let text: String =
        lines[retry..].iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(text, "all is well");
}

/// Runs against a server that always fails, and gives back the run.
fn fails_with(reply: Reply) -> (Finished, usize) {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![reply]));
    let finished = stream(&sandbox, &server, &["hello", "--settings", r#"{"general":{"maxAttempts":3}}"#]);
    assert_eq!(records(&sandbox, "assistant"), Vec::<Value>::new());
    let last = sandbox.transcript_lines().pop().unwrap();
    assert_eq!((&last["type"], &last["isError"]), (&json!("turn-end"), &json!(true)));
    let kept = sandbox.transcript_lines().iter().map(Value::to_string).collect::<String>();
    assert!(!kept.contains("key-of-the-test"), "a key must not be kept");
    (finished, server.requests().len())
}

#[test]
fn faults_that_will_not_pass_end_the_turn() {
    let cases = [
        (
            fault(401, "authentication_error", "invalid x-api-key: key-of-the-test"),
            401,
            Some(105),
            41,
            "ANTHROPIC_API_KEY",
        ),
        (fault(403, "permission_error", "not for you"), 403, None, 1, "not for you"),
        (fault(404, "not_found_error", "model: nothing"), 404, None, 1, MODEL),
        (fault(400, "invalid_request_error", "messages: wrong"), 400, Some(416), 1, "messages: wrong"),
    ];
    for (reply, status, code, exit, words) in cases {
        let (finished, requests) = fails_with(reply);
        assert_eq!(requests, 1, "{status} is not tried again");
        assert_eq!(finished.code, exit, "{status}: {}", finished.stderr);
        assert_eq!(finished.shape(), ["system/init", "assistant", "result"]);
        let result = finished.result();
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!((&result["is_error"], &result["terminal_reason"]), (&json!(true), &json!("api_error")));
        assert_eq!(result["api_error_status"], status);
        assert_eq!(result["error_code"].as_u64(), code, "{status}");
        assert!(result.get("result").is_none(), "{result}");
        let errors = result["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1);
        let error = errors[0].as_str().unwrap();
        assert!(error.contains(words) && error.contains(&status.to_string()), "{error}");
        assert!(!finished.stdout.contains("key-of-the-test"), "a key must not be shown");
    }
}

#[test]
fn faults_that_do_not_pass_are_given_up_after_the_last_attempt() {
    let cases = [
        (fault(529, "overloaded_error", "busy"), Some(529), 10_500, "busy"),
        (fault(429, "rate_limit_error", "slow down"), Some(429), 10_500, "slow down"),
        (Reply::Malformed, None, 10_500, ""),
        (Reply::CutStream { after_events: 3, reply: Box::new(Reply::text("never whole")) }, None, 500, ""),
    ];
    for (reply, status, code, words) in cases {
        let (finished, requests) = fails_with(reply);
        assert_eq!((requests, finished.code), (3, 1), "{}", finished.stdout);
        let retry = "system/api_retry";
        assert_eq!(finished.shape(), ["system/init", retry, retry, "assistant", "result"]);
        let attempts: Vec<(Value, Value)> = finished
            .system("api_retry")
            .iter()
            .map(|retry| (retry["attempt"].clone(), retry["max_retries"].clone()))
            .collect();
        assert_eq!(attempts, [(json!(1), json!(2)), (json!(2), json!(2))]);
        let result = finished.result();
        assert_eq!(result["api_error_status"].as_u64(), status);
        assert_eq!(result["error_code"], code);
        let error = result["errors"][0].as_str().unwrap();
        assert!(error.contains(words) && error.ends_with("(after 3 attempts)"), "{error}");
    }
}

#[test]
fn a_web_page_is_not_an_answer() {
    let (finished, _) =
        fails_with(Reply::Html("<html><body>Please log in to the network</body></html>".into()));
    assert_eq!(finished.code, 1);
    let result = finished.result();
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.contains("Please log in"), "{error}");
    assert!(!result["is_error"].is_null() && result.get("result").is_none(), "{result}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = command_at(&sandbox, &format!("http://127.0.0.1:{port}"), Wire::Messages);
    command.args([
        "-p",
        "hello",
        "--output-format",
        "json",
        "--settings",
        r#"{"general":{"maxAttempts":2}}"#,
    ]);
    let finished = run(command);
    assert_eq!(finished.code, 1);
    let result = finished.result();
    assert_eq!((&result["error_code"], &result["terminal_reason"]), (&json!(500), &json!("api_error")));
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.contains(&format!("cannot connect to 127.0.0.1:{port}")), "{error}");
}

#[test]
fn the_fallback_model_is_asked_when_the_main_one_fails() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|request, _| {
        if request["model"] == MODEL {
            fault(529, "overloaded_error", "busy")
        } else {
            Reply::text("from the small one")
        }
    }));
    let settings = r#"{"general":{"maxAttempts":2}}"#;
    let arguments = ["hello", "--fallback-model", "scripted-small", "--settings", settings, "--verbose"];
    let finished = stream(&sandbox, &server, &arguments);
    let result = finished.success();
    assert_eq!(result["result"], "from the small one");
    assert_eq!(keys(&result["modelUsage"]), ["scripted-small"]);
    assert_eq!(finished.of("assistant")[0]["message"]["model"], "scripted-small");
    let asked: Vec<Value> = bodies(&server).iter().map(|body| body["model"].clone()).collect();
    assert_eq!(asked, [MODEL, MODEL, "scripted-small"]);
    assert!(finished.stderr.contains("asking scripted-small instead"), "{}", finished.stderr);
}

#[test]
fn a_wrong_key_is_not_answered_by_the_fallback_model() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![fault(401, "authentication_error", "no")]));
    let finished = stream(&sandbox, &server, &["hello", "--fallback-model", "scripted-small"]);
    assert_eq!((finished.code, server.requests().len()), (41, 1));
}

#[test]
fn text_output_tells_the_error_on_stderr() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![fault(400, "invalid_request_error", "wrong")]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "hello"]);
    let finished = run(command);
    assert_eq!((finished.code, finished.stdout.as_str()), (1, ""));
    assert!(
        finished.stderr.starts_with("error: ") && finished.stderr.contains("wrong"),
        "{}",
        finished.stderr
    );
}
