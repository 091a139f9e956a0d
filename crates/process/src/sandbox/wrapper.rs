//! Confinement by bubblewrap, for systems whose kernel has no Landlock or gives ordinary programs no namespaces.
//!
//! The program is taken from a system directory that only root can write, never from the search path: a workspace must
//! not provide what confines it. What it cannot enforce is refused.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "bubblewrap exists on Linux"))]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where it may be.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// The program, when root alone can have put it there.
pub(crate) fn find() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| PLACES.iter().map(PathBuf::from).find(|path| is_roots_own(path))).as_deref()
}

/// Whether root owns the program and every folder above it, and no other user can write them.
fn is_roots_own(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let safe = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
    };
    real.is_file() && real.ancestors().all(safe)
}

#[cfg(target_os = "linux")]
pub(crate) use linux::wrap;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::super::error::SandboxError;
    use super::super::plan::SandboxPlan;
    use super::{Path, PathBuf};
    use crate::sandbox::linux::placeholder::Placeholder;
    use crate::sandbox::linux::protected::Standing;
    use crate::sandbox::linux::read_only::ReadOnlyPlaces;
    use crate::sandbox::linux::seccomp::{Sockets, filters};

    /// How to start a command inside.
    pub(crate) struct Wrapped {
        pub(crate) prefix: Vec<OsString>,
        pub(crate) placeholders: Vec<Placeholder>,
        pub(crate) passed: Vec<OwnedFd>,
    }

    /// The program with its arguments, up to the command.
    pub(crate) fn wrap(plan: &SandboxPlan, program: &Path) -> Result<Wrapped, SandboxError> {
        if plan.network.is_open() {
            let reason = "that needs namespaces of our own, which this system does not give".to_owned();
            return Err(SandboxError::Unenforceable { what: "a list of hosts", reason });
        }
        let kept = ReadOnlyPlaces::secure(plan, false)?;
        if let Some((path, _)) = kept.standing.iter().find(|(_, standing)| *standing == Standing::Link) {
            let reason = format!("{} is a link, which bubblewrap cannot cover", path.display());
            return Err(SandboxError::Unenforceable { what: "protection of a link", reason });
        }
        let sockets = Sockets { internet: plan.network.local_binding, unix: plan.unix_sockets };
        let mut passed = Vec::new();
        for program in &filters(sockets, false)?.0 {
            passed.push(
                in_memory(program).map_err(|source| SandboxError::Setup {
                    step: "passing the filters".to_owned(),
                    source,
                })?,
            );
        }
        let mut prefix = arguments(plan, program, &kept);
        for filter in &passed {
            prefix.extend(["--add-seccomp-fd".into(), filter.as_raw_fd().to_string().into()]);
        }
        prefix.push("--".into());
        Ok(Wrapped { prefix, placeholders: kept.placeholders, passed })
    }

    fn arguments(plan: &SandboxPlan, program: &Path, kept: &ReadOnlyPlaces) -> Vec<OsString> {
        let mut list: Vec<OsString> = vec![program.into()];
        let flags =
            "--unshare-user --unshare-pid --unshare-ipc --unshare-net --die-with-parent --cap-drop ALL";
        list.extend(flags.split(' ').map(OsString::from));
        let mut mount = |kind: &str, source: &Path, target: &Path| {
            list.extend([kind.into(), source.into(), target.into()]);
        };
        mount("--ro-bind", Path::new("/"), Path::new("/"));
        mount("--bind", &plan.scratch.temporary(), Path::new("/tmp"));
        for path in &plan.writable {
            mount("--bind", path, path);
        }
        for path in plan.allow_read.iter().filter(|path| path.starts_with("/tmp") && path.exists()) {
            mount("--ro-bind", path, path);
        }
        for (path, _) in &kept.standing {
            mount("--ro-bind", path, path);
        }
        for path in plan.deny_read.iter().filter(|path| path.exists() && !path.is_dir()) {
            mount("--ro-bind", &plan.scratch.unreadable(), path);
        }
        for path in plan.deny_read.iter().filter(|path| path.is_dir()) {
            // What may be read or written inside of it is put on top.
            let inside = |part: &&PathBuf| *part != path && part.starts_with(path) && part.exists();
            let written = plan.writable.iter().filter(inside).map(|part| ("--bind", part));
            let shown = plan.allow_read.iter().filter(inside).map(|part| ("--ro-bind", part));
            let parts: Vec<(&str, &PathBuf)> = shown.chain(written).collect();
            let mode = if parts.is_empty() { "0000" } else { "0755" };
            list.extend(["--perms".into(), mode.into(), "--tmpfs".into(), path.into()]);
            for (kind, part) in parts {
                list.extend([kind.into(), part.into(), part.into()]);
            }
            list.extend(["--remount-ro".into(), path.into()]);
        }
        list.extend(["--dev".into(), "/dev".into(), "--proc".into(), "/proc".into()]);
        list.extend(["--bind".into(), plan.scratch.shared_memory().into(), "/dev/shm".into()]);
        list.extend(["--chdir".into(), plan.cwd.clone().into()]);
        list
    }

    fn in_memory(program: &[seccompiler::sock_filter]) -> std::io::Result<OwnedFd> {
        let mut file = File::from(memfd_create(c"filter", MemfdFlags::CLOEXEC)?);
        for instruction in program {
            file.write_all(&instruction.code.to_ne_bytes())?;
            file.write_all(&[instruction.jt, instruction.jf])?;
            file.write_all(&instruction.k.to_ne_bytes())?;
        }
        file.rewind()?;
        Ok(file.into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::sandbox::{Sandbox, SandboxPlaces, SandboxSettings};

        #[test]
        fn protected_places_come_after_the_roots_that_hold_them() {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            std::fs::create_dir(root.join(".git")).unwrap();
            let sandbox = Sandbox::new(SandboxSettings::default(), SandboxPlaces::default());
            let plan = sandbox.plan(&root, std::slice::from_ref(&root)).unwrap();
            let wrapped = wrap(&plan, Path::new("/usr/bin/bwrap")).unwrap();
            let at = |kind: &str, path: &Path| {
                let three = wrapped.prefix.windows(3);
                three.into_iter().position(|part| part[0] == kind && part[2] == path).unwrap()
            };
            assert!(at("--ro-bind", Path::new("/")) < at("--bind", &root));
            assert!(at("--bind", &root) < at("--ro-bind", &root.join(".git")));
            assert!(at("--bind", &root) < at("--ro-bind", &root.join(".vscode")));
            assert!(wrapped.prefix.iter().any(|word| word == "--unshare-net"));
            assert_eq!(
                wrapped.passed.len(),
                wrapped.prefix.iter().filter(|w| *w == "--add-seccomp-fd").count()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_a_folder_of_somebody_else_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bwrap");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(!is_roots_own(&path));
        assert!(!is_roots_own(Path::new("bwrap")));
    }
}
