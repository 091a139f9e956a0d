//! What the broker learns about a process that waits in a system call: its memory, its folders, its descriptors.
//!
//! Everything is read through the process list of this machine by the number of the thread; the caller checks
//! afterwards that the call still waits, because the number may belong to another one by then.

use std::ffi::CString;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;
/// The unit in which memory is there or not.
const PAGE: usize = 4096;

/// A thread that waits in a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller(pub(crate) i32);

impl Caller {
    /// Bytes of its memory; fewer when the rest is not there.
    pub(crate) fn memory(self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0_u8; length];
        let start = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
        let theirs = libc::iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: length };
        // SAFETY: the kernel writes at most `length` bytes into the vector and checks the other address itself.
        let read = unsafe { libc::process_vm_readv(self.0, &raw const ours, 1, &raw const theirs, 1, 0) };
        let read = usize::try_from(read).map_err(|_| last_error())?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Exactly so many bytes.
    pub(crate) fn exactly(self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let bytes = self.memory(address, length)?;
        if bytes.len() == length { Ok(bytes) } else { Err(Errno::FAULT) }
    }

    /// A text that ends with a zero.
    pub(crate) fn text(self, address: u64) -> Result<CString, Errno> {
        let mut text = Vec::new();
        while text.len() < LONGEST_PATH {
            // To the end of the page: the next one may not be there.
            let at = address.checked_add(text.len() as u64).ok_or(Errno::FAULT)?;
            let within = usize::try_from(at % PAGE as u64).map_err(|_| Errno::FAULT)?;
            let piece = self.memory(at, (PAGE - within).min(LONGEST_PATH - text.len()))?;
            if piece.is_empty() {
                return Err(Errno::FAULT);
            }
            match piece.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&piece[..end]);
                    return CString::new(text).map_err(|_| Errno::INVAL);
                }
                None => text.extend_from_slice(&piece),
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    /// Its working directory, or the object behind one of its descriptors.
    pub(crate) fn descriptor(self, number: i32) -> Result<OwnedFd, Errno> {
        if number == libc::AT_FDCWD {
            return self.open("cwd");
        }
        if number < 0 {
            return Err(Errno::BADF);
        }
        self.open(&format!("fd/{number}")).map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            other => other,
        })
    }

    /// What it sees as the root of the file system.
    pub(crate) fn root(self) -> Result<OwnedFd, Errno> {
        self.open("root")
    }

    /// Its own folder in the process list.
    pub(crate) fn process(self) -> Result<OwnedFd, Errno> {
        self.open("")
    }

    fn open(self, name: &str) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{name}", self.0);
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// The bits that it takes from the mode of what it creates.
    pub(crate) fn umask(self) -> Result<Mode, Errno> {
        let status = self.list("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        // Kernels before 4.7 do not say; without a mask nothing would be taken away.
        Ok(Mode::from_raw_mode(mask.unwrap_or(0o077)))
    }

    /// The number of its controlling terminal, when that is one of its own.
    pub(crate) fn terminal(self) -> Option<u32> {
        let stat = self.list("stat").ok()?;
        let number: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
        let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
        (136..144).contains(&major).then(|| (major - 136) * 256 + minor)
    }

    fn list(self, name: &str) -> Result<String, Errno> {
        let path = format!("/proc/{}/{name}", self.0);
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::with_capacity(2048);
        std::fs::File::from(file).read_to_end(&mut bytes).map_err(|_| Errno::SRCH)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

pub(crate) fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)
}
