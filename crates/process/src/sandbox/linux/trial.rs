//! Trying to break out: a confined child of our own attempts what must fail, by system calls alone, and reports what
//! happened. Nothing is believed that was not tried.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, WaitOptions};

use super::notify;
use crate::sandbox::broker::Broker;
use crate::sandbox::confinement::ChildPart;
use crate::tree::{self, Confines};

/// What is tried, in the order of the answers.
pub(crate) const ATTEMPTS: [&str; 12] = [
    "writing in the workspace",
    "writing outside",
    "changing the mode of a file outside",
    "writing a protected file",
    "creating a protected folder",
    "creating a protected file",
    "creating a protected file deep down",
    "reading a denied file",
    "connecting to the machine",
    "tracing a process",
    "making a namespace",
    "signalling another process",
];

/// The places of a trial.
pub(crate) struct Ground {
    inside: CString,
    outside: CString,
    protected: CString,
    folder: CString,
    file: CString,
    deep: CString,
    denied: CString,
    port: u16,
    process: i32,
}

impl Ground {
    pub(crate) fn new(root: &Path, outside: &Path, denied: &Path, port: u16) -> Option<Self> {
        let text = |path: PathBuf| CString::new(path.as_os_str().as_bytes()).ok();
        Some(Self {
            inside: text(root.join("inside"))?,
            outside: text(outside.to_path_buf())?,
            protected: text(root.join(".git/config"))?,
            folder: text(root.join(".vscode"))?,
            file: text(root.join(".envrc"))?,
            deep: text(root.join("deep/.envrc"))?,
            denied: text(denied.to_path_buf())?,
            port,
            process: rustix::process::getpid().as_raw_pid(),
        })
    }
}

/// Runs the attempts in a confined child. One answer each: whether it was let.
pub(crate) fn attempt(
    mut child: ChildPart,
    ground: &Ground,
    start_broker: impl FnOnce() -> io::Result<Option<Broker>>,
) -> io::Result<Vec<bool>> {
    let mut broker = None;
    let start = || broker = start_broker().ok().flatten();
    let work = move |writer| {
        // SAFETY: this is a fresh child process that ends after this; the calls use memory owned outside.
        unsafe {
            // A program that is executed can be looked into by the broker; this one says so itself.
            if confine(&mut child).is_ok() && libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 {
                let answers = tries(ground);
                libc::write(writer, answers.as_ptr().cast(), answers.len());
            }
        }
    };
    let answers = in_child(work, start)?;
    drop(broker);
    Ok(answers.into_iter().map(|answer| answer == 1).collect())
}

/// Returns in the confined process, which is another one where it has a PID namespace.
unsafe fn confine(child: &mut ChildPart) -> io::Result<()> {
    // SAFETY: the caller is a fresh child process.
    unsafe {
        if !child.has_process_namespace() {
            return child.apply();
        }
        child.enter_namespaces()?;
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => end_with_parent()?,
            pid => {
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                libc::_exit(0);
            }
        }
        child.confine_inside()?;
        child.filter_calls()
    }
}

/// Has this process end with the one that forked it. Otherwise a trial whose program was killed would wait for answers to its calls
/// for ever, with everything open that the program had open.
unsafe fn end_with_parent() -> io::Result<()> {
    // SAFETY: a direct system call on constants.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

unsafe fn tries(ground: &Ground) -> [u8; ATTEMPTS.len()] {
    // SAFETY: direct system calls; what they would change belongs to the trial.
    unsafe {
        let write = |path: &CString| {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC, 0o600);
            u8::from(file >= 0)
        };
        [
            write(&ground.inside),
            write(&ground.outside),
            u8::from(libc::chmod(ground.outside.as_ptr(), 0o644) == 0),
            write(&ground.protected),
            u8::from(libc::mkdir(ground.folder.as_ptr(), 0o700) == 0),
            write(&ground.file),
            write(&ground.deep),
            u8::from(libc::open(ground.denied.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) >= 0),
            u8::from(reaches(ground.port)),
            u8::from(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0),
            u8::from(libc::unshare(libc::CLONE_NEWUSER) == 0),
            u8::from(libc::kill(ground.process, 0) == 0),
        ]
    }
}

unsafe fn reaches(port: u16) -> bool {
    // SAFETY: the address is a local of the size that is passed.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return false;
        }
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET.unsigned_abs().to_ne_bytes()[0].into();
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let size = u32::try_from(size_of::<libc::sockaddr_in>()).unwrap_or(0);
        libc::connect(socket, (&raw const address).cast(), size) == 0
    }
}

/// Whether an ordinary child gets the namespaces the sandbox is made of, and one for processes with a process list of
/// its own; else what the system says.
pub(crate) fn namespaces() -> (Result<(), String>, Result<(), String>) {
    let work = |writer| {
        // SAFETY: this is a fresh child process that ends after this.
        let failed = unsafe { [enter_namespaces(), enter_process_namespace()] };
        let bytes: [[u8; 4]; 2] = failed.map(i32::to_ne_bytes);
        // SAFETY: writes a local buffer.
        unsafe { libc::write(writer, bytes.as_ptr().cast(), size_of_val(&bytes)) };
    };
    let answers = match in_child(work, || {}) {
        Ok(answers) => answers,
        Err(error) => return (Err(error.to_string()), Err(error.to_string())),
    };
    let answer = |place: usize| match answers.get(place * 4..).and_then(|bytes| bytes.first_chunk()) {
        Some(bytes) => match i32::from_ne_bytes(*bytes) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error).to_string()),
        },
        None => Err("the child did not answer".to_owned()),
    };
    (answer(0), answer(1))
}

/// 0, or the error.
unsafe fn enter_namespaces() -> i32 {
    // SAFETY: direct system calls on constants.
    unsafe {
        let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        let nothing = std::ptr::null();
        // Some systems let one enter and then forbid everything in there.
        if libc::unshare(flags) == 0
            && libc::mount(nothing, c"/".as_ptr(), nothing, private, nothing.cast()) == 0
        {
            return 0;
        }
        last_error()
    }
}

/// 0, or the error. A container that covers parts of the process list does not let a fresh one be mounted.
unsafe fn enter_process_namespace() -> i32 {
    // SAFETY: direct system calls on constants; the forked process makes one and ends.
    unsafe {
        if libc::unshare(libc::CLONE_NEWPID) < 0 {
            return last_error();
        }
        match libc::fork() {
            -1 => last_error(),
            0 => {
                let kind = c"proc".as_ptr();
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
                let mounted = libc::mount(kind, c"/proc".as_ptr(), kind, flags, std::ptr::null());
                libc::_exit(if mounted == 0 { 0 } else { last_error() })
            }
            pid => {
                let mut status = 0;
                libc::waitpid(pid, &raw mut status, 0);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { libc::EPERM }
            }
        }
    }
}

fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM)
}

/// Whether the kernel holds calls that change files until they are answered, and lets descriptors be the answer.
pub(crate) fn broker() -> Result<(), String> {
    // The child may not build it.
    let program = notify::program();
    let work = |writer| {
        // SAFETY: this is a fresh child process that ends after this, without a call that would be held.
        let failed = unsafe { try_broker(program) }.to_ne_bytes();
        // SAFETY: writes a local buffer.
        unsafe { libc::write(writer, failed.as_ptr().cast(), failed.len()) };
    };
    let answer = in_child(work, || {}).map_err(|error| error.to_string())?;
    match answer.first_chunk().copied().map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error).to_string()),
        None => Err("the child did not answer".to_owned()),
    }
}

/// 0, or the error.
unsafe fn try_broker(program: &seccompiler::BpfProgram) -> i32 {
    // SAFETY: direct system calls on locals.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 {
            return last_error();
        }
        let Ok(calls @ 0..) = i32::try_from(notify::install(program)) else { return last_error() };
        // Of a call that does not exist: a kernel before 5.14 does not know the request, others do not know the call.
        let added = libc::seccomp_notif_addfd {
            id: 1,
            flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).unwrap_or(2),
            srcfd: calls.cast_unsigned(),
            newfd: 0,
            newfd_flags: 0,
        };
        libc::ioctl(calls, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added);
        match last_error() {
            libc::ENOENT => 0,
            error => error,
        }
    }
}

/// Runs `work` in a child process and returns what it wrote; meanwhile `beside` runs here. The child must only make
/// system calls.
fn in_child(work: impl FnOnce(i32), beside: impl FnOnce()) -> io::Result<Vec<u8>> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let parent = rustix::process::getpid();
    // SAFETY: the child runs `work`, which makes system calls only, and ends without returning.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: this is a fresh child process. The thread that forked it waits for it.
            let ends = unsafe { end_with_parent() };
            if ends.is_ok() && rustix::process::getppid() == Some(parent) {
                work(writer.as_raw_fd());
            }
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
        pid => {
            // What it owns is the child's now: its end must be seen.
            drop(work);
            drop(writer);
            collect(pid, reader, beside)
        }
    }
}

fn collect(pid: i32, reader: OwnedFd, beside: impl FnOnce()) -> io::Result<Vec<u8>> {
    let pid = Pid::from_raw(pid);
    if let Some(pid) = pid {
        tree::remember(pid);
    }
    beside();
    let mut answers = Vec::new();
    let read = File::from(reader).take(64).read_to_end(&mut answers);
    if let Some(pid) = pid {
        // The search for lost children may have been faster.
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
        tree::forget(pid);
    }
    read.map(|_| answers)
}
