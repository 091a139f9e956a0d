//! Sessions that change the wire between turns, in every order and resumed in between; what a server refuses is learned once
//! and kept in the log; and `config` shows the profile in force.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{Wire, command, command_at, records, run};

/// A reply with reasoning and a call, then a text, for every prompt.
fn script() -> Script {
    let call = |turn: usize| Reply::Blocks {
        thinking: Some((format!("thought {turn}"), "c2lnbmVk".to_owned())),
        text: Some(format!("step {turn}")),
        tools: vec![(format!("toolu.{turn}:0"), "Read".to_owned(), json!({ "file_path": "a.txt" }))],
        stop_reason: None,
        usage: None,
    };
    let replies = (0..4).flat_map(|turn| [call(turn), Reply::text(format!("answer {turn}"))]).collect();
    Script::by_assistant_count(replies)
}

#[test]
fn a_session_moves_between_wires_in_every_order() {
    for first in Wire::ALL {
        for second in Wire::ALL {
            let order = [first, second, first, second];
            let sandbox = Sandbox::new();
            sandbox.write("a.txt", "alpha\n");
            let server = ScriptedServer::start(script());
            let mut session: Option<String> = None;
            for (turn, wire) in order.into_iter().enumerate() {
                let mut command = command(&sandbox, &server, wire);
                command.args(["-p", &format!("prompt {turn}"), "--output-format", "json", "--tools", "Read"]);
                if let Some(session) = &session {
                    command.args(["--resume", session]);
                }
                let result = run(command).success();
                assert_eq!(result["result"], format!("answer {turn}"), "{order:?}");
                session = Some(result["session_id"].as_str().unwrap().to_owned());
            }
            let requests = server.requests();
            assert_eq!(requests.len(), 8, "{order:?}: nothing was refused and nothing was sent twice");
            let last = requests[7].json().to_string();
            for turn in 0..4 {
                assert!(last.contains(&format!("prompt {turn}")), "{order:?}: {last}");
            }
            assert!(!last.contains("\"chat:") && !last.contains("\"responses:"), "{order:?}: {last}");
            let notices = records(&sandbox, "model-notice").len();
            assert_eq!(notices > 0, first != second, "{order:?}: what was left out is on record");
        }
    }
}

/// A server that refuses `stream_options` and answers everything else.
struct Strict {
    address: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Strict {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(body) = read_body(&mut stream) else { continue };
                let refused = body.get("stream_options").is_some();
                kept.lock().unwrap().push(body);
                let (head, text) = if refused {
                    let text =
                        r#"{"error":{"message":"stream_options is not supported","param":"stream_options"}}"#;
                    ("400 Bad Request\r\ncontent-type: application/json", text.to_owned())
                } else {
                    let piece = json!({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]});
                    (
                        "200 OK\r\ncontent-type: text/event-stream",
                        format!("data: {piece}\n\ndata: [DONE]\n\n"),
                    )
                };
                let answer = format!(
                    "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { address, bodies }
    }
}

fn read_body(stream: &mut impl Read) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut piece = [0_u8; 65536];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))?
            .trim()
            .parse::<usize>()
            .ok()?;
        if bytes.len() >= end + 4 + length {
            return serde_json::from_slice(&bytes[end + 4..end + 4 + length]).ok();
        }
    }
}

#[test]
fn a_refusal_is_learned_once_reported_and_kept_for_a_resume() {
    let sandbox = Sandbox::new();
    let server = Strict::start();
    let mut first = command_at(&sandbox, &server.address, Wire::Chat);
    first.args(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let finished = run(first);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let lines: Vec<Value> =
        finished.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let notice = lines.iter().find(|line| line["subtype"] == "notice").expect("a notice");
    let message = notice["message"].as_str().unwrap();
    assert!(message.contains("without `stream_options`") && message.contains("\"neverSent\""), "{message}");
    assert!(
        !lines.iter().any(|line| line["subtype"] == "api_retry"),
        "the resend does not count as an attempt"
    );
    let session = lines[0]["session_id"].as_str().unwrap().to_owned();
    let mut second = command_at(&sandbox, &server.address, Wire::Chat);
    second.args(["-p", "again", "--output-format", "json", "--resume", &session]);
    run(second).success();
    let sent: Vec<bool> =
        server.bodies.lock().unwrap().iter().map(|body| body.get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[test]
fn config_shows_the_profile_and_why_and_rejects_one_that_does_not_exist() {
    let sandbox = Sandbox::new();
    let settings = |compat: &str| {
        let text = json!({"model": {"name": "gpu/m"}, "providers": {
            "gpu": {"protocol": "openai-chat", "baseUrl": "http://gpu:8000/v1", "compat": compat},
            "cloud": {"protocol": "openai-chat", "baseUrl": "https://api.mistral.ai/v1"},
        }});
        std::fs::create_dir_all(sandbox.config()).unwrap();
        std::fs::write(sandbox.config().join("settings.json"), text.to_string()).unwrap();
    };
    settings("vllm");
    let mut shown = command_at(&sandbox, "http://127.0.0.1:9", Wire::Chat);
    shown.arg("config");
    let finished = run(shown);
    assert!(
        finished.stdout.contains("model.profile = \"vllm\"  [`providers.gpu.compat`]"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains("providers.cloud.profile = \"mistral\"  [host `api.mistral.ai`]"),
        "{}",
        finished.stdout
    );
    settings("vlm");
    for arguments in [vec!["config"], vec!["-p", "hi"]] {
        let mut wrong = command_at(&sandbox, "http://127.0.0.1:9", Wire::Chat);
        wrong.args(arguments);
        let finished = run(wrong);
        assert_ne!(finished.code, 0);
        assert!(finished.stderr.contains("`providers.gpu.compat`"), "{}", finished.stderr);
        assert!(finished.stderr.contains("`vllm`"), "{}", finished.stderr);
    }
}
