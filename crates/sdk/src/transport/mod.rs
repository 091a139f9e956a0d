//! What runs a session: the engine in this process, or an external program behind the same interface. Either has a thread
//! of its own, so a host that blocks cannot stall a session and a session cannot stall the host.

mod callbacks;
mod external;
mod in_process;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::StreamExt;
use qoder_runtime::Interrupt;
use tokio::sync::{mpsc, oneshot, watch};

use crate::callback::panic_text;
use crate::error::{Error, Result};
use crate::messages::{Prompt, UserMessage, check};
use crate::options::QoderAgentOptions;
use crate::session::{Connection, Link, PrivateFiles, Ready, Start, begin, channel, restored};
use crate::session_store::SharedSessionStore;

/// Starts a session on a thread of its own.
pub(crate) fn start(
    options: QoderAgentOptions,
    prompt: Option<Prompt>,
    one_shot: bool,
) -> Result<Connection> {
    options.validate()?;
    if let Some(Prompt::Text(text)) = &prompt {
        check(&UserMessage::new(text.as_str()))?;
    }
    let (orders, order_receiver) = mpsc::unbounded_channel();
    let (messages, message_receiver) = channel();
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
        ready: Ready::new((!one_shot).then_some(ready)),
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
        link: Link::new(orders, closing, ended),
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
        report_start(&mut start, error);
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
        options = restored(&start.options, store, &mut files) => options?,
    };
    start.options = Arc::new(options);
    let direct = start.messages.clone();
    let courier = begin(&start.options, store, direct.clone());
    start.messages = direct.through(courier.inbox());
    start.copier = Some(courier.copier());
    let ended = run_kind(start).await;
    courier.end().await;
    start.messages = direct;
    ended
}

fn report_start(start: &mut Start, error: Error) {
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
