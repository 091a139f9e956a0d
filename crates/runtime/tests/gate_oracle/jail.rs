//! Runs a script as the Bash tool would, in namespaces of its own: no network, everything read-only but the tree, and an
//! end after some seconds. What a script leaves running ends with it: on a busy machine it would still read the tree while
//! the next script is judged.

use std::ffi::CString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::tree::{TOKEN, Tree};

/// A script that waits for something is ended; none of the grammar takes long.
const LONGEST: Duration = Duration::from_secs(5);

pub struct Jail;

impl Jail {
    /// Runs the script; returns everything that it printed.
    pub fn run(script: &str, tree: &Tree) -> String {
        let root = tree.root();
        let output = tempfile::tempfile().unwrap();
        let mut command = Command::new("/bin/bash");
        command
            .args(["--noprofile", "--norc", "-c", script])
            .env_clear()
            .env("PATH", format!("{}/tools:/usr/local/bin:/usr/bin:/bin", root.display()))
            .env("HOME", root.join("home"))
            .env("LANG", "C.UTF-8")
            .env("SECRET_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output.try_clone().unwrap())
            .process_group(0);
        let path = CString::new(root.as_os_str().as_bytes()).unwrap();
        let workspace = CString::new(tree.workspace().as_os_str().as_bytes()).unwrap();
        let user = format!("{0} {0} 1\n", rustix::process::getuid().as_raw());
        // SAFETY: between fork and exec only system calls are made, on memory that was there before.
        unsafe {
            command.pre_exec(move || {
                confine(&path, &workspace, user.as_bytes())?;
                start_below_init()
            });
        }
        let mut child = command.spawn().expect("the jail needs user and mount namespaces");
        let end = Instant::now() + LONGEST;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        child.wait().unwrap();
        let mut text = Vec::new();
        let mut output = output;
        io::Seek::rewind(&mut output).unwrap();
        output.take(1 << 20).read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Leaves for namespaces of its own, makes everything read-only but the tree, and enters the workspace.
fn confine(tree: &CString, workspace: &CString, user: &[u8]) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        namespace: u64,
    }
    const READ_ONLY: u64 = 1;
    const RECURSIVE: libc::c_uint = 0x8000;
    let check = |result: libc::c_long| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    let write = |path: &std::ffi::CStr, text: &[u8]| {
        // SAFETY: plain system calls on memory that lives for the whole of them.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            check(file.into())?;
            let written = libc::write(file, text.as_ptr().cast(), text.len());
            libc::close(file);
            check(written as libc::c_long)
        }
    };
    let set = |path: &std::ffi::CStr, set: u64, clear: u64, flags: libc::c_uint| {
        let attributes = MountAttributes { set, clear, propagation: 0, namespace: 0 };
        // SAFETY: the structure and its size are what the call takes.
        check(unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                path.as_ptr(),
                flags,
                &raw const attributes,
                size_of::<MountAttributes>(),
            )
        })
    };
    let spaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWPID;
    // SAFETY: plain system calls on constant strings and on memory that lives for the whole of them.
    unsafe {
        check(libc::unshare(spaces).into())?;
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", user)?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        check(
            libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()).into(),
        )?;
        let bound =
            libc::mount(tree.as_ptr(), tree.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null());
        check(bound.into())?;
    }
    set(c"/", READ_ONLY, 0, RECURSIVE)?;
    set(tree, 0, READ_ONLY, 0)?;
    // Only now: a folder that was entered before is still the one of the read-only mount.
    // SAFETY: a plain system call on a string that lives for the whole of it.
    check(unsafe { libc::chdir(workspace.as_ptr()) }.into())
}

/// Continues as the child of the first process of the new namespace: the kernel ends all others there when that one ends,
/// which it does when the script does.
fn start_below_init() -> io::Result<()> {
    for _ in 0..2 {
        // SAFETY: the process has one thread, and both sides make system calls only until they exec or exit.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            child => exit_with(child),
        }
    }
    Ok(())
}

/// Waits for a child and exits as it did.
fn exit_with(child: libc::pid_t) -> ! {
    let mut status = 0;
    // SAFETY: plain system calls. The pipe on which the spawner waits for the exec is among the descriptors.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
        loop {
            let ended = libc::waitpid(-1, &raw mut status, 0);
            if ended == child || (ended < 0 && *libc::__errno_location() != libc::EINTR) {
                libc::_exit(libc::WEXITSTATUS(status));
            }
        }
    }
}
