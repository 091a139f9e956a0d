//! A run keeps its connection: ten model calls, one TCP connection, whatever the protocol.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::turns::support::{Wire, command, run};

#[test]
fn ten_model_calls_use_one_connection() {
    for wire in Wire::ALL {
        let sandbox = Sandbox::new();
        sandbox.write("notes.txt", "hello\n");
        let mut replies = vec![Reply::tool("Read", json!({ "file_path": "notes.txt" })); 9];
        replies.push(Reply::text("done"));
        let server = ScriptedServer::start(Script::by_assistant_count(replies));
        let mut command = command(&sandbox, &server, wire);
        command.args(["-p", "read it nine times", "--output-format", "json"]);
        let finished = run(command);
        assert_eq!(finished.success()["num_turns"], 10, "{wire:?}");
        assert_eq!((server.requests().len(), server.connections()), (10, 1), "{wire:?}");
    }
}
