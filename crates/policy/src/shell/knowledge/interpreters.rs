//! Programs that run code of others: interpreters, shells, wrappers, package runners and build tools. A script that
//! they are given is read, and nothing else is known about them; asking for their version is the only proven use.

use super::Effects;
use super::words::{base_name, may_begin_with_dash};
use crate::shell::Word;

const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "node",
    "nodejs",
    "deno",
    "bun",
    "ruby",
    "irb",
    "perl",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "Rscript",
    "R",
    "julia",
    "java",
    "jshell",
    "groovy",
    "scala",
    "kotlin",
    "elixir",
    "erl",
    "escript",
    "ghci",
    "runghc",
    "ocaml",
    "racket",
    "guile",
    "sbcl",
    "clojure",
    "osascript",
    "pwsh",
    "powershell",
    "ts-node",
    "tsx",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sqlite3",
    "psql",
    "mysql",
    "gdb",
    "lldb",
    "ipython",
    "jupyter",
];
const SHELLS: &[&str] =
    &["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "busybox", "rbash", "nu"];
const WRAPPERS: &[&str] = &[
    "env",
    "timeout",
    "time",
    "nice",
    "ionice",
    "nohup",
    "stdbuf",
    "command",
    "builtin",
    "exec",
    "eval",
    "trap",
    "sudo",
    "doas",
    "su",
    "pkexec",
    "run0",
    "runuser",
    "setsid",
    "setpriv",
    "xargs",
    "parallel",
    "watch",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "perf",
    "script",
    "flock",
    "taskset",
    "chrt",
    "numactl",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "ssh",
    "docker",
    "podman",
    "kubectl",
    "nerdctl",
    "firejail",
    "bwrap",
    "source",
    ".",
    "xvfb-run",
    "dbus-run-session",
    "prlimit",
    "unbuffer",
    "entr",
    "direnv",
    "mise",
    "asdf",
    "nix",
    "nix-shell",
    "toolbox",
    "distrobox",
    "screen",
    "tmux",
    "capsh",
    "ld.so",
    "find",
    "fd",
    "make",
    "gmake",
    "ninja",
    "rake",
    "just",
    "task",
    "git",
];
const PACKAGE_RUNNERS: &[&str] = &[
    "npx", "pnpx", "bunx", "uvx", "pipx", "uv", "yarn", "pnpm", "npm", "corepack", "poetry", "bundle", "dlx",
    "cargo", "go", "gem", "pip", "pip3", "conda", "brew", "mvn", "gradle", "composer",
];

/// True for interpreters, shells, wrappers and package runners: programs for which a rule that covers all their words
/// would cover any code. A path is judged by its last part.
#[must_use]
pub fn runs_arbitrary_code(name: &str) -> bool {
    is_among(base_name(name), &[INTERPRETERS, SHELLS, WRAPPERS, PACKAGE_RUNNERS])
}

/// True when the lists have the name, with or without a version at its end.
fn is_among(name: &str, lists: &[&[&str]]) -> bool {
    let plain = unversioned(name);
    let is_versioned = !plain.is_empty() && plain.len() < name.len();
    lists.iter().any(|names| names.contains(&name) || (is_versioned && names.contains(&plain)))
}

fn unversioned(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Programs beside interpreters with words that are code, or that run a program which an option names.
const TAKES_CODE: &[&str] =
    &["sed", "tar", "bsdtar", "vi", "vim", "nvim", "view", "emacs", "ed", "ex", "make", "gmake", "zip"];

/// True when words of the program may be code in a language that is not read here. Shells are read, so they are not
/// among them.
#[must_use]
pub fn takes_code(name: &str) -> bool {
    is_among(name, &[INTERPRETERS, TAKES_CODE])
}

/// Interpreters and shells whose first operand is a script.
const READS_SCRIPT: [&[&str]; 2] = [INTERPRETERS, SHELLS];

/// What an interpreter, wrapper or package runner does.
pub(super) fn effects(name: &str, words: &[Word]) -> Option<Effects> {
    if !runs_arbitrary_code(name) {
        return None;
    }
    let mut effects = Effects::of_known_program();
    effects.incomplete("it runs code of others");
    if is_among(name, &READS_SCRIPT) {
        script(words, &mut effects);
    }
    let versioned = unversioned(name);
    if versioned == "perl" || versioned == "ruby" {
        in_place(words, &mut effects);
    }
    Some(effects)
}

/// The first word that is no option is taken for the script; it may be the value of an option, which reads nothing.
fn script(words: &[Word], effects: &mut Effects) {
    if let Some(script) = words.iter().find(|word| !may_begin_with_dash(word)) {
        effects.read(script, false);
    }
}

/// With `-i` every file behind the program is changed.
fn in_place(words: &[Word], effects: &mut Effects) {
    let is_bundle =
        |word: &Word| word.known_start().starts_with('-') && !word.known_start().starts_with("--");
    if !words.iter().any(|word| is_bundle(word) && word.known_start().contains('i')) {
        return;
    }
    let mut program_follows = false;
    for word in words {
        if is_bundle(word) {
            program_follows = word.known_start().ends_with(['e', 'E']);
        } else if !std::mem::take(&mut program_follows) {
            effects.read(word, false);
            effects.edit(word, false);
        }
    }
}

/// Programs that only print their version when that is all they are asked for. Those that load a part of the project
/// to find out which version to run are not here.
const TELLS_VERSION: &[&str] = &[
    "node", "nodejs", "npm", "python", "python2", "python3", "pip", "pip3", "ruby", "perl", "php", "lua",
    "java", "javac", "cargo", "rustc", "rustup", "rustfmt", "go", "gcc", "g++", "cc", "c++", "clang",
    "clang++", "make", "cmake", "ninja", "docker", "podman", "kubectl", "deno", "bun", "bash", "sh", "zsh",
    "fish", "git", "curl", "wget", "ssh", "tar", "rsync", "jq", "rg", "sed", "awk", "gawk", "uv", "tsc",
    "swift", "helm", "gh", "psql", "sqlite3", "openssl",
];
const VERSION_FLAGS: &[&str] = &["--version", "-V", "-version"];

/// True when the command is a question for a version and nothing else.
pub(super) fn is_version_query(name: &str, words: &[Word]) -> bool {
    let [word] = words else { return false };
    let Some(word) = word.as_literal() else { return false };
    let plain = word == "--version"
        || (VERSION_FLAGS.contains(&word)
            && matches!(name, "python" | "python3" | "cargo" | "rustc" | "java" | "javac" | "ssh"))
        || (word == "version" && matches!(name, "go" | "git" | "openssl"))
        || (word == "-v" && matches!(name, "node" | "npm" | "ruby" | "perl" | "php"));
    plain && TELLS_VERSION.contains(&name)
}

/// True for a question for a version. Version managers and wrappers let the folder choose which program answers it, so
/// it is only a read where the folder is trusted.
#[must_use]
pub fn asks_for_version(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    first.as_literal().is_some_and(|name| is_version_query(name, rest))
}
