//! A confined command tries to get out by way of other processes, the kernel, sockets and privileges.
//!
//! Each test does the thing and looks whether it happened.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Command, Stdio};

use crate::common::sandboxed::Sandboxed;

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let parent = std::process::id();
    let mut other = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = other.id();
    let commands = [
        format!("kill -9 {pid}"),
        format!("kill -0 {parent}"),
        format!("cat /proc/{pid}/environ"),
        format!("head -c 1 /proc/{parent}/mem"),
        format!("ls /proc/{parent}/root/"),
        format!("readlink /proc/{parent}/fd/1"),
        format!("cat /proc/{parent}/maps | head -c 1 | grep ."),
        format!("echo 1 > /proc/{parent}/oom_score_adj"),
        "ls /proc/1/root/".to_owned(),
    ];
    for command in commands {
        sandboxed.fail(&command).await;
    }
    assert!(other.try_wait().unwrap().is_none(), "the process still runs");
    other.kill().unwrap();
    other.wait().unwrap();
    let own = sandboxed.succeed("sleep 50 & kill $! && wait $!; echo ended").await;
    assert_eq!(own, "ended\n", "its own children are its own");
}

/// Tries calls by number and prints those that were let.
const CALLS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static void tried(const char *name, long result) { if (result >= 0) printf("%s was let\n", name); }
int main(int count, char **words) {
    char big[512] = {0};
    int pair[2];
    tried("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
    tried("io_uring", syscall(425, 4, big));
    tried("unshare", unshare(CLONE_NEWUSER));
    tried("clone with a namespace", syscall(SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0, 0));
    memset(big, 0, sizeof big);
    tried("clone3", syscall(435, big, 64));
    if (errno != ENOSYS) puts("clone3 is not hidden");
    tried("setns", syscall(SYS_setns, 0, 0));
    tried("mount", mount("none", "/tmp", "tmpfs", 0, 0));
    tried("umount", umount2("/dev/shm", MNT_DETACH));
    tried("open_tree", syscall(428, AT_FDCWD, "/", 1));
    tried("fsopen", syscall(430, "tmpfs", 0));
    tried("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    tried("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
    tried("bpf", syscall(SYS_bpf, 5, big, 48));
    tried("perf", syscall(SYS_perf_event_open, big, 0, -1, -1, 0));
    tried("userfaultfd", syscall(SYS_userfaultfd, 1));
    tried("pidfd_getfd", syscall(438, 0, 0, 0));
    tried("handles", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", big, big + 256, 0));
    tried("TIOCSTI", ioctl(0, 0x5412, "x"));
    if (errno != EPERM) puts("TIOCSTI is not filtered");
    tried("TIOCSTI with upper bits", syscall(SYS_ioctl, 0, 0xffffffff00005412UL, "x"));
    if (errno != EPERM) puts("TIOCSTI with upper bits is not filtered");
    tried("inet", socket(AF_INET, SOCK_STREAM, 0));
    tried("inet6", socket(AF_INET6, SOCK_DGRAM, 0));
    tried("unix", socket(AF_UNIX, SOCK_STREAM, 0));
    tried("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    tried("packet", socket(AF_PACKET, SOCK_RAW, 0));
    tried("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    tried("datagram pair", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    tried("raw pair", socketpair(AF_UNIX, SOCK_RAW, 0, pair));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) puts("no stream pair");
#ifdef __x86_64__
    tried("the other numbering", syscall(0x40000000 + 39));
    if (errno != EPERM) puts("the other numbering is not filtered");
#endif
    puts("done");
    return 0;
}
"#;

#[tokio::test]
async fn calls_that_lead_out_are_denied() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let Some(program) = sandboxed.build("calls", CALLS) else { return };
    assert_eq!(sandboxed.succeed(&program).await, "done\n");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_of_the_older_processor_end_the_program() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    // getpid by the gate for 32-bit programs.
    let source = "#include <stdio.h>\nint main(void) { long r = 20; __asm__ volatile(\"int $0x80\" : \"+a\"(r)); \
                  printf(\"%ld\\n\", r); return 0; }\n";
    let Some(program) = sandboxed.build("older", source) else { return };
    let said = sandboxed.fail(&program).await;
    assert!(said.contains("Exit code 159") || said.contains("Bad system call"), "{said}");
}

#[tokio::test]
async fn no_privilege_is_held_or_gained() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let status = sandboxed.succeed("cat /proc/self/status").await;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    let source = "#include <unistd.h>\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", geteuid()); return 0; }\n";
    let Some(program) = sandboxed.build("identity", source) else { return };
    let own = sandboxed.succeed(&program).await;
    sandboxed.succeed(&format!("chmod 4755 {program}")).await;
    assert_eq!(sandboxed.succeed(&program).await, own);
    sandboxed.fail("unshare -Ur true").await;
    sandboxed.fail("unshare -Urm sh -c 'mount -t tmpfs none /mnt'").await;
    sandboxed.fail("chroot / true").await;
}

#[tokio::test]
async fn a_descriptor_that_was_left_open_does_not_help() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let folder = std::fs::File::open(&sandboxed.outside).unwrap();
    rustix::io::fcntl_setfd(&folder, rustix::io::FdFlags::empty()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    sandboxed.fail(&format!("echo x > /proc/self/fd/{number}/file")).await;
    assert!(!sandboxed.outside.join("file").exists());
}

#[tokio::test]
async fn nothing_listens_within_reach() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = sandboxed.bench.path("socket");
    let unix = UnixListener::bind(&path).unwrap();
    let datagram = UnixDatagram::bind(sandboxed.bench.path("datagram")).unwrap();
    let name = format!("qoder-test-{}", std::process::id());
    let unnamed = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    unnamed.set_nonblocking(true).unwrap();
    datagram.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    sandboxed.fail(&format!("exec 3<>/dev/tcp/127.0.0.1/{tcp_port}")).await;
    sandboxed.fail(&format!("echo x > /dev/udp/127.0.0.1/{udp_port}")).await;
    if sandboxed.run("python3 -c pass").await.structured["exitCode"] == 0 {
        let python = |code: String| format!("python3 -c \"import socket as s; {code}\"");
        let commands = [
            format!("s.create_connection(('127.0.0.1', {tcp_port}))"),
            format!("s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp_port}))"),
            "s.socket(s.AF_UNIX).connect('socket')".to_owned(),
            format!("s.socket(s.AF_UNIX).connect(chr(0)+'{name}')"),
            "s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b'x', 'datagram')".to_owned(),
        ];
        for code in commands {
            sandboxed.fail(&python(code)).await;
        }
    } else {
        eprintln!("SKIPPED in part: no python3");
    }
    assert!(tcp.accept().is_err(), "the listener was reached");
    assert!(udp.recv(&mut [0; 8]).is_err(), "the datagram came");
    assert!(unix.accept().is_err() && unnamed.accept().is_err(), "a unix socket was reached");
    assert!(datagram.recv(&mut [0; 8]).is_err(), "a unix datagram came");
}

#[tokio::test]
async fn unix_sockets_are_open_when_all_are() {
    let Some(sandboxed) = Sandboxed::with(|settings| settings.network.allow_all_unix_sockets = true) else {
        return;
    };
    let unix = UnixListener::bind(sandboxed.bench.path("socket")).unwrap();
    let name = format!("qoder-test-open-{}", std::process::id());
    let unnamed = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    unnamed.set_nonblocking(true).unwrap();
    if sandboxed.run("python3 -c pass").await.structured["exitCode"] != 0 {
        eprintln!("SKIPPED: no python3");
        return;
    }
    let serving = std::thread::spawn(move || unix.accept().unwrap().0.write_all(b"hello").unwrap());
    let code = "import socket as s; c = s.socket(s.AF_UNIX); c.connect('socket'); print(c.recv(5).decode())";
    assert_eq!(sandboxed.succeed(&format!("python3 -c \"{code}\"")).await, "hello\n");
    serving.join().unwrap();
    sandboxed
        .fail(&format!("python3 -c \"import socket as s; s.socket(s.AF_UNIX).connect(chr(0)+'{name}')\""))
        .await;
    assert!(unnamed.accept().is_err(), "names of the machine are another network's");
}
