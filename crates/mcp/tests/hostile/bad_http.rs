//! Web servers that redirect elsewhere, answer with something else or too much, forget sessions, or break off.

use std::sync::atomic::{AtomicUsize, Ordering};

use qoder_mcp::PeerError;
use serde_json::json;

use crate::hostile::support::{Tested, described, http, sse, until};
use crate::hostile::web::{Reply, Seen, Web};
use qoder_types::server::Transport;

async fn problem(web: &Web) -> String {
    match Tested::plain(&http(&web.url())).connect().await.unwrap_err() {
        PeerError::Failed(text) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = Web::start(Reply::usual).await;
    let target = other.url();
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("Location: {target}\r\n");
        let web = Web::start(move |_: &Seen| Reply::new(status, &location, "")).await;
        let mut server = http(&web.url());
        if let Transport::Http { headers, .. } = &mut server.config.transport {
            headers.insert("Authorization".to_owned(), "Bearer secret".to_owned());
        }
        let refused = Tested::plain(&server).connect().await.unwrap_err();
        assert!(refused.to_string().contains("redirects to another host"), "{refused}");
        assert!(
            refused.to_string().contains(&other.port.to_string()) && !refused.to_string().contains("secret")
        );
    }
    assert!(other.seen().is_empty(), "nothing may arrive there");
}

#[tokio::test]
async fn a_redirect_on_the_same_origin_is_followed_when_the_message_survives() {
    let web = Web::start(|seen: &Seen| {
        if seen.path == "/mcp" {
            Reply::new("307 Temporary Redirect", "Location: /mcp/\r\n", "")
        } else {
            Reply::usual(seen)
        }
    })
    .await;
    Tested::plain(&http(&web.url())).connect().await.unwrap();
    let web = Web::start(|_: &Seen| Reply::new("302 Found", "Location: /elsewhere\r\n", "")).await;
    let problem = problem(&web).await;
    assert!(problem.contains("would lose the message"), "{problem}");
    let web = Web::start(|_: &Seen| Reply::new("307 Temporary Redirect", "Location: /mcp\r\n", "")).await;
    let refused = Tested::plain(&http(&web.url())).connect().await.unwrap_err();
    assert!(refused.to_string().contains("more than 5 times"), "{refused}");
}

#[tokio::test]
async fn what_is_no_message_is_named() {
    let web = Web::start(|_: &Seen| Reply::new("200 OK", "Content-Type: text/html\r\n", "<html>")).await;
    assert!(problem(&web).await.contains("it is text/html"));
    let web = Web::start(|_: &Seen| Reply::new("200 OK", "Content-Type: application/json\r\n", "{}")).await;
    assert!(problem(&web).await.contains("cannot be read"));
    let web = Web::start(|_: &Seen| Reply::new("500 Internal Server Error", "", "out of order\n")).await;
    assert_eq!(problem(&web).await, "the server answered with HTTP 500: out of order");
    let web = Web::start(|_: &Seen| Reply::new("404 Not Found", "", "")).await;
    assert_eq!(problem(&web).await, "the server answered with HTTP 404");
    let web = Web::start(|_: &Seen| Reply::new("403 Forbidden", "", "no")).await;
    assert_eq!(problem(&web).await, "the server answered with HTTP 403: no");
}

#[tokio::test]
async fn answers_and_events_are_bounded() {
    for in_events in [false, true] {
        let web = Web::start(move |seen: &Seen| match (seen.asks(), in_events) {
            ("tools/call", false) => {
                let text = "x".repeat(9 * 1024 * 1024);
                Reply::result(seen, &json!({ "content": [{ "type": "text", "text": text }] }))
            }
            ("tools/call", true) => Reply::events(&format!("data: {}\n\n", "x".repeat(9 * 1024 * 1024))),
            _ => Reply::usual(seen),
        })
        .await;
        let tested = Tested::plain(&http(&web.url()));
        tested.connect().await.unwrap();
        let refused = tested.call("echo", json!({})).await.unwrap_err();
        assert!(refused.to_string().contains("more than 8 MiB"), "{refused}");
        if in_events {
            assert!(tested.closed().await.contains("more than 8 MiB"));
        }
    }
}

#[tokio::test]
async fn a_forgotten_session_is_begun_anew() {
    let count = AtomicUsize::new(0);
    let web = Web::start(move |seen: &Seen| match (seen.asks(), seen.header("mcp-session-id")) {
        ("initialize", _) => {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let reply = Reply::usual(seen);
            let text = String::from_utf8(reply.bytes).unwrap();
            let session = format!("HTTP/1.1 200 OK\r\nMcp-Session-Id: s{number}\r\n");
            Reply { bytes: text.replacen("HTTP/1.1 200 OK\r\n", &session, 1).into_bytes(), stay: false }
        }
        ("tools/call", Some("s0")) => Reply::new("404 Not Found", "", ""),
        _ => Reply::usual(seen),
    })
    .await;
    let tested = Tested::plain(&http(&web.url()));
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({})).await, "said");
    tested.close().await;
    let last = web.seen().pop().unwrap();
    assert_eq!((last.method.as_str(), last.header("mcp-session-id")), ("DELETE", Some("s1")));
    let versions = web.seen();
    let call = versions.iter().find(|seen| seen.asks() == "tools/call").unwrap();
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-06-18"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_taken_up_again() {
    let web = Web::start(|seen: &Seen| match (seen.method.as_str(), seen.asks()) {
        ("POST", "tools/call") => {
            let mut reply = Reply::events("id: 7\nretry: 10\ndata: \n\n");
            reply.stay = false;
            reply
        }
        ("GET", _) if seen.header("last-event-id") == Some("7") => {
            let result = json!({ "content": [{ "type": "text", "text": "resumed" }] });
            // The handshake is 0, the list 1, the call 2.
            let message = json!({ "jsonrpc": "2.0", "id": 2, "result": result });
            Reply::events(&format!("id: 8\ndata: {message}\n\n"))
        }
        _ => Reply::usual(seen),
    })
    .await;
    let tested = Tested::plain(&http(&web.url()));
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({})).await, "resumed");
}

#[tokio::test]
async fn a_stream_of_events_must_not_send_us_elsewhere() {
    let other = Web::start(Reply::usual).await;
    let elsewhere = format!("event: endpoint\ndata: {}\n\n", other.url());
    let web = Web::start(move |_: &Seen| Reply::events(&elsewhere)).await;
    let refused = Tested::plain(&sse(&web.url())).connect().await.unwrap_err();
    assert!(refused.to_string().contains("another host"), "{refused}");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_stream_of_events_that_ends_ends_the_connection() {
    let web = Web::start(|seen: &Seen| {
        if seen.method == "GET" {
            let message = json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": "2024-11-05",
                "capabilities": {}, "serverInfo": { "name": "n", "version": "1" } } });
            let mut reply = Reply::events(&format!("event: endpoint\ndata: /post\n\ndata: {message}\n\n"));
            reply.stay = false;
            reply
        } else {
            Reply::new("202 Accepted", "", "")
        }
    })
    .await;
    let tested = Tested::plain(&sse(&web.url()));
    // The answer is there before the question: the handshake may come about, and then the end is reported.
    if tested.connect().await.is_ok() {
        assert_eq!(tested.closed().await, "the server ended its stream");
    }
    assert!(web.seen().iter().any(|seen| seen.path == "/post"));
}

#[tokio::test]
async fn addresses_and_headers_are_checked() {
    for (url, part) in [
        ("ftp://a.test/", "must begin with http"),
        ("no address", "cannot be read"),
        ("http://user:secret@a.test/", "must not hold credentials"),
    ] {
        let refused = Tested::plain(&http(url)).connect().await.unwrap_err().to_string();
        assert!(refused.contains(part) && !refused.contains("secret"), "{refused}");
    }
    let headers = [("Accept".to_owned(), "x".to_owned())].into();
    let server = described(Transport::Http { url: "http://127.0.0.1:1/".to_owned(), headers });
    let refused = Tested::plain(&server).connect().await.unwrap_err();
    assert!(refused.to_string().contains("belongs to the protocol"), "{refused}");
}

#[tokio::test]
async fn configured_headers_are_sent_with_every_request() {
    let web = Web::start(Reply::usual).await;
    let headers = [("X-Key".to_owned(), "k".to_owned())].into();
    let tested = Tested::plain(&described(Transport::Http { url: web.url(), headers }));
    tested.connect().await.unwrap();
    tested.said("echo", json!({})).await;
    until(|| web.seen().iter().any(|seen| seen.asks() == "tools/call")).await;
    assert!(web.seen().iter().all(|seen| seen.header("x-key") == Some("k")));
}
