//! A tool of your program: a function with a doc comment and an argument struct. The model here follows a playbook,
//! so that the program runs without a key.

use futures::StreamExt;
use qoder_agent_sdk::{Error, QoderAgentOptions, ToolResult, create_sdk_mcp_server, query, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct LookupOrder {
    /// Order ID, such as O-1001
    order_id: String,
}

/// Look up an order by order ID and return its status as JSON.
#[tool(read_only)]
async fn lookup_order(arguments: LookupOrder) -> ToolResult {
    if arguments.order_id == "O-1001" {
        ToolResult::json(&json!({ "order_id": "O-1001", "status": "shipped", "eta": "2026-05-20" }))
    } else {
        ToolResult::error(format!("Order not found: {}", arguments.order_id))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("{}", run(QoderAgentOptions::new()).await?);
    Ok(())
}

/// Asks about an order and returns the answer.
pub async fn run(options: QoderAgentOptions) -> Result<String, Error> {
    let orders = create_sdk_mcp_server("orders", "1.0.0", [lookup_order()])?;
    let options = options
        .model(format!("scripted:{}/examples/playbooks/orders.json", env!("CARGO_MANIFEST_DIR")))
        .mcp_server("orders", orders)
        .allowed_tools(["mcp__orders__lookup_order"]);
    let mut answer = String::new();
    let mut messages = query("Check the status of order O-1001 and summarize it in one sentence.", options)?;
    while let Some(message) = messages.next().await {
        if let Some(result) = message?.as_result() {
            answer = result.text().to_owned();
        }
    }
    Ok(answer)
}
