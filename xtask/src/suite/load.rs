//! A busy machine on demand: threads that do nothing but compute, so that tests which depend on speed fall.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Threads that compute until this is dropped.
pub(super) struct Load {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts so many threads.
    pub(super) fn start(threads: usize) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let spin = || {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                let mut number = 1_u64;
                while !done.load(Ordering::Relaxed) {
                    for _ in 0..100_000 {
                        number = std::hint::black_box(
                            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1),
                        );
                    }
                }
            })
        };
        let threads = (0..threads).map(|_| spin()).collect();
        Self { done, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot fail, and nothing would follow from it.
            let _ = thread.join();
        }
    }
}
