//! The reference server that has everything, over all three transports: tools, progress, structured content, images,
//! resources, prompts, forms and roots.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use qoder_mcp::questions::{ElicitationAction, ElicitationAnswer};
use qoder_mcp::{PeerError, PeerEvent};
use qoder_types::server::NamedServer;
use serde_json::{Value, json};

use crate::real::support::{
    Listening, Person, Tested, child, context, everything, http, soon, sse, until, watched,
};

/// What may be asked over every transport.
async fn has_everything(server: &NamedServer) {
    let answer = ElicitationAnswer {
        action: ElicitationAction::Accept,
        content: json!({ "name": "Ada", "integer": 7 }).as_object().cloned(),
    };
    let person = Arc::new(Person {
        answer: Some(answer),
        roots: vec![PathBuf::from("/srv/a b")],
        ..Person::default()
    });
    let tested = Tested::new(server, &context(Arc::clone(&person)));
    let greeting = tested.connect().await.unwrap();
    assert_eq!(greeting.server_info.unwrap()["name"], "mcp-servers/everything");
    assert!(greeting.capabilities["resources"]["subscribe"] == true, "{}", greeting.capabilities);
    assert!(greeting.instructions.unwrap().contains("Everything"));
    let echo = greeting.tools.iter().find(|tool| tool.name == "echo").unwrap();
    assert_eq!(echo.input_schema["required"], json!(["message"]));

    calls_tools(&tested).await;
    reports_progress(&tested).await;
    brings_resources_and_prompts(&tested).await;
    asks_back(&tested, &person).await;
    tested.close().await;
    let refused = tested.call("echo", json!({ "message": "x" })).await.unwrap_err();
    assert!(matches!(refused, PeerError::NotConnected(_)), "{refused:?}");
    assert!(!tested.heard(|event| matches!(event, PeerEvent::Closed(_))), "we closed it ourselves");
}

async fn calls_tools(tested: &Tested) {
    assert_eq!(tested.said("echo", json!({ "message": "hello" })).await, "Echo: hello");
    assert!(tested.said("get-sum", json!({ "a": 2, "b": 3 })).await.contains('5'));
    let weather = tested.call("get-structured-content", json!({ "location": "Chicago" })).await.unwrap();
    assert!(weather.structured_content.unwrap()["temperature"].is_number());
    let picture = tested.call("get-tiny-image", json!({})).await.unwrap();
    let image = picture.content.iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(image["mimeType"], "image/png");
    let annotated = json!({ "messageType": "error", "includeImage": true });
    let annotated = tested.call("get-annotated-message", annotated).await.unwrap();
    assert_eq!(annotated.content[0]["annotations"]["priority"], 1.0);
    let links = tested.call("get-resource-links", json!({ "count": 2 })).await.unwrap();
    assert!(links.content.iter().any(|block| block["type"] == "resource_link"), "{links:?}");
    let wrong = tested.call("echo", json!({})).await;
    match wrong {
        Ok(result) => assert!(result.is_error, "{result:?}"),
        Err(PeerError::Refused { code, .. }) => assert_eq!(code, -32602),
        Err(other) => panic!("{other:?}"),
    }
}

async fn reports_progress(tested: &Tested) {
    let never = std::future::pending().boxed().shared();
    let arguments = json!({ "duration": 0.3, "steps": 3 });
    let (call, seen) = watched("trigger-long-running-operation", arguments, never);
    let result = soon(tested.peer.call(call)).await.unwrap();
    assert!(!result.is_error);
    until(|| seen.lock().unwrap().len() == 3).await;
    assert!(seen.lock().unwrap().iter().all(|progress| progress.total == Some(3.0)));
}

async fn brings_resources_and_prompts(tested: &Tested) {
    let request = |method, params| soon(tested.peer.request(method, params));
    let resources = request("resources/list", json!({})).await.unwrap();
    let uri = resources["resources"][0]["uri"].as_str().unwrap().to_owned();
    let read = request("resources/read", json!({ "uri": uri })).await.unwrap();
    assert_eq!(read["contents"][0]["uri"], uri);
    request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
    request("resources/unsubscribe", json!({ "uri": uri })).await.unwrap();
    let prompts = request("prompts/list", json!({})).await.unwrap();
    let name = prompts["prompts"][0]["name"].as_str().unwrap().to_owned();
    let prompt = request("prompts/get", json!({ "name": name })).await.unwrap();
    assert_eq!(prompt["messages"][0]["role"], "user");
    let missing = request("prompts/get", json!({ "name": "no such prompt" })).await.unwrap_err();
    assert!(matches!(missing, PeerError::Refused { .. }), "{missing:?}");
}

async fn asks_back(tested: &Tested, person: &Person) {
    // The server offers these once it has seen what we can do.
    soon(async {
        loop {
            let tools = tested.peer.list_tools().await.unwrap();
            let has = |name: &str| tools.iter().any(|tool| tool.name == name);
            assert!(!has("trigger-sampling-request") && !has("trigger-url-elicitation"), "not declared");
            if has("get-roots-list") && has("trigger-elicitation-request") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    let form = tested.call("trigger-elicitation-request", json!({})).await.unwrap();
    let raw = form.content.last().unwrap()["text"].as_str().unwrap().to_owned();
    let raw: Value = serde_json::from_str(raw.trim().strip_prefix("Raw result: ").unwrap()).unwrap();
    let expected = match &person.answer.as_ref().unwrap().action {
        ElicitationAction::Accept => {
            json!({ "action": "accept", "content": { "name": "Ada", "integer": 7 } })
        }
        ElicitationAction::Decline => json!({ "action": "decline" }),
        ElicitationAction::Cancel => json!({ "action": "cancel" }),
    };
    assert_eq!(raw, expected);
    let asked = person.asked.lock().unwrap().clone();
    assert_eq!(asked[0].server_name, "tested");
    assert_eq!(asked[0].display_name.as_deref(), Some("Everything Reference Server"));
    assert_eq!(asked[0].requested_schema.as_ref().unwrap()["required"], json!(["name"]));
    let roots = tested.call("get-roots-list", json!({})).await.unwrap();
    let roots: String = roots.content.iter().filter_map(|block| block["text"].as_str()).collect();
    assert!(person.roots.is_empty() || roots.contains("file:///srv/a%20b"), "{roots}");
}

#[tokio::test]
async fn over_pipes() {
    has_everything(&child(&everything(), &["stdio"])).await;
}

#[tokio::test]
async fn over_streamable_http() {
    let server = Listening::start(&everything(), &["streamableHttp"]).await;
    has_everything(&http(&format!("http://127.0.0.1:{}/mcp", server.port))).await;
}

#[tokio::test]
async fn over_legacy_events() {
    let server = Listening::start(&everything(), &["sse"]).await;
    has_everything(&sse(&format!("http://127.0.0.1:{}/sse", server.port))).await;
}

#[tokio::test]
async fn an_address_of_legacy_events_may_be_configured_as_http() {
    let server = Listening::start(&everything(), &["sse"]).await;
    let tested = Tested::plain(&http(&format!("http://127.0.0.1:{}/sse", server.port)));
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({ "message": "x" })).await, "Echo: x");
    tested.close().await;
}

#[tokio::test]
async fn a_form_may_be_declined_and_cancelled() {
    for action in [ElicitationAction::Decline, ElicitationAction::Cancel] {
        let answer = ElicitationAnswer { action, content: None };
        let person = Arc::new(Person { answer: Some(answer), ..Person::default() });
        let tested = Tested::new(&child(&everything(), &["stdio"]), &context(Arc::clone(&person)));
        tested.connect().await.unwrap();
        asks_back(&tested, &person).await;
        tested.close().await;
    }
}

#[tokio::test]
async fn a_connection_can_be_made_again_and_again() {
    let tested = Tested::plain(&child(&everything(), &["stdio"]));
    for _ in 0..3 {
        tested.heard.lock().unwrap().clear();
        tested.connect().await.unwrap();
        until(|| tested.heard(|event| *event == PeerEvent::ToolsChanged)).await;
        assert_eq!(tested.said("echo", json!({ "message": "x" })).await, "Echo: x");
    }
    tested.close().await;
    assert!(!tested.heard(|event| matches!(event, PeerEvent::Closed(_))));
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed() {
    let server = Listening::start(&everything(), &["streamableHttp"]).await;
    let tested = Tested::plain(&http(&format!("http://127.0.0.1:{}/mcp", server.port)));
    tested.connect().await.unwrap();
    drop(server);
    let gone = tested.call("echo", json!({ "message": "x" })).await.unwrap_err();
    assert!(matches!(gone, PeerError::Closed(_) | PeerError::NotConnected(_)), "{gone:?}");
    let reason = tested.closed().await;
    assert!(reason.contains("cannot be reached"), "{reason}");
    let refused = tested.connect().await.unwrap_err();
    assert!(matches!(&refused, PeerError::Failed(text) if text.contains("cannot be reached")), "{refused:?}");
}
