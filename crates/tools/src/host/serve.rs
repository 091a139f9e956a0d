//! The tool host: takes calls from its pipe and runs them here, until the pipe ends.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qoder_core::ports::{CommandEnvironment, Tool};
use qoder_core::redact::Redactor;
use qoder_process::loopback_to_socket;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::lines::{Receiver, Sender, decode};
use super::message::{FromHost, ToHost, VERSION};
use super::serve_asking::{Answer, Asking};
use super::serve_call::{Running, run_call};
use super::serve_files::OpenFiles;
use crate::{SessionShared, ToolSettings};

/// How long calls may take to end when the pipe has ended.
const GRACE: Duration = Duration::from_secs(5);
/// How long a task may take to accept input.
const INPUT_PATIENCE: Duration = Duration::from_secs(60);

/// What all calls of a host share.
pub(crate) struct Host {
    pub(crate) sender: Sender,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) environment: Arc<CommandEnvironment>,
    pub(crate) redactor: Redactor,
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) asking: Asking,
    pub(crate) running: Mutex<HashMap<u64, Running>>,
    /// By task: the receipt of one that was announced.
    pub(crate) announced: Mutex<HashMap<String, qoder_core::ports::Receipt>>,
}

/// Serves calls until the input ends, then ends what runs.
///
/// # Errors
/// When a pipe fails, or what comes is not the protocol.
pub(crate) async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    tools: fn(&ToolSettings) -> Vec<Arc<dyn Tool>>,
) -> io::Result<()> {
    let mut receiver = Receiver::new(input);
    let (sender, writing) = Sender::start(output);
    let Some(ToHost::Start { version, settings, start }) = receiver.next().await? else {
        return Err(io::Error::other("the first message does not start the host"));
    };
    sender.send(&FromHost::Ready { version: VERSION });
    if version != VERSION {
        drop(sender);
        // The caller reads which version it is.
        drop(writing.await);
        return Err(io::Error::other(format!("the caller speaks version {version}, and this is {VERSION}")));
    }
    let mut variables = start.variables;
    if let Some(socket) = start.proxy {
        variables.extend(loopback_to_socket(&socket)?);
    }
    let host = Arc::new(Host {
        asking: Asking::new(sender.clone()),
        sender,
        tools: tools(&settings.tool_settings()),
        environment: Arc::new(CommandEnvironment {
            hidden: Vec::new(),
            changed: variables.into_iter().map(|(name, value)| (name, Some(value))).collect(),
        }),
        redactor: Redactor::new(start.secrets),
        shared: SessionShared::new(),
        running: Mutex::default(),
        announced: Mutex::default(),
    });
    let mut calls = JoinSet::new();
    let ended = take_messages(&host, &mut receiver, &mut calls).await;
    for (_, running) in lock(&host.running).drain() {
        running.cancel();
    }
    let ending = async {
        host.shared.shutdown().await;
        while calls.join_next().await.is_some() {}
    };
    // What does not end in time ends with this process.
    drop(tokio::time::timeout(GRACE, ending).await);
    ended
}

async fn take_messages(
    host: &Arc<Host>,
    receiver: &mut Receiver<impl AsyncRead + Unpin>,
    calls: &mut JoinSet<()>,
) -> io::Result<()> {
    let files = OpenFiles::new(host.sender.clone());
    while let Some(message) = receiver.next::<ToHost>().await? {
        while calls.try_join_next().is_some() {}
        match message {
            ToHost::Start { .. } => return Err(io::Error::other("the host was started before")),
            ToHost::Call { call, tool, input, context } => {
                let (cancel, cancelled) = watch::channel(false);
                let running = Running::new(cancel, context.tool_use_id.clone());
                lock(&host.running).insert(call, running);
                calls.spawn(run_call(Arc::clone(host), (call, tool, input), *context, cancelled));
            }
            ToHost::Cancel { call } => {
                if let Some(running) = lock(&host.running).get(&call) {
                    running.cancel();
                }
            }
            ToHost::Move { call } => {
                if let Some(running) = lock(&host.running).get(&call) {
                    host.shared.move_to_background(Some(running.tool_use_id()));
                }
            }
            ToHost::Observed { question, observation } => {
                host.asking.answer(question, Answer::Observed(observation));
            }
            ToHost::Hidden { question, is_hidden } => {
                host.asking.answer(question, Answer::Hidden(is_hidden));
            }
            ToHost::Recorded { task, is_recorded } => {
                let receipt = lock(&host.announced).remove(&task);
                // Dropped unconfirmed, it says that the task is not on record.
                if let Some(receipt) = receipt.filter(|_| is_recorded) {
                    receipt.confirm();
                }
            }
            ToHost::StopTask { task } => {
                if let Some(task) = host.shared.task(&task) {
                    task.ask_to_stop();
                }
            }
            ToHost::TaskInput { task, data } => give_input(host, &task, decode(&data), calls),
            ToHost::OpenFile { file, path } => files.open(file, path).await,
            ToHost::ReadFile { file } => files.read(file).await,
            ToHost::CloseFile { file } => files.close(file),
        }
    }
    Ok(())
}

/// Writes to a task without keeping others waiting; pieces for one task wait for one another.
fn give_input(host: &Host, task: &str, data: Vec<u8>, calls: &mut JoinSet<()>) {
    let Some(task) = host.shared.task(task) else { return };
    calls.spawn(async move {
        let write = async {
            if let Some(pipe) = task.input.lock().await.as_mut() {
                // A task that does not read its input, or has ended, loses it.
                let _ = pipe.write_all(&data).await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(INPUT_PATIENCE, write) => {}
            () = task.ended() => {}
        }
    });
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
