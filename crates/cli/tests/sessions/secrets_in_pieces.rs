//! Secrets that come in pieces: cut at every byte in the text, the reasoning and the calls of a reply, and in what
//! commands print while they run, in the background too. No piece, and nothing that is kept, brings one back together.

use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::sessions::support::{ID, finish, log_text, online, run, server};

const KEY: &str = "configured-key-value-123456";

/// A streamed reply with a block for each place where the key can be cut.
fn cut_everywhere() -> String {
    let mut events = vec![
        json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
        "model": "m", "content": [], "usage": { "input_tokens": 1, "output_tokens": 1 } } }),
    ];
    let token = format!("ghp_{}", "a1B2".repeat(9));
    for secret in [KEY, &token] {
        for at in 0..=secret.len() {
            for (kind, field, delta) in
                [("thinking", "thinking", "thinking_delta"), ("text", "text", "text_delta")]
            {
                let index = events.iter().filter(|event| event["type"] == "content_block_start").count();
                let block = json!({ "type": kind, field: "" });
                events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
                let (left, right) = secret.split_at(at);
                for piece in [format!("<{left}"), format!("{right}>")] {
                    let delta = json!({ "type": delta, field: piece });
                    events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
                }
                events.push(json!({ "type": "content_block_stop", "index": index }));
            }
        }
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }));
    events.push(json!({ "type": "message_stop" }));
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

/// The texts that a reader puts together, block by block.
fn blocks(lines: &[Value]) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for event in lines.iter().filter(|line| line["type"] == "stream_event").map(|line| &line["event"]) {
        let index = usize::try_from(event["index"].as_u64().unwrap_or(0)).unwrap();
        if event["type"] == "content_block_start" {
            blocks.resize(index + 1, String::new());
        }
        for field in ["text", "thinking"] {
            if let Some(text) = event["delta"][field].as_str() {
                blocks[index].push_str(text);
            }
        }
    }
    blocks
}

fn assert_absent(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_absent(&path, secret);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(secret), "{} holds it", path.display());
        }
    }
}

#[test]
fn pieces_of_a_reply_do_not_add_up_to_a_key() {
    let sandbox = Sandbox::new();
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    let body = cut_everywhere();
    let script = Script::by(move |_, _| Reply::HttpError {
        status: 200,
        headers: headers.clone(),
        body: body.clone(),
    });
    let server = ScriptedServer::start(script);
    let arguments =
        ["-p", "x", "--session-id", ID, "--output-format", "stream-json", "--include-partial-messages"];
    let mut command = online(&sandbox, &server, &arguments);
    command.env("ANTHROPIC_API_KEY", KEY);
    let run = finish(command).exits(0);
    let blocks = blocks(&run.lines());
    assert_eq!(blocks.len(), 2 * (KEY.len() + 1) + 2 * 41);
    for (number, block) in blocks.iter().enumerate() {
        assert_eq!(block, "<[redacted]>", "block {number}");
    }
    assert!(!run.stdout.contains(KEY) && !run.stdout.contains("ghp_"), "{}", run.stdout);
    assert_absent(&sandbox.config(), KEY);
    assert_absent(&sandbox.config(), "ghp_a1B2");
}

#[test]
fn what_commands_print_in_pieces_is_clean_on_the_terminal_and_in_every_file() {
    let sandbox = Sandbox::new();
    // Each half in a write of its own, and enough around it that all of it goes to a file.
    let halves = "k=$(cat half1); for i in $(seq 2000); do printf 'line %s ' $i; printf %s \"$k\"; cat half2; echo; done";
    sandbox.write("half1", &KEY[..11]);
    sandbox.write("half2", &KEY[11..]);
    let calls = vec![
        Reply::tool("Bash", json!({ "command": halves })),
        Reply::tool("Bash", json!({ "command": halves, "run_in_background": true })),
        Reply::text("ok"),
    ];
    let server = server(calls);
    let mut command = online(&sandbox, &server, &["-p", "x", "--session-id", ID, "--yolo", "--verbose"]);
    command.env("ANTHROPIC_API_KEY", KEY);
    let run = finish(command).exits(0);
    assert!(run.stderr.contains("[redacted]") && !run.stderr.contains(KEY), "{}", run.stderr);
    assert_absent(&sandbox.config(), KEY);
    let log = log_text(&sandbox, ID);
    assert!(log.contains("[redacted]") && log.contains("full output in"), "{log}");
}

#[test]
fn config_shows_no_password_of_an_address_and_no_key_in_a_list() {
    let sandbox = Sandbox::new();
    let settings = json!({
        "providers": { "mine": { "protocol": "anthropic", "apiKey": KEY,
            "baseUrl": "https://user:hunter2hunter2@models.example/v1?access=hidden-query-value" } },
        "mcpServers": { "one": { "type": "http", "url": "https://u:hunter2hunter2@a.example/mcp?t=hidden-query-value" },
            "two": { "command": "serve", "args": ["--key", KEY, "https://u:hunter2hunter2@b.example/"] } },
    });
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    for arguments in
        [&["config"][..], &["config", "--json"], &["mcp", "get", "two"], &["mcp", "get", "one", "--json"]]
    {
        let run = run(&sandbox, arguments).exits(0);
        for secret in [KEY, "hidden-query-value"] {
            assert!(
                !run.stdout.contains(secret) && !run.stderr.contains(secret),
                "{arguments:?}: {}",
                run.stdout
            );
        }
        assert!(!run.stdout.contains("hunter2") || arguments[0] == "mcp", "{}", run.stdout);
    }
    let run = run(&sandbox, &["config", "providers"]).exits(0);
    assert!(run.stdout.contains("models.example/v1"), "the host stays to be judged: {}", run.stdout);
}
