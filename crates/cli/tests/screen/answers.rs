//! What a model writes, what its calls are, what tools and endpoints answer.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::screen::support::{HOSTILE, assert_escaped, assert_tame, hostile, shown_with};

fn server(replies: Vec<Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::by_assistant_count(replies))
}

#[test]
fn an_answer_is_escaped_whatever_piece_it_is_cut_at() {
    // Every sequence in pieces of one character each, twenty times the same.
    for sequence in HOSTILE.iter().flat_map(|sequence| sequence.chars()) {
        let sandbox = Sandbox::new();
        let pieces = server(vec![Reply::Deltas { count: 20, text: format!("{sequence}[41m]52;c;x") }]);
        let shown = shown_with(&sandbox, &pieces, &["-p", "hello"]);
        assert_tame(&shown, &format!("{sequence:?}"));
        let escaped = sequence.escape_unicode().to_string();
        let visible =
            if sequence.is_ascii_graphic() || sequence == ' ' { sequence.to_string() } else { escaped };
        assert_eq!(shown.matches(&format!("{visible}[41m]52;c;x")).count(), 20, "{sequence:?}: {shown:?}");
    }
}

#[test]
fn an_answer_keeps_its_lines_tabs_letters_and_pictures() {
    let sandbox = Sandbox::new();
    let answer = "grüße\n\t世界 👩\u{200d}💻 done";
    let shown = shown_with(&sandbox, &server(vec![Reply::text(answer)]), &["-p", "hello"]);
    assert!(shown.replace("\r\n", "\n").contains(answer), "{shown:?}");
}

#[test]
fn calls_and_their_failures_are_escaped() {
    let sandbox = Sandbox::new();
    let hostile = hostile();
    let calls = vec![
        Reply::tool("Bash", json!({ "command": format!("printf '%s' '{hostile}'; false") })),
        Reply::tool("Read", json!({ "file_path": hostile })),
        Reply::tool(&hostile, json!({ "command": hostile })),
        Reply::text(&hostile),
    ];
    for more in [&["--yolo", "--verbose", "--debug"][..], &["--yolo"], &[]] {
        let shown = shown_with(&sandbox, &server(calls.clone()), &[&["-p", "hello"], more].concat());
        assert_escaped(&shown, &format!("{more:?}"));
    }
}

#[test]
fn errors_of_endpoints_are_escaped_also_where_they_are_piped() {
    for status in [400, 401, 404, 429, 500] {
        let error = json!({ "type": "error", "error": { "type": "x", "message": hostile() } }).to_string();
        for body in [error, hostile()] {
            let refusal = move || Reply::HttpError { status, headers: Vec::new(), body: body.clone() };
            let sandbox = Sandbox::new();
            let server = ScriptedServer::start(Script::by(move |_, _| refusal()));
            assert_tame(&shown_with(&sandbox, &server, &["-p", "hello"]), &format!("{status}"));
            let mut command = sandbox.command_with(crate::screen::support::BINARY, &server);
            command.env("QODER_RETRY_BASE_MS", "1").args(["-p", "hello"]);
            let piped = Sandbox::finish(command);
            let text = String::from_utf8(piped.stderr).unwrap();
            assert_tame(&text, &format!("{status}"));
        }
    }
}
