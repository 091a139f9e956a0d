//! Text as it is written: pieces of the reply arrive before the reply itself, which still comes whole at the end.

use std::io::Write;

use futures::StreamExt;
use qoder_agent_sdk::{Error, Message, QoderAgentOptions, query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(QoderAgentOptions::new()).await?;
    Ok(())
}

/// Asks, prints the pieces, and returns them and the whole.
pub async fn run(options: QoderAgentOptions) -> Result<(String, String), Error> {
    let (mut pieces, mut whole) = (String::new(), String::new());
    let mut messages = query("What does this repository do?", options.include_partial_messages(true))?;
    while let Some(message) = messages.next().await {
        match message? {
            Message::StreamEvent(event) => {
                if let Some(text) = event.text() {
                    print!("{text}");
                    // A terminal that is gone is no reason to stop.
                    let _ = std::io::stdout().flush();
                    pieces.push_str(text);
                }
            }
            Message::Result(result) => {
                println!();
                whole = result.text().to_owned();
            }
            _ => {}
        }
    }
    Ok((pieces, whole))
}
