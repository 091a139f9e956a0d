//! Answers that cannot be read as they stand: behind a byte order mark, between words, too long, of another kind, or a page
//! of something that stands between. None of them passes for a hook that has no opinion.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;

use crate::hooks::support::{Stage, entry};

const DENY: &str = r#"{"decision":"block","reason":"the hook said no"}"#;

#[test]
fn an_answer_behind_a_byte_order_mark_counts() {
    let (made, ran) = Stage::command("PreToolUse", &format!("printf '\\xef\\xbb\\xbf%s' '{DENY}'")).bash();
    assert!(!made && ran.tool_results().contains("the hook said no"), "{ran:#?}");
}

#[test]
fn an_answer_between_words_is_a_failure() {
    let (made, ran) = Stage::command("PreToolUse", &format!("echo 'a profile greets'; echo '{DENY}'")).bash();
    assert!(!made && ran.stderr.contains("words stand beside its JSON"), "{ran:#?}");
    let (made, ran) = Stage::command("PreToolUse", "echo 'looked at it'; echo '{\"level\": 1}'").bash();
    assert!(made && ran.stderr.is_empty(), "words are no opinion: {ran:#?}");
}

#[test]
fn json_of_another_kind_is_a_failure() {
    for output in [format!("[{DENY}]"), "\"deny\"".to_owned()] {
        let (made, ran) = Stage::command("PreToolUse", &format!("echo '{output}'")).bash();
        assert!(!made && ran.stderr.contains("not an object"), "{ran:#?}");
    }
}

#[test]
fn an_answer_behind_more_words_than_are_kept_is_a_failure() {
    let flood = format!("head -c 3000000 /dev/zero | tr '\\0' ' '; echo '{DENY}'");
    let (made, ran) = Stage::command("PreToolUse", &flood).bash();
    assert!(!made && ran.stderr.contains("longer than a MiB"), "{ran:#?}");
}

/// Answers one request with this body.
fn serving(body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        // The event is one object, and nothing comes after it.
        while !request.ends_with(b"}") {
            let read = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..read]);
        }
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len())
            .unwrap();
        stream.write_all(body).unwrap();
    });
    format!("http://{address}/")
}

#[test]
fn a_page_in_place_of_an_answer_is_a_failure() {
    for body in [&b"<!DOCTYPE html><title>Sign in</title>"[..], b"\x1f\x8b\x08\x00\xff\xfe"] {
        let hook = json!({ "hooks": [{ "type": "http", "url": serving(body) }] });
        let (made, ran) = Stage::new(&json!({ "PreToolUse": [hook] })).bash();
        assert!(!made && ran.stderr.contains("neither JSON nor plain words"), "{ran:#?}");
    }
}

#[test]
fn a_file_of_a_plugin_without_hooks_in_it_is_named() {
    let stage = Stage::new(&json!({}));
    let plugin = stage.beside("guard");
    stage.sandbox.write(plugin.join(".qoder-plugin/plugin.json"), r#"{"name": "guard", "version": "1.0.0"}"#);
    let file = json!({ "PreToolUse": [entry("exit 2")] }).to_string();
    let file = stage.sandbox.write(plugin.join("hooks/hooks.json"), file);
    let folder = plugin.display().to_string();
    let ran = stage.run(&json!([{ "text": "done" }]), &["--plugin-dir", &folder]);
    assert!(ran.stderr.contains(&file.display().to_string()), "{}", ran.stderr);
    assert!(ran.stderr.contains("has no `hooks`"), "{}", ran.stderr);
}
