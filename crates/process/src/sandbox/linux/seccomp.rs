//! The system call filters of confined commands, built once per kind of network and installed by the child.
//!
//! They deny what leads out of the sandbox whatever files and namespaces say: looking into other processes, mounting,
//! new namespaces, the kernel's keyring, loading code into the kernel, and sockets. Everything else stays allowed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::sandbox::error::SandboxError;

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// IPv4 and IPv6, in a network of the command's own.
    pub(crate) internet: bool,
    /// Unix sockets by name.
    pub(crate) unix: bool,
}

/// The programs, in the order in which they are installed.
#[derive(Debug, Clone)]
pub(crate) struct Filters(pub(crate) Vec<BpfProgram>);

/// Terminal requests that put words into another program's mouth, line disciplines, and flags of files that can be
/// changed by a process that may only read them.
const FORBIDDEN_REQUESTS: [u64; 7] =
    [0x5412, 0x541c, 0x5423, 0x4008_6602, 0x4004_6602, 0x401c_5820, 0x800c_6613];

/// Flags of `clone` and `unshare` that make a namespace.
const NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Calls that no confined command makes.
const FORBIDDEN: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Those that only this processor has.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[i64] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[i64] = &[];

/// The filters for these sockets. Built at the first use. `among_others` is for commands that see the processes of the
/// machine: they may change limits and priorities of their own process alone.
pub(crate) fn filters(sockets: Sockets, among_others: bool) -> Result<&'static Filters, SandboxError> {
    static BUILT: [OnceLock<Result<Filters, String>>; 8] = [const { OnceLock::new() }; 8];
    let place = usize::from(sockets.internet) + 2 * usize::from(sockets.unix) + 4 * usize::from(among_others);
    BUILT[place]
        .get_or_init(|| build(sockets, among_others).map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|reason| SandboxError::Unavailable(format!("system calls cannot be filtered: {reason}")))
}

fn build(sockets: Sockets, among_others: bool) -> Result<Filters, Box<dyn std::error::Error>> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let denied = u32::try_from(libc::EPERM)?;
    let unknown = u32::try_from(libc::ENOSYS)?;
    let allow = SeccompAction::Allow;
    let mut table = table(sockets)?;
    if among_others {
        table.extend(foreign_process_rules()?);
    }
    let denying = SeccompFilter::new(table, allow.clone(), SeccompAction::Errno(denied), architecture)?;
    // Its flags lie in memory, where a filter cannot look. The C library falls back to `clone`.
    let hiding = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let hiding = SeccompFilter::new(hiding, allow, SeccompAction::Errno(unknown), architecture)?;
    let mut programs = vec![BpfProgram::try_from(denying)?, BpfProgram::try_from(hiding)?];
    programs.extend(other_numbering());
    Ok(Filters(programs))
}

/// The other numbering of the same calls that some kernels for this processor know, and that the tables miss.
#[cfg(target_arch = "x86_64")]
fn other_numbering() -> Option<BpfProgram> {
    let step = |code: u16, jt: u8, jf: u8, k: u32| sock_filter { code, jt, jf, k };
    Some(vec![
        // Load the number of the call; from bit 30 on it is one of the other numbering.
        step(0x20, 0, 0, 0),
        step(0x35, 0, 1, 0x4000_0000),
        step(0x06, 0, 0, 0x0005_0000 | 1),
        step(0x06, 0, 0, 0x7fff_0000),
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn other_numbering() -> Option<BpfProgram> {
    None
}

type Table = BTreeMap<i64, Vec<SeccompRule>>;

fn table(sockets: Sockets) -> Result<Table, seccompiler::BackendError> {
    let mut table: Table =
        FORBIDDEN.iter().chain(FORBIDDEN_HERE).map(|number| (*number, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let bit = u64::from(flag.unsigned_abs());
        namespaces.push(SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])?);
    }
    table.insert(libc::SYS_clone, namespaces);
    let mut requests = Vec::new();
    for request in FORBIDDEN_REQUESTS {
        requests.push(SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, request)?])?);
    }
    table.insert(libc::SYS_ioctl, requests);
    table.insert(libc::SYS_socket, socket_rules(sockets)?);
    table.insert(libc::SYS_socketpair, pair_rules(sockets)?);
    Ok(table)
}

/// Calls that change another process, recognised by the number that is not 0 for "this one".
fn foreign_process_rules() -> Result<Table, seccompiler::BackendError> {
    let other = |argument| -> Result<_, seccompiler::BackendError> {
        SeccompRule::new(vec![condition(argument, SeccompCmpOp::Ne, 0)?])
    };
    let mut table = Table::new();
    for number in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ] {
        table.insert(number, vec![other(0)?]);
    }
    // A group or a user, or one process that is another.
    let kind = |kind| -> Result<_, seccompiler::BackendError> {
        SeccompRule::new(vec![condition(0, SeccompCmpOp::Ne, kind)?])
    };
    table.insert(libc::SYS_setpriority, vec![kind(0)?, other(1)?]);
    table.insert(libc::SYS_ioprio_set, vec![kind(1)?, other(1)?]);
    // Asking for the limits of another process stays possible: then there is no new limit.
    let other_limit = vec![condition(0, SeccompCmpOp::Ne, 0)?, pointer(2)?];
    table.insert(libc::SYS_prlimit64, vec![SeccompRule::new(other_limit)?]);
    // Every process that may be signalled at all.
    let every = condition(0, SeccompCmpOp::Eq, u64::from(u32::MAX))?;
    table.insert(libc::SYS_kill, vec![SeccompRule::new(vec![every])?]);
    Ok(table)
}

fn pointer(argument: u8) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    // The kernel reads these arguments as 32 bits; comparing more would let the upper half hide a value.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn family(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut allowed = Vec::new();
    if sockets.internet {
        // Programs list their network interfaces with netlink.
        allowed.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if sockets.unix {
        allowed.push(libc::AF_UNIX);
    }
    if allowed.is_empty() {
        // No condition: every family.
        return Ok(Vec::new());
    }
    let others: Result<Vec<_>, _> =
        allowed.iter().map(|number| condition(0, SeccompCmpOp::Ne, family(*number))).collect();
    let mut rules = vec![SeccompRule::new(others?)?];
    if sockets.internet {
        let kernel = condition(0, SeccompCmpOp::Eq, family(libc::AF_NETLINK))?;
        let not_routes = condition(2, SeccompCmpOp::Ne, 0)?;
        rules.push(SeccompRule::new(vec![kernel, not_routes])?);
    }
    Ok(rules)
}

/// Pairs stay inside the command, except datagram sockets: those can send to any name, although they were born as one
/// of a pair. The raw kind is another name for them.
fn pair_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let mut rules = vec![SeccompRule::new(vec![condition(0, SeccompCmpOp::Ne, family(libc::AF_UNIX))?])?];
    if !sockets.unix {
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            rules.push(SeccompRule::new(vec![condition(1, SeccompCmpOp::MaskedEq(0xf), family(kind))?])?);
        }
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_network_has_its_filters() {
        for internet in [false, true] {
            for unix in [false, true] {
                let filters = filters(Sockets { internet, unix }, internet).unwrap();
                assert!(filters.0.len() >= 2);
                assert!(filters.0.iter().all(|program| program.len() < 4096));
            }
        }
        let closed = filters(Sockets { internet: false, unix: false }, false).unwrap();
        let open = filters(Sockets { internet: true, unix: true }, true).unwrap();
        assert_ne!(closed.0[0], open.0[0]);
    }
}
