//! In which folders something happened, as the kernel says it. Where it does not, or has lost count, everything counts as
//! touched: the caller then looks at all of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What was touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// Everything may have been.
    pub(crate) everything: bool,
    /// Something in these folders was.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// These files were written.
    pub(crate) written: BTreeSet<PathBuf>,
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::KernelWatch;
#[cfg(target_os = "linux")]
pub(crate) use linux::KernelWatch;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

    use super::Touched;

    /// Room for many events at once.
    const BUFFER: usize = 64 * 1024;

    /// A queue of the kernel.
    #[derive(Debug)]
    pub(crate) struct KernelWatch {
        /// None when the kernel gives no queue, or too few watches: then everything is touched.
        queue: Option<OwnedFd>,
        folders: HashMap<i32, PathBuf>,
    }

    impl KernelWatch {
        pub(crate) fn new() -> Self {
            let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
            Self { queue, folders: HashMap::new() }
        }

        /// Watches a folder from now on.
        pub(crate) fn add(&mut self, folder: &Path) {
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW;
            let Some(queue) = &self.queue else { return };
            match add_watch(queue, folder, flags) {
                Ok(watch) => drop(self.folders.insert(watch, folder.to_path_buf())),
                // It is gone again; its parent has said so.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => {}
                Err(_) => {
                    self.queue = None;
                    self.folders.clear();
                }
            }
        }

        /// A folder that is gone frees its watch by itself; one that moved away has to be let go.
        pub(crate) fn forget(&mut self, folder: &Path) {
            let Some(queue) = &self.queue else { return };
            self.folders.retain(|watch, path| {
                let stays = !path.starts_with(folder);
                if !stays {
                    // The kernel has already dropped the watch of a folder that was removed.
                    let _ = rustix::fs::inotify::remove_watch(queue, *watch);
                }
                stays
            });
        }

        /// Takes what the kernel has said up to now.
        pub(crate) fn drain(&mut self, touched: &mut Touched) {
            let Some(queue) = &self.queue else {
                touched.everything = true;
                return;
            };
            let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
            let mut reader = Reader::new(queue, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(rustix::io::Errno::AGAIN) => return,
                    Err(_) => {
                        touched.everything = true;
                        return;
                    }
                };
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    touched.everything = true;
                }
                let Some(folder) = self.folders.get(&event.wd()) else { continue };
                touched.folders.insert(folder.clone());
                if event.events().contains(ReadFlags::MODIFY)
                    && let Some(name) = event.file_name()
                {
                    touched.written.insert(folder.join(OsStr::from_bytes(name.to_bytes())));
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::path::Path;

    use super::Touched;

    /// Says nothing: everything is looked at.
    #[derive(Debug)]
    pub(crate) struct KernelWatch;

    impl KernelWatch {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn add(&mut self, _: &Path) {}

        pub(crate) fn forget(&mut self, _: &Path) {}

        pub(crate) fn drain(&mut self, touched: &mut Touched) {
            touched.everything = true;
        }
    }
}
