//! Systems that offer less: without namespaces nothing runs unless the person allows the weaker sandbox, and that one
//! still closes the outside and the network.
//!
//! The test starts itself again where user namespaces are used up.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use crate::common::sandboxed::Sandboxed;
use crate::common::{Bench, text, whole_name};
use qoder_process::sandbox::{Sandbox, SandboxPlaces, SandboxSettings};
use serde_json::json;

const INNER: &str = "QODER_TEST_INNER";

/// Starts the test `name` again in a user namespace that can have no further ones. False, told loudly, where that is not
/// possible.
fn again_without_namespaces(name: &str) -> bool {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" --exact \"$1\" --nocapture";
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", script]).arg(program);
    command.arg(whole_name(module_path!(), name)).env(INNER, "1");
    match command.output() {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("1 passed"), "{said}");
            true
        }
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        other => {
            eprintln!("SKIPPED: namespaces cannot be used up here: {other:?}");
            false
        }
    }
}

fn bench(settings: SandboxSettings) -> Bench {
    let mut bench = Bench::new();
    bench.settings.sandbox = Some(std::sync::Arc::new(Sandbox::new(settings, SandboxPlaces::default())));
    bench
}

fn enabled(weaker: bool) -> SandboxSettings {
    SandboxSettings { enabled: true, enable_weaker_nested_sandbox: weaker, ..SandboxSettings::default() }
}

#[tokio::test]
async fn without_namespaces_nothing_runs_in_silence() {
    if std::env::var_os(INNER).is_none() {
        if Sandboxed::new().is_some() {
            again_without_namespaces("without_namespaces_nothing_runs_in_silence");
        }
        return;
    }
    let strict = bench(enabled(false));
    let outcome = strict.run("Bash", json!({ "command": "echo x > ran" })).await;
    assert!(text(&outcome).contains("was not run"), "{}", text(&outcome));
    assert!(outcome.structured["code"].as_str().unwrap().starts_with("sandbox_"));
    assert!(!strict.path("ran").exists());
}

#[tokio::test]
async fn the_weaker_sandbox_still_closes_the_outside() {
    if std::env::var_os(INNER).is_none() {
        if Sandboxed::new().is_some() {
            again_without_namespaces("the_weaker_sandbox_still_closes_the_outside");
        }
        return;
    }
    let weak = bench(enabled(true));
    let outside = weak.cwd.parent().unwrap().join("outside");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    weak.succeed("Bash", json!({ "command": "echo x > file && mktemp && mkdir d && mv file d/" })).await;
    assert!(weak.path("d/file").exists());
    for command in [
        format!("echo x > {}", outside.display()),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        format!("kill -0 {}", std::process::id()),
    ] {
        weak.fail("Bash", json!({ "command": command })).await;
    }
    assert!(!outside.exists());
    let mut settings = enabled(true);
    settings.network.allowed_domains = vec!["*".to_owned()];
    let outcome = bench(settings).run("Bash", json!({ "command": "true" })).await;
    assert_eq!(outcome.structured["code"], "sandbox_unenforceable", "{}", text(&outcome));
}
