//! The line between a node and the database: every request is a little late, some are lost, and what it does can be changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_server::store::DbError;
use qoder_server::store::sqlite::Line;
use tokio::sync::watch;

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Loses one request in a hundred.
    Open,
    /// Loses every third request.
    Flaky,
    /// Loses every third answer as well. A node behind such a line is about to end.
    Lossy,
    /// Holds everything up until it is open again: the node is frozen.
    Frozen,
    /// Holds everything up for ever: the node was killed.
    Dead,
}

/// A line of a node.
#[derive(Debug)]
pub struct NodeLine {
    seed: u64,
    number: AtomicU64,
    mode: watch::Sender<Mode>,
}

/// A number that follows from others (SplitMix64).
pub fn mix(seed: u64, number: u64) -> u64 {
    let state = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl NodeLine {
    pub fn new(seed: u64) -> Self {
        Self { seed, number: AtomicU64::new(0), mode: watch::Sender::new(Mode::Open) }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    pub fn mode(&self) -> Mode {
        *self.mode.borrow()
    }

    fn way(
        &self,
        loses: impl Fn(Mode, u64) -> bool + Send + 'static,
    ) -> BoxFuture<'static, Result<(), DbError>> {
        let drawn = mix(self.seed, self.number.fetch_add(1, Ordering::SeqCst));
        let mut mode = self.mode.subscribe();
        async move {
            // Most are quick; some overtake others.
            let late = if drawn.is_multiple_of(10) { 40 } else { 2 };
            tokio::time::sleep(Duration::from_micros(100 + (drawn >> 8) % (late * 1_000))).await;
            let passing = |mode: &Mode| !matches!(mode, Mode::Frozen | Mode::Dead);
            let Ok(now) = mode.wait_for(passing).await.map(|mode| *mode) else {
                return std::future::pending().await;
            };
            match loses(now, drawn >> 32) {
                true => Err(DbError::Unavailable("lost on the way".to_owned())),
                false => Ok(()),
            }
        }
        .boxed()
    }
}

impl Line for NodeLine {
    fn there(&self) -> BoxFuture<'static, Result<(), DbError>> {
        self.way(|mode, drawn| match mode {
            Mode::Open => drawn.is_multiple_of(100),
            Mode::Flaky | Mode::Lossy => drawn.is_multiple_of(3),
            Mode::Frozen | Mode::Dead => false,
        })
    }

    fn back(&self) -> BoxFuture<'static, Result<(), DbError>> {
        self.way(|mode, drawn| mode == Mode::Lossy && drawn.is_multiple_of(3))
    }
}
