//! Calls that the server answers wrongly, twice, too late, with too much or not at all.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use qoder_mcp::{PeerError, PeerEvent, ToolCall};
use serde_json::json;

use crate::hostile::scripted;
use crate::hostile::support::{Tested, context, never, soon, until, watched};

async fn connected() -> Tested {
    let tested = Tested::plain(&scripted("plain"));
    tested.connect().await.unwrap();
    tested
}

#[tokio::test]
async fn second_and_foreign_answers_are_ignored() {
    let tested = connected().await;
    assert_eq!(tested.said("twice", json!({})).await, "first");
    assert_eq!(tested.said("wrong", json!({})).await, "yours");
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn what_is_printed_beside_messages_is_ignored_up_to_a_limit() {
    let tested = connected().await;
    assert_eq!(tested.said("noise", json!({ "lines": 500 })).await, "still here");
    assert_eq!(tested.said("noise", json!({ "lines": 900 })).await, "still here");
    let gone = tested.call("noise", json!({ "lines": 5_000 })).await.unwrap_err();
    assert!(matches!(&gone, PeerError::Closed(text) if text.contains("log line 0")), "{gone:?}");
    assert!(tested.closed().await.contains("lines that are no messages"));
}

#[tokio::test]
async fn errors_of_the_protocol_leave_the_connection_alone() {
    let tested = connected().await;
    let refused = tested.call("error", json!({})).await.unwrap_err();
    assert_eq!(refused, PeerError::Refused { code: -32099, message: "refused".to_owned() });
    let unreadable = tested.call("odd_result", json!({})).await.unwrap_err();
    assert!(
        matches!(&unreadable, PeerError::Failed(text) if text.contains("cannot be read")),
        "{unreadable:?}"
    );
    let no_object = tested.call("echo", json!([1])).await.unwrap_err();
    assert!(matches!(no_object, PeerError::Failed(_)));
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_is_reported_once() {
    let tested = connected().await;
    let (first, second) =
        tokio::join!(tested.call("crash", json!({})), tested.call("echo", json!({ "text": "x" })));
    let gone = first.unwrap_err();
    let expected = "the server's process ended with exit code 3; its error stream ends with:\nboom";
    assert_eq!(gone, PeerError::Closed(expected.to_owned()));
    assert!(second.is_err());
    assert_eq!(tested.closed().await, expected);
    let closed = tested.call("echo", json!({})).await.unwrap_err();
    assert!(matches!(closed, PeerError::NotConnected(_)));
    tested.close().await;
    let heard = tested.heard.lock().unwrap();
    assert_eq!(heard.iter().filter(|event| matches!(event, PeerEvent::Closed(_))).count(), 1);
}

#[tokio::test]
async fn output_that_is_closed_in_a_call_ends_the_connection() {
    let tested = connected().await;
    let gone = tested.call("close", json!({})).await.unwrap_err();
    assert_eq!(gone, PeerError::Closed("the server closed its output".to_owned()));
    tested.close().await;
}

#[tokio::test]
async fn large_messages_pass_and_larger_ones_do_not() {
    let tested = connected().await;
    let large = tested.call("huge", json!({ "bytes": 7 * 1024 * 1024 })).await.unwrap();
    assert_eq!(large.content[0]["text"].as_str().unwrap().len(), 7 * 1024 * 1024);
    let gone = tested.call("huge", json!({ "bytes": 100 * 1024 * 1024 })).await.unwrap_err();
    assert!(matches!(&gone, PeerError::Closed(text) if text.contains("more than 8 MiB")), "{gone:?}");
    tested.close().await;
    tested.connect().await.unwrap();
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn progress_resets_the_timer_and_silence_ends_the_call() {
    let mut server = scripted("plain");
    server.config.timeout = Some(Duration::from_secs(3));
    let tested = Tested::new(&server, &context(Arc::default()));
    tested.connect().await.unwrap();
    let (call, seen) = watched("slow", json!({ "steps": 8, "pause": 0.6 }), never());
    let result = soon(tested.peer.call(call)).await.unwrap();
    assert_eq!(result.content[0]["text"], "done");
    until(|| seen.lock().unwrap().len() == 8).await;
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let silent = tested.call("never", json!({ "record": record })).await.unwrap_err();
    let text = "the server neither answered nor reported progress within 3 s";
    assert_eq!(silent, PeerError::Failed(text.to_owned()));
    until(|| std::fs::read_to_string(&record).is_ok_and(|text| text == "True")).await;
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn an_interrupted_call_and_a_dropped_one_are_withdrawn() {
    let tested = connected().await;
    let folder = tempfile::tempdir().unwrap();
    for dropped in [false, true] {
        let record = folder.path().join(dropped.to_string());
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let cancelled = stopped.map(drop).boxed().shared();
        let (call, _) = watched("never", json!({ "record": record }), cancelled);
        let running = tokio::spawn(tested.peer.call(call));
        // The server answers nothing else while it is in the call, so this only gives it time to get there.
        tokio::time::sleep(Duration::from_millis(200)).await;
        if dropped {
            running.abort();
        } else {
            stop.send(()).unwrap();
            let interrupted = soon(running).await.unwrap().unwrap_err();
            assert_eq!(interrupted, PeerError::Failed("the call was interrupted".to_owned()));
        }
        until(|| std::fs::read_to_string(&record).is_ok_and(|text| text == "True")).await;
    }
    assert_eq!(tested.said("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn notices_are_passed_on_and_logs_are_bounded() {
    let tested = connected().await;
    assert_eq!(tested.said("change", json!({})).await, "changed");
    let wanted = [
        PeerEvent::ToolsChanged,
        PeerEvent::ResourcesChanged,
        PeerEvent::PromptsChanged,
        PeerEvent::ResourceUpdated("a:b".to_owned()),
    ];
    until(|| wanted.iter().all(|wanted| tested.heard(|event| event == wanted))).await;
    tested.heard.lock().unwrap().clear();
    assert_eq!(tested.said("log", json!({ "count": 1_000 })).await, "logged");
    until(|| !tested.heard.lock().unwrap().is_empty()).await;
    for event in tested.heard.lock().unwrap().iter() {
        let PeerEvent::Log { level, text } = event else { panic!("{event:?}") };
        assert_eq!(level, "warning");
        assert!(text.chars().count() <= 2_001, "{}", text.len());
    }
}

#[tokio::test]
async fn closing_ends_a_call_that_is_under_way() {
    let tested = connected().await;
    let folder = tempfile::tempdir().unwrap();
    let arguments = json!({ "record": folder.path().join("record") });
    let running = tokio::spawn(tested.peer.call(ToolCall::new("never", arguments, never())));
    tokio::time::sleep(Duration::from_millis(200)).await;
    tested.close().await;
    let gone = soon(running).await.unwrap().unwrap_err();
    assert_eq!(gone, PeerError::Closed("the connection was closed".to_owned()));
}
