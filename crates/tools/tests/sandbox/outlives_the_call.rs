//! Processes that try to outlive their call, their task or their session, confined and not.
//!
//! Each way of leaving starts a process that appends to a file many times a second. After the end the files are looked
//! at from outside: none of them may grow.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::sandboxed::Sandboxed;
use crate::common::{Bench, cancellable, text};
use serde_json::json;

/// Ways to leave; `@B` is the program that beats and `@D` a folder that the way may use.
const WAYS: &[(&str, &str)] = &[
    ("background", "@B &"),
    ("nohup", "nohup @B &"),
    ("setsid", "setsid @B &"),
    ("setsid-fork", "setsid -f @B"),
    ("disown", "@B & disown -a"),
    ("subshells", "( ( ( @B & ) & ) & )"),
    ("no-environment", "env -i PATH=\"$PATH\" setsid -f @B"),
    ("no-environment-twice", "env -i PATH=\"$PATH\" setsid -f env -i PATH=\"$PATH\" nohup setsid -f @B"),
    ("no-mark", "env -u QODER_SHELL_MARK setsid -f @B"),
    ("another-name", "( exec -a '[kworker/0:0]' perl beat.pl @F ) & "),
    ("no-signals", "( trap '' TERM HUP INT QUIT USR1 USR2 PIPE; setsid -f @B )"),
    ("in-a-loop", "setsid -f sh -c 'trap \"\" TERM HUP; while :; do @B; done'"),
    ("restarted", "setsid -f sh -c 'while :; do env -i PATH=\"$PATH\" setsid @B; done'"),
    ("nice", "nice -n 5 setsid -f @B"),
    ("timeout", "timeout --foreground 1000 @B & disown"),
    ("coproc", "coproc @B"),
    ("substitution", "exec 9> >(setsid @B)"),
    ("elsewhere", "( cd / && cd - > /dev/null && setsid -f @B )"),
    ("xargs", "echo @F | setsid -f xargs -n 1 perl beat.pl"),
    ("find", "setsid -f find beat.pl -exec @B \\;"),
    ("flock", "setsid -f flock @D/lock @B"),
    ("start-stop-daemon", "start-stop-daemon -S -b -d $PWD -x $(command -v perl) -- beat.pl @F"),
    ("tmux", "tmux -S @D/s new-session -d \"cd $PWD && @B\""),
    ("tmux-by-name", "tmux -L way-$$ new-session -d \"cd $PWD && @B\""),
    ("screen", "screen -dmS way sh -c 'cd '$PWD' && @B'"),
    ("script", "setsid -f script -qc '@B' /dev/null"),
    ("pid-namespace", "setsid -f unshare -Urpf @B"),
    ("pid-namespace-of-root", "setsid -f unshare -pf --mount-proc @B"),
    ("every-namespace", "setsid -f unshare -Urmpnif @B"),
    ("user-namespace", "setsid -f unshare -U @B"),
    ("mount-namespace", "setsid -f unshare -m @B"),
    ("time-namespace", "setsid -f unshare -Tf @B"),
    ("chroot", "setsid -f chroot / sh -c \"cd $PWD && @B\""),
    ("runuser", "setsid -f runuser -u $(id -un) -- @B"),
    ("setpriv", "setsid -f setpriv --pdeathsig clear @B"),
    ("at", "echo \"cd $PWD && @B\" | at now"),
    ("batch", "echo \"cd $PWD && @B\" | batch"),
    ("systemd-scope", "systemd-run --user --scope @B &"),
    (
        "node",
        "node -e 'require(\"child_process\").spawn(\"perl\", [\"beat.pl\", \"@F\"], { detached: true, stdio: \"ignore\", env: { PATH: process.env.PATH } }).unref()'",
    ),
    (
        "perl-daemon",
        "perl -e 'use POSIX; fork and exit; setsid; fork and exit; %ENV = (PATH => $ENV{PATH}); $SIG{$_} = q(IGNORE) for qw(TERM HUP INT); POSIX::close($_) for 0..255; exec qw(perl beat.pl @F)'",
    ),
    (
        "perl-slow-comet",
        "perl -e 'use POSIX; while (1) { open F, q(>>), q(@F); print F q(x); close F; select undef, undef, undef, 0.01; fork and exit; POSIX::setsid }' &",
    ),
    (
        "perl-two-watch",
        "perl -e 'use POSIX; sub go { my $p = fork; if (!$p) { POSIX::setsid; %ENV = (); $SIG{TERM} = q(IGNORE); open F, q(>>), q(@F); $| = 1; while (1) { syswrite F, q(x); select undef, undef, undef, 0.02; my $w = waitpid -1, WNOHANG; go() if $w > 0; } } } go(); go()' &",
    ),
    (
        "python-double-fork",
        "python3 -c 'import os\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.environ.clear()\nos.closerange(0, 1024)\nos.execv(\"PERL\", [\"x\", \"beat.pl\", \"@F\"])'",
    ),
    (
        "python-subreaper",
        "python3 -c 'import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1)\nos.setsid() if os.getpid() != os.getpgrp() else 0\nif not os.fork():\n  if os.fork(): os._exit(0)\n  os.execv(\"PERL\", [\"x\", \"beat.pl\", \"@F\"])\ntime.sleep(1000)' &",
    ),
    (
        "python-not-dumpable",
        "python3 -c 'import ctypes, os\nctypes.CDLL(None).prctl(4, 0)\nctypes.CDLL(None).prctl(1, 0)\nif os.fork(): os._exit(0)\nos.setsid()\nos.execv(\"PERL\", [\"x\", \"beat.pl\", \"@F\"])' &",
    ),
    (
        "python-terminal",
        "python3 -c 'import os, pty, time\np, f = pty.fork()\nif not p: os.execv(\"PERL\", [\"x\", \"beat.pl\", \"@F\"])\ntime.sleep(1000)' &",
    ),
    (
        "python-clone-parent",
        "python3 -c 'import ctypes, os\nl = ctypes.CDLL(None)\nif l.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: os.setsid(); os.execv(\"PERL\", [\"x\", \"beat.pl\", \"@F\"])'",
    ),
    ("many", "for i in 1 2 3 4 5 6 7 8 9; do setsid -f @B; done"),
];

/// A way that keeps a processor busy, so it begins when the others have begun; `@W` is how many seconds it waits.
const COMET: &str = "perl -e 'select undef, undef, undef, @W; while (1) { open F, q(>>), q(beats/comet); print F q(x); close F; fork and exit; setpgrp; }' &";

/// Appends a byte to a file, again and again.
const BEAT: &str = "$| = 1; open F, '>>', $ARGV[0] or die; while (1) { syswrite F, 'x'; select undef, undef, undef, 0.03 }\n";

/// Waits until no file was added for a while: not every machine has the programs of every way.
const UNTIL_NO_MORE_BEGIN: &str = "known=0; same=0; for i in {1..60}; do set -- beats/*; \
     if test $# -gt $known; then known=$#; same=0; else same=$((same + 1)); fi; \
     test $same -ge 8 && test $known -ge 20 && break; sleep 0.05; done";

/// The file of a way.
fn file(number: usize) -> String {
    format!("beats/{number}-{}", WAYS[number].0)
}

/// The command that leaves in every way and waits until what could start has started; the comet begins `delay` seconds
/// later.
fn every_way(bench: &Bench, delay: f64) -> String {
    bench.write("beat.pl", BEAT);
    std::fs::create_dir_all(bench.path("beats")).unwrap();
    let mut lines = Vec::new();
    for (number, (_, way)) in WAYS.iter().enumerate() {
        let (file, folder) = (file(number), format!("ways/{number}"));
        std::fs::create_dir_all(bench.path(&folder)).unwrap();
        let perl = ["/usr/bin/perl", "/bin/perl"].into_iter().find(|path| Path::new(path).exists());
        let way = way.replace("PERL", perl.unwrap_or("perl"));
        let way =
            way.replace("@B", &format!("perl beat.pl {file}")).replace("@F", &file).replace("@D", &folder);
        lines.push(format!("( {way}\n) > /dev/null 2>&1 < /dev/null"));
    }
    lines.push(UNTIL_NO_MORE_BEGIN.to_owned());
    lines.push(format!("( {}\n) > /dev/null 2>&1 < /dev/null", COMET.replace("@W", &delay.to_string())));
    if delay == 0.0 {
        lines.push("for i in {1..100}; do test -s beats/comet && break; sleep 0.02; done".to_owned());
    }
    lines.push("echo started > ready".to_owned());
    lines.join("\n")
}

fn has_perl() -> bool {
    let found =
        std::process::Command::new("perl").args(["-e", "1"]).status().is_ok_and(|status| status.success());
    if !found {
        eprintln!("SKIPPED: no perl");
    }
    found
}

/// Checks that nothing still beats, and returns which ways never began.
async fn all_is_still(bench: &Bench, what: &str) {
    let lengths = || -> Vec<(PathBuf, u64)> {
        let mut found: Vec<_> = std::fs::read_dir(bench.path("beats"))
            .unwrap()
            .flatten()
            .map(|entry| (entry.path(), entry.metadata().unwrap().len()))
            .collect();
        found.sort();
        found
    };
    let before = lengths();
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        assert_eq!(lengths(), before, "{what}: a process survived");
    }
    let began = |number: &usize| before.iter().any(|(path, _)| *path == bench.path(&file(*number)));
    let absent: Vec<&str> =
        (0..WAYS.len()).filter(|number| !began(number)).map(|number| WAYS[number].0).collect();
    eprintln!("{what}: {} ways began; SKIPPED here: {}", before.len(), absent.join(", "));
    assert!(before.len() > 20, "{what}: only {before:?} began");
}

#[derive(Clone, Copy)]
enum End {
    Exit,
    Limit,
    Cancel,
    Session,
    Dropped,
}

async fn nothing_survives(bench: &Bench, end: End, what: &str) {
    if !has_perl() {
        return;
    }
    qoder_process::own_process_tree();
    // The comet would keep a processor busy until the limit.
    let command = every_way(bench, if matches!(end, End::Limit) { 5.0 } else { 0.0 });
    let ready = bench.path("ready");
    match end {
        End::Exit => {
            let outcome = bench.run("Bash", json!({ "command": command })).await;
            assert!(text(&outcome).contains("left behind"), "{}", text(&outcome));
        }
        End::Limit => {
            let input = json!({ "command": format!("{command}; sleep 600"), "timeout": 9_000 });
            let outcome = bench.run("Bash", input).await;
            assert!(text(&outcome).contains("time limit"), "{}", text(&outcome));
        }
        End::Cancel => {
            let (cancel, cancelled) = cancellable();
            let input = json!({ "command": format!("{command}; sleep 600") });
            let call = bench.run_until("Bash", input, cancelled);
            let canceller = async {
                crate::common::appears(&ready).await;
                cancel.send(()).unwrap();
            };
            tokio::join!(call, canceller);
        }
        End::Session => {
            bench.task(&format!("{command}; sleep 600")).await;
            crate::common::appears(&ready).await;
            bench.shared.shutdown().await;
        }
        End::Dropped => {
            let call = bench.run("Bash", json!({ "command": format!("{command}; sleep 600") }));
            tokio::select! {
                _ = call => panic!("the command must not end"),
                _ = crate::common::appears(&ready) => {}
            }
            // No task waits for the end here, so there is nothing to wait for but the end itself.
            let mut known = 0;
            for _ in 0..200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let entries = std::fs::read_dir(bench.path("beats")).unwrap().flatten();
                let sum = entries.map(|entry| entry.metadata().unwrap().len()).sum();
                if sum == known {
                    break;
                }
                known = sum;
            }
        }
    }
    all_is_still(bench, what).await;
}

macro_rules! endings {
    ($($name:ident $end:ident),*) => {
        mod ordinary {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                nothing_survives(&Bench::new(), End::$end, concat!("ordinary, ", stringify!($name))).await;
            })*
        }
        mod confined {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                let Some(sandboxed) = Sandboxed::new() else { return };
                nothing_survives(&sandboxed.bench, End::$end, concat!("confined, ", stringify!($name))).await;
            })*
        }
    };
}

endings!(when_the_call_ends Exit, at_the_limit Limit, when_it_is_cancelled Cancel, with_the_session Session, when_it_is_dropped Dropped);

/// Attacks on what watches; each is a call of its own.
const ON_THE_WATCH: &[(&str, &str)] = &[
    ("kills the supervisor", "setsid -f env -i perl beat.pl beats/a; kill -9 $PPID; sleep 60"),
    ("stops the supervisor", "setsid -f env -i perl beat.pl beats/a; kill -STOP $PPID; true"),
    (
        "kills the supervisor from outside its group",
        "p=$PPID; setsid -f env -i perl -e 'sleep 1; kill 9, shift; exec qw(perl beat.pl beats/a)' $p; sleep 60",
    ),
    (
        "keeps the supervisor stopped",
        "setsid -f env -i perl beat.pl beats/a; p=$PPID; setsid -f env -i perl -e 'while (kill 19, $ARGV[0]) { \
         select undef, undef, undef, 0.001 }' $p; true",
    ),
    (
        "kills every guard",
        "setsid -f env -i perl beat.pl beats/a; g=$(ps -o ppid= -p $PPID); \
         for p in $(ps -o pid= --ppid $g); do test $p != $PPID && kill -9 $p; done; true",
    ),
];

#[tokio::test]
async fn attacks_on_the_supervisor_free_nothing() {
    if !has_perl() {
        return;
    }
    qoder_process::own_process_tree();
    for (name, attack) in ON_THE_WATCH {
        let bench = Bench::new();
        bench.write("beat.pl", BEAT);
        std::fs::create_dir_all(bench.path("beats")).unwrap();
        let before = "perl -e 'select undef, undef, undef, 0.01' ; ";
        let command = format!("{before}{attack}");
        bench.run("Bash", json!({ "command": command, "timeout": 15_000 })).await;
        let length = || std::fs::metadata(bench.path("beats/a")).map_or(0, |found| found.len());
        let known = length();
        for _ in 0..15 {
            tokio::time::sleep(Duration::from_millis(40)).await;
            assert_eq!(length(), known, "{name}: a process survived");
        }
        let next = bench.run("Bash", json!({ "command": "echo fine" })).await;
        assert_eq!(next.structured["stdout"], "fine\n", "{name}");
    }
}

#[tokio::test]
async fn a_multiplexer_of_the_person_is_not_found() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let tmux = |words: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.env("TMUX_TMPDIR", folder.path()).env_remove("TMUX").args(words);
        command.output().is_ok_and(|output| output.status.success())
    };
    if !tmux(&["new-session", "-d", "-s", "mine", "sleep 600"]) {
        eprintln!("SKIPPED: no tmux");
        return;
    }
    let user = rustix::process::getuid().as_raw();
    let socket = format!("{}/tmux-{user}/default,1,0", folder.path().display());
    let seen = bench
        .run("Bash", json!({ "command": "tmux list-sessions; tmux new-session -d -s ours && echo ours" }))
        .await;
    assert!(!text(&seen).contains("mine") && text(&seen).contains("ours"), "{}", text(&seen));
    // Who sets the variables wants them.
    bench.changed.insert("TMUX_TMPDIR".to_owned(), Some(folder.path().to_str().unwrap().to_owned()));
    bench.changed.insert("TMUX".to_owned(), Some(socket));
    let seen = bench.run("Bash", json!({ "command": "tmux list-sessions" })).await;
    assert!(text(&seen).contains("mine"), "{}", text(&seen));
    assert!(tmux(&["kill-server"]), "it is still there, and ends here");
}

#[tokio::test]
async fn a_hook_and_a_server_take_everything_with_them() {
    if !has_perl() {
        return;
    }
    qoder_process::own_process_tree();
    let bench = Bench::new();
    let command = every_way(&bench, 0.0);
    let run = qoder_process::CapturedRun {
        program: qoder_process::CapturedProgram::Bash(command),
        directory: bench.cwd.clone(),
        environment: std::sync::Arc::default(),
        added: Vec::new(),
        input: Vec::new(),
        listener: None,
    };
    run.run().await.unwrap();
    all_is_still(&bench, "a hook").await;
    let bench = Bench::new();
    let mut command = tokio::process::Command::new("bash");
    command.arg("-c").arg(format!("{}; sleep 600", every_way(&bench, 0.0))).current_dir(&bench.cwd);
    let mut server = qoder_process::ServerProcess::start(command).unwrap();
    crate::common::appears(&bench.path("ready")).await;
    server.end(Duration::ZERO).await;
    all_is_still(&bench, "a server").await;
}
