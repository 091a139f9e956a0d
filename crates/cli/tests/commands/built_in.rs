//! Built-in commands over the protocol and in print mode: `/agents`, `/help`, `/cost`, `/context`, `/clear` and `/compact` answer
//! with `local_command_output` and a result; only a compaction asks a model.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::commands::support::{Talk, asked, bodies, call, command, model, records, trusted, turn};

fn said(talk: &mut Talk, prompt: &str) -> (String, Value) {
    talk.prompt(prompt);
    let output = talk.until(|line| line["subtype"] == "local_command_output");
    (output["content"].as_str().unwrap().to_owned(), talk.result())
}

fn summarising() -> ScriptedServer {
    ScriptedServer::start(Script::by(|request: &Value, _| {
        let last = asked(request);
        if last.starts_with("Write a summary") { Reply::text("THE SUMMARY") } else { Reply::text("fine") }
    }))
}

fn connected(sandbox: &Sandbox, server: &ScriptedServer, declared: &Value) -> Talk {
    let mut talk = Talk::start(sandbox, server, &[]);
    let mut request = declared.clone();
    request["subtype"] = json!("initialize");
    talk.request(&request);
    talk
}

#[test]
fn help_cost_and_context_ask_no_model() {
    let sandbox = trusted();
    command(&sandbox, "fix", "---\ndescription: Fixes.\nargument-hint: <issue>\n---\nx");
    let server = model(vec![Reply::text("fine")]);
    let mut talk = connected(&sandbox, &server, &json!({}));
    talk.prompt("hello");
    talk.result();
    let (help, result) = said(&mut talk, "/help");
    assert!(help.contains("\n/compact [what the summary is to keep]: "), "{help}");
    assert!(help.contains("\n/fix <issue>: Fixes. (project)"), "{help}");
    assert_eq!((&result["result"], &result["num_turns"]), (&json!(help), &json!(0)));
    assert_eq!(result["subtype"], "success");
    let (cost, _) = said(&mut talk, "/cost");
    assert!(cost.starts_with("The session has cost $") && cost.contains(" tokens in, "), "{cost}");
    let (context, _) = said(&mut talk, "/context");
    assert!(context.contains("System prompt: ") && context.contains("Messages: "), "{context}");
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn agents_lists_what_was_discovered() {
    let sandbox = trusted();
    let file = "---\nname: reviewer\ndescription: Reviews code.\nmodel: lite\n---\nYou review.\n";
    sandbox.write(sandbox.project().join(".qoder/agents/reviewer.md"), file);
    let server = model(vec![Reply::text("fine")]);
    let mut talk = connected(&sandbox, &server, &json!({}));
    let (agents, result) = said(&mut talk, "/agents");
    assert!(agents.contains("\nreviewer [lite]: Reviews code."), "{agents}");
    assert!(agents.contains("\ngeneral-purpose: ") && !agents.contains("can be started"), "{agents}");
    assert_eq!(result["result"], json!(agents));
    assert!(bodies(&server).is_empty());
}

#[test]
fn clear_begins_a_new_conversation_and_keeps_the_log() {
    let sandbox = trusted();
    let server = model(vec![Reply::text("fine")]);
    let hooks = json!({ "SessionStart": [{ "hookCallbackIds": ["h"] }] });
    let mut talk = connected(&sandbox, &server, &json!({ "hooks": hooks }));
    talk.prompt("the old words");
    let started = talk.asked("hook_callback");
    assert_eq!(started["request"]["input"]["source"], "startup");
    talk.respond(&started, &json!({}));
    talk.result();
    talk.prompt("/clear");
    let started = talk.asked("hook_callback");
    assert_eq!(started["request"]["input"]["source"], "clear");
    talk.respond(&started, &json!({}));
    assert_eq!(talk.result()["subtype"], "success");
    talk.prompt("the new words");
    talk.result();
    let requests = bodies(&server);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["messages"].as_array().unwrap().len(), 1, "{:#}", requests[1]["messages"]);
    assert!(!requests[1].to_string().contains("the old words"));
    assert_eq!(records(&sandbox, "cut").len(), 1);
    assert!(sandbox.transcript_lines().iter().any(|line| line.to_string().contains("the old words")));
}

#[test]
fn clear_holds_for_a_process_that_goes_on() {
    let sandbox = trusted();
    for (arguments, code) in [(&["the old words"][..], 0), (&["-c", "/clear"], 0)] {
        let server = model(vec![Reply::text("fine")]);
        assert_eq!(turn(&sandbox, &server, arguments).code, code);
    }
    let server = model(vec![Reply::text("fine")]);
    turn(&sandbox, &server, &["-c", "the new words"]);
    let requests = bodies(&server);
    assert_eq!(requests[0]["messages"].as_array().unwrap().len(), 1, "{:#}", requests[0]["messages"]);
}

/// A log that comes back from a store has neither numbers nor checksums.
#[test]
fn clear_and_rewind_hold_for_a_log_that_came_back_from_a_store() {
    let sandbox = trusted();
    sandbox.write("notes.txt", "milk");
    let read = |id: &str| call(id, "Read", json!({ "file_path": "notes.txt" }));
    let server = model(vec![Reply::text("fine")]);
    turn(&sandbox, &server, &["the old words"]);
    turn(&sandbox, &server, &["-c", "/clear"]);
    let server = model(vec![read("t1"), Reply::text("kept"), read("t2"), Reply::text("left out")]);
    turn(&sandbox, &server, &["-c", "the first words"]);
    let mut talk = Talk::start(&sandbox, &server, &["-c"]);
    let uuid = "11111111-1111-4111-8111-111111111111";
    talk.request(&json!({ "subtype": "initialize" }));
    talk.send(
        &json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": "words left out" } }),
    );
    talk.result();
    let back =
        talk.request(&json!({ "subtype": "rewind", "user_message_id": uuid, "scope": "conversation" }));
    assert_eq!(back["response"]["canRewind"], true, "{back}");
    drop(talk);
    let log = &sandbox.session_files()[0];
    let mut lines = sandbox.transcript_lines();
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        fields.retain(|name, _| !["seq", "crc", "v"].contains(&name.as_str()));
    }
    std::fs::write(log, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let server = model(vec![Reply::text("x"), Reply::text("x"), Reply::text("fine")]);
    assert_eq!(turn(&sandbox, &server, &["-c", "continue"]).result()["result"], "fine");
    let messages = bodies(&server)[0]["messages"].to_string();
    assert!(messages.contains("the first words") && messages.contains("milk"), "{messages}");
    assert!(!messages.contains("the old words") && !messages.contains("left out"), "{messages}");
}

#[test]
fn compact_replaces_the_conversation_by_a_summary() {
    let sandbox = trusted();
    let server = summarising();
    let mut talk = connected(&sandbox, &server, &json!({}));
    let (nothing, _) = said(&mut talk, "/compact");
    assert_eq!(nothing, "There is nothing to summarise yet.");
    talk.prompt("the old words");
    talk.result();
    talk.prompt("/compact keep the names");
    let boundary = talk.until(|line| line["subtype"] == "compact_boundary");
    assert_eq!(boundary["compact_metadata"]["trigger"], "manual");
    let result = talk.result();
    assert!(result["result"].as_str().unwrap().contains("replaced by a summary"), "{result}");
    let usage = talk.request(&json!({ "subtype": "get_context_usage" }));
    let tokens = |name: &str| {
        let rows = usage["response"]["categories"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["tokens"].as_u64().unwrap()
    };
    // The summary alone: what the system prompt takes is counted once.
    assert!(tokens("Messages") < tokens("System prompt"), "{usage}");
    talk.prompt("continue");
    talk.result();
    let requests = bodies(&server);
    assert_eq!(requests.len(), 3);
    assert!(asked(&requests[1]).ends_with("The user adds: keep the names"), "{}", asked(&requests[1]));
    let messages = requests[2]["messages"].to_string();
    assert!(messages.contains("THE SUMMARY") && !messages.contains("the old words"), "{messages}");
}

#[test]
fn a_compaction_that_fails_is_an_error_and_changes_nothing() {
    let sandbox = trusted();
    let server = ScriptedServer::start(Script::by(|request: &Value, _| {
        let last = asked(request);
        if last.starts_with("Write a summary") { Reply::text("") } else { Reply::text("fine") }
    }));
    let mut talk = connected(&sandbox, &server, &json!({}));
    talk.prompt("the old words");
    talk.result();
    talk.prompt("/compact");
    let result = talk.result();
    assert!(result["errors"][0].as_str().unwrap().contains("could not be summarised"), "{result}");
    talk.prompt("continue");
    talk.result();
    assert!(bodies(&server).last().unwrap().to_string().contains("the old words"));
}

#[test]
fn a_compaction_can_be_interrupted_and_meanwhile_nobody_rewinds() {
    let sandbox = trusted();
    let server = ScriptedServer::start(Script::by(|request: &Value, _| {
        if asked(request).starts_with("Write a summary") {
            Reply::SlowFirstByte { ms: 20_000, reply: Box::new(Reply::text("late")) }
        } else {
            Reply::text("fine")
        }
    }));
    let mut talk = connected(&sandbox, &server, &json!({}));
    talk.prompt("the old words");
    talk.result();
    talk.prompt("/compact");
    talk.until(|line| line["status"] == "compacting");
    let rewound =
        talk.request(&json!({ "subtype": "rewind", "user_message_id": "x", "scope": "conversation" }));
    assert!(rewound["error"].as_str().unwrap().contains("turn"), "{rewound}");
    talk.request(&json!({ "subtype": "interrupt" }));
    let result = talk.result();
    assert_eq!(result["terminal_reason"], "aborted_streaming", "{result}");
    assert!(!sandbox.transcript_lines().iter().any(|line| line["subtype"] == "compact_boundary"));
    talk.prompt("continue");
    assert_eq!(talk.result()["result"], "fine");
    assert!(bodies(&server).last().unwrap().to_string().contains("the old words"));
}

#[test]
fn in_print_mode_the_output_is_the_answer() {
    let sandbox = trusted();
    let server = model(vec![]);
    let ran = turn(&sandbox, &server, &["/help"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.system("local_command_output")["content"], ran.result()["result"]);
    let mut text = sandbox.command_with(crate::commands::support::BINARY, &server);
    text.args(["-p", "/help"]);
    let shown = Sandbox::finish(text).stdout;
    assert!(String::from_utf8(shown).unwrap().contains("/clear: Begin a new conversation"));
}
