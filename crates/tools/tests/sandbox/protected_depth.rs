//! Protected files inside the sandbox: at every depth, existing or not, by every call that could change them.
//!
//! Each attempt runs in the sandbox; what became of the files is looked at from outside.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use crate::common::sandboxed::Sandboxed;
use crate::common::text;
use serde_json::json;

/// `None`, told loudly, where the kernel cannot hold calls for a broker.
fn with_broker() -> Option<Sandboxed> {
    let sandboxed = Sandboxed::new()?;
    let found = qoder_process::sandbox::report(
        &qoder_process::sandbox::SandboxSettings::default(),
        &qoder_process::sandbox::SandboxPlaces::default(),
        &sandboxed.bench.cwd,
    );
    if let Some(problem) = found.broker_problem {
        eprintln!("SKIPPED: no broker here: {problem}");
        return None;
    }
    Some(sandboxed)
}

/// Everything below a folder, with kinds, modes and contents, as one text.
fn picture(folder: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let mut lines = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let found = entry.metadata().unwrap();
            let content = if found.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            let names = if found.is_dir() { 0 } else { found.nlink() };
            lines.push(format!("{:?} {:o} {names} {content:?}", entry.path(), found.mode()));
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    lines.sort();
    lines.join("\n")
}

const DEPTHS: [&str; 4] = [".", "a", "node_modules/x/y", "1/2/3/4/5/6/7/8/9/10"];

/// Attempts on a protected file that exists; `@T` is its path and `@P` the folder it is in.
const ON_EXISTING: [&str; 22] = [
    "echo x > @T",
    "echo x >> @T",
    ": > @T",
    "truncate -s 1 @T",
    "rm -f @T",
    "mv @T @P/other",
    "echo x > @P/new; mv -f @P/new @T",
    "ln @T @P/hard && echo x > @P/hard",
    "ln -f @P/ordinary @T",
    "ln -sf /dev/null @T",
    "chmod 777 @T",
    "touch -d 2001-01-01 @T",
    "sed -i s/a/b/ @T",
    "cp @P/ordinary @T",
    "dd if=/dev/zero of=@T bs=1 count=1 conv=notrunc",
    "cd @P && echo x > ./@N",
    "exec 3< @T; echo x > /proc/self/fd/3",
    "exec 3< @T; echo x > /dev/fd/3",
    "ln -s @T @P/link && echo x > @P/link",
    "ln -s . @P/around && echo x > @P/around/@N",
    "mkdir @P/sub && echo x > @P/sub/../@N",
    "install -m 600 @P/ordinary @T",
];

#[tokio::test]
async fn what_exists_stays_as_it_is() {
    let Some(sandboxed) = with_broker() else { return };
    let mut tried = 0;
    for depth in DEPTHS {
        for name in [".envrc", ".git/config", ".Vscode/tasks.json"] {
            sandboxed.bench.write(&format!("{depth}/{name}"), "as it was\n");
            let mut commands = Vec::new();
            for (number, way) in ON_EXISTING.iter().enumerate() {
                let parent = sandboxed.bench.text_path(&format!("{depth}/way-{number}"));
                // Each way has an ordinary folder of its own beside the protected file.
                let target = sandboxed.bench.text_path(&format!("{depth}/{name}"));
                let way = way.replace("cd @P && echo x > ./@N", &format!("cd {depth} && echo x > ./{name}"));
                let way = way.replace("@P/around/@N", &format!("@P/around/../{name}"));
                let way = way.replace("@P/sub/../@N", &format!("@P/sub/../../{name}"));
                let way = way.replace("@T", &target).replace("@P", &parent);
                commands.push(format!("mkdir {parent}; echo y > {parent}/ordinary; ( {way} ) 2>/dev/null"));
                tried += 1;
            }
            sandboxed.run(&commands.join("\n")).await;
            let path = sandboxed.bench.path(&format!("{depth}/{name}"));
            let content = std::fs::read_to_string(&path).unwrap_or_else(|_| "it is gone".to_owned());
            assert_eq!(content, "as it was\n", "{}", path.display());
            let found = std::fs::symlink_metadata(&path).unwrap();
            use std::os::unix::fs::MetadataExt;
            assert_eq!((found.nlink(), found.mode() & 0o777), (1, 0o644), "{}", path.display());
            assert!(found.mtime() > 1_500_000_000, "{}", path.display());
            for number in 0..ON_EXISTING.len() {
                std::fs::remove_dir_all(sandboxed.bench.path(&format!("{depth}/way-{number}"))).unwrap();
            }
        }
    }
    eprintln!("{tried} attempts on existing files");
}

/// Ways by which something comes into being at `@T` in the folder `@P`.
const TO_CREATE: [&str; 14] = [
    "echo x > @T",
    "mkdir @T",
    "mkdir -p @T/hooks",
    "ln -s /etc/passwd @T",
    "ln @P/ordinary @T",
    "mv @P/ordinary @T",
    "mkdir @P/d && mv -T @P/d @T",
    "mkfifo @T",
    "cp @P/ordinary @T",
    "cp -r @P/tree @P/copy && cp -r @P/copy @T",
    "cd @P && touch @N",
    "tar -C @P -cf @P/x.tar ordinary --transform s/ordinary/@N/ && tar -C @P -xf @P/x.tar",
    "python3 -c 'import os; d = os.open(\"@P\", os.O_RDONLY); os.open(\"@N\", os.O_CREAT | os.O_WRONLY, dir_fd=d)'",
    "perl -e 'open(F, q(>), q(@T))'",
];

#[tokio::test]
async fn what_is_absent_stays_absent() {
    let Some(sandboxed) = with_broker() else { return };
    let names = [".git", ".envrc", ".mcp.json", ".VSCODE", ".bashrc", ".qoder", ".npmrc", ".husky"];
    let mut tried = 0;
    for depth in DEPTHS {
        let mut commands = Vec::new();
        for name in names {
            for (number, way) in TO_CREATE.iter().enumerate() {
                let parent = format!("{depth}/{}-{number}", name.trim_start_matches('.'));
                let way = way.replace("@T", &format!("@P/{name}")).replace("@N", name).replace("@P", &parent);
                commands.push(format!(
                    "mkdir -p {parent}/tree/inner; echo y > {parent}/ordinary; ( {way} ) >/dev/null 2>&1"
                ));
                tried += 1;
            }
        }
        let outcome = sandboxed.run(&commands.join("\n")).await;
        assert!(outcome.structured["exitCode"].is_number(), "{}", text(&outcome));
    }
    let picture = picture(&sandboxed.bench.cwd);
    for name in names {
        assert!(!picture.contains(&format!("/{name}\"")), "{name} came into being:\n{picture}");
        assert!(!picture.contains(&format!("/{name}/")), "{name} came into being");
    }
    assert!(picture.contains("ordinary"), "ordinary files are made");
    assert!(tried > 400, "{tried}");
    eprintln!("{tried} attempts to create");
}

#[tokio::test]
async fn a_folder_above_may_move_and_what_it_holds_stays_protected() {
    let Some(sandboxed) = with_broker() else { return };
    sandboxed.bench.write("repository/.git/config", "as it was\n");
    sandboxed.bench.write("repository/code.c", "int x;\n");
    sandboxed.succeed("mv repository moved && echo y >> moved/code.c").await;
    sandboxed.fail("echo x >> moved/.git/config").await;
    sandboxed.fail("cp -r moved copied").await;
    sandboxed.fail("rm -rf moved").await;
    assert_eq!(sandboxed.bench.content("moved/.git/config"), b"as it was\n");
    assert!(!sandboxed.bench.path("copied/.git").exists());
    assert_eq!(sandboxed.bench.content("copied/code.c"), b"int x;\ny\n");
}

#[tokio::test]
async fn what_is_built_in_tmp_does_not_come_in_by_a_move() {
    let Some(sandboxed) = with_broker() else { return };
    sandboxed.succeed("mkdir -p /tmp/r/.git/hooks && echo x > /tmp/r/.git/hooks/pre-commit").await;
    sandboxed.fail("mv /tmp/r here").await;
    assert!(!sandboxed.bench.path("here/.git").exists());
}

#[tokio::test]
async fn a_named_place_keeps_its_path() {
    let Some(mut sandboxed) = with_broker() else { return };
    let root = sandboxed.bench.cwd.clone();
    sandboxed.change(|settings, _| {
        settings.filesystem.deny_write = vec![root.join("scripts/check.sh").to_str().unwrap().to_owned()];
    });
    sandboxed.bench.write("scripts/other.sh", "");
    for command in [
        "echo x > scripts/check.sh",
        "mv scripts away",
        "mkdir new && echo x > new/check.sh && rm -r scripts && mv new scripts",
        "mkdir new2 && echo x > new2/check.sh && mv --exchange new2 scripts",
        "ln -s new scripts/check.sh",
    ] {
        sandboxed.fail(command).await;
        assert!(!root.join("scripts/check.sh").exists(), "{command}");
    }
}

#[tokio::test]
async fn what_a_person_opened_can_be_changed() {
    let Some(mut sandboxed) = with_broker() else { return };
    let root = sandboxed.bench.cwd.clone();
    std::fs::create_dir_all(root.join("deep/.git")).unwrap();
    sandboxed.change(|settings, _| {
        settings.filesystem.allow_write = vec![root.join("deep/.git").to_str().unwrap().to_owned()];
    });
    sandboxed.succeed("echo x > deep/.git/config && mkdir deep/.git/hooks && rm deep/.git/config").await;
    sandboxed.fail("echo x > deep/.envrc").await;
}

/// Two threads: one exchanges the path in memory while the other opens it.
const RACE: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char path[32] = "plain1";
static volatile int stop;
static void *swap(void *unused) {
    while (!stop) { memcpy(path, ".envrc", 7); memcpy(path, "plain1", 7); }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, swap, 0);
    for (int round = 0; round < 4000; round++) {
        int file = open(path, O_CREAT | O_WRONLY, 0644);
        if (file >= 0) { write(file, "x", 1); close(file); }
        rename("plain1", path);
    }
    stop = 1;
    pthread_join(thread, 0);
    puts("done");
    return 0;
}
"#;

#[tokio::test]
async fn exchanging_the_path_while_it_is_judged_does_not_help() {
    let Some(sandboxed) = with_broker() else { return };
    let source = sandboxed.bench.write("race.c", RACE);
    let program = sandboxed.bench.path("race");
    let built =
        std::process::Command::new("cc").arg("-pthread").arg("-o").arg(&program).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no C compiler");
        return;
    }
    let outcome = sandboxed.run_input(json!({ "command": "./race", "timeout": 300_000 })).await;
    assert_eq!(outcome.structured["stdout"], "done\n", "{}", text(&outcome));
    assert!(sandboxed.bench.path("plain1").exists());
    assert!(!sandboxed.bench.path(".envrc").exists());
}

/// Calls by number, each on an existing protected file and on an absent one; prints those that were let.
const CALLS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>
static void tried(const char *name, long result) { if (result >= 0) printf("%s was let\n", name); }
#define OLD "d/.git/config"
#define NEW "d/.envrc"
int main(void) {
    struct { unsigned long long flags, mode, resolve; } how = { O_CREAT | O_WRONLY, 0644, 0 };
    struct timeval times[2] = {{ 1, 0 }, { 1, 0 }};
    int folder = open("d", O_RDONLY), inner = open("d/.git", O_RDONLY | O_DIRECTORY), file = open(OLD, O_RDONLY);
    int place = open(OLD, O_PATH);
    int zero = 0;
    char again[64];
    tried("creat", creat(NEW, 0644));
    tried("open", syscall(SYS_open, NEW, O_CREAT | O_RDWR, 0644));
    tried("open to truncate", syscall(SYS_open, OLD, O_RDONLY | O_TRUNC));
    tried("openat", openat(folder, ".envrc", O_CREAT | O_WRONLY, 0644));
    tried("openat inside", openat(inner, "config", O_WRONLY));
    tried("openat2", syscall(437, AT_FDCWD, NEW, &how, sizeof how));
    tried("mkdir", mkdir("d/.vscode", 0755));
    tried("mkdirat", mkdirat(inner, "hooks", 0755));
    tried("mknod", mknod(NEW, S_IFREG | 0644, 0));
    tried("mknodat", mknodat(folder, ".envrc", S_IFIFO | 0644, 0));
    tried("rename to", rename("d/plain", NEW));
    tried("renameat from", renameat(inner, "config", folder, "moved"));
    tried("exchange", renameat2(AT_FDCWD, "d/plain", AT_FDCWD, OLD, RENAME_EXCHANGE));
    tried("exchange back", renameat2(AT_FDCWD, OLD, AT_FDCWD, "d/plain", RENAME_EXCHANGE));
    tried("link from", link(OLD, "d/hard"));
    tried("link to", link("d/plain", NEW));
    snprintf(again, sizeof again, "/proc/self/fd/%d", file);
    tried("linkat of a descriptor", linkat(AT_FDCWD, again, AT_FDCWD, "d/hard", AT_SYMLINK_FOLLOW));
    tried("linkat of an empty path", linkat(file, "", AT_FDCWD, "d/hard", AT_EMPTY_PATH));
    tried("open again", open(again, O_RDWR));
    snprintf(again, sizeof again, "/proc/self/fd/%d", place);
    tried("open a place again", open(again, O_WRONLY));
    snprintf(again, sizeof again, "/proc/%d/fd/%d", getpid(), inner);
    strcat(again, "/config");
    tried("open through a folder", open(again, O_WRONLY));
    tried("open through the working directory", open("/proc/self/cwd/" OLD, O_WRONLY));
    tried("open through the root", open("/proc/self/root/proc/thread-self/cwd/" NEW, O_CREAT | O_WRONLY, 0644));
    tried("symlink", symlink("plain", NEW));
    tried("symlinkat", symlinkat("x", inner, "hooks"));
    tried("unlink", unlink(OLD));
    tried("unlinkat", unlinkat(inner, "config", 0));
    tried("rmdir", rmdir("d/.git/empty"));
    tried("truncate", truncate(OLD, 0));
    tried("chmod", chmod(OLD, 0777));
    tried("fchmod", fchmod(file, 0777));
    tried("fchmodat", fchmodat(inner, "config", 0777, 0));
    tried("fchmodat2", syscall(452, AT_FDCWD, OLD, 0777, 0));
    tried("chown", chown(OLD, getuid(), getgid()));
    tried("lchown", lchown(OLD, getuid(), getgid()));
    tried("fchown", fchown(file, getuid(), getgid()));
    tried("fchownat empty", fchownat(file, "", getuid(), getgid(), AT_EMPTY_PATH));
    tried("utimes", utimes(OLD, times));
    tried("utime", utime(OLD, 0));
    tried("futimens", futimens(file, 0));
    tried("utimensat", utimensat(inner, "config", 0, 0));
    tried("futimesat", syscall(SYS_futimesat, folder, ".git/config", 0));
    tried("setxattr", setxattr(OLD, "user.x", "y", 1, 0));
    tried("lsetxattr", lsetxattr(OLD, "user.x", "y", 1, 0));
    tried("fsetxattr", fsetxattr(file, "user.x", "y", 1, 0));
    tried("removexattr", removexattr(OLD, "user.have"));
    tried("fremovexattr", fremovexattr(file, "user.have"));
    tried("flags", ioctl(file, FS_IOC_SETFLAGS, &zero));
    int nameless = open("d", O_TMPFILE | O_RDWR, 0644);
    if (nameless >= 0) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", nameless);
        tried("naming a nameless file", linkat(AT_FDCWD, again, AT_FDCWD, NEW, AT_SYMLINK_FOLLOW));
        if (linkat(AT_FDCWD, again, AT_FDCWD, "d/named", AT_SYMLINK_FOLLOW)) puts("an ordinary name was refused");
    }
    tried("a nameless file inside", open("d/.git", O_TMPFILE | O_RDWR, 0644));
    if (chmod("d/plain", 0600) || chmod("d", 0755) || utimes("d/plain", times)) perror("ordinary");
    if (chown("d/plain", getuid(), getgid()) || truncate("d/plain", 3)) perror("ordinary");
    puts("done");
    return 0;
}
"#;

#[tokio::test]
async fn no_call_changes_a_protected_file() {
    let Some(sandboxed) = with_broker() else { return };
    sandboxed.bench.write("w/d/.git/config", "as it was\n");
    sandboxed.bench.write("w/d/plain", "plain text\n");
    std::fs::create_dir(sandboxed.bench.path("w/d/.git/empty")).unwrap();
    let Some(program) = sandboxed.build("calls", CALLS) else { return };
    let before = picture(&sandboxed.bench.path("w/d/.git"));
    assert_eq!(sandboxed.succeed(&format!("cd w && {program}")).await, "done\n");
    assert_eq!(picture(&sandboxed.bench.path("w/d/.git")), before);
    for absent in ["w/d/.envrc", "w/d/.vscode", "w/d/hard", "w/d/moved"] {
        assert!(!sandboxed.bench.path(absent).exists(), "{absent}");
    }
    assert_eq!(sandboxed.bench.content("w/d/plain"), b"pla");
    assert!(sandboxed.bench.path("w/d/named").exists());
}

#[tokio::test]
async fn ordinary_work_is_as_usual() {
    let Some(sandboxed) = with_broker() else { return };
    let shown = sandboxed
        .succeed(
            "umask 027; mkdir -p a/b && echo 1 > a/b/f && mkdir c && stat -c %a a/b/f c; (umask 0; : > g; stat -c %a g); \
             mkfifo p; (echo through > p &) ; cat p; echo err > /dev/stderr; echo out > /dev/stdout; \
             echo again > /proc/self/fd/1; echo null > /dev/null; ln -s f a/b/l; echo 2 >> a/b/l; cat a/b/f; \
             mv a/b a/e; cat a/e/f; cp -rp a h; rm -r a; ls h/e; touch -d 2001-02-03 h/e/f; date -r h/e/f +%Y; \
             d=$(mktemp -d); echo t > $d/t; cat $d/t; printf x > /dev/shm/s; cat /dev/shm/s; echo; \
             echo missing > absent/x || echo refused; (set -C; echo y > g) || echo exists; cd h; : > ../i; ls ../i",
        )
        .await;
    assert_eq!(
        shown,
        "640\n750\n666\nthrough\nout\nagain\n1\n2\n1\n2\nf\nl\n2001\nt\nx\nrefused\nexists\n../i\n"
    );
    assert_eq!(
        sandboxed.succeed("script -qec 'echo on a terminal > /dev/tty' /dev/null").await.trim(),
        "on a terminal"
    );
    if sandboxed.run("python3 -c pass").await.structured["exitCode"] == 0 {
        let code = "import tempfile, sqlite3, os; f = tempfile.TemporaryFile(dir='.'); f.write(b'x'); \
                    c = sqlite3.connect('x.db'); c.execute('create table t(a)'); c.commit(); os.utime('x.db'); \
                    os.open('new', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600); print(oct(os.stat('new').st_mode))";
        assert_eq!(sandboxed.succeed(&format!("python3 -c \"{code}\"")).await, "0o100600\n");
    }
}

#[tokio::test]
async fn many_files_by_many_processes_are_made() {
    let Some(sandboxed) = with_broker() else { return };
    let command = "for p in 1 2 3 4 5 6 7 8; do (mkdir d$p; for i in {1..200}; do echo $i > d$p/f$i; done) & done; wait; \
                   cat d*/f* | wc -l";
    assert_eq!(sandboxed.succeed(command).await.trim(), "1600");
}
