//! A prepared confinement: everything one confined command needs, made before its process exists.
//!
//! The parent sets the variables and moves the child's part into the fresh process; when the process has started, the
//! doors to the network are opened and placeholders stay until the command is over.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use super::error::SandboxError;
use super::plan::SandboxPlan;
use super::scratch::Scratch;

/// A confinement for one command.
#[derive(Debug)]
pub struct Confinement {
    environment: Vec<(&'static str, OsString)>,
    prefix: Vec<OsString>,
    #[cfg(target_os = "linux")]
    linux: linux::Parts,
    _scratch: Arc<Scratch>,
}

/// What lives as long as a confined command.
#[derive(Debug)]
pub(crate) struct Running {
    #[cfg(target_os = "linux")]
    _linux: linux::Running,
    _scratch: Arc<Scratch>,
}

impl Confinement {
    /// Variables the command gets.
    pub(crate) fn environment(&self) -> &[(&'static str, OsString)] {
        &self.environment
    }

    /// A program and its arguments that start the command in its place; empty when the child confines itself.
    pub(crate) fn prefix(&self) -> &[OsString] {
        &self.prefix
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::ChildPart;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use super::super::broker::{Broker, Judge};
    use super::super::plan::NetworkPlan;
    use super::super::{probe, wrapper};
    use super::{Arc, Confinement, OsString, SandboxError, SandboxPlan, io};
    use crate::sandbox::linux::child::{Child, Namespaces, STAGES, STEPS};
    use crate::sandbox::linux::placeholder::Placeholder;
    use crate::sandbox::linux::seccomp::{Sockets, filters};
    use crate::sandbox::linux::steps::View;
    use crate::sandbox::linux::{notify, rules};
    use crate::sandbox::network::doors::{self, HTTP_PORT, Net, SOCKS_PORT};
    use crate::sandbox::network::proxy::{Behind, Proxy};
    use crate::tree::Confines;

    /// What only the fresh process uses.
    #[derive(Debug)]
    pub(crate) struct ChildPart(Child);

    impl Confines for ChildPart {
        unsafe fn apply(&mut self) -> io::Result<()> {
            // SAFETY: the caller's.
            unsafe { self.0.apply() }
        }

        fn has_process_namespace(&self) -> bool {
            self.0.has_process_namespace()
        }

        unsafe fn enter_namespaces(&mut self) -> io::Result<()> {
            // SAFETY: the caller's.
            unsafe { self.0.enter_namespaces() }
        }

        unsafe fn confine_inside(&mut self) -> io::Result<()> {
            // SAFETY: the caller's.
            unsafe { self.0.confine_inside() }
        }

        unsafe fn filter_calls(&mut self) -> io::Result<()> {
            // SAFETY: the caller's.
            unsafe { self.0.filter_calls() }
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Parts {
        child: Option<Child>,
        status: Option<io::PipeReader>,
        steps: Vec<String>,
        placeholders: Vec<Placeholder>,
        doors: Option<OwnedFd>,
        behind: Vec<Behind>,
        passed: Vec<OwnedFd>,
        /// Where the broker's descriptor comes from, and what it judges by.
        broker: Option<(OwnedFd, Judge)>,
    }

    #[derive(Debug)]
    pub(crate) struct Running {
        _broker: Option<Broker>,
        _proxies: Vec<Proxy>,
        _placeholders: Vec<Placeholder>,
    }

    impl Confinement {
        /// Makes everything that the child will need.
        pub fn prepare(plan: &SandboxPlan) -> Result<Self, SandboxError> {
            let available = probe::available();
            if available.landlock.is_none() || !(available.namespaces || plan.weaker) {
                return match wrapper::find() {
                    Some(program) => Self::wrapped(plan, program),
                    None => Err(SandboxError::Unavailable(available.missing())),
                };
            }
            Self::native(plan, available)
        }

        fn native(plan: &SandboxPlan, available: &probe::Available) -> Result<Self, SandboxError> {
            let (with_namespaces, own_processes) = (available.namespaces, available.own_processes());
            let with_broker = available.broker_problem.is_none();
            let network = &plan.network;
            let internet = network.is_open() || network.local_binding;
            let sockets = Sockets { internet, unix: plan.unix_sockets };
            if !with_namespaces {
                refuse_what_needs_namespaces(plan)?;
            }
            let mut view =
                if with_namespaces { View::plan(plan, own_processes, with_broker)? } else { View::default() };
            if !with_namespaces {
                view.temporary = plan.scratch.temporary();
            }
            let (status, writer) = io::pipe().map_err(|source| setup("a pipe", source))?;
            let mut parts = Parts {
                status: Some(status),
                steps: view.steps.iter().map(crate::sandbox::linux::steps::Step::describe).collect(),
                placeholders: std::mem::take(&mut view.placeholders),
                ..Parts::default()
            };
            let net = if with_namespaces && internet { Some(parts.open_doors(network)?) } else { None };
            let environment = environment(&view.temporary, network);
            let broker =
                if with_broker { Some(parts.open_broker(plan, with_namespaces, &view)?) } else { None };
            parts.child = Some(Child {
                namespaces: with_namespaces.then(|| namespaces(view, own_processes)),
                net,
                ruleset: rules::ruleset(plan, internet)?,
                terminal_access: rules::terminal_access(rules::version().unwrap_or(1)),
                filters: filters(sockets, !own_processes)?,
                status: writer.into(),
                broker,
            });
            Ok(Self { environment, prefix: Vec::new(), linux: parts, _scratch: Arc::clone(&plan.scratch) })
        }

        fn wrapped(plan: &SandboxPlan, program: &Path) -> Result<Self, SandboxError> {
            let wrapped = wrapper::wrap(plan, program)?;
            let parts =
                Parts { placeholders: wrapped.placeholders, passed: wrapped.passed, ..Parts::default() };
            let environment = environment(Path::new("/tmp"), &plan.network);
            Ok(Self {
                environment,
                prefix: wrapped.prefix,
                linux: parts,
                _scratch: Arc::clone(&plan.scratch),
            })
        }

        /// The part that moves into the fresh process.
        pub(crate) fn take_child(&mut self) -> Option<ChildPart> {
            self.linux.child.take().map(ChildPart)
        }

        /// Descriptors that the wrapping program reads.
        pub(crate) fn passed(&self) -> &[OwnedFd] {
            &self.linux.passed
        }

        /// What went wrong, when the process could not be started because of the confinement.
        pub(crate) fn explain(&self, error: io::Error) -> io::Error {
            match self.failed_stage() {
                Some(step) => io::Error::other(SandboxError::Setup { step, source: error }),
                None => error,
            }
        }

        fn failed_stage(&self) -> Option<String> {
            let mut status = self.linux.status.as_ref()?;
            rustix::io::ioctl_fionbio(status, true).ok()?;
            let mut bytes = [0_u8; 4];
            status.read_exact(&mut bytes).ok()?;
            let stage = u32::from_ne_bytes(bytes);
            let numbered = stage.checked_sub(STEPS).and_then(|step| usize::try_from(step).ok());
            let name = match numbered {
                Some(step) => self.linux.steps.get(step).cloned(),
                None => STAGES.get(usize::try_from(stage).ok()?).map(|name| (*name).to_owned()),
            };
            Some(name.unwrap_or_else(|| format!("stage {stage}")))
        }

        /// Opens the doors of a process that has started.
        pub(crate) fn started(mut self) -> io::Result<super::Running> {
            let broker = self.start_broker()?;
            let mut proxies = Vec::new();
            if let Some(doors) = &self.linux.doors {
                for behind in self.linux.behind {
                    proxies.push(Proxy::start(doors::receive_listener(doors)?, behind)?);
                }
            }
            let running =
                Running { _broker: broker, _proxies: proxies, _placeholders: self.linux.placeholders };
            Ok(super::Running { _linux: running, _scratch: self._scratch })
        }
    }

    impl Confinement {
        /// Starts the broker of a child that is confining itself; waits until it has come to that.
        pub(crate) fn start_broker(&mut self) -> io::Result<Option<Broker>> {
            let Some((receiver, judge)) = self.linux.broker.take() else { return Ok(None) };
            Broker::start(doors::receive(&receiver)?, judge).map(Some)
        }
    }

    impl Parts {
        /// The child's end of what the broker's descriptor comes through.
        fn open_broker(
            &mut self,
            plan: &SandboxPlan,
            with_namespaces: bool,
            view: &View,
        ) -> Result<OwnedFd, SandboxError> {
            // The child may not build it.
            notify::program();
            let mut free = vec![view.temporary.clone()];
            if with_namespaces {
                free.push("/dev".into());
            } else {
                free.push(plan.scratch.shared_memory());
                free.extend(rules::DEVICES.iter().map(|name| Path::new("/dev").join(name)));
            }
            let (sender, receiver) = doors::pair()?;
            self.broker = Some((receiver, Judge::new(plan, free)));
            Ok(sender)
        }

        fn open_doors(&mut self, network: &NetworkPlan) -> Result<Net, SandboxError> {
            if !network.is_open() {
                return Ok(Net { ports: Vec::new(), sender: None });
            }
            let mut ports = vec![HTTP_PORT];
            self.behind.push(match network.http_relay {
                Some(port) => Behind::Relay(port),
                None => Behind::Rules(network.hosts.clone(), Arc::clone(&network.resolver)),
            });
            if let Some(port) = network.socks_relay {
                ports.push(SOCKS_PORT);
                self.behind.push(Behind::Relay(port));
            }
            let (sender, receiver) = doors::pair()?;
            self.doors = Some(receiver);
            Ok(Net { ports, sender: Some(sender) })
        }
    }

    fn setup(step: &str, source: io::Error) -> SandboxError {
        SandboxError::Setup { step: step.to_owned(), source }
    }

    /// Without namespaces files cannot be hidden and the network cannot be opened a little.
    fn refuse_what_needs_namespaces(plan: &SandboxPlan) -> Result<(), SandboxError> {
        let network = &plan.network;
        let wishes = [
            (!plan.deny_read.is_empty(), "unreadable places"),
            (!plan.deny_write.is_empty(), "filesystem.denyWrite"),
            (network.is_open(), "a list of hosts"),
            (network.local_binding, "network.allowLocalBinding"),
        ];
        match wishes.into_iter().find(|(wished, _)| *wished) {
            Some((_, what)) => {
                let reason = "this system gives us no namespaces".to_owned();
                Err(SandboxError::Unenforceable { what, reason })
            }
            None => Ok(()),
        }
    }

    fn namespaces(view: View, own_processes: bool) -> Namespaces {
        let map = |id: u32| CString::new(format!("{id} {id} 1\n")).unwrap_or_default();
        let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET;
        Namespaces {
            flags: if own_processes { flags | libc::CLONE_NEWPID } else { flags },
            user_map: map(rustix::process::geteuid().as_raw()),
            group_map: map(rustix::process::getegid().as_raw()),
            slots: vec![-1; view.slots],
            steps: view.steps,
        }
    }

    fn environment(temporary: &Path, network: &NetworkPlan) -> Vec<(&'static str, OsString)> {
        let mut variables: Vec<(&'static str, OsString)> =
            vec![("TMPDIR", temporary.into()), ("SANDBOX", "qodercli".into())];
        if !network.is_open() {
            return variables;
        }
        let http = OsString::from(format!("http://127.0.0.1:{HTTP_PORT}"));
        let socks = OsString::from(format!("socks5h://127.0.0.1:{SOCKS_PORT}"));
        let all = if network.socks_relay.is_some() { socks } else { http.clone() };
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            variables.push((name, http.clone()));
        }
        variables.extend([("ALL_PROXY", all.clone()), ("all_proxy", all)]);
        variables.extend([("NO_PROXY", OsString::new()), ("no_proxy", OsString::new())]);
        variables
    }

    #[cfg(test)]
    mod tests {
        use qoder_types::CommandEnvironment;

        use super::*;
        use crate::sandbox::{Sandbox, SandboxPlaces, SandboxSettings};
        use crate::shell::{ErrorStream, Shell};

        #[tokio::test]
        async fn bubblewrap_confines_where_it_is() {
            let Some(program) = wrapper::find() else {
                eprintln!("SKIPPED: no bubblewrap in a system directory");
                return;
            };
            let folder = tempfile::tempdir_in("/var/tmp").unwrap();
            let base = folder.path().canonicalize().unwrap();
            let root = base.join("work");
            std::fs::create_dir_all(root.join(".git")).unwrap();
            std::fs::write(base.join("denied"), "hush").unwrap();
            let places = SandboxPlaces { deny_read: vec![base.join("denied")], ..SandboxPlaces::default() };
            let sandbox = Sandbox::new(SandboxSettings::default(), places);
            let plan = sandbox.plan(&root, std::slice::from_ref(&root)).unwrap();
            let command = "echo x > file; echo x > /tmp/t; mkdir below && cd below; echo x > ../../outside; \
                           echo x > ../.git/config; mkdir ../.vscode/x; cat ../../denied > ../copy; \
                           exec 3<>/dev/tcp/127.0.0.1/9 || true; unshare -U true && echo x > ../escaped";
            let confinement = Confinement::wrapped(&plan, program).unwrap();
            let mut shell = Shell::start(
                command,
                &root,
                &CommandEnvironment::default(),
                &[],
                ErrorStream::WithOutput,
                Some(confinement),
            )
            .unwrap();
            assert!(shell.tree.wait().await.is_ok());
            assert_eq!(shell.final_directory(), Some(root.join("below")));
            shell.tree.end_leftovers().await;
            drop(shell);
            assert!(root.join("file").exists());
            assert!(!base.join("outside").exists() && !root.join(".git/config").exists());
            assert!(!root.join(".vscode").exists() && !root.join("escaped").exists());
            assert_eq!(std::fs::read_to_string(root.join("copy")).unwrap(), "");
            let checks = probe::attempt_wrapped(
                &Confinement::wrapped(&plan, program).unwrap(),
                &root,
                (&base.join("outside"), &base.join("denied")),
                9,
            );
            assert!(checks.unwrap().iter().all(probe::Check::holds));
        }
    }
}

#[cfg(target_os = "macos")]
impl Confinement {
    /// Writes the profile under which the system starts the command.
    pub fn prepare(plan: &SandboxPlan) -> Result<Self, SandboxError> {
        let profile = super::seatbelt::profile(plan)?;
        let prefix = vec!["/usr/bin/sandbox-exec".into(), "-p".into(), profile.into()];
        let environment =
            vec![("TMPDIR", plan.scratch.temporary().into_os_string()), ("SANDBOX", "qodercli".into())];
        Ok(Self { environment, prefix, _scratch: Arc::clone(&plan.scratch) })
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
impl Confinement {
    /// No mechanism is known for this system.
    pub fn prepare(_: &SandboxPlan) -> Result<Self, SandboxError> {
        Err(SandboxError::Unavailable("no mechanism is known for this system".to_owned()))
    }
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    pub(crate) fn explain(&self, error: io::Error) -> io::Error {
        error
    }

    pub(crate) fn passed(&self) -> &[std::os::fd::OwnedFd] {
        &[]
    }

    pub(crate) fn started(self) -> io::Result<Running> {
        Ok(Running { _scratch: self._scratch })
    }
}
