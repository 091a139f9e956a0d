//! What a call costs through a connection of this crate and through the bare `rmcp` client, against the same server on
//! pipes, in one run. Arguments: number of calls, name of an echoing tool, its arguments as JSON, command of the server.
//! Prints the medians in nanoseconds as JSON; the benchmarks read that.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use qoder_mcp::ToolCall;
use qoder_mcp::config::{NamedServer, OAuthConfig, Scope, ServerConfig, Transport};
use qoder_mcp::questions::Nobody;
use qoder_mcp::remote::{PeerContext, peer};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use tokio::process::Command;

type Problem = Box<dyn std::error::Error>;

fn described(command: &str, arguments: &[String]) -> NamedServer {
    let transport = Transport::Stdio {
        command: command.to_owned(),
        args: arguments.to_vec(),
        env: BTreeMap::new(),
        cwd: None,
    };
    let config = ServerConfig {
        transport,
        policies: Vec::new(),
        include_tools: None,
        exclude_tools: Vec::new(),
        timeout: None,
        enabled: true,
        oauth: OAuthConfig::default(),
        shown: Value::Null,
    };
    NamedServer { name: "echo".to_owned(), config, scope: Scope::Flag }
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Problem> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [count, tool, arguments, command, rest @ ..] = words.as_slice() else {
        return Err("usage: echo_overhead CALLS TOOL ARGUMENTS COMMAND [ARGUMENT…]".into());
    };
    let count: usize = count.parse()?;
    let arguments: Value = serde_json::from_str(arguments)?;
    let fields = arguments.as_object().ok_or("the arguments must be an object")?.clone();

    let mut context = PeerContext::new(std::env::current_dir()?, Arc::new(Nobody));
    context.environment = Arc::new(std::env::vars().collect());
    let ours = peer(&described(command, rest), &context);
    ours.connect(Arc::new(|_| {})).await.map_err(|error| error.to_string())?;

    let mut process = Command::new(command);
    process.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = process.spawn()?;
    let pipes = child.stdout.take().zip(child.stdin.take()).ok_or("the server has no pipes")?;
    let bare = ().serve(pipes).await?;

    let (mut through_ours, mut through_bare) = (Vec::new(), Vec::new());
    // In turns, so that whatever else the machine does hits both.
    for _ in 0..count {
        let began = Instant::now();
        let never = std::future::pending().boxed().shared();
        ours.call(ToolCall::new(tool, arguments.clone(), never)).await.map_err(|error| error.to_string())?;
        through_ours.push(began.elapsed().as_nanos());
        let began = Instant::now();
        bare.call_tool(CallToolRequestParams::new(tool.clone()).with_arguments(fields.clone())).await?;
        through_bare.push(began.elapsed().as_nanos());
    }
    ours.close().await;
    bare.cancel().await?;
    println!("{}", json!({ "ours": median(through_ours) as u64, "bare": median(through_bare) as u64 }));
    Ok(())
}
