//! Faults on demand: errors with headers, pages that are no API, broken JSON,
//! streams that break, stall or start late, and streams with very many
//! pieces.

use std::time::{Duration, Instant};

use crate::client::{exchange, post};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

fn serve(reply: Reply) -> ScriptedServer {
    ScriptedServer::start(Script::list(vec![reply]))
}

#[test]
fn an_error_has_its_status_headers_and_body() {
    let server = serve(Reply::HttpError {
        status: 429,
        headers: vec![("retry-after".to_owned(), "7".to_owned())],
        body: r#"{"error":{"message":"slow down"}}"#.to_owned(),
    });
    let answer = post(&server, "/v1/messages", &json!({ "stream": true }));
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: 7"));
    assert!(answer.body.contains("slow down"));
}

#[test]
fn a_page_is_served_as_a_page() {
    let server = serve(Reply::Html("<html>log in</html>".to_owned()));
    let answer = post(&server, "/v1/messages", &json!({ "stream": true }));
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("text/html"));
    assert_eq!(answer.body, "<html>log in</html>");
}

#[test]
fn a_malformed_stream_holds_no_json() {
    let server = serve(Reply::Malformed);
    let answer = post(&server, "/v1/messages", &json!({ "stream": true }));
    let data = answer.body.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(data).is_err());
}

#[test]
fn a_cut_stream_ends_without_its_end() {
    let server = serve(Reply::CutStream { after_events: 4, reply: Box::new(Reply::text("never whole")) });
    let answer = post(&server, "/v1/messages", &json!({ "stream": true }));
    assert!(!answer.complete);
    assert_eq!(answer.events().len(), 4);
}

#[test]
fn a_late_and_a_stalled_stream_still_arrive() {
    for reply in [
        Reply::SlowFirstByte { ms: 30, reply: Box::new(Reply::text("late")) },
        Reply::StalledStream { after_events: 2, ms: 30, reply: Box::new(Reply::text("late")) },
    ] {
        let server = serve(reply);
        let answer = post(&server, "/v1/messages", &json!({ "stream": true }));
        assert!(answer.complete && answer.body.contains("message_stop"));
        let request = &server.requests()[0];
        assert!(request.answered.duration_since(request.at) >= Duration::from_millis(30));
    }
}

#[test]
fn stopping_does_not_wait_for_a_late_answer() {
    let server = serve(Reply::SlowFirstByte { ms: 3_600_000, reply: Box::new(Reply::text("never")) });
    let address = server.base_url().replace("http://", "");
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    let request = "POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    std::io::Write::write_all(&mut connection, request.as_bytes()).unwrap();
    let guard = Instant::now();
    while server.requests().is_empty() {
        assert!(guard.elapsed() < Duration::from_secs(60), "the request never arrived");
        std::thread::yield_now();
    }
    drop(server);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut connection, &mut rest).ok();
    assert_eq!(rest, b"", "a stopped server answers nothing more");
}

#[test]
fn many_pieces_arrive_one_by_one() {
    let server = serve(Reply::Deltas { count: 20_000, text: "x".to_owned() });
    for path in ["/v1/messages", "/v1/chat/completions", "/v1/responses"] {
        let answer = post(&server, path, &json!({ "stream": true }));
        assert!(answer.complete);
        assert!(answer.events().len() > 20_000, "{path}");
    }
}

#[test]
fn a_body_in_chunks_is_joined() {
    let server = serve(Reply::text("ok"));
    let head = "POST /v1/messages HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = exchange(&server, &format!("{head}9\r\n{{\"model\":\r\n4\r\n\"m\"}}\r\n0\r\n\r\n"));
    assert_eq!(answer.status, 200);
    assert_eq!(server.requests()[0].json(), json!({ "model": "m" }));
}
