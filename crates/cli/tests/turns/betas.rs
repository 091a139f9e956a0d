//! Beta features of a provider (`--betas`): a header of the Anthropic protocol, beside those that the settings name, and
//! nothing anywhere else.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Wire, command, run};

#[test]
fn they_are_a_header_of_anthropic_requests_alone() {
    for (wire, expected) in
        [(Wire::Messages, Some("one-2026,two-2026")), (Wire::Chat, None), (Wire::Responses, None)]
    {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
        let mut command = command(&sandbox, &server, wire);
        command.args(["-p", "hi", "--betas", "one-2026, two-2026"]);
        assert_eq!(run(command).stdout, "done\n");
        assert_eq!(server.requests()[0].header("anthropic-beta"), expected, "{wire:?}");
    }
}

#[test]
fn they_come_behind_those_of_the_settings() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
    let provider = json!({
        "baseUrl": server.base_url(), "protocol": "anthropic", "apiKey": "key-of-the-test",
        "headers": { "anthropic-beta": "old" }, "models": ["m"],
    });
    let settings = json!({ "providers": { "own": provider } }).to_string();
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "hi", "--betas", "new", "--model", "own/m", "--settings", &settings]);
    assert_eq!(run(command).code, 0);
    assert_eq!(server.requests()[0].header("anthropic-beta"), Some("old,new"));
}

#[test]
fn a_name_that_no_header_can_have_is_refused() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("done")]));
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "hi", "--betas", "a\nb"]);
    let finished = run(command);
    assert!(finished.code != 0 && finished.stderr.contains("--betas"), "{}", finished.stderr);
    assert!(server.requests().is_empty());
}
