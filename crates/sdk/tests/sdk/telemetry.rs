//! Telemetry of a session that runs in this process: the same spans as those of the program, by the same variables.

use std::time::{Duration, Instant};

use qoder_agent_sdk::query;
use qoder_testkit::{Collector, CollectorManner};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result};

#[tokio::test]
async fn a_session_in_process_is_seen_by_the_collector() {
    let place = Place::new();
    let collector = Collector::start(CollectorManner::Accepts);
    let options = place
        .playing(&call_then_done("Bash", &json!({ "command": "echo hello" })))
        .env("QODER_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base_url())
        .allowed_tools(["Bash"]);
    let messages = all(query("Go.", options).unwrap()).await;
    let session = result(&messages).session_id.clone();
    let start = Instant::now();
    let turn = loop {
        if let Some(turn) = collector.spans().into_iter().find(|span| span.name == "invoke_agent qodercli") {
            break turn;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no turn arrived");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(turn.attributes["gen_ai.conversation.id"], session);
    let tool = collector.spans().into_iter().find(|span| span.name == "execute_tool Bash").unwrap();
    assert_eq!(tool.parent_id, turn.span_id);
}
