//! Two fronts of one session: `qodercli attach`, and what is offered for a session that another process drives.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{CTRL_D, DOWN, ENTER, FOCUS_QUESTION, Screen, Start, session_id};

fn wants_to_touch() -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "touch made" })),
        Reply::text("all done"),
        Reply::text("second answer"),
    ]))
}

/// A session with an open question, and a second terminal that is attached to it.
fn two_fronts(sandbox: &Sandbox, server: &ScriptedServer) -> (Screen, Screen) {
    let mut first = Start::new(sandbox).with(server).arguments(&["please"]).run();
    first.until("Bash needs permission");
    let id = session_id(sandbox);
    let mut second = Start::new(sandbox).with(server).arguments(&["attach", &id[..8]]).run();
    second.until("Another process drives this session").until("> please").until("Bash needs permission");
    (first, second)
}

#[test]
fn the_first_answer_counts_and_the_other_front_says_so() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let (mut first, mut second) = two_fronts(&sandbox, &server);
    second.send(FOCUS_QUESTION).until("Enter chooses").send("y");
    first.until("The question was answered by ana on another terminal").until("all done").until_idle();
    second.until("all done").until_idle();
    assert!(!second.text().contains("was answered by"), "{}", second.text());
    assert!(sandbox.project().join("made").exists());
    let answers = sandbox.transcript_lines().into_iter().filter(|line| line["type"] == "permission-answer");
    assert_eq!(answers.count(), 1);
}

#[test]
fn the_other_front_also_says_when_the_driving_one_answered() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let (mut first, mut second) = two_fronts(&sandbox, &server);
    first.send(FOCUS_QUESTION).until("Enter chooses").send("n").until("all done").until_idle();
    second.until("The question was answered by ana on the terminal: denied.").until("all done").until_idle();
    assert!(!first.text().contains("was answered by"), "{}", first.text());
    // A model that is chosen here is shown here at once.
    second
        .send("/model other")
        .send(ENTER)
        .until("other answers from the next call on")
        .until("other · default");
}

#[test]
fn messages_requests_and_interrupts_reach_the_process_that_drives() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let (mut first, mut second) = two_fronts(&sandbox, &server);
    first.send(FOCUS_QUESTION).until("Enter chooses").send("n").until("all done").until_idle();
    second.until("all done").until_idle().send("more").send(ENTER).until("second answer").until_idle();
    first.until("> more").until("second answer").until_idle();
    second.send("!echo $((6 * 7))").send(ENTER).until("42");
    first.until("42");
    second.send("/permissions").send(ENTER).until("Permissions").send("\u{1b}").until_gone("Permissions");
    first.send("!sleep 60").send(ENTER).until("Esc stops");
    second.until("Esc stops").send("\u{1b}").until("interrupted");
    first.until("interrupted").until_idle();
}

#[test]
fn leaving_one_front_leaves_the_session_alone_and_the_end_of_the_driver_ends_the_other() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let (mut first, mut second) = two_fronts(&sandbox, &server);
    let id = session_id(&sandbox);
    second.send(CTRL_D);
    assert!(second.end().success());
    second.until_seen(&format!("qodercli attach {id}"));
    first
        .until("Bash needs permission")
        .send(FOCUS_QUESTION)
        .until("Enter chooses")
        .send("y")
        .until("all done");
    let mut third = Start::new(&sandbox).with(&server).arguments(&["attach", &id]).run();
    third.until("all done").until_idle();
    first.until_idle().send(CTRL_D);
    assert!(first.end().success());
    assert!(third.end().success());
    third.until_seen("The process that drove the session has ended.");
    third.until_seen(&format!("qodercli --resume {id}"));
}

#[test]
fn a_session_that_is_deleted_under_a_front_is_said() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let (mut first, mut second) = two_fronts(&sandbox, &server);
    std::fs::remove_file(&sandbox.session_files()[0]).unwrap();
    assert_eq!(second.end().exit_code(), 55);
    second.until_seen("the session was deleted");
    // The process that drives it cannot keep what follows, and runs nothing more.
    first.send(FOCUS_QUESTION).until("Enter chooses").send("y");
    assert_eq!(first.end().exit_code(), 55);
    first.until_seen("the file was deleted");
    assert!(!first.text().contains("--resume"), "{}", first.text());
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn a_session_that_another_process_drives_is_offered() {
    let sandbox = Sandbox::new();
    let server = wants_to_touch();
    let mut first = Start::new(&sandbox).with(&server).arguments(&["please"]).run();
    first.until("Bash needs permission");
    let id = session_id(&sandbox);
    let mut second = Start::new(&sandbox).with(&server).arguments(&["--resume", &id]).run();
    second.until("Attach to it").until("Work on a copy of it").send(ENTER);
    second.until("Another process drives this session").until("Bash needs permission").send(CTRL_D);
    assert!(second.end().success());

    let mut copy = Start::new(&sandbox).with(&server).arguments(&["--resume", &id]).run();
    copy.until("Attach to it").send(DOWN).send(ENTER).until("> please");
    assert_eq!(sandbox.session_files().len(), 2);

    let mut gone = Start::new(&sandbox).with(&server).arguments(&["--resume", &id]).run();
    gone.until("Attach to it").send("\u{1b}");
    assert_eq!(gone.end().exit_code(), 55);
}

#[test]
fn a_session_that_no_process_drives_cannot_be_attached_to() {
    let sandbox = Sandbox::new();
    sandbox.run(super::support::BINARY, &["-p", "help"]);
    let id = session_id(&sandbox);
    let mut screen = Start::new(&sandbox).arguments(&["attach", &id]).run();
    assert_eq!(screen.end().exit_code(), 55);
    screen.until_seen("no process drives session").until_seen("--resume");
    let output = sandbox.run(super::support::BINARY, &["attach", &id]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("`attach` needs a terminal"));
}

#[test]
fn a_question_of_an_agent_is_answered_from_the_other_front() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by(|request, _| {
        let text = request["messages"].to_string();
        let is_agent = !text.contains("delegate this");
        match (is_agent, qoder_testkit::assistant_count(request)) {
            (false, 0) => Reply::tool(
                "Agent",
                json!({ "description": "look", "prompt": "do it", "subagent_type": "general-purpose" }),
            ),
            (true, 0) => Reply::tool("Bash", json!({ "command": "touch made" })),
            (true, _) => Reply::text("the agent is done"),
            (false, _) => Reply::text("all done"),
        }
    }));
    let mut first = Start::new(&sandbox).with(&server).arguments(&["delegate this"]).run();
    first.until("Agent needs permission").send(FOCUS_QUESTION).until("Enter chooses").send("y");
    first.until("Bash needs permission").until("asked by agent");
    let id = session_id(&sandbox);
    let mut second = Start::new(&sandbox).with(&server).arguments(&["attach", &id]).size(100, 50).run();
    second.until("Bash needs permission").until("asked by agent").until("Agent general-purpose: look");
    second.send(FOCUS_QUESTION).until("Enter chooses").send("y").until("all done");
    first.until("The question was answered by ana on another terminal").until("all done");
    assert!(sandbox.project().join("made").exists());
}
