//! A confined command tries to affect processes outside: signals, priorities, processors, limits, their memory.
//!
//! A process of the same user runs outside; what it is like is looked at from outside before and after.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Child, Command, Stdio};

use crate::common::sandboxed::Sandboxed;
use serde_json::json;

/// What others could change about a process.
fn picture(pid: u32) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let state = if matches!(fields[0], "S" | "R") { "alive" } else { fields[0] };
    let status = read("status");
    let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap_or_default();
    let group = fields[2];
    let policy = fields[38];
    let class = Command::new("ionice").args(["-p", &pid.to_string()]).output();
    let class = class.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    [state, fields[16], policy, group, cpus, &read("limits"), &read("oom_score_adj"), &class]
        .map(str::to_owned)
        .to_vec()
}

struct Outside(Child);

impl Outside {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn nothing_about_them_changes() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let outside = Outside::start();
    let (pid, own) = (outside.0.id(), std::process::id());
    let user = rustix::process::getuid().as_raw();
    let before = (picture(pid), picture(own));
    let mut commands = vec![
        "kill -9 -1".to_owned(),
        "kill -STOP -1".to_owned(),
        format!("renice -n 15 -u {user}"),
        format!("renice -n 15 -u {}", std::env::var("USER").unwrap_or_else(|_| "root".to_owned())),
        format!("ionice -c 3 -u {user}"),
        "pkill -9 sleep".to_owned(),
        "killall -9 sleep".to_owned(),
        "pkill -u $(id -u)".to_owned(),
    ];
    for pid in [pid, own] {
        for signal in ["0", "TERM", "KILL", "STOP", "HUP", "USR1"] {
            commands.push(format!("kill -{signal} {pid}"));
            commands.push(format!("kill -{signal} -- -{pid}"));
            commands.push(format!("/bin/kill -{signal} {pid}"));
        }
        for command in [
            "renice -n 15 -p PID",
            "renice -n 15 -g PID",
            "ionice -c 3 -p PID",
            "ionice -c 3 -P PID",
            "taskset -p 1 PID",
            "taskset -a -p 1 PID",
            "chrt -b -p 0 PID",
            "chrt -i -p 0 PID",
            "prlimit --nofile=16:16 --pid PID",
            "prlimit --cpu=1 --pid PID",
            "prlimit --core=0 --pid PID",
            "echo 900 > /proc/PID/oom_score_adj",
            "echo 1 > /proc/PID/clear_refs",
            "echo x > /proc/PID/comm",
            "echo 0 > /proc/PID/coredump_filter",
            "head -c 1 /proc/PID/mem",
            "cat /proc/PID/environ | grep .",
            "ls /proc/PID/root/",
            "ls /proc/PID/cwd/",
            "readlink /proc/PID/exe",
            "cat /proc/PID/maps | grep .",
            "nsenter -t PID -m true",
            "gdb -p PID -batch",
            "strace -p PID",
            "python3 -c 'import os; os.sched_setaffinity(PID, {0})'",
            "python3 -c 'import os; os.setpriority(os.PRIO_USER, os.getuid(), 19); assert 0'",
            "python3 -c 'import os; os.pidfd_open(PID)'",
            "perl -e 'kill 9, PID or die'",
            "perl -e 'setpriority(0, PID, 15) or die'",
        ] {
            commands.push(command.replace("PID", &pid.to_string()));
        }
    }
    for command in &commands {
        // Each in a shell of its own: some of them end the shell.
        let quoted = command.replace('\'', "'\\''");
        let command_line = format!("timeout 20 sh -c '{quoted}' > /dev/null 2>&1");
        // One that stops everything it sees stops itself and is ended by the limit.
        sandboxed.run_input(json!({ "command": command_line, "timeout": 4_000 })).await;
        assert_eq!((picture(pid), picture(own)), before, "{command}");
    }
    eprintln!("{} attempts on other processes", commands.len());
    assert!(commands.len() > 90);
}

#[tokio::test]
async fn they_are_not_seen() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let found = qoder_process::sandbox::report(
        &qoder_process::sandbox::SandboxSettings::default(),
        &qoder_process::sandbox::SandboxPlaces::default(),
        &sandboxed.bench.cwd,
    );
    if let Some(problem) = found.process_namespace_problem {
        eprintln!("SKIPPED: no PID namespace here: {problem}");
        return;
    }
    assert_eq!(found.confined_processes, Some("PID namespace"));
    let shown =
        sandboxed.succeed("echo /proc/[0-9]* | wc -w; echo $PPID; sh -c 'echo $PPID' ; echo $$").await;
    let numbers: Vec<u32> = shown.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] < 6 && numbers[1] == 1 && numbers[2] == numbers[3], "{shown}");
}

#[tokio::test]
async fn its_own_processes_are_its_own() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let shown = sandboxed
        .succeed(
            "sleep 50 & renice -n 5 -p $! > /dev/null && prlimit --nofile=64:64 --pid $! && kill -STOP $! && \
             kill -CONT $! && kill $! ; wait $! ; echo $?; nice -n 3 true && (sleep 0.01 & wait; echo waited)",
        )
        .await;
    assert_eq!(shown, "143\nwaited\n");
    // The first process cannot be ended from inside.
    assert_eq!(sandboxed.succeed("kill -9 1; kill -STOP 1; echo alive").await, "alive\n");
}
