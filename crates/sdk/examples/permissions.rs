//! Deciding about calls: reading runs, everything else is asked about, and the program says no to what it does not
//! know. The model here follows a playbook that wants to delete something first.

use futures::StreamExt;
use qoder_agent_sdk::{Error, PermissionResult, QoderAgentOptions, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    for denial in run(QoderAgentOptions::new()).await? {
        println!("denied: {denial}");
    }
    Ok(())
}

/// Asks for something dangerous and returns the commands that were denied.
pub async fn run(options: QoderAgentOptions) -> Result<Vec<String>, Error> {
    let options = options
        .model(format!("scripted:{}/examples/playbooks/shell.json", env!("CARGO_MANIFEST_DIR")))
        .tools(["Read", "Glob", "Grep", "Bash"])
        .can_use_tool(|tool_name, input, context| async move {
            let command = input["command"].as_str().unwrap_or_default();
            println!("{tool_name}: {command} ({})", context.decision_reason.unwrap_or_default());
            if command.contains("rm ") {
                PermissionResult::deny("Nothing is deleted here. Find another way.")
            } else {
                PermissionResult::allow()
            }
        });
    let mut denied = Vec::new();
    let mut messages = query("Clean up and count.", options)?;
    while let Some(message) = messages.next().await {
        if let Some(result) = message?.as_result() {
            denied.extend(
                result.permission_denials.iter().map(|denial| denial.tool_input["command"].to_string()),
            );
        }
    }
    Ok(denied)
}
