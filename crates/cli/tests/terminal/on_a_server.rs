//! `qodercli attach URL`: a session on a server, in the terminal.

use qoder_testkit::{Reply, Script};
use serde_json::json;

use super::support::{CTRL_D, ENTER, FOCUS_QUESTION, Screen, Start};
use crate::serve::support::{Server, bash, confirm, message, pending, toolset};

fn asking(replies: Vec<Reply>) -> (Server, String) {
    let server = Server::replying(replies);
    let session = server.session(&json!([toolset(&[("Bash", "always_ask")])]));
    (server, session)
}

fn attach(server: &Server, session: &str) -> Screen {
    let address = format!("http://{}/v1/sessions/{session}", server.address());
    let start = Start::new(&server.sandbox).variable("QODER_ACCESS_TOKEN", &server.token);
    start.arguments(&["attach", &address]).run()
}

#[test]
fn a_session_is_read_answered_and_continued() {
    let (server, session) =
        asking(vec![bash("echo it ran > out.txt"), Reply::text("all done"), Reply::text("second answer")]);
    server.ask(&session, "please");
    let mut screen = attach(&server, &session);
    screen.until("This session runs on a server").until("> please").until("Bash needs permission");
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("y").until("all done").until_idle();
    assert!(!screen.text().contains("was answered by"), "{}", screen.text());
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "it ran\n");
    screen.send("more").send(ENTER).until("second answer").until_idle();
    assert_eq!(screen.text().matches("> more").count(), 1, "{}", screen.text());
    screen.send(CTRL_D);
    assert!(screen.end().success());
    screen.until_seen("continues on its server");
}

#[test]
fn an_answer_of_another_client_is_reported_and_a_denial_carries_its_words() {
    let (server, session) = asking(vec![bash("touch a"), bash("touch b"), Reply::text("all done")]);
    let mut screen = attach(&server, &session);
    screen.until("This session runs on a server").send("go").send(ENTER).until("Bash needs permission");
    let first = server.events(&session);
    let idle = first.iter().rfind(|event| event["type"] == "session.status_idle").unwrap();
    server.send(&session, &json!([confirm(&pending(idle)[0], "allow")])).ok();
    screen.until("answered by another client of the server").until("touch b");
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("5").until("Say what to do instead");
    screen.send("not that").send(ENTER).until("all done").until_idle();
    let denial = server.events(&session).into_iter().find(|event| event["deny_message"].is_string());
    assert_eq!(denial.unwrap()["deny_message"], "not that");
    assert!(server.workspace(&session).join("a").exists() && !server.workspace(&session).join("b").exists());
}

#[test]
fn a_running_turn_is_stopped_and_a_message_meanwhile_waits_for_its_turn() {
    let server = Server::scripted(Script::by(|_, number| match number {
        0 => Reply::StalledStream {
            after_events: 6,
            ms: 600_000,
            reply: Box::new(Reply::Deltas { count: 20, text: "word ".to_owned() }),
        },
        _ => Reply::text("next answer"),
    }));
    let session = server.session(&json!([]));
    let mut screen = attach(&server, &session);
    screen.until("This session runs on a server").send("go").send(ENTER).until("word word");
    screen.send("and then").send(ENTER).until("queued");
    screen.send("\u{1b}").until("interrupted").until("next answer").until_idle();
    assert_eq!(screen.text().matches("> and then").count(), 1, "{}", screen.text());
}

#[test]
fn the_front_outlives_a_crash_of_the_server() {
    let mut server = Server::with(
        Some(Script::by_assistant_count(vec![bash("echo 1 >> out.txt"), Reply::text("all done")])),
        &[],
        &[],
    );
    let session = server.session(&json!([toolset(&[("Bash", "always_ask")])]));
    server.ask(&session, "please");
    let mut screen = attach(&server, &session);
    screen.until("Bash needs permission");
    server.kill();
    screen.until("trying again");
    server.start_at_the_same_address();
    screen.until("reached again").send(FOCUS_QUESTION).until("Enter chooses").send("y");
    screen.until("all done").until_idle();
    assert_eq!(screen.text().matches("> please").count(), 1, "{}", screen.text());
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("out.txt")).unwrap(), "1\n");
}

#[test]
fn what_cannot_be_attached_to_is_said() {
    let (server, session) = asking(vec![Reply::text("hi")]);
    let attempt = |address: &str, token: &str| {
        let start = Start::new(&server.sandbox).variable("QODER_ACCESS_TOKEN", token);
        let mut screen = start.arguments(&["attach", address]).size(120, 24).run();
        assert!(!screen.end().success());
        screen.text()
    };
    let address = format!("http://{}/v1/sessions/{session}", server.address());
    for (address, token, said) in [
        (address.as_str(), "pt-wrong", "check the token in QODER_ACCESS_TOKEN"),
        (address.as_str(), "", "there is no token for the server"),
        (
            &address.replace(&session, "sess_00000000000070008000000000000000"),
            &server.token,
            "the server refused (404)",
        ),
        ("http://127.0.0.1:1/v1/sessions/sess_1", &server.token, "the server cannot be reached"),
        ("http://127.0.0.1:1/v1/agents", &server.token, "does not name a session"),
    ] {
        let text = attempt(address, token);
        assert!(text.contains(said), "{address}: {text}");
    }
}

#[test]
fn what_the_server_deletes_ends_the_front() {
    let (server, session) = asking(vec![Reply::text("hi there")]);
    server.ask(&session, "hello");
    let mut screen = attach(&server, &session);
    screen.until("hi there").until_idle();
    server.delete(&format!("/v1/sessions/{session}")).ok();
    assert_eq!(screen.end().exit_code(), 55);
    screen.until_seen("the session was deleted");
    assert!(server.send(&session, &json!([message("again")])).status == 404);
}

#[test]
fn what_the_server_refuses_returns_to_the_prompt() {
    let (server, session) = asking(vec![Reply::text("hi there")]);
    let mut screen = attach(&server, &session);
    screen
        .until("This session runs on a server")
        .send("!ls")
        .send(ENTER)
        .until("this is not possible for a session");
    // No turn runs for it.
    screen.until_prompt("!ls").until_idle().send("\u{15}hello").send(ENTER).until("hi there").until_idle();
}
