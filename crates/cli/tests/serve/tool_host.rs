//! File tools of a session run in a process that is confined as its commands are: a link that commands put somewhere between the
//! judgement of a call and its run leads nowhere.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, id, kind, result_text, toolset};

const PRIVATE: &str = "the victim's words";

/// The results of a session, in their order.
fn results(server: &Server, session: &str) -> Vec<String> {
    let events = server.events(session);
    events.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect()
}

#[test]
fn a_link_that_changes_while_file_tools_run_leads_nowhere() {
    let rounds = 12;
    let script = Script::by(move |request, _| {
        let said = request["messages"][0]["content"].clone();
        let text = said.as_str().or_else(|| said[0]["text"].as_str()).unwrap_or_default().to_owned();
        match (qoder_testkit::assistant_count(request), text.strip_prefix("race ")) {
            (0, None) => Reply::ToolCalls(vec![
                ("Write".to_owned(), json!({ "file_path": "private.txt", "content": PRIVATE })),
                ("Write".to_owned(), json!({ "file_path": "plans.txt", "content": "x" })),
            ]),
            (0, Some(victim)) => {
                let swap = format!(
                    "mkdir -p own && echo mine > own/private.txt && touch own/only-mine && cp -r own place && \
                     while :; do mv place aside; ln -s {victim} place; rm place; mv aside place; done"
                );
                Reply::tool("Bash", json!({ "command": swap, "run_in_background": true }))
            }
            (round, Some(_)) if round <= rounds => {
                let read = ("Read".to_owned(), json!({ "file_path": "place/private.txt" }));
                let find = (
                    "Grep".to_owned(),
                    json!({ "pattern": "words|mine", "path": "place", "output_mode": "content" }),
                );
                let list = ("Glob".to_owned(), json!({ "pattern": "**/*", "path": "place" }));
                let write = (
                    "Write".to_owned(),
                    json!({ "file_path": format!("place/planted-{round}"), "content": "x" }),
                );
                let mut calls: Vec<(String, Value)> = Vec::new();
                for _ in 0..5 {
                    calls.extend([read.clone(), find.clone(), list.clone()]);
                }
                calls.push(write);
                Reply::ToolCalls(calls)
            }
            (_, _) => Reply::text("done"),
        }
    });
    let server = Server::scripted(script);
    let (agent, environment) = (server.agent(&json!([toolset(&[])])), server.environment());
    let session =
        || id(&server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": environment })).ok());
    let (victim, thief) = (session(), session());
    server.ask(&victim, "keep this");
    let place = server.workspace(&victim);
    assert_eq!(std::fs::read_to_string(place.join("private.txt")).unwrap(), PRIVATE);
    server.ask(&thief, &format!("race {}", place.display()));
    let results = results(&server, &thief);
    assert!(results.len() > rounds * 16, "{results:?}");
    for text in &results {
        assert!(!text.contains(PRIVATE) && !text.contains("plans.txt"), "{text}");
    }
    assert!(results.iter().any(|text| text.contains("mine")), "its own files can be read: {results:?}");
    let planted = std::fs::read_dir(&place).unwrap().filter_map(Result::ok).count();
    assert_eq!(planted, 2, "nothing was written into the other session");
}

#[test]
fn the_server_reads_and_writes_nothing_where_a_session_put_links() {
    let server = Server::replying(vec![
        // The folders in which outputs are kept, and the file of a task that runs.
        bash(
            "rm -rf ../session/outputs ../outputs; ln -s /etc ../session/outputs; ls -ld ../outputs; touch ../outputs/x; true",
        ),
        Reply::tool("Bash", json!({ "command": "echo started; sleep 600", "run_in_background": true })),
        bash("for f in ../outputs/*; do rm -f $f; ln -sf ../../../master.key $f; done 2>&1; ls ../outputs"),
        bash("head -c 200000 /dev/zero | tr '\\0' y"),
        Reply::tool("Read", json!({ "file_path": "../session/outputs/passwd" })),
        Reply::text("done"),
    ]);
    let session = server.session(&json!([toolset(&[])]));
    server.ask(&session, "go");
    let results = results(&server, &session);
    assert!(results[2].contains("Read-only file system"), "{results:?}");
    let outputs = server.workspace(&session).parent().unwrap().join("outputs");
    let kept: Vec<_> = std::fs::read_dir(&outputs).unwrap().filter_map(Result::ok).collect();
    assert!(kept.len() >= 2, "the task's file and the long output");
    for file in kept {
        assert!(file.file_type().unwrap().is_file(), "{file:?}");
    }
    assert!(results[3].contains("full output in") && !results[4].contains("root:"), "{results:?}");
}

#[test]
fn file_tools_do_as_they_do_elsewhere() {
    let server = Server::replying(vec![
        Reply::tool("Write", json!({ "file_path": "a.txt", "content": "one\ntwo\n" })),
        Reply::tool("Edit", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "three" })),
        Reply::tool("Read", json!({ "file_path": "a.txt" })),
        bash("echo four >> a.txt"),
        Reply::tool("Write", json!({ "file_path": "a.txt", "content": "lost" })),
        Reply::tool("Grep", json!({ "pattern": "t", "output_mode": "content" })),
        Reply::text("done"),
        Reply::tool("Edit", json!({ "file_path": "a.txt", "old_string": "four", "new_string": "4" })),
        Reply::text("done"),
    ]);
    let session = server.session(&json!([toolset(&[])]));
    server.ask(&session, "go");
    let found = results(&server, &session);
    assert!(found[2].contains("three"), "{found:?}");
    assert!(
        found[4].contains("changed") || found[4].contains("modified"),
        "what was read before is known: {found:?}"
    );
    assert!(found[5].contains("a.txt:2:three"), "{found:?}");
    // The host went when the session rested; what it had read is on record.
    server.ask(&session, "again");
    let text = std::fs::read_to_string(server.workspace(&session).join("a.txt")).unwrap();
    assert_eq!(
        text,
        "one\nthree\nfour\n",
        "a file that changed since it was read is not edited: {:?}",
        results(&server, &session)
    );
}
