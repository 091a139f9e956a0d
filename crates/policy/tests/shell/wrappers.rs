//! Programs that run others: one row per entry of the table, with the inner command each must give.

use qoder_policy::shell::{is_privilege_wrapper, read};

/// The commands found, as words; the transparent ones apart.
fn inner(line: &str) -> (Vec<String>, Vec<String>) {
    let reading = read(line);
    let mut all = Vec::new();
    let mut transparent = Vec::new();
    for command in &reading.commands {
        let shown =
            command.words.iter().map(qoder_policy::shell::Word::to_display).collect::<Vec<_>>().join(" ");
        if let Some(wrapped) = command.wrapped {
            assert!(wrapped.outer < reading.commands.len(), "{line:?}");
            if wrapped.transparent {
                transparent.push(shown.clone());
            }
            all.push(shown);
        }
    }
    (all, transparent)
}

#[test]
fn transparent_wrappers_give_their_command() {
    let lines = [
        "timeout 5 rm x",
        "timeout -k 3 --signal=KILL 5s rm x",
        "timeout --foreground -- 5 rm x",
        "time rm x",
        "time -p rm x",
        "nice rm x",
        "nice -n 5 rm x",
        "nice -10 rm x",
        "nohup rm x",
        "nohup rm x &",
        "stdbuf -oL rm x",
        "stdbuf -o L -e0 rm x",
        "time timeout 3 nice rm x",
    ];
    for line in lines {
        let (_, transparent) = inner(line);
        assert_eq!(transparent.last().map(String::as_str), Some("rm x"), "{line:?}");
    }
}

#[test]
fn what_is_not_fully_understood_is_not_transparent() {
    for line in [
        "timeout --odd 5 rm x",
        "nice --odd rm x",
        "/opt/timeout 5 rm x",
        "stdbuf $y rm x",
        "timeout $y rm x",
    ] {
        let (all, transparent) = inner(line);
        assert!(transparent.is_empty(), "{line:?}: {transparent:?}");
        assert!(all.iter().any(|it| it == "rm x"), "{line:?}: {all:?}");
    }
}

/// Wrappers that are looked through for rules that stop, each around `rm x`.
const AROUND: [&str; 96] = [
    "env rm x",
    "env A=1 rm x",
    "env -i -u B rm x",
    "env - rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "command rm x",
    "command -p rm x",
    "builtin rm x",
    "exec rm x",
    "exec -a n rm x",
    "exec -cl rm x",
    "sudo rm x",
    "sudo -u root -n rm x",
    "sudo A=1 rm x",
    "sudo --user=root rm x",
    "sudo --odd rm x",
    "doas rm x",
    "doas -u root rm x",
    "su -c 'rm x'",
    "su root -c 'rm x'",
    "su --command='rm x'",
    "pkexec rm x",
    "run0 rm x",
    "runuser -u a -- rm x",
    "runuser -c 'rm x' a",
    "setpriv --nnp rm x",
    "setsid rm x",
    "setsid -w rm x",
    "ionice -c 3 rm x",
    "chrt -f 10 rm x",
    "taskset 0x1 rm x",
    "numactl --all rm x",
    "chroot /r rm x",
    "unshare -n rm x",
    "nsenter -t 1 rm x",
    "systemd-run --user rm x",
    "strace -f rm x",
    "ltrace rm x",
    "perf stat rm x",
    "gdb --args rm x",
    "valgrind rm x",
    "eval rm x",
    "eval 'rm x'",
    "eval 'a; rm x'",
    "trap 'rm x' EXIT",
    "trap -- 'rm x' EXIT",
    "bash -c 'rm x'",
    "sh -c 'rm x'",
    "dash -ec 'rm x'",
    "zsh -lc 'rm x'",
    "ksh -c 'rm x'",
    "fish -c 'rm x'",
    "ash -c 'rm x'",
    "/bin/bash -c 'rm x'",
    "bash -e -o pipefail -c 'rm x'",
    "bash --norc -c 'rm x'",
    "bash --rcfile f -c 'rm x'",
    "bash -c 'echo $(rm x)'",
    "bash -c \"bash -c 'rm x'\"",
    "bash <<E\nrm x\nE",
    "bash <<< 'rm x'",
    "sudo sh <<'E'\nrm x\nE",
    "bash -s <<E\nrm x\nE",
    "busybox rm x",
    "busybox sh -c 'rm x'",
    "toybox rm x",
    "flock f rm x",
    "flock f -c 'rm x'",
    "watch rm x",
    "watch -n 1 'rm x'",
    "script -c 'rm x'",
    "parallel rm x",
    "ssh h rm x",
    "ssh h 'rm x'",
    "ssh -p 2 h 'a && rm x'",
    "npx rm x",
    "bunx rm x",
    "uvx rm x",
    "npm exec rm x",
    "npm exec -- rm x",
    "yarn dlx rm x",
    "pnpm exec rm x",
    "pipx run rm x",
    "poetry run rm x",
    "uv run rm x",
    "bundle exec rm x",
    "git -c alias.y='!rm x' y",
    "git -c core.pager='rm x' log",
    "git rebase --exec 'rm x' m",
    "git rebase -x 'rm x' m",
    "git rebase --exec='rm x' m",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "git submodule foreach rm x",
    "timeout 3 sudo env A=1 nice rm x",
];

#[test]
fn every_other_wrapper_gives_its_command_for_rules_that_stop() {
    for line in AROUND {
        let (all, transparent) = inner(line);
        assert!(all.iter().any(|it| it == "rm x"), "{line:?}: {all:?}");
        let chain = line.starts_with("timeout");
        assert!(chain || transparent.is_empty(), "{line:?} looks transparent: {transparent:?}");
    }
}

#[test]
fn builders_of_arguments_add_what_is_not_known() {
    let cases = [
        ("xargs rm x", "rm x …"),
        ("xargs -0 -n 1 rm x", "rm x …"),
        ("xargs -I{} rm {}", "rm {}"),
        ("find . -exec rm {} \\;", "rm {}"),
        ("find . -name a -execdir rm {} +", "rm {}"),
        ("find . -ok rm {} \\; -exec ls \\;", "rm {}"),
        ("find . -okdir rm {} ';'", "rm {}"),
        ("fd a -x rm {}", "rm {}"),
        ("fd a --exec-batch rm", "rm"),
    ];
    for (line, expected) in cases {
        let (all, _) = inner(line);
        assert!(all.iter().any(|it| it == expected), "{line:?}: {all:?}");
    }
}

#[test]
fn scripts_that_are_only_partly_known_are_read_for_rules_that_stop() {
    for line in ["bash -c \"rm $y\"", "eval rm $y", "find . -exec sh -c 'rm {}' \\;", "eval \"rm $(z)\""] {
        let reading = read(line);
        assert!(!reading.is_proven(), "{line:?}");
        assert!(reading.commands.iter().any(|it| it.name() == Some("rm")), "{line:?}: {reading:?}");
    }
}

#[test]
fn asking_where_a_program_is_runs_nothing() {
    for line in [
        "command -v rm",
        "command -V rm",
        "sudo -l",
        "sudo -v",
        "env",
        "trap -p",
        "bash script.sh x",
        "find . -name rm",
    ] {
        assert_eq!(inner(line).0, [""; 0], "{line:?}");
    }
}

#[test]
fn variables_for_the_inner_command_are_its_assignments() {
    let reading = read("env LD_PRELOAD=x.so rm");
    let names: Vec<_> =
        reading.commands.get(1).unwrap().assignments.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["LD_PRELOAD"]);
}

#[test]
fn privilege_wrappers_are_known_by_name() {
    for name in ["sudo", "doas", "su", "pkexec", "run0", "runuser", "setpriv", "/usr/bin/sudo"] {
        assert!(is_privilege_wrapper(name), "{name}");
    }
    for name in ["env", "nice", "sudoku", "bash"] {
        assert!(!is_privilege_wrapper(name), "{name}");
    }
}
