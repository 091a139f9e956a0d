//! The simple way: one question, or several that are known before, and a stream of messages. For conversations whose
//! next question depends on the last answer there is [`QoderSdkClient`](crate::QoderSdkClient).

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;

use crate::error::Result;
use crate::messages::{Message, Prompt};
use crate::options::QoderAgentOptions;
use crate::session::{Connection, Link, MessageReceiver};
use crate::transport;

/// Asks, and returns the messages of the session as they come. The stream ends after the last result; dropping it
/// ends the session, stops what runs in the background and closes the log.
///
/// A session that is a few hundred messages ahead of its reader waits for it, so unread messages do not pile up.
///
/// Options that cannot be used are an error here, at the place where they are written, and nothing is started. What
/// only the start itself can show (settings that cannot be read, an unknown model, a session that does not exist) is
/// the first item of the stream.
///
/// ```
/// use futures::StreamExt;
/// use qoder_agent_sdk::{Message, QoderAgentOptions, query};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), qoder_agent_sdk::Error> {
/// # let home = tempfile::tempdir().unwrap();
/// # let cwd = home.path().to_path_buf();
/// # let config = home.path().display().to_string();
/// let options = QoderAgentOptions::new().model("offline").cwd(cwd).env("QODER_CONFIG_DIR", config);
/// let mut messages = query("Say hello.", options)?;
/// while let Some(message) = messages.next().await {
///     if let Message::Result(result) = message? {
///         assert!(!result.is_error);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When an option or the prompt cannot be used.
pub fn query(prompt: impl Into<Prompt>, options: QoderAgentOptions) -> Result<Query> {
    let Connection { messages, link, .. } = transport::start(options, Some(prompt.into()), true)?;
    Ok(Query { messages, link })
}

/// The messages of a query.
pub struct Query {
    messages: MessageReceiver,
    link: Link,
}

impl Query {
    /// Ends the session and waits until everything of it is written.
    pub async fn close(mut self) {
        self.link.close();
        self.link.ended().await;
    }
}

impl Stream for Query {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.messages.poll_recv(context)
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Query").finish_non_exhaustive()
    }
}
