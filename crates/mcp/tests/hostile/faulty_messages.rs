//! One fault at every message of a session: dropped, delayed, doubled, garbled, or the end of everything. Each outcome is
//! an error or a success within time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use qoder_mcp::remote::PeerContext;
use qoder_mcp::{PeerError, ToolCall};
use serde_json::json;

use crate::hostile::support::{Listening, Tested, child, context, everything, http, never, program, soon};
use crate::hostile::web::Proxy;

/// Messages of a session on pipes, and two more.
const MESSAGES: usize = 9;

/// Where a fault is one that a session survives, the patience must last on a slow machine, too.
fn patient(survives: bool) -> PeerContext {
    let mut context = context(Arc::default());
    let patience = Duration::from_secs(if survives { 60 } else { 4 });
    context.limits.start_up = patience;
    context.limits.call = patience;
    context.limits.request = patience;
    context.limits.ending = Duration::from_millis(200);
    context
}

/// A short session: every step works or says why not.
async fn session(tested: &Tested, tool: &str, arguments: serde_json::Value) -> Result<(), PeerError> {
    let outcome = async {
        tested.connect().await?;
        soon(tested.peer.call(ToolCall::new(tool, arguments, never()))).await?;
        soon(tested.peer.request("ping", json!({}))).await?;
        Ok(())
    }
    .await;
    tested.close().await;
    outcome
}

#[tokio::test]
async fn on_pipes() {
    let script = |name: &str| format!("{}/tests/hostile/{name}", env!("CARGO_MANIFEST_DIR"));
    let python = program("venv/bin/python");
    let faults = ["drop", "delay", "twice", "garble", "close"];
    let sessions = (0..MESSAGES).flat_map(|at| faults.map(|fault| (at, fault))).map(|(at, fault)| {
        let at_text = at.to_string();
        let (proxy, server) = (script("proxy.py"), script("server.py"));
        let arguments = ["-u", &proxy, &at_text, fault, &python, "-u", &server, "plain"];
        let survives = matches!(fault, "delay" | "twice");
        let tested = Tested::new(&child(&python, &arguments), &patient(survives));
        async move { (at, fault, session(&tested, "echo", json!({ "text": "x" })).await) }
    });
    let outcomes: Vec<_> = futures::stream::iter(sessions).buffer_unordered(6).collect().await;
    assert_eq!(outcomes.len(), MESSAGES * faults.len());
    for (at, fault, outcome) in outcomes {
        match fault {
            // What comes late or twice is as good as what comes once.
            "delay" | "twice" => assert_eq!(outcome, Ok(()), "{fault} at {at}"),
            _ => {
                let readable = outcome.as_ref().err().is_none_or(|error| !error.to_string().is_empty());
                assert!(readable, "{fault} at {at}: {outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn over_streamable_http() {
    let server = Listening::start(&everything(), &["streamableHttp"]).await;
    for pause in [None, Some(Duration::from_millis(200))] {
        for at in 0..14 {
            let proxy = Proxy::start(server.port, at, pause).await;
            let tested = Tested::new(
                &http(&format!("http://127.0.0.1:{}/mcp", proxy.port)),
                &patient(pause.is_some()),
            );
            let outcome = session(&tested, "echo", json!({ "message": "x" })).await;
            match (pause, outcome) {
                (Some(_), outcome) => assert_eq!(outcome, Ok(()), "a pause at {at}"),
                (None, Ok(())) => {}
                (None, Err(error)) => {
                    // Words of the library below do not help a user.
                    let told = error.to_string();
                    assert!(!told.is_empty() && !told.contains("Transport"), "cut at {at}: {told}");
                }
            }
        }
    }
}
