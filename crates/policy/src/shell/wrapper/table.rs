//! The table of wrappers whose options are understood, and the names of the others. One place, with a test per entry.

/// A wrapper of the form `name [options] [operands] [NAME=value] command`.
#[derive(Debug)]
pub(in crate::shell) struct Spec {
    /// The program's base name.
    pub name: &'static str,
    /// True when allow rules may look through it, its options being understood.
    pub transparent: bool,
    /// Short options without a value.
    pub flags: &'static str,
    /// Short options with a value, in the same word or the next.
    pub values: &'static str,
    /// Short options whose value can only stand in the same word.
    pub attached: &'static str,
    /// Long options without a value.
    pub long_flags: &'static [&'static str],
    /// Long options with a value, after `=` or in the next word.
    pub long_values: &'static [&'static str],
    /// Operands in front of the command.
    pub operands: usize,
    /// True when `NAME=value` words may stand in front of the command.
    pub variables: bool,
    /// True when the command gets more arguments that are not known.
    pub extended: bool,
    /// Short options with which nothing is run.
    pub queries: &'static str,
}

/// A wrapper without options.
const PLAIN: Spec = Spec {
    name: "",
    transparent: false,
    flags: "",
    values: "",
    attached: "",
    long_flags: &[],
    long_values: &[],
    operands: 0,
    variables: false,
    extended: false,
    queries: "",
};

/// The wrappers whose options are understood.
const SPECS: [Spec; 16] = [
    Spec {
        name: "timeout",
        transparent: true,
        flags: "fpv",
        values: "ks",
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Spec { name: "time", transparent: true, flags: "p", variables: true, ..PLAIN },
    Spec {
        name: "nice",
        transparent: true,
        flags: "0123456789",
        values: "n",
        long_values: &["adjustment"],
        ..PLAIN
    },
    Spec { name: "nohup", transparent: true, ..PLAIN },
    Spec {
        name: "stdbuf",
        transparent: true,
        values: "ioe",
        long_values: &["input", "output", "error"],
        ..PLAIN
    },
    Spec {
        name: "env",
        flags: "i0v",
        values: "uC",
        long_flags: &["ignore-environment", "null", "debug"],
        long_values: &["unset", "chdir"],
        variables: true,
        ..PLAIN
    },
    Spec { name: "command", flags: "p", queries: "vV", ..PLAIN },
    Spec { name: "builtin", ..PLAIN },
    Spec { name: "exec", flags: "cl", values: "a", ..PLAIN },
    Spec {
        name: "sudo",
        flags: "AbEHiknPSsB",
        values: "aCcDghpRrTtUu",
        long_flags: &["background", "preserve-env", "set-home", "login", "non-interactive", "stdin", "shell"],
        long_values: &["user", "group", "chdir", "prompt", "host", "other-user", "role", "type"],
        variables: true,
        queries: "lvVK",
        ..PLAIN
    },
    Spec { name: "doas", flags: "ns", values: "aCu", ..PLAIN },
    Spec { name: "setsid", flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
    Spec {
        name: "ionice",
        flags: "t",
        values: "cn",
        long_flags: &["ignore"],
        long_values: &["class", "classdata"],
        queries: "pPu",
        ..PLAIN
    },
    Spec {
        name: "xargs",
        flags: "0rtpxo",
        values: "adEILnPs",
        attached: "eil",
        long_flags: &["null", "no-run-if-empty", "interactive", "verbose", "exit", "open-tty"],
        long_values: &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
        extended: true,
        ..PLAIN
    },
    Spec { name: "busybox", ..PLAIN },
    Spec { name: "toybox", ..PLAIN },
];

/// The options of a wrapper, when it is one whose options are understood.
pub(super) fn spec(base: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| spec.name == base)
}

/// Programs that run a command found somewhere among their words.
const RUNNERS: [&str; 121] = [
    "aa-exec",
    "abduco",
    "agetty",
    "apptainer",
    "bear",
    "bpftrace",
    "bunx",
    "bwrap",
    "capsh",
    "catatonit",
    "catchsegv",
    "ccache",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "coresched",
    "cpulimit",
    "daemon",
    "daemonize",
    "datefudge",
    "dbus-run-session",
    "distcc",
    "distrobox",
    "dtach",
    "dumb-init",
    "eatmydata",
    "entr",
    "envdir",
    "envuidgid",
    "expect",
    "fakechroot",
    "fakeroot",
    "fakeroot-ng",
    "faketime",
    "fghack",
    "firejail",
    "gdb",
    "gosu",
    "gtime",
    "heaptrack",
    "hyperfine",
    "i386",
    "ifne",
    "ktrace",
    "lckdo",
    "linux32",
    "linux64",
    "lldb",
    "logsave",
    "ltrace",
    "mispipe",
    "multitime",
    "nc",
    "ncat",
    "newgrp",
    "nocache",
    "nodemon",
    "npx",
    "nq",
    "nsenter",
    "numactl",
    "padsp",
    "pasuspender",
    "pee",
    "perf",
    "pgrphack",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "rr",
    "run0",
    "runcon",
    "s6-setuidgid",
    "scan-build",
    "sccache",
    "schedtool",
    "screen",
    "sem",
    "setarch",
    "setlock",
    "setpriv",
    "setuidgid",
    "sg",
    "socat",
    "softlimit",
    "ssh-agent",
    "start-stop-daemon",
    "strace",
    "su-exec",
    "sudo-rs",
    "systemd-inhibit",
    "systemd-nspawn",
    "systemd-run",
    "taskset",
    "timelimit",
    "tini",
    "tmux",
    "toolbox",
    "torify",
    "torsocks",
    "trickle",
    "tsocks",
    "uclampset",
    "uftrace",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "vglrun",
    "watchexec",
    "when-changed",
    "with-lock-ex",
    "x86_64",
    "xvfb-run",
];
/// Programs that give some of their words to a shell as text.
const TEXT_RUNNERS: [&str; 19] = [
    "asciinema",
    "at",
    "batch",
    "entr",
    "flock",
    "hyperfine",
    "mosh",
    "parallel",
    "rsh",
    "runuser",
    "sem",
    "script",
    "sg",
    "ssh",
    "su",
    "tmux",
    "ttyrec",
    "watch",
    "watchexec",
];
/// Programs of which only some subcommands run a command.
const SUBCOMMAND_RUNNERS: [(&str, &[&str]); 15] = [
    ("bundle", &["exec"]),
    ("cargo", &["run-script"]),
    ("direnv", &["exec"]),
    ("docker", &["exec", "run"]),
    ("hatch", &["run"]),
    ("ip", &["exec"]),
    ("kubectl", &["exec"]),
    ("mise", &["exec", "x"]),
    ("npm", &["exec", "x"]),
    ("pdm", &["run"]),
    ("pipx", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("uv", &["run", "tool"]),
    ("yarn", &["dlx", "exec"]),
];
/// Shells.
const SHELLS: [&str; 11] =
    ["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "zsh"];
/// Programs that run a command with the rights of another user.
const PRIVILEGE: [&str; 8] = ["doas", "pkexec", "run0", "runuser", "setpriv", "su", "sudo", "sudoedit"];

/// True for programs that run others with more rights or as another user.
#[must_use]
pub fn is_privilege_wrapper(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    PRIVILEGE.contains(&base)
}

/// True for shells.
pub(super) fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base)
}

/// True for programs that run a command among their words.
pub(super) fn is_runner(base: &str) -> bool {
    // The loader of programs runs the program it is given.
    let loader = base.starts_with("ld-linux") || base.starts_with("ld-musl") || base.starts_with("ld.so");
    RUNNERS.binary_search(&base).is_ok() || is_text_runner(base) || loader
}

/// True for programs that give text to a shell.
pub(super) fn is_text_runner(base: &str) -> bool {
    TEXT_RUNNERS.contains(&base)
}

/// The subcommands of a program that run a command.
pub(super) fn running_subcommands(base: &str) -> Option<&'static [&'static str]> {
    SUBCOMMAND_RUNNERS.iter().find(|(name, _)| *name == base).map(|(_, subcommands)| *subcommands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runners_are_sorted() {
        assert!(RUNNERS.is_sorted());
    }
}
