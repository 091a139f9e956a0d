//! A chat in the terminal: type a line, read the reply as it is written, end with an empty line. Questions about
//! calls are put to you.

use std::io::{BufRead, Write};

use futures::StreamExt;
use qoder_agent_sdk::{Error, Message, PermissionResult, QoderAgentOptions, QoderSdkClient};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let options = QoderAgentOptions::new().can_use_tool(|tool_name, input, _| async move {
        print!("{tool_name} {input}\nMay it run? [y/N] ");
        // A terminal that is gone answers nothing, which is no.
        let _ = std::io::stdout().flush();
        let answer = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        match answer.await {
            Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("y") => PermissionResult::allow(),
            _ => PermissionResult::deny("The person said no."),
        }
    });
    run(options, std::io::stdin().lock(), std::io::stdout()).await
}

/// Answers each line of the input until an empty one.
pub async fn run(
    options: QoderAgentOptions,
    input: impl BufRead,
    mut output: impl Write,
) -> Result<(), Error> {
    let mut client = QoderSdkClient::new(options.include_partial_messages(true));
    client.connect(None).await?;
    for line in input.lines().map_while(Result::ok).take_while(|line| !line.trim().is_empty()) {
        client.query(line).await?;
        let mut response = client.receive_response();
        while let Some(message) = response.next().await {
            let text = match message? {
                Message::StreamEvent(event) => event.text().unwrap_or_default().to_owned(),
                Message::Result(result) => format!("\n{}", result.errors.join("\n")),
                _ => continue,
            };
            // The reader of the output is gone; the conversation ends with the input.
            let _ = write!(output, "{text}").and_then(|()| output.flush());
        }
    }
    client.disconnect().await
}
