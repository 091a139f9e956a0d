//! The view of the file system that a confined command gets, as a list of steps that its child process takes.
//!
//! Everything becomes read-only; then the writable places come back, with protected ones read-only on top of them and
//! unreadable ones covered. `/tmp` and `/dev` are the command's own.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::placeholder::Placeholder;
use super::protected::Standing;
use super::read_only::ReadOnlyPlaces;
use super::rules::DEVICES;
use crate::sandbox::error::SandboxError;
use crate::sandbox::plan::SandboxPlan;

/// Attributes of mounts, in the numbers of the kernel.
const READ_ONLY: u64 = 0x1;
const NO_SETUID: u64 = 0x2;
const NO_DEVICES: u64 = 0x4;
/// For places that may be written.
const NO_PRIVILEGES: u64 = NO_SETUID | NO_DEVICES;
/// For all others.
const FROZEN: u64 = READ_ONLY | NO_PRIVILEGES;

/// The longest exclude file of git that is taken over.
const LONGEST_EXCLUDE: u64 = 256 * 1024;

/// One thing the child does.
#[derive(Debug)]
pub(crate) enum Step {
    /// Takes a copy of the mount at `source` into a slot and gives it these attributes.
    Take { source: CString, slot: usize, attributes: u64, may_be_gone: bool },
    /// Puts the copy of a slot at a place.
    Put { slot: usize, target: CString },
    /// Gives everything below a place these attributes.
    Seal { target: CString, attributes: u64, below: bool },
    /// A file system in memory.
    Memory { target: CString, options: CString },
    /// Terminals of the command's own.
    Terminals { target: CString },
    /// The process list of the command's own PID namespace.
    Processes { target: CString },
    /// A folder, unless it is there.
    Folder { path: CString },
    /// An empty file, unless it is there.
    File { path: CString },
    /// A symbolic link, unless it is there.
    Link { text: CString, path: CString },
    /// Makes the working directory the one at this path as it is seen now.
    Enter { path: CString },
}

impl Step {
    /// For people, when it failed.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Take { source, .. } => format!("copying the mount {}", source.to_string_lossy()),
            Self::Put { target, .. } => format!("mounting {}", target.to_string_lossy()),
            Self::Seal { target, .. } => format!("making {} read-only", target.to_string_lossy()),
            Self::Memory { target, .. } | Self::Terminals { target } | Self::Processes { target } => {
                format!("mounting over {}", target.to_string_lossy())
            }
            Self::Folder { path } | Self::File { path } | Self::Link { path, .. } => {
                format!("creating {}", path.to_string_lossy())
            }
            Self::Enter { path } => format!("entering {}", path.to_string_lossy()),
        }
    }
}

/// The steps and what must live as long as the command.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: usize,
    pub(crate) placeholders: Vec<Placeholder>,
    /// What the command sees as its folder for temporary files.
    pub(crate) temporary: PathBuf,
    /// Steps before anything changes: what they take is what the machine shows at that path.
    first: Vec<Step>,
}

impl View {
    /// Plans the view. Creates the placeholders.
    pub(crate) fn plan(
        plan: &SandboxPlan,
        own_processes: bool,
        with_broker: bool,
    ) -> Result<Self, SandboxError> {
        if plan.writable.iter().any(|path| path.parent().is_none()) {
            let reason = "the root of the file system cannot be a workspace".to_owned();
            return Err(SandboxError::Unenforceable { what: "a workspace at /", reason });
        }
        let mut view = Self::default();
        let temporary = Path::new("/tmp").canonicalize().ok().filter(|path| path.is_dir());
        let private = temporary.filter(|path| !plan.writable.iter().any(|root| path.starts_with(root)));
        // Unreadable folders around a workspace are covered before it is put, all others after.
        let around = denied(plan).into_iter().filter(|path| holds_writable(path, plan));
        let around: Vec<PathBuf> = around.cloned().collect();
        view.seal(Path::new("/"), FROZEN, true)?;
        if own_processes {
            view.steps.push(Step::Processes { target: c"/proc".to_owned() });
        }
        view.place_devices(plan)?;
        if let Some(place) = &private {
            let slot = view.take(&plan.scratch.temporary(), NO_PRIVILEGES)?;
            view.put(slot, place)?;
        }
        for path in &around {
            view.steps.push(Step::Memory { target: text(path)?, options: c"mode=755,size=64k".to_owned() });
        }
        let hollow: Vec<&PathBuf> = private.iter().chain(&around).collect();
        let inside = |path: &Path| {
            let around = hollow.iter().filter(|place| path.starts_with(place));
            around.max_by_key(|place| place.components().count()).copied()
        };
        let shown = plan.allow_read.iter().filter(|path| path.exists() && inside(path).is_some());
        let places = plan.writable.iter().map(|path| (path, NO_PRIVILEGES));
        for (path, attributes) in places.chain(shown.map(|path| (path, FROZEN))) {
            let slot = view.take(path, attributes)?;
            if let Some(place) = inside(path) {
                view.make_way(place, path)?;
            }
            view.put(slot, path)?;
        }
        for path in &around {
            view.seal(path, FROZEN, false)?;
        }
        view.protect(plan, with_broker)?;
        view.hide(plan, private.as_deref())?;
        view.steps.push(Step::Enter { path: text(&plan.cwd)? });
        view.temporary = private.unwrap_or_else(|| plan.scratch.temporary());
        let later = std::mem::take(&mut view.steps);
        view.steps = std::mem::take(&mut view.first);
        view.steps.extend(later);
        Ok(view)
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    fn take(&mut self, source: &Path, attributes: u64) -> Result<usize, SandboxError> {
        let slot = self.slot();
        let source = text(source)?;
        self.first.push(Step::Take { source, slot, attributes, may_be_gone: false });
        Ok(slot)
    }

    fn put(&mut self, slot: usize, target: &Path) -> Result<(), SandboxError> {
        self.steps.push(Step::Put { slot, target: text(target)? });
        Ok(())
    }

    fn seal(&mut self, target: &Path, attributes: u64, below: bool) -> Result<(), SandboxError> {
        self.steps.push(Step::Seal { target: text(target)?, attributes, below });
        Ok(())
    }

    /// Folders, and at the end what `path` is, below an empty `place`.
    fn make_way(&mut self, place: &Path, path: &Path) -> Result<(), SandboxError> {
        let mut between: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|above| *above != place && above.starts_with(place))
            .collect();
        between.reverse();
        for folder in between {
            self.steps.push(Step::Folder { path: text(folder)? });
        }
        let last = text(path)?;
        self.steps.push(if path.is_dir() { Step::Folder { path: last } } else { Step::File { path: last } });
        Ok(())
    }

    /// A `/dev` of the command's own: the harmless devices, its own terminals and its own shared memory.
    fn place_devices(&mut self, plan: &SandboxPlan) -> Result<(), SandboxError> {
        self.steps
            .push(Step::Memory { target: c"/dev".to_owned(), options: c"mode=755,size=64k".to_owned() });
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            if path.exists() {
                let slot = self.take(&path, READ_ONLY | NO_SETUID)?;
                self.steps.push(Step::File { path: text(&path)? });
                self.put(slot, &path)?;
            }
        }
        let shared = self.take(&plan.scratch.shared_memory(), NO_PRIVILEGES)?;
        self.steps.push(Step::Folder { path: c"/dev/shm".to_owned() });
        self.put(shared, Path::new("/dev/shm"))?;
        self.steps.push(Step::Folder { path: c"/dev/pts".to_owned() });
        self.steps.push(Step::Terminals { target: c"/dev/pts".to_owned() });
        let links = [
            (c"pts/ptmx", c"/dev/ptmx"),
            (c"/proc/self/fd", c"/dev/fd"),
            (c"/proc/self/fd/0", c"/dev/stdin"),
            (c"/proc/self/fd/1", c"/dev/stdout"),
            (c"/proc/self/fd/2", c"/dev/stderr"),
        ];
        for (text, path) in links {
            self.steps.push(Step::Link { text: text.to_owned(), path: path.to_owned() });
        }
        self.seal(Path::new("/dev"), FROZEN, false)
    }

    /// Makes protected places and those that may not be written read-only, also when they are absent.
    fn protect(&mut self, plan: &SandboxPlan, with_broker: bool) -> Result<(), SandboxError> {
        let kept = ReadOnlyPlaces::secure(plan, with_broker)?;
        for (path, standing) in &kept.standing {
            self.freeze(path, *standing, plan)?;
        }
        let files = kept.placeholders.iter().filter(|placeholder| placeholder.path().is_file());
        let files: Vec<PathBuf> = files.map(|placeholder| placeholder.path().to_path_buf()).collect();
        self.placeholders = kept.placeholders;
        self.hide_from_git(plan, &files)
    }

    fn freeze(&mut self, path: &Path, standing: Standing, plan: &SandboxPlan) -> Result<(), SandboxError> {
        let slot = match standing {
            Standing::Itself => {
                let slot = self.slot();
                let source = text(path)?;
                // Taken and put at once: hundreds of held copies would use up the descriptors.
                self.steps.push(Step::Take { source, slot, attributes: FROZEN, may_be_gone: true });
                slot
            }
            // A link can be covered by a file and not by a folder: what it leads to is shown when it is a file.
            Standing::Link => {
                let target = path.canonicalize().ok().filter(|target| target.is_file());
                self.take(&target.unwrap_or_else(|| plan.scratch.empty()), FROZEN)?
            }
        };
        self.put(slot, path)
    }

    /// Placeholder files would show up as new files in `git status`: the exclude file that the command sees names them.
    fn hide_from_git(&mut self, plan: &SandboxPlan, paths: &[PathBuf]) -> Result<(), SandboxError> {
        for root in plan.writable.iter().filter(|root| root.is_dir()) {
            let exclude = root.join(".git/info/exclude");
            let names: Vec<_> = paths.iter().filter_map(|path| path.strip_prefix(root).ok()).collect();
            let own = std::fs::symlink_metadata(root.join(".git")).is_ok_and(|found| found.is_dir());
            let Some(mut content) = read_regular(&exclude).filter(|_| own && !names.is_empty()) else {
                continue;
            };
            for name in names {
                content.extend_from_slice(b"\n/");
                content.extend_from_slice(name.as_os_str().as_bytes());
            }
            content.push(b'\n');
            let kept = plan
                .scratch
                .keep(&content)
                .map_err(|source| SandboxError::Place { path: plan.scratch.root().to_path_buf(), source })?;
            let slot = self.take(&kept, FROZEN)?;
            self.put(slot, &exclude)?;
        }
        Ok(())
    }

    /// Covers what may not be read. What may, inside of it, is taken before and put on top.
    fn hide(&mut self, plan: &SandboxPlan, private: Option<&Path>) -> Result<(), SandboxError> {
        for path in denied(plan) {
            let shown = plan.writable.iter().chain(&plan.allow_read).any(|place| path.starts_with(place));
            let hidden = path.starts_with("/dev") || private.is_some_and(|place| path.starts_with(place));
            if holds_writable(path, plan) || (hidden && !shown) {
                continue;
            }
            if !path.is_dir() {
                let slot = self.take(&plan.scratch.unreadable(), FROZEN)?;
                self.put(slot, path)?;
                continue;
            }
            let shown = plan.allow_read.iter().filter(|part| part.starts_with(path) && part.exists());
            let shown: Vec<&PathBuf> = shown.filter(|part| *part != path).collect();
            let options = if shown.is_empty() { c"mode=000,size=4k" } else { c"mode=755,size=64k" };
            self.steps.push(Step::Memory { target: text(path)?, options: options.to_owned() });
            for part in shown {
                let slot = self.take(part, FROZEN)?;
                self.make_way(path, part)?;
                self.put(slot, part)?;
            }
            self.seal(path, FROZEN, false)?;
        }
        Ok(())
    }
}

/// The content of a short regular file; never waits for one that is something else.
fn read_regular(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut content = Vec::new();
    let regular = file.metadata().ok()?.is_file();
    let read = file.take(LONGEST_EXCLUDE + 1).read_to_end(&mut content).is_ok();
    (regular && read && content.len() as u64 <= LONGEST_EXCLUDE).then_some(content)
}

/// The unreadable places that exist. What lies in a folder that is covered anyway needs no cover of its own.
fn denied(plan: &SandboxPlan) -> Vec<&PathBuf> {
    let mut denied: Vec<&PathBuf> = plan.deny_read.iter().filter(|path| path.exists()).collect();
    denied.sort();
    denied.dedup();
    let is_outer = |path: &&PathBuf| {
        let above = |other: &&PathBuf| *other != *path && path.starts_with(other);
        // One inside a workspace is not covered by what is around that.
        !denied.iter().any(|other| above(other) && !between(other, path, plan))
    };
    denied.iter().copied().filter(is_outer).collect()
}

/// Whether a writable place lies in `outer` and holds `inner`.
fn between(outer: &Path, inner: &Path, plan: &SandboxPlan) -> bool {
    plan.writable.iter().any(|root| root.starts_with(outer) && inner.starts_with(root))
}

fn holds_writable(path: &Path, plan: &SandboxPlan) -> bool {
    path.is_dir() && plan.writable.iter().any(|root| root.starts_with(path))
}

fn text(path: &Path) -> Result<CString, SandboxError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| SandboxError::Place {
        path: path.to_path_buf(),
        source: std::io::Error::other(error),
    })
}
