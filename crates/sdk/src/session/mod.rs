//! A session from the outside: messages come out, orders go in, and it can be closed. Behind it a thread of its own
//! drives the engine or an external program, so a host that blocks cannot stall a session and a session cannot stall
//! the host. Nothing here needs a particular executor.

mod control;
mod copying;
mod messages;
mod private_files;
mod restoring;

use std::sync::Arc;

use qoder_runtime::Interrupt;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use control::Control;
pub(crate) use copying::{Copier, begin};
pub(crate) use messages::{MessageReceiver, MessageSender, channel};
pub(crate) use private_files::{LONGEST_ARGUMENT, PrivateFiles};
pub(crate) use restoring::restored;

use crate::error::{Error, Result};
use crate::messages::{Prompt, UserMessage, check};
use crate::options::QoderAgentOptions;

/// What a program sends to a session.
pub(crate) enum Order {
    /// A prompt.
    Input(Box<UserMessage>),
    /// Something to do, and where the answer goes.
    Control(Control, oneshot::Sender<Result<Value>>),
}

/// Everything that the thread of a session gets.
pub(crate) struct Start {
    pub(crate) options: Arc<QoderAgentOptions>,
    /// What is asked first.
    pub(crate) prompt: Option<Prompt>,
    /// True when the session ends by itself after the prompt.
    pub(crate) one_shot: bool,
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    pub(crate) messages: MessageSender,
    /// Where lines of logs go when there is a store.
    pub(crate) copier: Option<Copier>,
    /// Triggered when the session shall end.
    pub(crate) closing: Interrupt,
    pub(crate) ready: Ready,
}

/// Reports to the caller that started the session that it is ready, or why it is not. A query does not wait for that: its
/// stream has the error.
pub(crate) struct Ready(Option<oneshot::Sender<Result<Value>>>);

impl Ready {
    /// Reports to this caller, when there is one.
    pub(crate) fn new(caller: Option<oneshot::Sender<Result<Value>>>) -> Self {
        Self(caller)
    }

    /// The session is ready; `info` is what it says of itself.
    pub(crate) fn ready(&mut self, info: Value) {
        if let Some(sender) = self.0.take() {
            // The caller may have given up waiting.
            let _ = sender.send(Ok(info));
        }
    }

    /// Hands the error to the caller that waits; returns it when no caller does.
    pub(crate) fn failed(&mut self, error: Error) -> Option<Error> {
        match self.0.take() {
            Some(sender) => sender.send(Err(error)).err().and_then(Result::err),
            None => Some(error),
        }
    }
}

/// The way to speak to a session. The session ends when it is dropped.
pub(crate) struct Link {
    orders: mpsc::UnboundedSender<Order>,
    closing: Interrupt,
    /// Its sender lives as long as the thread.
    ended: watch::Receiver<()>,
}

impl Link {
    /// The way to the thread of a session, which holds the sender of `ended` while it lives.
    pub(crate) fn new(
        orders: mpsc::UnboundedSender<Order>,
        closing: Interrupt,
        ended: watch::Receiver<()>,
    ) -> Self {
        Self { orders, closing, ended }
    }

    /// Sends a prompt.
    pub(crate) fn submit(&self, message: UserMessage) -> Result<()> {
        check(&message)?;
        self.orders.send(Order::Input(Box::new(message))).map_err(|_| Error::Closed)
    }

    /// Has something done and waits for what came of it.
    pub(crate) async fn request(&self, control: Control) -> Result<Value> {
        let (sender, answer) = oneshot::channel();
        self.orders.send(Order::Control(control, sender)).map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Asks the session to end.
    pub(crate) fn close(&self) {
        self.closing.trigger();
    }

    /// Completes when the session has ended and everything of it is written.
    pub(crate) async fn ended(&mut self) {
        // Nothing is ever sent; the channel closes with the thread.
        while self.ended.changed().await.is_ok() {}
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closing.trigger();
    }
}

/// A session that was started.
pub(crate) struct Connection {
    pub(crate) messages: MessageReceiver,
    pub(crate) link: Link,
    /// Completes when the session is ready; of no use for a query.
    pub(crate) ready: oneshot::Receiver<Result<Value>>,
}
