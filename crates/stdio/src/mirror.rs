//! The session's log as frames of the stream, for a store elsewhere.

use std::sync::Arc;

use qoder_runtime::sessions::Mirror;
use serde::Serialize;
use serde_json::Value;

use crate::console::Console;
use crate::output::JsonLines;

/// Lines of the log as frames of the stream. One that is too long for a line is cut and named on stderr; the log has it.
pub(crate) fn mirror(output: &Arc<JsonLines>, console: &Arc<dyn Console>) -> Mirror {
    let (output, console) = (Arc::clone(output), Arc::clone(console));
    Arc::new(move |log, lines| {
        let path = log.to_string_lossy();
        let send = |line: &Value| {
            let entries = [line];
            output.control(&TranscriptMirror { kind: "transcript_mirror", file_path: &path, entries })
        };
        for line in lines {
            let Err(error) = send(line) else { continue };
            // Without an entry the ones before it would be lost to a reader that follows the chain.
            let short = output.bounded(line.clone());
            let outcome = if send(&short).is_ok() { "cut" } else { "not repeated" };
            console.print_note(&format!("warning: a line of the session's log was {outcome}: {error}"));
        }
    })
}

/// A frame for a store elsewhere.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TranscriptMirror<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    file_path: &'a str,
    entries: [&'a Value; 1],
}
