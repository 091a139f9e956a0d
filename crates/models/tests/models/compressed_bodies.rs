//! Bodies that were compressed although no request asked for it: streams, documents and errors, cut at any byte.

use std::io::Write;

use qoder_types::{ContentBlock, ModelFailureClass};

use crate::support::{Server, Step, anthropic_text, ask_once, stream_text};

fn packed(encoding: &str, text: &str) -> Vec<u8> {
    let level = flate2::Compression::default();
    match encoding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        "raw" => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        }
        _ => text.as_bytes().to_vec(),
    }
}

fn answer(code: u16, encoding: &str, kind: &str, body: &[u8], step: usize) -> Vec<Step> {
    let encoding =
        if encoding.is_empty() { String::new() } else { format!("content-encoding: {encoding}\r\n") };
    let head = format!(
        "HTTP/1.1 {code} X\r\ncontent-type: {kind}\r\n{encoding}content-length: {}\r\n\r\n",
        body.len()
    );
    let mut steps = vec![Step::Send(head.into_bytes())];
    steps.extend(body.chunks(step).map(|piece| Step::Send(piece.to_vec())));
    steps
}

#[tokio::test]
async fn compressed_streams_are_unpacked_however_they_are_cut() {
    let text = stream_text(&anthropic_text("unpacked"));
    for (header, how) in
        [("gzip", "gzip"), ("", "gzip"), ("deflate", "deflate"), ("deflate", "raw"), ("gzip", "plain")]
    {
        for step in [1, 7, 4096] {
            let body = packed(how, &text);
            let server = Server::start(vec![answer(200, header, "text/event-stream", &body, step)]).await;
            let told = ask_once(&server.options()).await;
            assert_eq!(told.reply().content, [ContentBlock::text("unpacked")], "{header} {how} {step}");
            assert!(told.retries.is_empty());
        }
    }
}

#[tokio::test]
async fn compressed_errors_keep_their_words() {
    let body = packed("gzip", r#"{"error":{"message":"no such thing","type":"not_found_error"}}"#);
    let server = Server::start(vec![answer(404, "gzip", "application/json", &body, 100)]).await;
    let told = ask_once(&server.options()).await;
    assert_eq!(told.failure().class, ModelFailureClass::NotFound);
    assert!(told.failure().message.contains("no such thing"), "{}", told.failure().message);
}

#[tokio::test]
async fn damaged_and_unknown_encodings_are_failures_in_words() {
    let mut damaged = packed("gzip", &stream_text(&anthropic_text("x")));
    let middle = damaged.len() / 2;
    damaged.truncate(middle);
    for (encoding, body) in [("gzip", damaged), ("zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0])] {
        let server = Server::start(vec![answer(200, encoding, "text/event-stream", &body, 100)]).await;
        let mut options = server.options();
        options.max_attempts = 1;
        let told = ask_once(&options).await;
        assert_eq!(told.failure().class, ModelFailureClass::MalformedStream, "{encoding}");
        assert!(!told.failure().message.is_empty());
    }
}

#[tokio::test]
async fn brotli_is_unpacked() {
    // An error document of nine bytes as Node's zlib packs it: `data: x` and two line ends.
    let body = [11, 4, 128, 100, 97, 116, 97, 58, 32, 120, 10, 10, 3];
    let server = Server::start(vec![answer(400, "br", "text/plain", &body, 3)]).await;
    let told = ask_once(&server.options()).await;
    assert!(told.failure().message.contains("data: x"), "{}", told.failure().message);
}
