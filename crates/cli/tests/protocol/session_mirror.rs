//! A host that keeps sessions elsewhere sees every line of the log, before the result of its turn.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::protocol::host::{Host, ROOMY, call, say};

#[test]
fn every_line_of_the_log_is_repeated() {
    let sandbox = Sandbox::new();
    let replies = json!([call(1, "Glob", &json!({ "pattern": "*" })), say("done")]);
    let mut host = Host::connect(&sandbox, &replies, &["--session-mirror"], json!({}));
    host.prompt("look");
    let mut mirrored: Vec<Value> = Vec::new();
    let mut files = Vec::new();
    loop {
        let line = host.next().unwrap();
        match line["type"].as_str() {
            Some("transcript_mirror") => {
                mirrored.extend(line["entries"].as_array().unwrap().clone());
                files.push(line["filePath"].clone());
            }
            Some("result") => break,
            _ => {}
        }
    }
    host.end();
    files.dedup();
    assert_eq!(files, [json!(sandbox.session_files()[0])]);
    let mut log = sandbox.transcript_lines();
    for line in &mut log {
        for key in ["seq", "v", "crc"] {
            line.as_object_mut().unwrap().remove(key);
        }
    }
    assert_eq!(mirrored, log[..mirrored.len()], "in order, and nothing is missing before the result");
    assert!(mirrored.iter().any(|line| line["type"] == "turn-end"));
}

#[test]
fn a_line_that_is_too_long_for_a_reader_is_repeated_in_part() {
    let sandbox = Sandbox::new();
    let flags = ["--session-mirror", "--settings", ROOMY];
    let mut host = Host::connect(&sandbox, &json!([say("read")]), &flags, json!({}));
    host.prompt(&"x".repeat(1_200_000));
    let mut entries: Vec<Value> = Vec::new();
    loop {
        let line = host.next().unwrap();
        entries.extend(line["entries"].as_array().into_iter().flatten().cloned());
        if line["type"] == "result" {
            break;
        }
    }
    host.end();
    let prompt = entries.iter().find(|entry| entry["type"] == "user").unwrap();
    assert!(prompt["message"]["content"].as_str().unwrap().contains("left out of this line"));
    let reply = entries.iter().find(|entry| entry["type"] == "assistant").unwrap();
    assert_eq!(reply["parentUuid"], prompt["uuid"], "the chain holds");
}

#[test]
fn a_session_goes_on_from_what_was_repeated() {
    let sandbox = Sandbox::new();
    let replies = json!([{ "when": { "turn": 1 }, "text": "one" }, { "when": { "turn": 2 }, "text": "two" }]);
    let mut host = Host::connect(&sandbox, &replies, &["--session-mirror"], json!({}));
    host.prompt("first");
    let mut kept = String::new();
    let id = loop {
        let line = host.next().unwrap();
        for entry in line["entries"].as_array().into_iter().flatten() {
            // A store may write numbers and spaces in its own way.
            kept.push_str(&entry.to_string().replace(":0.0,", ":0,"));
            kept.push('\n');
        }
        if line["type"] == "result" {
            break line["session_id"].as_str().unwrap().to_owned();
        }
    };
    host.end();
    let file = sandbox.session_files().remove(0);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, kept).unwrap();
    let mut host = Host::connect(&sandbox, &replies, &[&format!("--resume={id}")], json!({}));
    host.prompt("second");
    assert_eq!(host.result()["result"], "two");
}
