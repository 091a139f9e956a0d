//! A place to run sessions in, playbooks for the model, and ways to read what came. Nothing of the caller's
//! configuration is read; a test that does not end in a minute fails.

use std::future::Future;
use std::time::Duration;

use futures::{Stream, StreamExt};
use qoder_agent_sdk::{ContentBlock, Message, QoderAgentOptions, ResultMessage, SessionPlace};
use qoder_testkit::Sandbox;
use serde_json::{Value, json};

/// A guard against hanging; no test depends on how long it is.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// A temporary home and project.
pub struct Place(pub Sandbox);

impl Place {
    pub fn new() -> Self {
        Self(Sandbox::new())
    }

    /// Options that stay inside.
    pub fn options(&self) -> QoderAgentOptions {
        QoderAgentOptions::new()
            .cwd(self.0.project())
            .env("HOME", self.0.home().display().to_string())
            .env("QODER_CONFIG_DIR", self.0.config().display().to_string())
            .env("QODER_RETRY_BASE_MS", "1")
    }

    /// Options with a model that plays these replies.
    pub fn playing(&self, replies: &Value) -> QoderAgentOptions {
        self.options().model(self.playbook(replies))
    }

    /// The name of a model that plays these replies.
    pub fn playbook(&self, replies: &Value) -> String {
        let name = format!("playbook-{}.json", replies.to_string().len());
        let path = self.0.write(self.0.home().join(name), json!({ "replies": replies }).to_string());
        format!("scripted:{}", path.display())
    }

    /// Where its sessions are.
    pub fn sessions(&self) -> SessionPlace {
        SessionPlace::of(self.0.project()).in_config_dir(self.0.config())
    }
}

/// Fails a test that hangs.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG_LIMIT, work).await.unwrap()
}

/// All messages of a stream.
pub async fn all(stream: impl Stream<Item = qoder_agent_sdk::Result<Message>>) -> Vec<Message> {
    within(stream.map(Result::unwrap).collect()).await
}

/// The only result among messages.
pub fn result(messages: &[Message]) -> &ResultMessage {
    let results: Vec<&ResultMessage> = messages.iter().filter_map(Message::as_result).collect();
    assert_eq!(results.len(), 1, "{messages:#?}");
    results[0]
}

/// Text and failure of every tool result among messages.
pub fn tool_results(messages: &[Message]) -> Vec<(String, bool)> {
    let users = messages.iter().filter_map(|message| match message {
        Message::User(user) => Some(user.content().to_vec()),
        _ => None,
    });
    users
        .flatten()
        .filter_map(|block| match block {
            ContentBlock::ToolResult { content, is_error, .. } => Some((content.to_text(), is_error)),
            _ => None,
        })
        .collect()
}

/// A playbook that calls a tool once and then says what it read.
pub fn call_then_done(name: &str, input: &Value) -> Value {
    json!([
        { "when": { "turn": 1 }, "toolCalls": [{ "name": name, "input": input, "id": "call_1" }] },
        { "text": "done", "repeat": true },
    ])
}
