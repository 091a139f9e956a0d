//! Starting in a folder that is not trusted and whose author means harm: pipes, devices, links that lead out, endless and
//! huge files wherever the program looks for one. It opens nothing but regular files inside, and it never waits.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use qoder_testkit::Sandbox;

use crate::sessions::support::{finish, offline};

/// What lies where a file is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    Pipe,
    Device,
    Process,
    LinkOut,
    Loop,
    Folder,
    Huge,
    Unreadable,
    Socket,
}

const TRAPS: [Trap; 9] = [
    Trap::Pipe,
    Trap::Device,
    Trap::Process,
    Trap::LinkOut,
    Trap::Loop,
    Trap::Folder,
    Trap::Huge,
    Trap::Unreadable,
    Trap::Socket,
];

/// Where the program, or something it uses, looks for a file.
const PLACES: [&str; 21] = [
    ".git/HEAD",
    ".git/config",
    ".git/info/exclude",
    ".git",
    ".gitignore",
    ".ignore",
    "AGENTS.md",
    "AGENTS.local.md",
    ".mcp.json",
    ".qoder",
    ".qoder/settings.json",
    ".qoder/settings.local.json",
    ".qoder/rules",
    ".qoder/rules/a.md",
    ".qoder/agents/a.md",
    ".qoder/skills/a/SKILL.md",
    ".qoder/commands/a.md",
    ".qoder/agents",
    ".qoder/skills",
    ".qoder/commands",
    ".qoder/hooks/a.sh",
];

fn set(trap: Trap, path: &Path, secret: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match trap {
        Trap::Pipe => {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }
        Trap::Device => symlink("/dev/zero", path).unwrap(),
        Trap::Process => symlink("/proc/self/environ", path).unwrap(),
        Trap::LinkOut => symlink(secret, path).unwrap(),
        Trap::Loop => symlink(path.file_name().unwrap(), path).unwrap(),
        Trap::Folder => std::fs::create_dir_all(path).unwrap(),
        // Without blocks: large for who reads it, small for the disk.
        Trap::Huge => std::fs::File::create(path).unwrap().set_len(1 << 36).unwrap(),
        Trap::Unreadable => {
            std::fs::write(path, "ref: refs/heads/x\n").unwrap();
            let none = std::os::unix::fs::PermissionsExt::from_mode(0o000);
            std::fs::set_permissions(path, none).unwrap();
        }
        Trap::Socket => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    }
}

/// The files that a run opened, as its system calls name them.
fn opened(trace: &Path, project: &Path) -> Vec<(PathBuf, String)> {
    let text = std::fs::read_to_string(trace).unwrap();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| line.contains("open") && !line.contains("= -1")) {
        let Some(name) = line.split('"').nth(1) else { continue };
        // A relative name belongs to a folder that was opened before; `strace -y` shows which.
        let base = line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(base, _)| base);
        let base = base.map_or_else(|| project.to_path_buf(), PathBuf::from);
        found.push((base.join(name), line.to_owned()));
    }
    found
}

fn judge(trace: &Path, project: &Path, secret: &Path, what: &str) {
    for (path, line) in opened(trace, project) {
        assert_ne!(path, secret, "{what}: {line}");
        assert!(!path.starts_with("/dev/zero") && path != Path::new("/proc/self/environ"), "{what}: {line}");
        if !path.starts_with(project) || line.contains("O_DIRECTORY") || line.contains("O_PATH") {
            continue;
        }
        let facts = path.symlink_metadata().unwrap();
        assert!(facts.is_file() && facts.len() < 1 << 30, "{what}: {line}");
    }
}

fn run_in(place: &str, trap: Trap, arguments: &[&str]) {
    let sandbox = Sandbox::new();
    let secret = sandbox.write(sandbox.home().join("secret.txt"), "secret\n");
    set(trap, &sandbox.project().join(place), &secret);
    let trace = sandbox.home().join("trace");
    let plain = offline(&sandbox, arguments);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-y", "-qq", "-e", "trace=open,openat,openat2", "-o"]).arg(&trace);
    traced.arg(plain.get_program()).args(plain.get_args()).env_clear();
    traced.current_dir(sandbox.project()).stdin(std::process::Stdio::null());
    for (name, value) in plain.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    let what = format!("{place} as {trap:?}: {arguments:?}");
    let run = finish(traced);
    assert!(run.code.is_some_and(|code| code < 128), "{what}: {run:?}");
    assert!(!run.stdout.contains("secret\n"), "{what}: {run:?}");
    judge(&trace, sandbox.project(), &secret, &what);
}

#[test]
fn a_start_opens_only_regular_files_inside_and_never_waits() {
    for place in PLACES {
        for trap in TRAPS {
            run_in(place, trap, &["-p", "hello"]);
        }
    }
}

#[test]
fn looking_at_such_a_folder_and_searching_it_does_not_wait_either() {
    for place in PLACES {
        for trap in [Trap::Pipe, Trap::Device, Trap::LinkOut, Trap::Huge] {
            run_in(place, trap, &["config"]);
            run_in(place, trap, &["agents", "list"]);
            run_in(place, trap, &["-p", "list files in ."]);
        }
    }
}

#[test]
fn trusting_such_a_folder_does_not_wait() {
    for place in PLACES {
        for trap in [Trap::Pipe, Trap::Device, Trap::Huge] {
            run_in(place, trap, &["trust"]);
            run_in(place, trap, &["-p", "hello", "--trust"]);
        }
    }
}
