//! What the SDK itself costs, as one line of JSON: the time from `query` to the first message, a round trip to a tool
//! of the program beyond what the driver does for any call, and how many pieces of a reply arrive in a second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use qoder_agent_sdk::{
    Error, Message, NoArguments, QoderAgentOptions, ToolAnnotations, create_sdk_mcp_server, query, tool,
};
use serde_json::json;

/// Starts that are measured; the fastest counts, because everything else is the machine's.
const STARTS: usize = 20;
/// Calls that are measured.
const CALLS: usize = 50;
/// Pieces of the reply that is measured.
const PIECES: usize = 20_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = QoderAgentOptions::new()
        .cwd(folder.path())
        .persist_session(false)
        .env("QODER_CONFIG_DIR", folder.path().display().to_string());
    let report = json!({
        "queryToInitMs": query_to_init(&options).await?.as_secs_f64() * 1e3,
        "toolRoundTripUs": tool_round_trip(&options, folder.path()).await?.as_secs_f64() * 1e6,
        "partialMessagesPerSecond": partial_messages(&options, folder.path()).await?.round(),
    });
    println!("{report}");
    Ok(())
}

/// From the call of `query` to its first message.
async fn query_to_init(options: &QoderAgentOptions) -> Result<Duration, Error> {
    let mut fastest = Duration::MAX;
    for _ in 0..STARTS {
        let started = Instant::now();
        let mut messages = query("Say hello.", options.clone().model("offline"))?;
        if let Some(message) = messages.next().await {
            message?;
        }
        fastest = fastest.min(started.elapsed());
        messages.close().await;
    }
    Ok(fastest)
}

/// From the moment at which one handler of a batch returns to the one at which the next begins: what lies between is
/// the way back from a tool and the way into one.
async fn tool_round_trip(
    options: &QoderAgentOptions,
    folder: &std::path::Path,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let moments: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let list = Arc::clone(&moments);
    let tick = tool("tick", "Ticks.", move |_: NoArguments| {
        if let Ok(mut list) = list.lock() {
            list.push(Instant::now());
        }
        async { "tick" }
    })
    .with_annotations(ToolAnnotations::default().read_only(true));
    let calls: Vec<_> = (0..CALLS).map(|_| json!({ "name": "mcp__clock__tick" })).collect();
    let playbook = json!([{ "when": { "turn": 1 }, "toolCalls": calls }, { "text": "done", "repeat": true }]);
    let options = options
        .clone()
        .model(written(folder, "tools.json", &playbook)?)
        .mcp_server("clock", create_sdk_mcp_server("clock", "1.0.0", [tick])?)
        .allowed_tools(["mcp__clock__tick"]);
    let mut messages = query("Go.", options)?;
    while let Some(message) = messages.next().await {
        message?;
    }
    let moments = moments.lock().map(|list| list.clone()).unwrap_or_default();
    let fastest = moments.windows(2).map(|pair| pair[1] - pair[0]).min();
    Ok(fastest.unwrap_or_default())
}

/// Pieces of one long reply in a second.
async fn partial_messages(
    options: &QoderAgentOptions,
    folder: &std::path::Path,
) -> Result<f64, Box<dyn std::error::Error>> {
    let playbook = json!([{ "text": "word ".repeat(PIECES), "chunks": PIECES }]);
    let options =
        options.clone().model(written(folder, "partial.json", &playbook)?).include_partial_messages(true);
    let mut messages = query("Go.", options)?;
    let (mut first, mut count) = (None, 0_u32);
    while let Some(message) = messages.next().await {
        if let Message::StreamEvent(_) = message? {
            first.get_or_insert_with(Instant::now);
            count += 1;
        }
    }
    let seconds = first.map_or(f64::MAX, |first| first.elapsed().as_secs_f64());
    Ok(f64::from(count) / seconds)
}

fn written(folder: &std::path::Path, name: &str, replies: &serde_json::Value) -> std::io::Result<String> {
    let path = folder.join(name);
    std::fs::write(&path, json!({ "replies": replies }).to_string())?;
    Ok(format!("scripted:{}", path.display()))
}
