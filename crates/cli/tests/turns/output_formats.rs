//! What is printed: the answer alone as text, one result as JSON, and every message in its documented order and shape as
//! JSON lines, whose ids are those of the transcript. Pieces of replies come in order and add up to the whole.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::turns::support::{MODEL, Wire, command, keys, records, run, stream};

const ANSWER: &str = "It says hello.";

fn look_then_answer() -> ScriptedServer {
    let look = Reply::Blocks {
        thinking: Some(("The file has to be read first.".to_owned(), "c2lnbmVk".to_owned())),
        text: Some("I look into the file.".to_owned()),
        tools: vec![("toolu_look".to_owned(), "Read".to_owned(), json!({ "file_path": "notes.txt" }))],
        stop_reason: None,
        usage: None,
    };
    ScriptedServer::start(Script::by_assistant_count(vec![look, Reply::text(ANSWER)]))
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("notes.txt", "hello\n");
    sandbox
}

#[test]
fn piped_text_is_the_answer_alone() {
    let (sandbox, server) = (sandbox(), look_then_answer());
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "what do the notes say?"]);
    let finished = run(command);
    assert_eq!(
        (finished.code, finished.stdout.as_str(), finished.stderr.as_str()),
        (0, "It says hello.\n", "")
    );
}

#[test]
fn json_is_one_object_with_every_documented_key() {
    let (sandbox, server) = (sandbox(), look_then_answer());
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "what do the notes say?", "--output-format", "json"]);
    let finished = run(command);
    assert_eq!(finished.lines().len(), 1, "{}", finished.stdout);
    let result = finished.success();
    let expected = [
        "duration_api_ms",
        "duration_ms",
        "is_error",
        "modelUsage",
        "num_turns",
        "permission_denials",
        "result",
        "session_id",
        "stop_reason",
        "subtype",
        "terminal_reason",
        "total_cost_usd",
        "type",
        "usage",
        "uuid",
    ];
    assert_eq!(keys(&result), expected);
    assert_eq!(result["result"], ANSWER);
    assert_eq!(result["num_turns"], 2);
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["terminal_reason"], "completed");
    assert_eq!(result["permission_denials"], json!([]));
    let usage = json!({
        "input_tokens": 20, "output_tokens": 10,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    });
    assert_eq!(result["usage"], usage);
    let totals = json!({ MODEL: {
        "inputTokens": 20, "outputTokens": 10, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
        "webSearchRequests": 0, "costUSD": 0.0, "contextWindow": 200_000, "maxOutputTokens": 32_000,
    }});
    assert_eq!(result["modelUsage"], totals);
}

#[test]
fn stream_json_has_every_message_in_order_with_the_transcripts_ids() {
    let (sandbox, server) = (sandbox(), look_then_answer());
    let finished = stream(&sandbox, &server, &["what do the notes say?"]);
    finished.success();
    assert_eq!(finished.shape(), ["system/init", "assistant", "user", "assistant", "result"]);
    let lines = finished.lines();
    let session = lines[0]["session_id"].as_str().unwrap();
    assert!(lines.iter().all(|line| line["session_id"] == session), "{}", finished.stdout);
    let kept: Vec<Value> = sandbox
        .transcript_lines()
        .into_iter()
        .filter(|line| line["type"] == "assistant" || line["origin"] == "tool_result")
        .collect();
    let said: Vec<&Value> = lines[1..4].iter().collect();
    assert_eq!(kept.len(), said.len());
    for (kept, said) in kept.iter().zip(said) {
        assert_eq!((&kept["uuid"], &kept["type"]), (&said["uuid"], &said["type"]));
        assert_eq!(kept["message"], said["message"]);
        assert_eq!(kept["sessionId"], session);
        assert_eq!(said["parent_tool_use_id"], Value::Null);
    }
    let mut ids: Vec<&str> = lines.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), lines.len(), "every message has an id of its own");
}

#[test]
fn stream_json_messages_have_the_documented_shapes() {
    let (sandbox, server) = (sandbox(), look_then_answer());
    let finished = stream(&sandbox, &server, &["what do the notes say?"]);
    let lines = finished.lines();
    let init = &lines[0];
    let expected = [
        "agents",
        "apiKeySource",
        "capabilities",
        "claude_code_version",
        "cwd",
        "mcp_servers",
        "model",
        "output_style",
        "permissionMode",
        "plugins",
        "protocol_version",
        "qodercli_version",
        "session_id",
        "skills",
        "slash_commands",
        "subtype",
        "tools",
        "type",
        "uuid",
    ];
    assert_eq!(keys(init), expected);
    assert_eq!(init["cwd"], sandbox.project().to_str().unwrap());
    assert_eq!((&init["model"], &init["permissionMode"]), (&json!(MODEL), &json!("default")));
    assert_eq!(init["apiKeySource"], "user");
    let offered: Vec<Value> = server.requests()[0].json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(init["tools"], Value::Array(offered));
    let message = &lines[1]["message"];
    assert_eq!(
        keys(message),
        ["content", "id", "model", "role", "stop_reason", "stop_sequence", "type", "usage"]
    );
    assert_eq!(
        (&message["model"], &message["stop_reason"], &message["role"], &message["type"]),
        (&json!(MODEL), &json!("tool_use"), &json!("assistant"), &json!("message"))
    );
    let content = json!([
        { "type": "thinking", "thinking": "The file has to be read first.", "signature": "c2lnbmVk" },
        { "type": "text", "text": "I look into the file." },
        { "type": "tool_use", "id": "toolu_look", "name": "Read", "input": { "file_path": "notes.txt" } },
    ]);
    assert_eq!(message["content"], content);
    let result = &lines[2]["message"];
    let block = json!([{ "type": "tool_result", "tool_use_id": "toolu_look", "content": "     1\thello\n" }]);
    assert_eq!(result, &json!({ "role": "user", "content": block }));
    assert_eq!(lines[2]["tool_use_result"]["type"], "text", "{}", lines[2]);
}

#[test]
fn pieces_come_in_order_and_add_up_to_the_message() {
    for wire in Wire::ALL {
        let (sandbox, server) = (sandbox(), look_then_answer());
        let mut command = command(&sandbox, &server, wire);
        command.args(["-p", "look", "--output-format", "stream-json", "--include-partial-messages"]);
        let finished = run(command);
        finished.success();
        let mut pieces = Vec::new();
        let mut messages = 0;
        for line in finished.lines() {
            match line["type"].as_str().unwrap() {
                "stream_event" => {
                    assert_eq!(keys(&line), ["event", "parent_tool_use_id", "session_id", "type", "uuid"]);
                    pieces.push(line["event"].clone());
                }
                "assistant" => {
                    messages += 1;
                    let whole = assemble(&pieces);
                    assert_eq!(whole["content"], without_signatures(&line["message"]["content"]), "{wire:?}");
                    assert_eq!(whole["stop_reason"], line["message"]["stop_reason"], "{wire:?}");
                    assert_eq!(whole["id"], line["message"]["id"], "{wire:?}");
                    pieces.clear();
                }
                _ => assert!(pieces.is_empty(), "{wire:?}: pieces after their message"),
            }
        }
        assert_eq!(messages, 2, "{wire:?}");
    }
}

/// Other protocols keep what a later request needs in the signature, and only once the reply is complete.
fn without_signatures(content: &Value) -> Value {
    let mut content = content.clone();
    for block in content.as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("signature");
    }
    content
}

/// The message that the pieces add up to; panics when they are out of order.
fn assemble(pieces: &[Value]) -> Value {
    let kinds: Vec<&str> = pieces.iter().map(|piece| piece["type"].as_str().unwrap()).collect();
    let kinds: Vec<&str> = kinds.into_iter().filter(|kind| *kind != "ping").collect();
    assert_eq!(kinds.first(), Some(&"message_start"));
    assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
    let (mut blocks, mut open, mut arguments) = (Vec::<Value>::new(), None, String::new());
    let (mut id, mut stop_reason) = (Value::Null, Value::Null);
    for piece in pieces {
        match piece["type"].as_str().unwrap() {
            "message_start" => id = piece["message"]["id"].clone(),
            "content_block_start" => {
                assert_eq!((open, &piece["index"]), (None, &json!(blocks.len())));
                open = piece["index"].as_u64();
                let mut block = piece["content_block"].clone();
                block.as_object_mut().unwrap().remove("signature");
                blocks.push(block);
                arguments.clear();
            }
            "content_block_delta" => {
                assert_eq!(open, piece["index"].as_u64());
                let (delta, block) = (&piece["delta"], blocks.last_mut().unwrap());
                for field in ["text", "thinking"] {
                    if let Some(more) = delta[field].as_str() {
                        block[field] = json!(format!("{}{more}", block[field].as_str().unwrap()));
                    }
                }
                arguments.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            "content_block_stop" => {
                assert_eq!(open.take(), piece["index"].as_u64());
                if !arguments.is_empty() {
                    blocks.last_mut().unwrap()["input"] = serde_json::from_str(&arguments).unwrap();
                }
            }
            "message_delta" => stop_reason = piece["delta"]["stop_reason"].clone(),
            "message_stop" | "ping" => assert_eq!(open, None),
            other => panic!("an unknown piece {other}"),
        }
    }
    json!({ "id": id, "content": blocks, "stop_reason": stop_reason })
}

#[test]
fn nothing_is_kept_when_that_is_asked_for() {
    let (sandbox, server) = (sandbox(), look_then_answer());
    let finished = stream(&sandbox, &server, &["look", "--no-session-persistence"]);
    assert_eq!(finished.success()["result"], ANSWER);
    assert_eq!(records(&sandbox, "user"), Vec::<Value>::new());
}
