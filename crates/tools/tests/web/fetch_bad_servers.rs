//! WebFetch against servers that hang, lie, close early or never stop: a result in bounded time and memory.

use std::time::Duration;

use crate::common::server::{Then, serve_raw};
use crate::common::{Bench, cancellable, text};
use qoder_tools::PrivateHosts;
use qoder_types::CallOutcome;
use serde_json::{Value, json};

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.settings.private_hosts = PrivateHosts::from_patterns(vec!["127.0.0.1".to_owned()]);
    bench
}

async fn input(answer: &[u8], then: Then) -> Value {
    let address = serve_raw(answer.to_vec(), then).await;
    json!({ "url": format!("http://{address}/"), "prompt": "x" })
}

#[tokio::test]
async fn broken_answers_are_errors_that_name_the_problem() {
    let bench = bench();
    for (answer, then) in [
        (&b""[..], Then::Close),
        (b"this is no HTTP\r\n\r\n", Then::Close),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", Then::Close),
        (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", Then::Close),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", Then::Close),
        (b"HTTP/1.1 200 OK\r\nx: ", Then::Repeat(b'x')),
    ] {
        let text = bench.fail("WebFetch", input(answer, then).await).await;
        assert!(text.contains("The request to 127.0.0.1 failed"), "{answer:?}: {text}");
    }
}

#[tokio::test]
async fn too_much_is_not_read() {
    let bench = bench();
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n",
    ] {
        let text = bench.fail("WebFetch", input(answer, Then::Repeat(b'a')).await).await;
        assert!(text.contains("larger than 10485760 bytes"), "{text}");
    }
}

#[tokio::test]
async fn a_packed_answer_that_was_not_asked_for_is_refused() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b";
    let text = bench().fail("WebFetch", input(answer, Then::Close).await).await;
    assert!(text.contains("packed as `gzip`"), "{text}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_when_the_call_is_cancelled() {
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
        let (cancel, cancelled) = cancellable();
        let bench = bench();
        let input = input(answer, Then::Hang).await;
        let call = bench.run_until("WebFetch", input, cancelled);
        let stop = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.send(()).unwrap();
        };
        let (outcome, ()) = tokio::join!(call, stop);
        assert_eq!(outcome.outcome, CallOutcome::Interrupted, "{}", text(&outcome));
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up_after_the_time_limit() {
    let mut bench = bench();
    bench.settings.web_timeout_ms = 100;
    let text = bench.fail("WebFetch", input(b"", Then::Hang).await).await;
    assert!(text.contains("did not answer completely within"), "{text}");
}

#[tokio::test]
async fn nobody_listening_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = bench().fail("WebFetch", json!({ "url": format!("http://{address}/"), "prompt": "x" })).await;
    assert!(text.contains("failed") && text.contains("refused"), "{text}");
}
