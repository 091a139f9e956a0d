//! The Landlock rules of a confined command: reading everywhere, writing in the writable places alone, no signal and no
//! abstract socket out of the sandbox.
//!
//! Rules cannot take away what a folder above grants; that part is done with mounts. What they add is that they hold
//! for the objects themselves, whatever way leads to them.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope,
};

use crate::sandbox::error::SandboxError;
use crate::sandbox::plan::SandboxPlan;

/// Devices that every program may expect.
pub(crate) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// What a terminal of the command's own needs, in the numbers of the kernel: write, read, list, and requests to devices.
pub(crate) fn terminal_access(version: i64) -> u64 {
    let requests = if version >= 5 { 1 << 15 } else { 0 };
    (1 << 1) | (1 << 2) | (1 << 3) | requests
}

/// The version of Landlock here; `None` without Landlock.
pub(crate) fn version() -> Option<i64> {
    // SAFETY: asks for the version; no memory is passed.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) };
    (version > 0).then_some(version)
}

/// The rules, ready to be applied.
pub(crate) fn ruleset(plan: &SandboxPlan, sockets: bool) -> Result<OwnedFd, SandboxError> {
    let missing =
        || SandboxError::Unavailable("the kernel has no Landlock, or it is switched off".to_owned());
    if version().is_none() {
        return Err(missing());
    }
    let fault =
        |error: RulesetError| SandboxError::Unavailable(format!("Landlock refuses the rules: {error}"));
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .map_err(fault)?;
    if !sockets {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(fault)?;
    }
    let mut rules = ruleset.create().map_err(fault)?;
    let everything = AccessFs::from_all(ABI::V5);
    let device = AccessFs::WriteFile | AccessFs::ReadFile | AccessFs::IoctlDev | AccessFs::Truncate;
    let mut grants = vec![(Path::new("/").to_path_buf(), AccessFs::from_read(ABI::V5))];
    grants.extend(plan.writable.iter().map(|path| (path.clone(), everything)));
    grants.push((plan.scratch.temporary(), everything));
    grants.push((plan.scratch.shared_memory(), everything));
    let devices = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    grants.extend(devices.filter(|path| path.exists()).map(|path| (path, device)));
    for (path, access) in grants {
        let opened = PathFd::new(&path)
            .map_err(|error| SandboxError::Place { path, source: std::io::Error::other(error) })?;
        rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(fault)?;
    }
    Option::<OwnedFd>::from(rules).ok_or_else(missing)
}
