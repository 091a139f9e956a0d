//! What our connection adds to a call over a pipe, as one line of JSON: the same echo server, once behind the bare client
//! of `rmcp` and once behind a [`RemotePeer`](qoder_mcp::remote::RemotePeer), in rounds that take turns. The program is
//! its own server when it is started with `serve`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use qoder_mcp::ToolCall;
use qoder_mcp::questions::NoAnswerer;
use qoder_mcp::remote::{PeerContext, peer};
use qoder_types::server::{NamedServer, Scope, ServerConfig, Transport};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

/// Calls of one round.
const CALLS: u32 = 500;
/// Rounds of each client; the fastest counts, because everything else is the machine's.
const ROUNDS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure())?;
    println!("{report}");
    Ok(())
}

async fn measure() -> Result<Value, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut child = tokio::process::Command::new(&program)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
        return Err("the server has no pipes".into());
    };
    let bare = ().serve((output, input)).await?;
    let transport = Transport::Stdio {
        command: program.to_string_lossy().into_owned(),
        args: vec!["serve".to_owned()],
        env: BTreeMap::new(),
        cwd: None,
    };
    let config = ServerConfig::new(transport, json!({ "type": "stdio" }));
    let named = NamedServer { name: "echo".to_owned(), config, scope: Scope::Flag };
    let ours = peer(&named, &PeerContext::new(std::env::current_dir()?, Arc::new(NoAnswerer)));
    ours.connect(Arc::new(|_| {})).await.map_err(|error| error.to_string())?;
    let (mut fastest_bare, mut fastest_ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            let arguments = json!({ "text": "hello" }).as_object().cloned().unwrap_or_default();
            bare.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
        }
        fastest_bare = fastest_bare.min(started.elapsed() / CALLS);
        let started = Instant::now();
        for _ in 0..CALLS {
            let never = std::future::pending().boxed().shared();
            let call = ToolCall::new("echo", json!({ "text": "hello" }), never);
            ours.call(call).await.map_err(|error| error.to_string())?;
        }
        fastest_ours = fastest_ours.min(started.elapsed() / CALLS);
    }
    ours.close().await;
    Ok(json!({
        "bareCallUs": fastest_bare.as_secs_f64() * 1e6,
        "ourCallUs": fastest_ours.as_secs_f64() * 1e6,
    }))
}

/// Answers JSON-RPC on its pipes: the handshake, one tool, and its calls.
fn serve() -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} }, "serverInfo": { "name": "echo", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            _ => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        output.flush()?;
    }
    Ok(())
}
