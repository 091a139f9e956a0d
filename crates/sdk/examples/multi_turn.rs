//! A conversation: each question follows the last answer, and the session remembers what was said.

use futures::StreamExt;
use qoder_agent_sdk::{Error, QoderAgentOptions, QoderSdkClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    for answer in run(QoderAgentOptions::new()).await? {
        println!("{answer}");
    }
    Ok(())
}

/// Asks twice and returns both answers.
pub async fn run(options: QoderAgentOptions) -> Result<Vec<String>, Error> {
    let mut client = QoderSdkClient::new(options);
    client.connect(None).await?;
    let mut answers = Vec::new();
    for question in ["List files in .", "How many lines does README.md have?"] {
        client.query(question).await?;
        let mut response = client.receive_response();
        while let Some(message) = response.next().await {
            if let Some(result) = message?.as_result() {
                answers.push(result.text().to_owned());
            }
        }
    }
    client.disconnect().await?;
    Ok(answers)
}
