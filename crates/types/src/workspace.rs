//! The places of a session and the files in them that are protected: those that make another program run code later, or
//! hold keys. The gate asks before such a file is changed, and the sandbox keeps it from confined commands; both read
//! the same tables here.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The places of a session. All paths are real paths.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// The directory the session was started in; relative patterns of rules start here.
    pub cwd: PathBuf,
    /// Root of the project.
    pub project_root: PathBuf,
    /// The person's home.
    pub home: PathBuf,
    /// Directories the session may work in.
    pub roots: Vec<PathBuf>,
    /// The program's own configuration directory.
    pub config_dir: PathBuf,
    /// Files and folders that are protected besides those that are by their names: scripts that hooks run, and plugins.
    pub protected: Vec<PathBuf>,
    /// The environment that the session has for itself, when it is isolated. No file in it is protected, and nothing
    /// outside of it is touched, whatever rules say and whatever directories are added.
    pub isolation: Option<Isolation>,
}

/// The environment of an isolated session. All paths are real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Directories that are the session's alone.
    pub roots: Vec<PathBuf>,
    /// Directories that its tools and commands may read and not change, such as files that were given to it.
    pub mounted: Vec<PathBuf>,
    /// Directories that its commands may read besides, such as those with programs and libraries.
    pub readable: Vec<PathBuf>,
}

impl Isolation {
    /// An environment of these directories, whose commands may read the programs and libraries of the system.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>) -> Self {
        let system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
        Self { roots, mounted: Vec::new(), readable: system.map(PathBuf::from).to_vec() }
    }

    /// True for a path that is the session's own.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| is_below(path, root))
    }

    /// True for a path that a tool may read.
    #[must_use]
    pub fn is_shown(&self, path: &Path) -> bool {
        self.contains(path) || self.mounted.iter().any(|folder| is_below(path, folder))
    }

    /// True for a path that a command may read.
    #[must_use]
    pub fn is_readable(&self, path: &Path) -> bool {
        self.is_shown(path) || self.readable.iter().any(|folder| is_below(path, folder))
    }
}

impl Workspace {
    /// True when `path` is in a directory the session may work in. Devices and the kernel's own file systems are
    /// outside even when a path leads there.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        let special =
            may_be_special(path) && ["/proc", "/sys", "/dev"].iter().any(|folder| path.starts_with(folder));
        !special && self.roots.iter().any(|root| is_below(path, root))
    }
}

/// [`Path::starts_with`], with a look at the bytes first, which is enough for most paths.
fn is_below(path: &Path, folder: &Path) -> bool {
    let rest = path.as_os_str().as_encoded_bytes().strip_prefix(folder.as_os_str().as_encoded_bytes());
    matches!(rest, Some([] | [b'/', ..])) || path.starts_with(folder)
}

/// False for most paths outside `/dev`, `/proc` and `/sys`, by their first bytes.
pub fn may_be_special(path: &Path) -> bool {
    matches!(path.as_os_str().as_encoded_bytes(), [b'/', b'd' | b'p' | b's' | b'.' | b'/', ..])
}

/// Folders whose content makes other programs run code.
pub const PROTECTED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
    ".qoder",
    ".qoder-plugin",
    ".claude",
    ".vscode",
    ".idea",
    ".husky",
    ".zed",
    ".cursor",
    ".devcontainer",
    ".cargo",
    ".githooks",
    ".direnv",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".fleet",
    ".vs",
    ".circleci",
];

/// Files that make other programs run code, or hold keys.
pub const PROTECTED_FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".envrc",
    ".env.fish",
    "config.fish",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".mcp.json",
    "mcp.json",
    "hooks.json",
    ".ripgreprc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".inputrc",
    ".direnvrc",
    ".mise.toml",
    "mise.toml",
    ".tool-versions",
    ".pre-commit-config.yaml",
    ".lefthook.yml",
    "lefthook.yml",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".gdbinit",
    ".lldbinit",
    ".pythonrc",
    ".condarc",
    ".netrc",
    ".pypirc",
    ".hgrc",
    ".curlrc",
    ".wgetrc",
    ".screenrc",
    ".tmux.conf",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".pam_environment",
    ".autoenv",
    ".autoenv.zsh",
    "authorized_keys",
    "crontab",
];

/// The folder with the memories of agents, inside of our own folder.
pub const AGENT_MEMORY: &str = "agent-memory";

/// Files that make another program run code later. `acceptEdits`, `auto` and broad rules do not cover them. Holds for
/// files that do not exist yet.
#[must_use]
pub fn is_protected(path: &Path, workspace: &Workspace) -> bool {
    if workspace.isolation.is_some() {
        return false;
    }
    if (path.starts_with(&workspace.config_dir) && !is_own_memory(path, workspace))
        || workspace.protected.iter().any(|protected| path.starts_with(protected))
    {
        return true;
    }
    // Folders above the workspace say nothing about what is in it; the innermost root counts, so that a worktree kept in
    // one of our own folders is a workspace like any other.
    let inside = workspace
        .roots
        .iter()
        .filter_map(|root| path.strip_prefix(root).ok())
        .min_by_key(|rest| rest.components().count())
        .unwrap_or(path);
    let folder = inside.components().any(|part| match part {
        Component::Normal(name) => is_listed(name, PROTECTED_FOLDERS),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    });
    folder || path.file_name().is_some_and(|name| is_listed(name, PROTECTED_FILES))
}

/// True for a name that is protected wherever it is.
pub fn is_protected_name(name: &OsStr) -> bool {
    is_listed(name, PROTECTED_FOLDERS) || is_listed(name, PROTECTED_FILES)
}

/// True in the folder that an agent keeps its memory in, when the present agent was given that very folder: notes run
/// nothing. What lies beside it stays what it is.
fn is_own_memory(path: &Path, workspace: &Workspace) -> bool {
    let all = workspace.config_dir.join(AGENT_MEMORY);
    workspace.roots.iter().any(|root| root.parent() == Some(&all) && path != root && path.starts_with(root))
}

/// True when a list of names in lower case has this one, in whatever case.
fn is_listed(name: &OsStr, list: &[&str]) -> bool {
    match name.to_str() {
        Some(name) if name.is_ascii() => list.iter().any(|listed| listed.eq_ignore_ascii_case(name)),
        Some(_) | None => list.contains(&name.to_string_lossy().to_lowercase().as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_files_and_folders_are_protected() {
        let protected = vec!["/w/scripts/check.sh".into(), "/w/plugin".into()];
        let workspace = Workspace {
            roots: vec!["/w".into()],
            config_dir: "/h".into(),
            protected,
            ..Workspace::default()
        };
        for (path, is) in [
            ("/w/scripts/check.sh", true),
            ("/w/plugin/bin/run", true),
            ("/w/scripts/other.sh", false),
            ("/w/plugin-2/x", false),
        ] {
            assert_eq!(is_protected(Path::new(path), &workspace), is, "{path}");
        }
    }

    #[test]
    fn names_are_protected_in_any_case() {
        let workspace =
            Workspace { roots: vec!["/w".into()], config_dir: "/h".into(), ..Workspace::default() };
        for path in ["/w/.GIT/x", "/w/a/.Bashrc", "/w/.\u{212a}ube/config"] {
            assert!(is_protected(Path::new(path), &workspace), "{path}");
        }
        assert!(!is_protected(Path::new("/w/git/bashrc"), &workspace));
    }

    #[test]
    fn the_memory_of_an_agent_is_its_own_and_nobody_elses() {
        let with = |root: &str| Workspace {
            roots: vec!["/w".into(), root.into()],
            config_dir: "/h/.qoder".into(),
            ..Workspace::default()
        };
        let own = with("/h/.qoder/agent-memory/a");
        for path in ["/h/.qoder/agent-memory/a/MEMORY.md", "/h/.qoder/agent-memory/a/b/c.md"] {
            assert!(!is_protected(Path::new(path), &own), "{path}");
            for other in ["/h/.qoder/agent-memory/b", "/h/.qoder/agent-memory", "/h/.qoder", "/h"] {
                assert!(is_protected(Path::new(path), &with(other)), "{path} in {other}");
            }
        }
        for path in [
            "/h/.qoder/agent-memory/a/.git/hooks/x",
            "/h/.qoder/agent-memory/a/hooks.json",
            "/h/.qoder/agent-memory/a",
            "/h/.qoder/agent-memory/ab/MEMORY.md",
            "/h/.qoder/settings.json",
        ] {
            assert!(is_protected(Path::new(path), &own), "{path}");
        }
    }

    #[test]
    fn a_root_contains_whole_names_only() {
        let workspace = Workspace { roots: vec!["/w/a".into(), "/dev".into()], ..Workspace::default() };
        for path in ["/w/a", "/w/a/b", "/w//a/b", "/w/./a"] {
            assert!(workspace.contains(Path::new(path)), "{path}");
        }
        for path in ["/w/ab", "/w", "/dev/null", "//dev/null", "/./dev/null"] {
            assert!(!workspace.contains(Path::new(path)), "{path}");
        }
        let all = Workspace { roots: vec!["/".into()], ..Workspace::default() };
        assert!(all.contains(Path::new("/w")) && !all.contains(Path::new("/proc/1")));
    }
}
