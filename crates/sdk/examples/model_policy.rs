//! The program chooses the model before each call: a cheap one for side work, a good one for the conversation. Here
//! both are the same embedded model, so that the program runs without a key.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{Error, ModelPolicyResult, QoderAgentOptions, query};

/// For the conversation.
const GOOD: &str = "offline";
/// For side work, such as summaries.
const CHEAP: &str = "offline";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    for purpose in run(QoderAgentOptions::new()).await? {
        println!("a model was chosen for {purpose}");
    }
    Ok(())
}

/// Asks once and returns what models were chosen for.
pub async fn run(options: QoderAgentOptions) -> Result<Vec<String>, Error> {
    let purposes = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&purposes);
    let options = options.model("offline").resolve_model(move |context| {
        let model = if context.purpose == "main" { GOOD } else { CHEAP };
        if let Ok(mut list) = list.lock() {
            list.push(context.purpose);
        }
        async move { ModelPolicyResult::model(model) }
    });
    let mut messages = query("Say hello.", options)?;
    while let Some(message) = messages.next().await {
        message?;
    }
    Ok(purposes.lock().map(|list| list.clone()).unwrap_or_default())
}
