//! News of background tasks on their way to the log and the host. A task may outlive the call that started it and the
//! turn of that call, so the news belong to the session and wait there until a driver takes them.

use qoder_core::ports::ToolProgress;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// News of background tasks.
pub struct TaskEvents {
    sender: UnboundedSender<ToolProgress>,
    receiver: UnboundedReceiver<ToolProgress>,
    /// The one that [`TaskEvents::arrival`] has seen.
    first: Option<ToolProgress>,
}

impl Default for TaskEvents {
    fn default() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver, first: None }
    }
}

impl TaskEvents {
    pub(crate) fn sender(&self) -> UnboundedSender<ToolProgress> {
        self.sender.clone()
    }

    pub(crate) fn next(&mut self) -> Option<ToolProgress> {
        self.first.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Completes when there is something to pass on. Nothing is lost when it is not waited for to the end.
    pub async fn arrival(&mut self) {
        if self.first.is_none() {
            self.first = self.receiver.recv().await;
        }
    }
}
