//! Finding the descendants of this process in the process list, with system calls alone: it runs in forks of this program.

use std::ffi::CStr;

/// The most processes of the machine that one look takes in. Killing does not depend on it: it goes by children.
const MOST_PROCESSES: usize = 8192;
/// The bytes of one read.
const CHUNK: usize = 8192;

/// The processes below this one at one moment.
pub(crate) struct Scan {
    /// Number and parent, by number.
    processes: [(i32, i32); MOST_PROCESSES],
    below: [bool; MOST_PROCESSES],
    count: usize,
}

impl Scan {
    /// Looks at the process list.
    ///
    /// # Safety
    /// None beyond that it opens descriptors: only in a process that has a few.
    pub(crate) unsafe fn of_descendants() -> Self {
        let mut scan = Self { processes: [(0, 0); MOST_PROCESSES], below: [false; MOST_PROCESSES], count: 0 };
        // SAFETY: system calls on locals.
        unsafe { scan.list() };
        scan.processes[..scan.count].sort_unstable();
        // SAFETY: asks for a number.
        let own = unsafe { libc::getpid() };
        loop {
            let mut found = false;
            for place in 0..scan.count {
                let (_, parent) = scan.processes[place];
                if !scan.below[place] && (parent == own || scan.is_below(parent)) {
                    scan.below[place] = true;
                    found = true;
                }
            }
            if !found {
                return scan;
            }
        }
    }

    fn is_below(&self, pid: i32) -> bool {
        let place = self.processes[..self.count].binary_search_by_key(&pid, |(pid, _)| *pid);
        place.is_ok_and(|place| self.below[place])
    }

    /// Sends a signal to all of them.
    ///
    /// # Safety
    /// Only for processes that this one is responsible for.
    pub(crate) unsafe fn signal(&self, signal: i32) {
        for place in (0..self.count).filter(|place| self.below[*place]) {
            // SAFETY: the caller's.
            unsafe { libc::kill(self.processes[place].0, signal) };
        }
    }

    unsafe fn list(&mut self) {
        let mut entries = [0_u8; CHUNK];
        // SAFETY: system calls on buffers that live here; the kernel bounds what it writes by their sizes.
        unsafe {
            let list = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
            if list < 0 {
                return;
            }
            loop {
                let read = libc::syscall(libc::SYS_getdents64, list, entries.as_mut_ptr(), entries.len());
                let Ok(read @ 1..) = usize::try_from(read) else { break };
                let mut at = 0;
                // Each entry: inode (8), offset (8), length (2), type (1), then the name with a final zero.
                while at < read {
                    let length = usize::from(u16::from_ne_bytes([entries[at + 16], entries[at + 17]]));
                    if length < 19 || at + length > read {
                        break;
                    }
                    if let Some(entry) = process(list, &entries[at + 19..at + length])
                        && let Some(place) = self.processes.get_mut(self.count)
                    {
                        *place = entry;
                        self.count += 1;
                    }
                    at += length;
                }
            }
            libc::close(list);
        }
    }
}

/// Number and parent of the process whose folder in the process list has this name.
unsafe fn process(list: i32, name: &[u8]) -> Option<(i32, i32)> {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 10 || name.get(digits) != Some(&0) {
        return None;
    }
    let mut path = [0_u8; 24];
    path[..digits].copy_from_slice(&name[..digits]);
    path[digits..digits + 5].copy_from_slice(b"/stat");
    let mut stat = [0_u8; 512];
    // SAFETY: the path ends with a zero; the buffer bounds what is read.
    let read = unsafe {
        let file = libc::openat(list, path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let read = libc::read(file, stat.as_mut_ptr().cast(), stat.len());
        libc::close(file);
        read
    };
    let stat = stat.get(..usize::try_from(read).ok()?)?;
    Some((number(&name[..digits])?, parent(stat)?))
}

/// The parent in a line of the process list. The name in parentheses may hold anything; it ends at the last one.
fn parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(end + 1..)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    number(fields.nth(1)?)
}

fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0_i32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(*digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Kills every child of this process, which has one thread.
///
/// # Safety
/// Only in a process whose children are all to be killed.
pub(crate) unsafe fn kill_children() {
    const CHILDREN: &CStr = c"/proc/thread-self/children";
    let mut buffer = [0_u8; CHUNK];
    // SAFETY: system calls on a local buffer. The numbers are of children that nothing else collects, so they are still
    // theirs.
    unsafe {
        let file = libc::open(CHILDREN.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            // A kernel without this list: the whole process list has them, too.
            return Scan::of_descendants().signal(libc::SIGKILL);
        }
        let mut pid = 0_i32;
        loop {
            let read = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
            let Ok(read @ 1..) = usize::try_from(read) else { break };
            for byte in &buffer[..read.min(CHUNK)] {
                if byte.is_ascii_digit() {
                    pid = pid.wrapping_mul(10).wrapping_add(i32::from(*byte - b'0'));
                } else if pid > 1 {
                    libc::kill(pid, libc::SIGKILL);
                    pid = 0;
                }
            }
        }
        if pid > 1 {
            libc::kill(pid, libc::SIGKILL);
        }
        libc::close(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_whatever_the_name_is() {
        assert_eq!(parent(b"42 (sh) S 7 42 42 0"), Some(7));
        assert_eq!(parent(b"42 (odd) S 1 name) R 19 42 42 0"), Some(19));
        assert_eq!(parent(b"42 sh S 7"), None);
        assert_eq!((number(b"99999999999"), number(b"12"), number(b"1x")), (None, Some(12), None));
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // SAFETY: only looks.
        let scan = unsafe { Scan::of_descendants() };
        let pid = i32::try_from(child.id()).unwrap();
        assert!(scan.is_below(pid) && !scan.is_below(1));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
