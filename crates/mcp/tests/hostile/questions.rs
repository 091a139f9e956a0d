//! What a server may ask, and what it gets: forms are put before a person and their answers checked, addresses to open
//! and sampling are refused, pings and roots are answered.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qoder_mcp::PeerEvent;
use qoder_mcp::questions::{ElicitationAction, ElicitationAnswer};
use serde_json::{Value, json};

use crate::hostile::scripted;
use crate::hostile::support::{Person, Tested, context, soon, until};

fn accepting(content: &Value) -> Arc<Person> {
    let answer =
        ElicitationAnswer { action: ElicitationAction::Accept, content: content.as_object().cloned() };
    Arc::new(Person { answer: Some(answer), roots: vec![PathBuf::from("/srv/x")], ..Person::default() })
}

async fn asked(tested: &Tested, method: &str, params: Value) -> Value {
    let said = tested.said("ask", json!({ "method": method, "params": params })).await;
    serde_json::from_str(&said).unwrap()
}

#[tokio::test]
async fn a_form_is_answered_when_the_answer_fits() {
    let person = accepting(&json!({ "name": "Ada" }));
    let tested = Tested::new(&scripted("plain"), &context(Arc::clone(&person)));
    tested.connect().await.unwrap();
    // A schema that no revision of the protocol knows.
    let schema = json!({ "type": "object", "title": "Who?", "properties": { "name": { "type": ["string", "null"] } } });
    let form = json!({ "message": "who", "requestedSchema": schema });
    let answer = asked(&tested, "elicitation/create", form).await;
    assert_eq!(answer, json!({ "result": { "action": "accept", "content": { "name": "Ada" } } }));
    let question = person.asked.lock().unwrap()[0].clone();
    assert_eq!((question.mode.as_str(), question.title.as_deref()), ("form", Some("Who?")));
    assert_eq!(question.display_name.as_deref(), Some("hostile"));

    let strict =
        json!({ "message": "who", "requestedSchema": { "properties": { "name": { "type": "integer" } } } });
    let answer = asked(&tested, "elicitation/create", strict).await;
    assert_eq!(answer, json!({ "result": { "action": "cancel" } }));
    assert!(tested.heard(|event| matches!(event, PeerEvent::Log { text, .. } if text.contains("/name"))));
}

#[tokio::test]
async fn an_address_to_open_is_refused_and_nobody_is_asked() {
    let person = accepting(&json!({}));
    let tested = Tested::new(&scripted("plain"), &context(Arc::clone(&person)));
    tested.connect().await.unwrap();
    let url = json!({ "mode": "url", "message": "open", "url": "https://a.test", "elicitationId": "1" });
    let answer = asked(&tested, "elicitation/create", url).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["message"], "Client does not support URL-mode elicitation requests");
    assert!(person.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sampling_and_the_unknown_are_refused() {
    let tested = Tested::plain(&scripted("plain"));
    tested.connect().await.unwrap();
    let message = json!({ "role": "user", "content": { "type": "text", "text": "hi" } });
    let sampling = json!({ "messages": [message], "maxTokens": 5 });
    assert_eq!(asked(&tested, "sampling/createMessage", sampling).await["error"]["code"], -32601);
    assert_eq!(asked(&tested, "no/such/thing", json!({})).await["error"]["code"], -32601);
}

#[tokio::test]
async fn pings_and_roots_are_answered() {
    let tested = Tested::new(&scripted("plain"), &context(accepting(&json!({}))));
    tested.connect().await.unwrap();
    assert_eq!(asked(&tested, "ping", json!({})).await, json!({ "result": {} }));
    let roots = asked(&tested, "roots/list", json!({})).await;
    assert_eq!(roots, json!({ "result": { "roots": [{ "uri": "file:///srv/x", "name": "x" }] } }));
}

#[tokio::test]
async fn the_timer_of_a_call_waits_for_the_person() {
    // No one answers for longer than the call may take; then the connection is closed, which ends the question.
    let person: Arc<Person> = Arc::default();
    let mut server = scripted("plain");
    server.config.timeout = Some(Duration::from_secs(2));
    let tested = Tested::new(&server, &context(Arc::clone(&person)));
    tested.connect().await.unwrap();
    let form = json!({ "method": "elicitation/create", "params": { "message": "who" } });
    let call = qoder_mcp::ToolCall::new("ask", form, crate::hostile::support::never());
    let running = tokio::spawn(tested.peer.call(call));
    until(|| !person.asked.lock().unwrap().is_empty()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!running.is_finished());
    tested.close().await;
    assert!(soon(running).await.unwrap().is_err());
}
