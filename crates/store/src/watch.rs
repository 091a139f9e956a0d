//! Waiting until something happens to a file or folder. One thread of the process reads the kernel's watches for all who
//! wait; it starts with the first of them. Where the kernel gives no watch, the wait ends every half second instead.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How often a place is looked at that cannot be watched.
const POLL: Duration = Duration::from_millis(500);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Names that appear in a folder.
    Names,
    /// Bytes that are written to a file, and its removal.
    Content,
    /// That a process closes a file that it could write to.
    Closing,
}

/// Watches one place until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    notify: Arc<Notify>,
    /// `None` where the kernel gives no watch.
    registration: Option<kernel::Registration>,
    next_look: Mutex<Instant>,
}

impl Watch {
    /// Watches `path` from now on.
    pub(crate) fn new(path: &Path, wanted: Wanted) -> Self {
        let notify = Arc::new(Notify::new());
        let registration = kernel::register(path, wanted, &notify);
        let path = path.to_path_buf();
        Self { path, notify, registration, next_look: Mutex::new(Instant::now() + POLL) }
    }

    /// True when it watches this place.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// True while the kernel reports what happens here.
    pub(crate) fn is_live(&self) -> bool {
        self.registration.as_ref().is_some_and(kernel::Registration::is_live)
    }

    /// True when the kernel has stopped reporting: what was watched is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.registration.is_some() && !self.is_live()
    }

    /// Completes when something may have happened since the last time it did. Dropping it loses nothing.
    pub(crate) async fn changed(&self) {
        if self.is_live() {
            return self.notify.notified().await;
        }
        let at = *self.next_look.lock().unwrap_or_else(PoisonError::into_inner);
        tokio::time::sleep_until(at).await;
        *self.next_look.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + POLL;
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::HashMap;
    use std::mem::MaybeUninit;
    use std::path::Path;
    use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

    use rustix::fd::OwnedFd;
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
    use tokio::sync::Notify;

    use super::Wanted;

    /// Room for many events at once.
    const BUFFER: usize = 16 * 1024;
    /// The thread does little.
    const STACK: usize = 64 * 1024;

    /// Who waits for what.
    type Waiting = HashMap<i32, Vec<Weak<Notify>>>;

    #[derive(Debug)]
    struct Watches {
        events: OwnedFd,
        waiting: Mutex<Waiting>,
    }

    /// Ends a watch when it is dropped.
    #[derive(Debug)]
    pub(super) struct Registration {
        watches: &'static Watches,
        watch: i32,
        notify: Weak<Notify>,
    }

    fn watches() -> Option<&'static Watches> {
        static WATCHES: OnceLock<Option<Watches>> = OnceLock::new();
        static STARTED: OnceLock<bool> = OnceLock::new();
        let made = || {
            let events = init(CreateFlags::CLOEXEC).ok()?;
            Some(Watches { events, waiting: Mutex::new(HashMap::new()) })
        };
        let watches = WATCHES.get_or_init(made).as_ref()?;
        let start = || {
            let thread = std::thread::Builder::new().name("session-watch".to_owned()).stack_size(STACK);
            thread.spawn(move || watches.read()).is_ok()
        };
        STARTED.get_or_init(start).then_some(watches)
    }

    pub(super) fn register(path: &Path, wanted: Wanted, notify: &Arc<Notify>) -> Option<Registration> {
        let watches = watches()?;
        let flags = match wanted {
            Wanted::Names => WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
            Wanted::Content => WatchFlags::MODIFY | WatchFlags::ATTRIB,
            Wanted::Closing => WatchFlags::CLOSE_WRITE,
        };
        let flags = flags | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW;
        let mut waiting = watches.waiting();
        let watch = add_watch(&watches.events, path, flags).ok()?;
        let notify = Arc::downgrade(notify);
        waiting.entry(watch).or_default().push(Weak::clone(&notify));
        Some(Registration { watches, watch, notify })
    }

    impl Watches {
        fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn read(&self) {
            let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
            let mut reader = Reader::new(&self.events, &mut buffer);
            loop {
                let (watch, what) = match reader.next() {
                    Ok(event) => (event.wd(), event.events()),
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(_) => {
                        // Waiting tasks poll from now on.
                        let waiting = std::mem::take(&mut *self.waiting());
                        waiting.into_values().for_each(|them| wake(&them));
                        return;
                    }
                };
                let mut waiting = self.waiting();
                if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                    waiting.values().for_each(|them| wake(them));
                } else if what.contains(ReadFlags::MOVE_SELF) {
                    // What is at the path now is another file or folder.
                    waiting.remove(&watch).iter().for_each(|them| wake(them));
                    // The kernel has none for what was removed meanwhile.
                    let _ = remove_watch(&self.events, watch);
                } else if what.contains(ReadFlags::IGNORED) {
                    waiting.remove(&watch).iter().for_each(|them| wake(them));
                } else if let Some(them) = waiting.get(&watch) {
                    wake(them);
                }
            }
        }
    }

    fn wake(waiting: &[Weak<Notify>]) {
        waiting.iter().filter_map(Weak::upgrade).for_each(|notify| notify.notify_one());
    }

    impl Registration {
        /// False once what is watched is gone.
        pub(super) fn is_live(&self) -> bool {
            self.watches.waiting().contains_key(&self.watch)
        }
    }

    impl Drop for Registration {
        fn drop(&mut self) {
            let mut waiting = self.watches.waiting();
            let Some(them) = waiting.get_mut(&self.watch) else { return };
            them.retain(|other| !other.ptr_eq(&self.notify));
            if them.is_empty() {
                waiting.remove(&self.watch);
                // The kernel has none for what was removed meanwhile.
                let _ = remove_watch(&self.watches.events, self.watch);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::path::Path;
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::Wanted;

    /// Never made: this system has no watches.
    #[derive(Debug)]
    pub(super) struct Registration;

    pub(super) fn register(_: &Path, _: Wanted, _: &Arc<Notify>) -> Option<Registration> {
        None
    }

    impl Registration {
        pub(super) fn is_live(&self) -> bool {
            false
        }
    }
}
