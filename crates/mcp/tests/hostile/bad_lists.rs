//! Lists of tools that do not end, repeat themselves or are invalid.

use qoder_mcp::PeerEvent;

use crate::hostile::scripted;
use crate::hostile::support::Tested;

async fn listed(start: &str) -> (Vec<String>, Vec<String>) {
    let tested = Tested::plain(&scripted(start));
    let greeting = tested.connect().await.unwrap();
    let logs = tested.heard.lock().unwrap();
    let logs = logs.iter().filter_map(|event| match event {
        PeerEvent::Log { text, .. } => Some(text.clone()),
        _ => None,
    });
    (greeting.tools.into_iter().map(|tool| tool.name).collect(), logs.collect())
}

#[tokio::test]
async fn pages_without_end_are_cut() {
    let (tools, logs) = listed("endless").await;
    assert_eq!(tools.len(), 200);
    assert_eq!(logs, ["the server's list of tools was cut: it has more than 200 pages"]);
}

#[tokio::test]
async fn pages_in_a_circle_are_cut() {
    let (tools, logs) = listed("circle").await;
    assert_eq!(tools, ["echo"]);
    assert!(logs.contains(&"the server's list of tools was cut: it repeats itself".to_owned()), "{logs:?}");
}

#[tokio::test]
async fn a_thousand_tools_are_enough() {
    let (tools, logs) = listed("many").await;
    assert_eq!(tools.len(), 1_000);
    assert_eq!(logs, ["the server's list of tools was cut: it has more than 1000 tools"]);
}

#[tokio::test]
async fn a_name_counts_once() {
    let (tools, logs) = listed("double").await;
    assert_eq!(tools, ["echo", "other"]);
    assert_eq!(logs, ["the tool `echo` is listed twice"]);
}

#[tokio::test]
async fn a_strange_tool_spoils_only_itself() {
    let (tools, logs) = listed("odd").await;
    assert_eq!(tools, ["good"]);
    assert_eq!(logs.len(), 2, "{logs:?}");
}
