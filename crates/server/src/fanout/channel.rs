//! What is published about one session: a ring of frames that all its subscribers share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::frame::Frame;
use crate::project::PreviewFrame;

/// Frames that a ring keeps.
pub(super) const KEPT: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum Item {
    Stored(Arc<Frame>),
    /// A piece of a reply; relayed when another node drives the session.
    Preview {
        frame: PreviewFrame,
        bytes: Bytes,
        is_relayed: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    /// The place of the first item.
    pub(super) base: u64,
    pub(super) items: VecDeque<Item>,
    /// The newest event that is known to be stored, here or by another node.
    pub(super) newest: u64,
    pub(super) is_deleted: bool,
}

impl Ring {
    pub(super) fn push(&mut self, item: Item) {
        if self.items.len() >= KEPT {
            self.items.pop_front();
            self.base += 1;
        }
        self.items.push_back(item);
    }

    pub(super) fn end(&self) -> u64 {
        self.base + self.items.len() as u64
    }
}

/// What is published about one session.
#[derive(Debug)]
pub(super) struct Channel {
    ring: Mutex<Ring>,
    pub(super) news: watch::Sender<u64>,
    pub(super) wanting_deltas: AtomicUsize,
    /// Nodes that have subscribers who want pieces.
    pub(super) wanted_elsewhere: AtomicUsize,
}

impl Channel {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            ring: Mutex::default(),
            news: watch::Sender::new(0),
            wanting_deltas: AtomicUsize::new(0),
            wanted_elsewhere: AtomicUsize::new(0),
        })
    }

    pub(super) fn is_wanted_here(&self) -> bool {
        self.wanting_deltas.load(Ordering::Relaxed) > 0
    }

    pub(super) fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn announce(&self) {
        self.news.send_modify(|version| *version += 1);
    }
}
