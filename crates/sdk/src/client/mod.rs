//! A conversation: connect once, ask as often as you like, and change the session while it runs. This file owns the
//! connection and the messages; everything else that a session can be asked is in `controls`.

mod controls;
mod lists;
mod query;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tokio::sync::Mutex;

pub use controls::{ContextUsage, InterruptReceipt, RewindResult};
pub use query::{Query, query};

use crate::error::{Error, Result};
use crate::messages::{Message, Prompt, UserMessage};
use crate::options::QoderAgentOptions;
use crate::session::{Link, MessageReceiver};
use crate::transport;

/// A conversation.
///
/// ```
/// use futures::StreamExt;
/// use qoder_agent_sdk::{QoderAgentOptions, QoderSdkClient};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), qoder_agent_sdk::Error> {
/// # let home = tempfile::tempdir().unwrap();
/// # let cwd = home.path().to_path_buf();
/// # let config = home.path().display().to_string();
/// let options = QoderAgentOptions::new().model("offline").cwd(cwd).env("QODER_CONFIG_DIR", config);
/// let mut client = QoderSdkClient::new(options);
/// client.connect(None).await?;
/// for question in ["Hello.", "And again."] {
///     client.query(question).await?;
///     let mut response = client.receive_response();
///     while let Some(message) = response.next().await {
///         if let Some(result) = message?.as_result() {
///             assert!(!result.is_error);
///         }
///     }
/// }
/// client.disconnect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct QoderSdkClient {
    options: QoderAgentOptions,
    connected: Option<Connected>,
}

#[derive(Debug)]
struct Connected {
    messages: Mutex<MessageReceiver>,
    link: Link,
    info: Value,
    /// What the last `reload_plugins` answered: its lists count instead of those in `info`.
    reloaded: std::sync::Mutex<Value>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Link").finish_non_exhaustive()
    }
}

impl QoderSdkClient {
    /// A client that is not connected yet.
    #[must_use]
    pub fn new(options: QoderAgentOptions) -> Self {
        Self { options, connected: None }
    }

    /// Starts the session, and asks the first question if there is one.
    ///
    /// # Errors
    /// When an option cannot be used, or the session cannot be started.
    pub async fn connect(&mut self, prompt: Option<Prompt>) -> Result<()> {
        if self.connected.is_some() {
            return Err(Error::AlreadyConnected);
        }
        let connection = transport::start(self.options.clone(), prompt, false)?;
        let info = connection.ready.await.unwrap_or(Err(Error::Closed))?;
        let messages = Mutex::new(connection.messages);
        self.connected =
            Some(Connected { messages, link: connection.link, info, reloaded: std::sync::Mutex::default() });
        Ok(())
    }

    /// Asks. The turn starts, or waits for the one that runs.
    ///
    /// # Errors
    /// When the client is not connected, the session has ended, or the message is empty.
    pub async fn query(&self, prompt: impl Into<UserMessage>) -> Result<()> {
        self.link()?.submit(prompt.into())
    }

    /// The messages up to and including the next result.
    #[must_use]
    pub fn receive_response(&self) -> BoxStream<'_, Result<Message>> {
        self.receive(|message| matches!(message, Ok(Message::Result(_))))
    }

    /// All messages, until the session ends.
    #[must_use]
    pub fn receive_messages(&self) -> BoxStream<'_, Result<Message>> {
        self.receive(|_| false)
    }

    /// The messages up to and including one that is the last.
    fn receive(&self, is_last: fn(&Result<Message>) -> bool) -> BoxStream<'_, Result<Message>> {
        let Some(connected) = &self.connected else {
            return stream::once(std::future::ready(Err(Error::NotConnected))).boxed();
        };
        stream::unfold(Some(&connected.messages), move |messages| async move {
            let messages = messages?;
            let message = messages.lock().await.recv().await?;
            let more = (!is_last(&message)).then_some(messages);
            Some((message, more))
        })
        .boxed()
    }

    /// Ends the session and waits until everything of it is written.
    ///
    /// # Errors
    /// When the client is not connected.
    pub async fn disconnect(&mut self) -> Result<()> {
        let mut connected = self.connected.take().ok_or(Error::NotConnected)?;
        connected.link.close();
        connected.link.ended().await;
        Ok(())
    }

    /// True between `connect` and `disconnect`.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// What the session said of itself when it was ready; `None` before that.
    #[must_use]
    pub fn get_server_info(&self) -> Option<&Value> {
        self.connected.as_ref().map(|connected| &connected.info)
    }

    /// The session's id, once it is known.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.get_server_info()?.get("session_id")?.as_str()
    }

    fn link(&self) -> Result<&Link> {
        self.connected.as_ref().map(|connected| &connected.link).ok_or(Error::NotConnected)
    }
}
