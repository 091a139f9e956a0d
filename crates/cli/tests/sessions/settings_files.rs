//! Settings files that are no plain files of a sensible size are refused at once, whichever layer they are.

use std::path::Path;
use std::process::Command;

use qoder_testkit::Sandbox;

use crate::sessions::support::{run, wait_for};

fn refused(sandbox: &Sandbox, arguments: &[&str], path: &Path, problem: &str) {
    let run = run(sandbox, &[&["-p", "hello"], arguments].concat()).exits(52);
    assert_eq!(run.stdout, "");
    run.says(&["error: cannot read the settings file", &path.display().to_string(), problem, "hint: "]);
}

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    wait_for("the pipe", || path.exists());
}

#[test]
fn a_pipe_a_device_or_a_directory_is_refused_at_once() {
    let sandbox = Sandbox::new();
    let local = sandbox.project().join(".qoder/settings.local.json");
    pipe(&local);
    run(&sandbox, &["-p", "hello"]).exits(0);
    refused(&sandbox, &["--trust"], &local, "it is not a regular file");
    refused(&sandbox, &["--settings", &local.display().to_string()], &local, "it is not a regular file");
    refused(&sandbox, &["--settings", "/dev/zero"], Path::new("/dev/zero"), "it is not a regular file");
    let folder = sandbox.project();
    refused(&sandbox, &["--settings", &folder.display().to_string()], folder, "it is a directory");
    let user = sandbox.config().join("settings.json");
    pipe(&user);
    refused(&sandbox, &[], &user, "it is not a regular file");
}

#[test]
fn a_file_of_more_than_four_mebibytes_is_refused() {
    let sandbox = Sandbox::new();
    let text = |size: usize| format!("{{}}{}", " ".repeat(size - 2));
    let user = sandbox.write(sandbox.config().join("settings.json"), text(4 * 1024 * 1024));
    run(&sandbox, &["-p", "hello"]).exits(0);
    sandbox.write(&user, text(4 * 1024 * 1024 + 1));
    refused(&sandbox, &[], &user, "it is larger than 4 MiB");
    std::fs::remove_file(&user).unwrap();
    run(&sandbox, &["-p", "hello"]).exits(0);
}
