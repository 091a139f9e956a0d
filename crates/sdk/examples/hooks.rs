//! Hooks: one looks at every command before it is decided about and refuses dangerous ones, one keeps a list of what
//! was done. The model here follows a playbook that wants to delete something first.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{Error, HookEvent, HookJsonOutput, HookMatcher, OnFailure, QoderAgentOptions, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let (answer, done) = run(QoderAgentOptions::new()).await?;
    println!("{answer} Done were: {done:?}");
    Ok(())
}

/// Asks for something dangerous and returns the answer and the tools that ran.
pub async fn run(options: QoderAgentOptions) -> Result<(String, Vec<String>), Error> {
    let done = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&done);
    let guard = HookMatcher::for_tools("Bash").on_failure(OnFailure::Block).hook(|input, _, _| async move {
        let command = input.tool_input().and_then(|input| input["command"].as_str()).unwrap_or_default();
        if command.contains("rm -rf") {
            return HookJsonOutput::deny("rm -rf is not allowed");
        }
        HookJsonOutput::allow()
    });
    let audit = HookMatcher::new().hook(move |input, _, _| {
        if let Ok(mut list) = list.lock() {
            list.push(input.tool_name().unwrap_or_default().to_owned());
        }
        async { HookJsonOutput::default() }
    });
    let options = options
        .model(format!("scripted:{}/examples/playbooks/shell.json", env!("CARGO_MANIFEST_DIR")))
        .hook(HookEvent::PreToolUse, guard)
        .hook(HookEvent::PostToolUse, audit);
    let mut answer = String::new();
    let mut messages = query("Clean up and count.", options)?;
    while let Some(message) = messages.next().await {
        if let Some(result) = message?.as_result() {
            answer = result.text().to_owned();
        }
    }
    let done = done.lock().map(|list| list.clone()).unwrap_or_default();
    Ok((answer, done))
}
