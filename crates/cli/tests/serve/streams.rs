//! Streams: from now on, or behind any event, without gap or repeat; pieces of replies; and their end.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Server, bash, confirm, id, kind, message, pending, toolset};

#[test]
fn a_stream_continues_behind_any_event() {
    let server = Server::replying(vec![bash("true"), Reply::text("done")]);
    let session = server.session(&json!([toolset(&[])]));
    server.ask(&session, "go");
    let all: Vec<String> = server.events(&session).iter().map(id).collect();
    for cut in 0..all.len() - 1 {
        let mut stream = server.stream(&session, Some(&all[cut]));
        for expected in &all[cut + 1..] {
            assert_eq!(&id(&stream.next().unwrap()), expected, "behind {cut}");
        }
    }
    // What comes afterwards follows without a seam.
    let mut stream = server.stream(&session, Some(&all[3]));
    server.send(&session, &json!([message("more")])).ok();
    stream.until_end_of_turn();
    stream.until_end_of_turn();
    let stored: Vec<String> = server.events(&session).iter().map(id).collect();
    assert_eq!(stream.ids(), stored[4..]);
}

#[test]
fn an_event_that_was_sent_is_a_place_to_continue_from() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    let sent = server.send(&session, &json!([message("go")])).ok();
    let mut stream = server.stream(&session, Some(sent["data"][0]["id"].as_str().unwrap()));
    stream.until_end_of_turn();
    assert_eq!(stream.kinds()[0], "session.status_running");
}

#[test]
fn an_unknown_event_is_not_found_and_nothing_is_skipped_silently() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    let path = format!("/v1/sessions/{session}/events/stream");
    let bearer = format!("Bearer {}", server.token);
    let long_ago = "evt_01800000000070008000000000000000";
    let never = "evt_ffffffffffff7fff8fffffffffffffff";
    for last in [long_ago, never, "evt_00000000000000000000000000000000", "nonsense", "evt_", "1"] {
        let refused = server.open_stream(&path, &[("authorization", &bearer), ("last-event-id", last)]);
        let Err(answer) = refused else { panic!("{last} was accepted") };
        answer.error(404);
    }
    for missing in ["sess_00000000000000000000000000000000", "sess_x", "x"] {
        let path = format!("/v1/sessions/{missing}/events/stream");
        let Err(answer) = server.open_stream(&path, &[("authorization", &bearer)]) else { panic!() };
        answer.error(404);
    }
}

#[test]
fn an_event_that_a_restored_database_has_lost_is_not_found() {
    let mut server = Server::replying(vec![Reply::text("one"), Reply::text("two")]);
    let session = server.session(&json!([]));
    let kept = server.ask(&session, "go");
    let copy = server.data().join("copy.db");
    assert!(server.operate(&["backup", copy.to_str().unwrap()]).status.success());
    // The copy is of a while ago: clocks of nodes may differ by 2 s.
    let aged = rusqlite::Connection::open(&copy).unwrap();
    aged.execute("UPDATE heads SET last_at = last_at - 10000000", []).unwrap();
    drop(aged);
    let lost = server.ask(&session, "more");
    assert!(server.stop().success());
    for name in ["server.db", "server.db-wal", "server.db-shm"] {
        drop(std::fs::remove_file(server.data().join(name)));
    }
    std::fs::rename(copy, server.data().join("server.db")).unwrap();
    server.start_again();
    let path = format!("/v1/sessions/{session}/events/stream");
    let bearer = format!("Bearer {}", server.token);
    let refused = server.open_stream(&path, &[("authorization", &bearer), ("last-event-id", &id(&lost))]);
    refused.err().expect("the client has to read again").error(404);
    let mut stream = server.stream(&session, Some(&id(&kept)));
    server.send(&session, &json!([message("more")])).ok();
    stream.until_end_of_turn();
}

#[test]
fn headers_tell_proxies_to_leave_a_stream_alone() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    for path in ["events/stream", "stream"] {
        let bearer = format!("Bearer {}", server.token);
        let path = format!("/api/v1/cloud/sessions/{session}/{path}");
        let headers = [("authorization", bearer.as_str()), ("accept", "application/json")];
        let stream = server.open_stream(&path, &headers).unwrap_or_else(|answer| panic!("{answer:?}"));
        let header =
            |name: &str| stream.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        assert!(header("content-type").unwrap().starts_with("text/event-stream"));
        assert_eq!(header("cache-control"), Some("no-store, no-transform"));
        assert_eq!(header("x-accel-buffering"), Some("no"));
        assert!(header("x-request-id").is_some());
    }
}

/// A model that writes in many pieces.
fn talkative() -> Server {
    Server::scripted(Script::by(|_, _| Reply::Deltas { count: 30, text: "word ".to_owned() }))
}

#[test]
fn pieces_come_before_their_event_and_add_up_to_it() {
    let server = talkative();
    let session = server.session(&json!([]));
    let mut stream = server.stream_with(&session, None, "?event_deltas%5B%5D=agent.message");
    let mut plain = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    stream.until_end_of_turn();
    plain.until_end_of_turn();
    assert!(!plain.kinds().iter().any(|kind| kind.starts_with("event_")), "only those who ask get pieces");
    let message = stream.seen.iter().find(|event| kind(event) == "agent.message").unwrap();
    let start = stream.seen.iter().position(|event| kind(event) == "event_start").unwrap();
    assert_eq!(stream.seen[start]["event"], json!({ "id": message["id"], "type": "agent.message" }));
    let pieces: Vec<&Value> = stream.seen.iter().filter(|event| kind(event) == "event_delta").collect();
    assert!(pieces.len() > 1, "{}", pieces.len());
    let text: String =
        pieces.iter().map(|piece| piece["delta"]["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(text, message["content"][0]["text"].as_str().unwrap());
    for piece in pieces {
        assert_eq!((&piece["event_id"], &piece["delta"]["index"]), (&message["id"], &json!(0)));
        assert_eq!(piece["delta"]["type"], "content_delta");
    }
    let listed = server.kinds(&session);
    assert!(!listed.iter().any(|kind| kind.starts_with("event_")), "pieces are not stored");
    // A client that saw pieces and lost its connection gets the whole event.
    let mut again = server.stream(&session, message["id"].as_str());
    assert_eq!(again.next().unwrap()["id"], message["id"]);
}

#[test]
fn an_id_that_was_announced_and_never_stored_means_what_was_stored_after_it() {
    let mut server = Server::scripted(Script::by(|_, number| match number {
        0 => Reply::StalledStream {
            after_events: 6,
            ms: 20_000,
            reply: Box::new(Reply::Deltas { count: 20, text: "word ".to_owned() }),
        },
        _ => Reply::text("whole"),
    }));
    let session = server.session(&json!([]));
    let mut stream = server.stream_with(&session, None, "?event_deltas[]=agent.message");
    server.send(&session, &json!([message("go")])).ok();
    let announced = stream.until("event_delta")["event_id"].as_str().unwrap().to_owned();
    let seen: Vec<String> = stream.seen.iter().filter(|event| event["id"].is_string()).map(id).collect();
    server.kill();
    server.start_again();
    let mut stream = server.stream(&session, Some(&announced));
    stream.until_end_of_turn();
    let stored: Vec<String> = server.events(&session).iter().map(id).collect();
    assert!(!stored.contains(&announced));
    assert_eq!(stream.ids(), stored[seen.len()..], "nothing that was stored meanwhile is skipped");
}

#[test]
fn unknown_kinds_of_pieces_are_refused() {
    let server = talkative();
    let session = server.session(&json!([]));
    let answer = server.get(&format!("/v1/sessions/{session}/events/stream?event_deltas[]=agent.tool_use"));
    answer.error(400);
}

#[test]
fn deleting_a_session_ends_its_streams() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    let deleted = server.delete(&format!("/v1/sessions/{session}")).ok();
    assert_eq!(deleted, json!({ "id": session, "type": "session_deleted" }));
    stream.until("session.deleted");
    assert!(stream.next().is_none() && stream.is_over);
    server.get(&format!("/v1/sessions/{session}")).error(404);
    server.get(&format!("/v1/sessions/{session}/events")).error(404);
    server.delete(&format!("/v1/sessions/{session}")).error(404);
    assert!(!server.workspace(&session).exists());
}

#[test]
fn revoking_a_token_ends_its_streams() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let session = server.session(&json!([]));
    let token = server.token(&["--user", "bob", "--tenant", "ana"]);
    let bearer = format!("Bearer {token}");
    let path = format!("/v1/sessions/{session}/events/stream");
    let mut stream = server
        .open_stream(&path, &[("authorization", &bearer)])
        .unwrap_or_else(|answer| panic!("{answer:?}"));
    let id = token.split('-').nth(1).unwrap();
    assert!(server.operate(&["token", "revoke", id]).status.success());
    assert!(stream.next().is_none(), "{:?}", stream.kinds());
    let refused = server.bare("GET", "/v1/agents", &[("authorization", &bearer)], b"");
    refused.error(401);
}

#[test]
fn a_stop_closes_streams_and_the_next_start_continues_them() {
    let mut server = Server::replying(vec![Reply::text("one"), Reply::text("two")]);
    let session = server.session(&json!([]));
    let idle = server.ask(&session, "go");
    let mut stream = server.stream(&session, None);
    assert!(server.stop().success());
    assert!(stream.next().is_none());
    server.start_again();
    let mut stream = server.stream(&session, Some(&id(&idle)));
    server.send(&session, &json!([message("more")])).ok();
    stream.until_end_of_turn();
}

#[test]
fn one_that_never_reads_delays_no_other() {
    let server = Server::scripted(Script::by(|_, _| Reply::text("long ".repeat(200_000))));
    let session = server.session(&json!([]));
    // Opened and never read: the kernel's buffers fill up.
    let lazy: Vec<_> = (0..5).map(|_| server.stream(&session, None)).collect();
    let mut stream = server.stream(&session, None);
    for _ in 0..4 {
        server.send(&session, &json!([message("go")])).ok();
        stream.until_end_of_turn();
    }
    drop(lazy);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn fifty_approvals_and_two_hundred_subscribers_at_once() {
    let write = Reply::tool("Write", json!({ "file_path": "a.txt", "content": "x" }));
    let server = Server::replying(vec![write, Reply::text("done")]);
    let agent = server.agent(&json!([toolset(&[("Write", "always_ask")])]));
    let body = json!({ "agent": agent, "environment_id": server.environment() });
    let sessions: Vec<String> = (0..50).map(|_| id(&server.post("/v1/sessions", &body).ok())).collect();
    let mut streams: Vec<_> = sessions
        .iter()
        .map(|session| (0..4).map(|_| server.stream(session, None)).collect::<Vec<_>>())
        .collect();
    for session in &sessions {
        server.send(session, &json!([message("go")])).ok();
    }
    for (session, streams) in sessions.iter().zip(&mut streams) {
        let asked = pending(&streams[0].until("session.status_idle"));
        server.send(session, &json!([confirm(&asked[0], "allow")])).ok();
    }
    for (session, streams) in sessions.iter().zip(&mut streams) {
        streams[0].until_end_of_turn();
        let stored: Vec<String> = server.events(session).iter().map(id).collect();
        assert!(server.workspace(session).join("a.txt").exists());
        streams[1..].iter_mut().for_each(|stream| drop(stream.until_end_of_turn()));
        for stream in streams {
            assert_eq!(stream.ids(), stored, "every subscriber sees every event in the same order");
        }
    }
}
