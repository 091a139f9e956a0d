//! The way of messages from a session to their reader. What waits unread is bounded: a session that is ahead of its
//! reader waits between two steps, and still obeys orders meanwhile. No message is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::{Notify, mpsc};

use super::copying::Item;
use crate::error::Result;
use crate::messages::Message;

/// How many messages may wait before the session does.
const MOST_UNREAD: usize = 256;

/// How far the reader is behind.
#[derive(Debug, Default)]
struct Pace {
    unread: AtomicUsize,
    read: Notify,
    /// The reader is gone.
    is_closed: AtomicBool,
}

/// Where the messages of a session go.
#[derive(Clone)]
pub(crate) struct MessageSender {
    way: Way,
    pace: Arc<Pace>,
}

/// How messages get to the reader.
#[derive(Clone)]
enum Way {
    Direct(mpsc::UnboundedSender<Result<Message>>),
    /// Through the task that copies the session to a store.
    Courier(mpsc::UnboundedSender<Item>),
}

/// Where they are read.
#[derive(Debug)]
pub(crate) struct MessageReceiver {
    receiver: mpsc::UnboundedReceiver<Result<Message>>,
    pace: Arc<Pace>,
}

/// A way for messages.
pub(crate) fn channel() -> (MessageSender, MessageReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let pace = Arc::new(Pace::default());
    (MessageSender { way: Way::Direct(sender), pace: Arc::clone(&pace) }, MessageReceiver { receiver, pace })
}

impl MessageSender {
    /// Sends a message. Without a reader it is dropped; closing is on its way then.
    pub(crate) fn send(&self, message: Result<Message>) {
        self.pace.unread.fetch_add(1, Ordering::AcqRel);
        self.pass(message);
    }

    /// Passes a message on that was sent before and is counted already.
    pub(crate) fn pass(&self, message: Result<Message>) {
        match &self.way {
            Way::Direct(sender) => drop(sender.send(message)),
            Way::Courier(courier) => drop(courier.send(Item::Message(message))),
        }
    }

    /// The same way, through a courier who passes messages on to it.
    pub(crate) fn through(&self, courier: mpsc::UnboundedSender<Item>) -> Self {
        Self { way: Way::Courier(courier), pace: Arc::clone(&self.pace) }
    }

    fn is_closed(&self) -> bool {
        self.pace.is_closed.load(Ordering::Acquire)
    }

    /// True when the reader has kept up, or is gone.
    pub(crate) fn has_room(&self) -> bool {
        self.pace.unread.load(Ordering::Acquire) < MOST_UNREAD || self.is_closed()
    }

    /// Waits until the reader has kept up, or is gone.
    pub(crate) async fn room(&self) {
        loop {
            let read = self.pace.read.notified();
            tokio::pin!(read);
            // From here on a message that is read counts, also one that is read before the wait begins.
            read.as_mut().enable();
            if self.has_room() {
                return;
            }
            read.await;
        }
    }
}

impl MessageReceiver {
    /// The next message; `None` after the last.
    pub(crate) async fn recv(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// The next message, as streams want it.
    pub(crate) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        let polled = self.receiver.poll_recv(context);
        if let Poll::Ready(Some(_)) = &polled {
            self.pace.unread.fetch_sub(1, Ordering::AcqRel);
            self.pace.read.notify_waiters();
        }
        polled
    }
}

impl Drop for MessageReceiver {
    fn drop(&mut self) {
        self.receiver.close();
        self.pace.is_closed.store(true, Ordering::Release);
        self.pace.read.notify_waiters();
    }
}
