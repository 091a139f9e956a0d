//! The pipes to a running tool host: sends calls, and hands what comes back to those who wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::error::HostError;
use super::lines::{Receiver, Sender};
use super::message::{FromHost, HostSettings, ToHost, VERSION};
use super::pending::Pending;
use super::tool_host::Launched;

/// How much of what a host says about problems is kept.
const KEPT_ERRORS: usize = 4 * 1024;

/// A running host.
pub(crate) struct Link {
    pub(crate) sender: Sender,
    pub(crate) pending: Arc<Pending>,
    next: AtomicU64,
    tasks: [JoinHandle<()>; 2],
    _process: Box<dyn Send + Sync>,
}

impl Link {
    /// Waits until a host that was started answers.
    pub(crate) async fn open(launched: Launched, settings: HostSettings) -> Result<Arc<Self>, HostError> {
        let Launched { input, output, errors, start, process } = launched;
        let (sender, writing) = Sender::start(input);
        sender.send(&ToHost::Start { version: VERSION, settings, start });
        let pending = Arc::new(Pending::new(sender.clone()));
        let (ready, is_ready) = oneshot::channel();
        let reading = tokio::spawn(read(output, errors, Arc::clone(&pending), ready));
        let link =
            Self { sender, pending, next: AtomicU64::new(1), tasks: [writing, reading], _process: process };
        match is_ready.await {
            Ok(VERSION) => Ok(Arc::new(link)),
            Ok(other) => {
                let problem = format!("it speaks version {other} of the protocol, and this is {VERSION}");
                Err(HostError::Start(problem))
            }
            Err(_) => Err(HostError::Start(link.pending.problem())),
        }
    }

    /// False when the host has ended.
    pub(crate) fn is_open(&self) -> bool {
        self.pending.is_open()
    }

    /// A number for a call or a file.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.pending.close("it was ended with the session's work");
    }
}

/// Takes what the host says, until it ends.
async fn read(
    output: Box<dyn AsyncRead + Send + Unpin>,
    errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pending: Arc<Pending>,
    ready: oneshot::Sender<u32>,
) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let listening = errors.map(|errors| tokio::spawn(keep_errors(errors, Arc::clone(&said))));
    let (mut receiver, mut ready) = (Receiver::new(output), Some(ready));
    let problem = loop {
        match receiver.next::<FromHost>().await {
            Ok(Some(FromHost::Ready { version })) => {
                if let Some(ready) = ready.take() {
                    // Who opens the link may have given up.
                    let _ = ready.send(version);
                }
            }
            Ok(Some(message)) => pending.take(message),
            Ok(None) => break None,
            Err(error) => break Some(format!("it does not keep to the protocol ({error})")),
        }
    };
    if let Some(listening) = listening {
        // The end of what it says comes with its own end.
        drop(tokio::time::timeout(std::time::Duration::from_secs(1), listening).await);
    }
    let said = String::from_utf8_lossy(&said.lock().await).trim().to_owned();
    let problem = match (problem, said.is_empty()) {
        (Some(problem), true) => problem,
        (Some(problem), false) => format!("{problem}: {said}"),
        (None, false) => said,
        (None, true) => "its process ended".to_owned(),
    };
    pending.close(&problem);
}

async fn keep_errors(mut errors: Box<dyn AsyncRead + Send + Unpin>, said: Arc<Mutex<Vec<u8>>>) {
    let mut piece = vec![0; KEPT_ERRORS];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        let mut said = said.lock().await;
        said.extend_from_slice(&piece[..count]);
        let surplus = said.len().saturating_sub(KEPT_ERRORS);
        said.drain(..surplus);
    }
}
