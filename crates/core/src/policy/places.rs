//! The places that rules and modes speak of: the workspace, what is protected in it, and the port through which the
//! gate looks at path metadata. Nothing here opens a file.

use std::ffi::{OsStr, OsString};
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
fn may_be_special(path: &Path) -> bool {
    matches!(path.as_os_str().as_encoded_bytes(), [b'/', b'd' | b'p' | b's' | b'.' | b'/', ..])
}

/// What the gate may learn about paths. Metadata only.
pub trait FileSystem {
    /// Where the kernel would arrive: links followed, a missing tail kept. The error is for people.
    fn real(&self, path: &Path) -> Result<PathBuf, String>;
    /// The names in a directory, at most `most`; `None` when it cannot be listed or has more.
    fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>>;
    /// True for a regular file that has several names (hard links).
    fn has_other_names(&self, path: &Path) -> bool;
    /// True for a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// True for a regular file, which has nothing below it.
    fn is_file(&self, path: &Path) -> bool;
    /// Where the links in a folder lead whose names are wanted. Asked with the same question every time, so that an
    /// answer may be kept while the folder does not change.
    fn links_named(&self, folder: &Path, wanted: fn(&OsStr) -> bool) -> Vec<PathBuf>;
}

/// A file system without links, for tests and for places that do not exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLinks;

impl FileSystem for NoLinks {
    fn real(&self, path: &Path) -> Result<PathBuf, String> {
        Ok(normalise(path))
    }

    fn names(&self, _: &Path, _: usize) -> Option<Vec<OsString>> {
        None
    }

    fn has_other_names(&self, _: &Path) -> bool {
        false
    }

    fn is_folder(&self, _: &Path) -> bool {
        false
    }

    fn is_file(&self, _: &Path) -> bool {
        false
    }

    fn links_named(&self, _: &Path, _: fn(&OsStr) -> bool) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Takes `.` and `..` out by spelling alone.
#[must_use]
pub fn normalise(path: &Path) -> PathBuf {
    if is_normal(path.as_os_str().as_encoded_bytes()) {
        return path.to_path_buf();
    }
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// True for a path in which nothing is `.`, `..`, doubled or trailing; false for some others, too.
fn is_normal(path: &[u8]) -> bool {
    let opens_a_dot_or_nothing = |pair: &[u8]| pair[0] == b'/' && matches!(pair[1], b'.' | b'/');
    cfg!(unix)
        && path.first() != Some(&b'.')
        && path.last() != Some(&b'/')
        && !path.windows(2).any(opens_a_dot_or_nothing)
}

/// True for paths through the links of a process, which lead wherever that process is or has something open.
pub(super) fn leads_anywhere(path: &Path) -> bool {
    may_be_special(path)
        && (path.starts_with("/dev/fd")
            || (path.starts_with("/proc")
                && path.components().any(|part| {
                    matches!(part.as_os_str().to_str(), Some("cwd" | "root" | "fd" | "exe" | "map_files"))
                })))
}

/// Folders whose content makes other programs run code.
pub const FOLDERS: &[&str] = &[
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
pub const FILES: &[&str] = &[
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
        Component::Normal(name) => is_listed(name, FOLDERS),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    });
    folder || path.file_name().is_some_and(|name| is_listed(name, FILES))
}

/// True for a name that is protected wherever it is.
pub(super) fn is_protected_name(name: &OsStr) -> bool {
    is_listed(name, FOLDERS) || is_listed(name, FILES)
}

/// True in the folder that an agent keeps its memory in, when whoever works here was given that very folder: notes run
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

/// Folders that hold the system itself.
const SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/private",
    "/mnt",
    "/media",
];

/// True for the root, the home directory or one above it, and system directories.
#[must_use]
pub fn is_system(path: &Path, workspace: &Workspace) -> bool {
    let listed = SYSTEM.iter().any(|folder| path == Path::new(folder));
    let below = ["/usr", "/var", "/boot", "/etc", "/lib", "/System"]
        .iter()
        .any(|folder| path.parent() == Some(Path::new(folder)));
    listed || below || workspace.home.starts_with(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_become_one() {
        for spelling in
            ["/a/.b/c", "/a//.b/c", "/a/./.b/c", "/a/x/../.b/c", "/a/.b/c/", "/a/.b/c/.", "//a/.b/c"]
        {
            assert_eq!(normalise(Path::new(spelling)).as_os_str(), "/a/.b/c", "{spelling}");
        }
        for (spelling, normal) in
            [("/", "/"), ("/..", "/"), ("", ""), ("./a", "a"), ("a/b", "a/b"), ("..", "")]
        {
            assert_eq!(normalise(Path::new(spelling)).as_os_str(), normal, "{spelling}");
        }
    }

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
