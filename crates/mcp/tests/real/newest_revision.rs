//! The revision without a handshake: every request describes itself, and a server asks back inside of its answer. A server
//! of the official Python package speaks it, over pipes and over HTTP; the older way works with the same server.

use std::sync::Arc;

use qoder_mcp::questions::{ElicitationAction, ElicitationAnswer};
use qoder_mcp::remote::Lifecycle;
use qoder_types::server::NamedServer;
use serde_json::json;

use crate::real::support::{Listening, Person, Tested, child, context, http, program};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/modern.py");

async fn greets(server: &NamedServer) {
    for lifecycle in [Lifecycle::Discover, Lifecycle::Initialize] {
        let content = json!({ "name": "Ada" }).as_object().cloned();
        let answer = ElicitationAnswer { action: ElicitationAction::Accept, content };
        let person = Arc::new(Person { answer: Some(answer), ..Person::default() });
        let mut context = context(Arc::clone(&person));
        context.lifecycle = lifecycle;
        let tested = Tested::new(server, &context);
        let greeting = tested.connect().await.unwrap();
        assert_eq!(greeting.server_info.unwrap()["name"], "modern");
        let names: Vec<&str> = greeting.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["echo", "greet"]);
        assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
        assert_eq!(tested.said("greet", json!({})).await, "Hello, Ada", "{lifecycle:?}");
        assert_eq!(person.asked.lock().unwrap()[0].message, "Who are you?");
        tested.close().await;
    }
}

#[tokio::test]
async fn over_pipes() {
    greets(&child(&program("venv/bin/python"), &[SCRIPT, "stdio"])).await;
}

#[tokio::test]
async fn over_streamable_http() {
    let server = Listening::start(&program("venv/bin/python"), &[SCRIPT, "http"]).await;
    greets(&http(&format!("http://127.0.0.1:{}/mcp", server.port))).await;
}

#[tokio::test]
async fn an_older_revision_may_be_offered() {
    let mut context = context(Arc::default());
    context.protocol_version = Some("2024-11-05".to_owned());
    let tested = Tested::new(&child(&program("venv/bin/python"), &[SCRIPT, "stdio"]), &context);
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
    context.protocol_version = Some("yesterday".to_owned());
    let refused = Tested::new(&child("true", &[]), &context).connect().await.unwrap_err();
    assert_eq!(refused.to_string(), "`yesterday` is no revision that can be offered");
}
