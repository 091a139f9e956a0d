//! The inbox of a session that has a seat: what clients sent, in the order in which the front took it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_store::inbox::{InboxError, Item, SessionInbox};
use qoder_types::InboxReply;

use super::shared::Shared;

/// Gives entries to the session.
pub(super) struct SeatInbox(pub(super) Arc<Shared>);

impl SessionInbox for SeatInbox {
    fn take(&mut self) -> Vec<Item> {
        // The front has checked each entry against the state of the session; that it was left before this process took the
        // session does not make it too old.
        let now = qoder_store::timestamp();
        let entries = self.0.take_entries().into_iter();
        entries.map(|entry| Item::Entry(qoder_types::InboxEntry { at: now.clone(), ..entry })).collect()
    }

    fn settle(&mut self, reply: InboxReply) -> Result<(), InboxError> {
        self.0.settle(&reply.id);
        Ok(())
    }

    fn arrived(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.0);
        async move {
            if !shared.has_entries() {
                shared.mail.notified().await;
            }
        }
        .boxed()
    }

    fn settles_with_log(&self) -> bool {
        true
    }
}

/// The inbox of an agent: what is left for it is in that of its session.
pub(super) struct NoInbox;

impl SessionInbox for NoInbox {
    fn take(&mut self) -> Vec<Item> {
        Vec::new()
    }

    fn settle(&mut self, _: InboxReply) -> Result<(), InboxError> {
        Ok(())
    }

    fn arrived(&self) -> BoxFuture<'static, ()> {
        std::future::pending().boxed()
    }
}
