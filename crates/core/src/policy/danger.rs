//! What is never automatic about commands: wholesale removal and privileges. This only ever tightens a decision, so it
//! looks at rough words, without proof: a word too many asks once more, a rule or mode can never use it to allow.

use std::path::{Component, Path, PathBuf};

use super::command::base_name;
use super::decide::Workspace;

/// How dangerous a command looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Danger {
    /// Removes the root, the home directory or a system directory: never automatic, in no mode.
    System,
    /// Removes the workspace or a folder above it: not automatic outside bypass, whatever the rules.
    Workspace,
    /// Takes privileges: outside bypass only a rule that names it allows it.
    Privilege,
}

const REMOVERS: [&str; 5] = ["rm", "rmdir", "shred", "unlink", "srm"];
const PRIVILEGE: [&str; 6] = ["sudo", "doas", "su", "pkexec", "run0", "runuser"];
const SYSTEM: [&str; 17] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root",
    "/sbin", "/sys", "/usr", "/var", "/Users",
];

/// What a command's text looks like.
pub(super) fn look(command: &str, cwd: &Path, workspace: &Workspace) -> Option<Danger> {
    let words = rough_words(command);
    let named = |names: &[&str]| words.iter().any(|word| names.contains(&base_name(word)));
    let removes = named(&REMOVERS) || (named(&["find"]) && words.iter().any(|word| word == "-delete"));
    if removes {
        let targets: Vec<PathBuf> = words.iter().filter_map(|word| target(word, cwd, workspace)).collect();
        if targets.iter().any(|path| is_system(path, workspace)) {
            return Some(Danger::System);
        }
        if targets.iter().any(|path| workspace.roots.iter().any(|root| root.starts_with(path))) {
            return Some(Danger::Workspace);
        }
    }
    named(&PRIVILEGE).then_some(Danger::Privilege)
}

fn rough_words(command: &str) -> Vec<String> {
    let separator = |c: char| c.is_whitespace() || ";&|()<>\"'`\\".contains(c);
    command.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The place a rough word names, when it names one.
fn target(word: &str, cwd: &Path, workspace: &Workspace) -> Option<PathBuf> {
    if word.starts_with('-') || REMOVERS.contains(&base_name(word)) {
        return None;
    }
    let home = workspace.home.to_string_lossy();
    let here = cwd.to_string_lossy();
    let word = word
        .replace("${HOME}", &home)
        .replace("$HOME", &home)
        .replace("${PWD}", &here)
        .replace("$PWD", &here);
    // All that is in a folder is as much as the folder.
    let word = word
        .strip_suffix("/*")
        .or_else(|| word.strip_suffix("/.*"))
        .map_or(word.as_str(), |folder| if folder.is_empty() { "/" } else { folder });
    let word = if matches!(word, "*" | ".*") { "." } else { word };
    let path = match word.strip_prefix('~') {
        Some("") => workspace.home.clone(),
        Some(rest) => rest.strip_prefix('/').map(|rest| workspace.home.join(rest))?,
        None => cwd.join(word),
    };
    Some(normalise(&path))
}

/// Takes `.` and `..` out without looking at the disk.
pub(super) fn normalise(path: &Path) -> PathBuf {
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

fn is_system(path: &Path, workspace: &Workspace) -> bool {
    let listed = SYSTEM.iter().any(|folder| path == Path::new(folder));
    let below_usr = path.parent() == Some(Path::new("/usr"));
    listed || below_usr || workspace.home.starts_with(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wholesale_removal_and_privileges_are_seen() {
        let workspace = Workspace {
            cwd: "/w/p".into(),
            project_root: "/w/p".into(),
            home: "/home/u".into(),
            roots: vec!["/w/p".into()],
            config_dir: "/home/u/.qoder".into(),
        };
        let look = |command: &str| look(command, Path::new("/w/p"), &workspace);
        for command in [
            "rm -rf /",
            "rm -rf /*",
            "rm -rf ~",
            "rm -rf ~/",
            "rm -rf \"$HOME\"",
            "rm -rf ${HOME}/*",
            "rm -rf / ; true",
            "sudo rm -rf /",
            "env rm -rf /etc",
            "rm -rf //etc",
            "rm -rf /usr/../etc",
            "rm -rf /usr/lib",
            "/bin/rm -r /home",
            "bash -c 'rm -rf /'",
            "find / -delete",
            "true && rm -rf $HOME",
        ] {
            assert_eq!(look(command), Some(Danger::System), "{command}");
        }
        for command in
            ["rm -rf .", "rm -rf ..", "rm -rf ../p", "rm -rf *", "rm -rf ./*", "rm -rf /w", "rm -r $PWD"]
        {
            assert_eq!(look(command), Some(Danger::Workspace), "{command}");
        }
        for command in ["sudo id", "true; doas reboot", "su -c id"] {
            assert_eq!(look(command), Some(Danger::Privilege), "{command}");
        }
        for command in [
            "rm -rf target",
            "rm -rf /w/p/target/*",
            "ls /",
            "echo *",
            "rm *.o",
            "rm /tmp/x",
            "git rm -r docs",
            "cd ..",
        ] {
            assert_eq!(look(command), None, "{command}");
        }
    }
}
