//! The smallest program: one question, and the messages of the answer as they come. Without a key the model
//! `offline` answers.

use futures::StreamExt;
use qoder_agent_sdk::{Error, Message, QoderAgentOptions, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(QoderAgentOptions::new()).await?;
    Ok(())
}

/// Asks, prints what comes, and returns the answer.
pub async fn run(options: QoderAgentOptions) -> Result<String, Error> {
    let mut answer = String::new();
    let mut messages = query("List files in .", options)?;
    while let Some(message) = messages.next().await {
        match message? {
            Message::Assistant(reply) => println!("{}", reply.text()),
            Message::Result(result) => {
                println!("{} after {} ms", result.subtype, result.duration_ms);
                answer = result.text().to_owned();
            }
            _ => {}
        }
    }
    Ok(answer)
}
