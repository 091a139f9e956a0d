//! A host that keeps sessions elsewhere sees every line of the log, before the result of its turn.

use qoder_testkit::Sandbox;
use serde_json::{Value, json};

use crate::host::{Host, call, say};

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
    let log = sandbox.transcript_lines();
    assert_eq!(mirrored, log[..mirrored.len()], "in order, and nothing is missing before the result");
    assert!(mirrored.iter().any(|line| line["type"] == "turn-end"));
}
