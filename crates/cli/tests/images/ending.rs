//! ImageGen that is interrupted or whose process dies: nothing is written by an interrupted call, a call of a killed
//! process is not repeated, and what it made can be taken back.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use qoder_testkit::ImageReply;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::images::support::{Studio, calling, pixels};

const SESSION: &str = "70000000-0000-4000-8000-00000000001a";

/// An endpoint that answers much later than anybody waits.
fn slow() -> Studio {
    let input = json!({ "prompt": "a cat", "file_path": "cat.png" });
    Studio::new(
        calling(vec![("ImageGen", input)])
            .images(|call, _| ImageReply::Slow { ms: 600_000, reply: Box::new(pixels(call)) }),
    )
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupted_call_writes_nothing() {
    let studio = slow();
    let mut command = studio.command(&["draw", "--permission-mode", "acceptEdits"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the endpoint is asked", || !studio.painted().is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let lines: Vec<Value> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    child.wait().unwrap();
    let result = lines.iter().find(|line| !line["tool_use_result"].is_null());
    assert!(result.is_some_and(|line| line.to_string().contains("interrupted")), "{lines:#?}");
    assert_eq!(studio.file("cat.png"), None);
}

#[test]
fn a_call_of_a_killed_process_is_unknown_and_not_repeated() {
    let studio = slow();
    let mode = ["--permission-mode", "acceptEdits"];
    let mut command = studio.command(&[&["draw", "--session-id", SESSION][..], &mode].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the endpoint is asked", || !studio.painted().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = studio.command(&[&["--resume", SESSION][..], &mode].concat()).output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert_eq!(studio.painted().len(), 1, "nothing is paid for twice");
    assert!(studio.failure().to_lowercase().contains("unknown"), "{}", studio.failure());
    assert_eq!(studio.file("cat.png"), None);
}
