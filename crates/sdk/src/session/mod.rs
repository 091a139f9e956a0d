//! A session from the outside: messages come out, orders go in, and it can be closed. Behind it a thread of its own
//! drives the engine or an external program, so a host that blocks cannot stall a session and a session cannot stall
//! the host. Nothing here needs a particular executor.

mod control;
mod messages;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::StreamExt;
use qoder_runtime::engine::interrupt::Interrupt;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use control::Control;
pub(crate) use messages::{MessageReceiver, MessageSender};

use crate::answer::panic_text;
use crate::private_files::PrivateFiles;
use crate::prompt::Prompt;
use crate::session_store::{self, Copier, SharedSessionStore};
use crate::{Error, QoderAgentOptions, Result, UserMessage, external, in_process};

/// What a program sends to a session.
pub(crate) enum Order {
    /// A prompt.
    Input(UserMessage),
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
    /// The session is ready; `info` is what it says of itself.
    pub(crate) fn ready(&mut self, info: Value) {
        if let Some(sender) = self.0.take() {
            // The caller may have given up waiting.
            let _ = sender.send(Ok(info));
        }
    }

    /// Hands the error to the caller that waits; returns it when no caller does.
    fn failed(&mut self, error: Error) -> Option<Error> {
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
    /// Sends a prompt.
    pub(crate) fn submit(&self, message: UserMessage) -> Result<()> {
        if let Some(problem) = message.complaint() {
            return Err(Error::option("prompt", problem, "say what the model shall do"));
        }
        self.orders.send(Order::Input(message)).map_err(|_| Error::Closed)
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

/// Starts a session on a thread of its own.
pub(crate) fn start(
    options: QoderAgentOptions,
    prompt: Option<Prompt>,
    one_shot: bool,
) -> Result<Connection> {
    options.validate()?;
    if let Some(Prompt::Text(text)) = &prompt
        && let Some(problem) = UserMessage::new(text.as_str()).complaint()
    {
        return Err(Error::option("prompt", problem, "say what the model shall do"));
    }
    let (orders, order_receiver) = mpsc::unbounded_channel();
    let (messages, message_receiver) = messages::channel();
    let (ready, ready_receiver) = oneshot::channel();
    let (alive, ended) = watch::channel(());
    let closing = Interrupt::default();
    let start = Start {
        options: Arc::new(options),
        prompt,
        one_shot,
        orders: order_receiver,
        messages,
        copier: None,
        closing: closing.clone(),
        ready: Ready((!one_shot).then_some(ready)),
    };
    let thread = std::thread::Builder::new().name("qoder-session".to_owned());
    thread
        .spawn(move || {
            run(start);
            drop(alive);
        })
        .map_err(|error| Error::Io { what: "start a thread".to_owned(), problem: error.to_string() })?;
    Ok(Connection {
        messages: message_receiver,
        link: Link { orders, closing, ended },
        ready: ready_receiver,
    })
}

/// The thread of a session. Foreign code runs here too, and a panic in it is the end of this session alone.
fn run(mut start: Start) {
    let driven = catch_unwind(AssertUnwindSafe(|| drive(&mut start)));
    let ended = driven.unwrap_or_else(|panic| {
        Err(Error::Protocol(format!("the session's thread panicked: {}", panic_text(&*panic))))
    });
    if let Err(error) = ended {
        tell(&mut start, error);
    }
}

fn drive(start: &mut Start) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Error::Io { what: "start a session".to_owned(), problem: error.to_string() })?;
    let ended = runtime.block_on(async {
        match start.options.session_store.clone() {
            None => run_kind(start).await,
            Some(store) => Box::pin(run_copied(start, &store)).await,
        }
    });
    // A walk of a tree or a blocking read must not hold the end up.
    runtime.shutdown_background();
    ended
}

/// Runs the session in process, or in the external program that the options name.
async fn run_kind(start: &mut Start) -> Result<()> {
    if start.options.cli_path.is_some() {
        external::run(start).await
    } else {
        Box::pin(in_process::run(start)).await
    }
}

/// Brings the session from the store, and copies to the store what happens now.
async fn run_copied(start: &mut Start, store: &SharedSessionStore) -> Result<()> {
    // Held until the end, because the restored logs are in it.
    let mut files = PrivateFiles::default();
    let closed = start.closing.cancelled();
    let options = tokio::select! {
        biased;
        () = closed => return Ok(()),
        options = session_store::restored(&start.options, store, &mut files) => options?,
    };
    start.options = Arc::new(options);
    let direct = start.messages.clone();
    let courier = session_store::begin(&start.options, store, direct.clone());
    start.messages = direct.through(courier.inbox());
    start.copier = Some(courier.copier());
    let ended = run_kind(start).await;
    courier.end().await;
    start.messages = direct;
    ended
}

fn tell(start: &mut Start, error: Error) {
    if let Some(error) = start.ready.failed(error) {
        start.messages.send(Err(error));
    }
}

/// The next prompt of what is asked first; pending after the last one.
pub(crate) async fn next_prompt(prompt: &mut Option<Prompt>) -> Option<UserMessage> {
    // Polled in place, so that nothing is lost when the wait is given up.
    match prompt {
        None => std::future::pending().await,
        Some(Prompt::Text(text)) => {
            let text = std::mem::take(text);
            *prompt = Some(Prompt::Messages(futures::stream::empty().boxed()));
            Some(UserMessage::new(text))
        }
        Some(Prompt::Messages(messages)) => {
            let next = messages.next().await;
            if next.is_none() {
                *prompt = None;
            }
            next
        }
    }
}
