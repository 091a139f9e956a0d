//! From settings and places to the plan for one command: what it may write, what it may not read, what it may reach.
//!
//! Paths are made absolute and real here, so that everything behind it means the same objects.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use qoder_types::workspace::{Isolation, Workspace, is_protected};

use super::confinement::Confinement;
use super::error::SandboxError;
use super::probe;
use super::scratch::Scratch;
use super::settings::SandboxSettings;
use crate::sandbox::network::hosts::HostRules;
use crate::sandbox::network::proxy::{Resolver, system_resolver};

/// The places of a session that the settings do not name.
#[derive(Debug, Clone, Default)]
pub struct SandboxPlaces {
    /// The person's home.
    pub home: PathBuf,
    /// The program's own configuration directory.
    pub config_dir: PathBuf,
    /// Places that the session's rules deny to read.
    pub deny_read: Vec<PathBuf>,
    /// Files and folders that are protected besides those that are by their names.
    pub protected: Vec<PathBuf>,
    /// The environment of an isolated session: commands read what it lists and nothing else.
    pub isolation: Option<Isolation>,
}

/// What one command may do. All paths are absolute; those that exist are real.
#[derive(Debug, Clone)]
pub struct SandboxPlan {
    /// Where the command starts.
    pub cwd: PathBuf,
    /// Where it may write.
    pub writable: Vec<PathBuf>,
    /// Protected places that a person opened by name.
    pub unprotected: Vec<PathBuf>,
    /// Places inside writable ones that stay as they are.
    pub deny_write: Vec<PathBuf>,
    /// Places that cannot be read.
    pub deny_read: Vec<PathBuf>,
    /// Places inside those that can.
    pub allow_read: Vec<PathBuf>,
    /// What it may reach.
    pub network: NetworkPlan,
    /// Whether it may use unix sockets.
    pub unix_sockets: bool,
    /// Whether to do without namespaces where there are none.
    pub weaker: bool,
    /// Its temporary files.
    pub scratch: Arc<Scratch>,
    /// The session's places, for what is protected.
    pub workspace: Workspace,
}

/// What a command may reach.
#[derive(Clone)]
pub struct NetworkPlan {
    /// Hosts that may be reached.
    pub hosts: HostRules,
    /// Whether servers may listen on the command's own loopback.
    pub local_binding: bool,
    /// A proxy of the person's own that decides in place of the hosts.
    pub http_relay: Option<u16>,
    /// The same for SOCKS.
    pub socks_relay: Option<u16>,
    /// How names become addresses.
    pub resolver: Resolver,
}

impl std::fmt::Debug for NetworkPlan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("NetworkPlan")
            .field("hosts", &self.hosts)
            .field("local_binding", &self.local_binding)
            .field("http_relay", &self.http_relay)
            .field("socks_relay", &self.socks_relay)
            .finish_non_exhaustive()
    }
}

impl NetworkPlan {
    /// Whether anything outside can be reached.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.hosts.is_closed() || self.http_relay.is_some() || self.socks_relay.is_some()
    }
}

/// The sandbox of a session.
pub struct Sandbox {
    settings: SandboxSettings,
    places: SandboxPlaces,
    resolver: Resolver,
    scratch: Mutex<Option<Arc<Scratch>>>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sandbox").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// A sandbox with these settings. Touches nothing yet.
    #[must_use]
    pub fn new(settings: SandboxSettings, mut places: SandboxPlaces) -> Self {
        // Every path starts with the empty one: without a folder of our own everything would count as ours.
        if !places.config_dir.is_absolute() {
            places.config_dir = PathBuf::from("/dev/null");
        }
        Self { settings, places, resolver: system_resolver(), scratch: Mutex::new(None) }
    }

    /// Resolves names another way.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &SandboxSettings {
        &self.settings
    }

    /// The confinement of a command that starts in `cwd` of a session that works in `roots`. Tests the sandbox itself
    /// before the first one.
    pub fn confine(&self, cwd: &Path, roots: &[PathBuf]) -> Result<Confinement, SandboxError> {
        let plan = self.plan(cwd, roots)?;
        probe::self_test(plan.weaker)?;
        Confinement::prepare(&plan)
    }

    /// The plan for a command.
    pub fn plan(&self, cwd: &Path, roots: &[PathBuf]) -> Result<SandboxPlan, SandboxError> {
        let settings = &self.settings;
        let files = &settings.filesystem;
        let base = roots.first().map_or(cwd, PathBuf::as_path);
        let read = |list: &[String], what| self.resolved(list, base, what);
        let workspace = Workspace {
            cwd: cwd.to_path_buf(),
            project_root: base.to_path_buf(),
            home: self.places.home.clone(),
            roots: roots.to_vec(),
            config_dir: self.places.config_dir.clone(),
            protected: self.places.protected.clone(),
            isolation: self.places.isolation.clone(),
        };
        let allowed = read(&files.allow_write, "filesystem.allowWrite")?;
        let unprotected = allowed.iter().filter(|path| is_protected(path, &workspace)).cloned().collect();
        let mut writable: Vec<PathBuf> =
            roots.iter().chain(&allowed).filter(|path| path.exists()).cloned().collect();
        writable.sort_by_key(|path| path.components().count());
        writable.dedup();
        let mut deny_read = read(&files.deny_read, "filesystem.denyRead")?;
        deny_read.extend(self.places.deny_read.iter().map(|path| real(path)));
        // No layer of managed settings exists yet, so no other layer counts then.
        let mut allow_read = match files.allow_managed_read_paths_only {
            true => Vec::new(),
            false => read(&files.allow_read, "filesystem.allowRead")?,
        };
        if let Some(isolation) = &self.places.isolation {
            let (hidden, shown) = only_readable(isolation, &writable);
            deny_read.extend(hidden);
            allow_read = shown;
        }
        let network = &settings.network;
        if !network.allow_unix_sockets.is_empty() && !network.allow_all_unix_sockets {
            return Err(SandboxError::Unenforceable {
                what: "network.allowUnixSockets",
                reason: "unix sockets cannot be limited to a list; allow all of them or none".to_owned(),
            });
        }
        Ok(SandboxPlan {
            cwd: cwd.to_path_buf(),
            writable,
            unprotected,
            deny_write: read(&files.deny_write, "filesystem.denyWrite")?,
            deny_read,
            allow_read,
            network: NetworkPlan {
                hosts: HostRules::new(&network.allowed_domains, &network.denied_domains)?,
                local_binding: network.allow_local_binding,
                http_relay: network.http_proxy_port,
                socks_relay: network.socks_proxy_port,
                resolver: self.resolver.clone(),
            },
            unix_sockets: network.allow_all_unix_sockets,
            weaker: settings.enable_weaker_nested_sandbox,
            scratch: self.scratch()?,
            workspace,
        })
    }

    fn scratch(&self) -> Result<Arc<Scratch>, SandboxError> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scratch) = scratch.as_ref().filter(|scratch| scratch.root().is_dir()) {
            return Ok(Arc::clone(scratch));
        }
        let made =
            Scratch::create().map_err(|source| SandboxError::Place { path: std::env::temp_dir(), source })?;
        let made = Arc::new(made);
        *scratch = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Paths from settings: `~/` is the home, others start at `base`.
    fn resolved(
        &self,
        list: &[String],
        base: &Path,
        what: &'static str,
    ) -> Result<Vec<PathBuf>, SandboxError> {
        list.iter()
            .map(|text| {
                // A pattern taken for a name would silently lose what it was to forbid.
                if text.contains(['*', '?', '\0']) || text.is_empty() {
                    let reason = format!("`{text}` is not a plain path");
                    return Err(SandboxError::Unenforceable { what, reason });
                }
                let path = match text.strip_prefix("~/") {
                    Some(rest) => self.places.home.join(rest),
                    None if text == "~" => self.places.home.clone(),
                    None => base.join(text),
                };
                Ok(real(&path))
            })
            .collect()
    }
}

/// What is to be hidden so that nothing can be read but what the environment lists: every folder and file at the top of the
/// file system that is not listed as a whole, and the listed parts inside of those. The kernel's own file systems and the
/// temporary files are the command's own anyway.
fn only_readable(isolation: &Isolation, writable: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let readable =
        isolation.readable.iter().chain(&isolation.mounted).chain(&isolation.roots).chain(writable);
    let readable: Vec<PathBuf> = readable.map(|path| real(path)).collect();
    let entries = std::fs::read_dir("/").into_iter().flatten().filter_map(Result::ok);
    let own = ["/proc", "/dev", "/tmp"].map(Path::new);
    // A link leads to a place that is judged by itself.
    let places = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    let hidden: Vec<PathBuf> = places
        .map(|entry| entry.path())
        .filter(|path| !own.contains(&path.as_path()))
        .filter(|path| !readable.iter().any(|listed| path.starts_with(listed)))
        .collect();
    // The temporary files of the machine are hidden by those of the command.
    let temporary = real(Path::new("/tmp"));
    let is_inside =
        |path: &&PathBuf| path.starts_with(&temporary) || hidden.iter().any(|place| path.starts_with(place));
    let shown = readable.iter().filter(is_inside).filter(|path| !writable.contains(path));
    (hidden.clone(), shown.cloned().collect())
}

/// The real path; of one that does not exist, the real path of what does and the rest.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            return rest.iter().rev().fold(found, |path, part| path.join(part));
        }
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                at = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::settings::FilesystemSettings;

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let roots = [folder.path().to_path_buf()];
        let mut settings = SandboxSettings::default();
        settings.network.allow_unix_sockets = vec!["/run/docker.sock".to_owned()];
        let sandbox = Sandbox::new(settings, SandboxPlaces::default());
        assert_eq!(sandbox.plan(&roots[0], &roots).unwrap_err().code(), "sandbox_unenforceable");
        let filesystem =
            FilesystemSettings { deny_read: vec!["~/.ssh/*".to_owned()], ..FilesystemSettings::default() };
        let sandbox = Sandbox::new(
            SandboxSettings { filesystem, ..SandboxSettings::default() },
            SandboxPlaces::default(),
        );
        assert_eq!(sandbox.plan(&roots[0], &roots).unwrap_err().code(), "sandbox_unenforceable");
    }

    #[test]
    fn a_protected_place_is_opened_only_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join(".git")).unwrap();
        let plan = |allow: &[&str]| {
            let allow_write = allow.iter().map(|text| (*text).to_owned()).collect();
            let filesystem = FilesystemSettings { allow_write, ..FilesystemSettings::default() };
            let settings = SandboxSettings { filesystem, ..SandboxSettings::default() };
            Sandbox::new(settings, SandboxPlaces::default()).plan(&root, std::slice::from_ref(&root)).unwrap()
        };
        assert!(plan(&["."]).unprotected.is_empty());
        assert_eq!(plan(&[".git"]).unprotected, [root.join(".git")]);
    }
}
