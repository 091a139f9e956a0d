//! What people do all day still works in the sandbox: files in the workspace, temporary files, builds, scripts, git that
//! only looks, and a working directory that is kept.
#![cfg(target_os = "linux")]

use crate::common::sandboxed::Sandboxed;
use crate::common::{appears, text};
use qoder_process::sandbox::{Check, SandboxPlaces, SandboxSettings, report};
use serde_json::json;

#[tokio::test]
async fn files_in_the_workspace_are_made_moved_and_removed() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let command = "echo one > a && mkdir -p d/e && cp a d/e/b && mv d/e/b d/c && ln -s c d/l && ln d/c d/h \
                   && chmod 755 d/c && cat d/l && rm a && (cd d && rm l) && rm -r d && touch last";
    assert_eq!(sandboxed.succeed(command).await, "one\n");
    let names: Vec<_> =
        std::fs::read_dir(&sandboxed.bench.cwd).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["last"]);
}

#[tokio::test]
async fn temporary_files_are_private_and_last_over_commands() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let name = format!("qoder-test-{}", std::process::id());
    sandboxed.succeed(&format!("echo kept > /tmp/{name} && mktemp && echo x > /dev/shm/x")).await;
    assert_eq!(sandboxed.succeed(&format!("cat /tmp/{name}; cat $TMPDIR/{name}")).await, "kept\nkept\n");
    assert!(!std::path::Path::new("/tmp").join(&name).exists());
    let sandbox = sandboxed.bench.settings.sandbox.clone().unwrap();
    let scratch = sandbox.plan(&sandboxed.bench.cwd, &[]).unwrap().scratch.root().to_path_buf();
    assert!(scratch.is_dir());
    drop((sandbox, sandboxed));
    assert!(!scratch.exists(), "the private folder goes with the session");
}

#[tokio::test]
async fn devices_pipes_and_terminals_work() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let command = "echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c \
                   && echo out > /dev/stdout && cat <(echo substituted) && : < /dev/null";
    assert_eq!(sandboxed.succeed(command).await, "3\n3\nout\nsubstituted\n");
    let terminal = "import os,pty\nm,s=pty.openpty()\nos.write(s,b'hello')\nprint(os.read(m,5).decode(),os.ttyname(s).startswith('/dev/pts/'))";
    if sandboxed.run("python3 -c pass").await.structured["exitCode"] == 0 {
        assert_eq!(sandboxed.succeed(&format!("python3 -c \"{terminal}\"")).await, "hello True\n");
        let pool = "import multiprocessing as m\nprint(m.Queue() is not None, m.Lock() is not None)";
        assert_eq!(sandboxed.succeed(&format!("python3 -c \"{pool}\"")).await, "True True\n");
    } else {
        eprintln!("SKIPPED: no python3");
    }
}

#[tokio::test]
async fn a_program_is_compiled_and_run() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let source = "#include <stdio.h>\n#include <pthread.h>\nstatic void *f(void *x) { return x; }\n\
                  int main(void) { pthread_t t; if (pthread_create(&t, 0, f, 0)) return 1; pthread_join(t, 0);\n\
                  puts(\"built\"); return 0; }\n";
    sandboxed.bench.write("main.c", source);
    if sandboxed.run("cc --version").await.structured["exitCode"] != 0 {
        eprintln!("SKIPPED: no C compiler");
        return;
    }
    assert_eq!(sandboxed.succeed("cc -pthread -o main main.c && ./main").await, "built\n");
}

#[tokio::test]
async fn git_looks_and_sees_no_placeholders() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let prepared = std::process::Command::new("sh")
        .current_dir(&sandboxed.bench.cwd)
        .args(["-c", "git init -q . && echo a > file && git add file && git -c user.name=n -c user.email=e@e commit -qm m"])
        .status();
    if !prepared.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no git");
        return;
    }
    let outcome = sandboxed
        .run("echo b >> file; echo c > new; git status --porcelain; git log --oneline | wc -l")
        .await;
    assert_eq!(outcome.structured["stdout"], " M file\n?? new\n1\n");
    assert_eq!(outcome.structured["stderr"], "");
    let said = sandboxed.fail("git commit -am change").await;
    assert!(said.contains("ran in the sandbox"), "{said}");
}

#[tokio::test]
async fn the_working_directory_is_kept() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let outcome = sandboxed.run("mkdir -p below && cd below && pwd -P").await;
    assert_eq!(outcome.new_cwd, Some(sandboxed.bench.path("below")), "{}", text(&outcome));
}

#[tokio::test]
async fn background_commands_are_confined_and_leave_nothing() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let command = format!(
        "echo x > {}/file; setsid sh -c 'while :; do echo x >> beat; sleep 0.02; done' & sleep 50",
        sandboxed.outside.display()
    );
    let outcome = sandboxed.run_input(json!({ "command": command, "run_in_background": true })).await;
    assert!(outcome.structured["backgroundTaskId"].is_string(), "{}", text(&outcome));
    appears(&sandboxed.bench.path("beat")).await;
    assert!(!sandboxed.outside.join("file").exists());
    sandboxed.bench.shared.shutdown().await;
    sandboxed.bench.ended_task().await;
    crate::common::is_still(&sandboxed.bench.path("beat")).await;
}

#[tokio::test]
async fn leaving_is_for_those_who_may() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    let file = sandboxed.outside.join("file");
    let input =
        json!({ "command": format!("echo x > {}", file.display()), "dangerouslyDisableSandbox": true });
    sandboxed.change(|settings, _| settings.allow_unsandboxed_commands = false);
    let outcome = sandboxed.run_input(input.clone()).await;
    assert!(text(&outcome).contains("dangerouslyDisableSandbox was ignored"), "{}", text(&outcome));
    assert!(!file.exists());
    sandboxed.change(|settings, _| settings.allow_unsandboxed_commands = true);
    sandboxed.run_input(input).await;
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
    sandboxed.change(|settings, _| settings.excluded_commands = vec!["touch".to_owned()]);
    sandboxed.succeed(&format!("touch {}", file.display())).await;
    assert!(file.exists());
    sandboxed.fail(&format!("touch a; touch {}2", file.display())).await;
}

#[tokio::test]
async fn what_cannot_be_enforced_does_not_run() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    sandboxed.change(|settings, _| settings.network.allow_unix_sockets = vec!["/run/x.sock".to_owned()]);
    let outcome = sandboxed.run("echo x > ran").await;
    assert_eq!(outcome.structured["code"], "sandbox_unenforceable");
    assert!(text(&outcome).contains("was not run"), "{}", text(&outcome));
    assert!(!sandboxed.bench.path("ran").exists());
    sandboxed
        .change(|settings, _| *settings = SandboxSettings { enabled: true, ..SandboxSettings::default() });
    std::fs::remove_dir_all(&sandboxed.bench.cwd).unwrap();
    let outcome = sandboxed.run("true").await;
    assert!(outcome.structured["exitCode"].is_null(), "{}", text(&outcome));
}

#[test]
fn the_report_names_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let found = report(&SandboxSettings::default(), &SandboxPlaces::default(), folder.path());
    if !found.is_enforced() {
        eprintln!("SKIPPED: this system cannot confine commands: {:?}", found.problems);
        return;
    }
    assert!(found.checks.len() >= 6 && found.checks.iter().all(Check::holds), "{found:?}");
    assert!(found.mechanism.is_some());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the report leaves nothing behind");
}
