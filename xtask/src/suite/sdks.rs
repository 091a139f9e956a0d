//! The tests of the SDKs in other languages, as their users have them: the Python wheel with the program inside, the
//! packed npm archive, and an unchanged client of a sibling program. Everything is installed by package
//! name into the target folder.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::counts::{self, Counts};
use super::newcomer;
use super::report::Report;
use xtask::process::Scratch;
use xtask::{packages, process};

/// The third-party client, from its source: a wheel would bring another program along.
const THIRD_PARTY: [&str; 5] =
    ["--no-binary", "claude-agent-sdk", "claude-agent-sdk==0.2.182", "pytest>=8", "anyio>=4"];

/// Clients of the cloud agents API, one of each dialect.
const SERVER_CLIENTS: [&str; 5] = [
    "anthropic[webhooks]==2.9.0",
    "qca-sdk==0.11.0",
    "openapi-spec-validator>=0.7",
    "pytest>=8",
    "mypy>=1.15",
];

/// A store that speaks S3, for the test of the server's object store.
const OBJECT_STORE: &str = "moto[server]>=5,<6";

/// Names the folder in which runs of pytest claim files.
const CLAIMS_VARIABLE: &str = "QODER_TEST_CLAIMS";
/// How many runs of pytest share its files for each processor: most tests wait for a process.
const RUNS_A_PROCESSOR: usize = 2;

/// The Python suite on the installed wheel, and the types. Several runs of pytest share the files
/// (`sdks/python/tests/support/sharing.py`), so that one computes while another waits.
pub(super) fn python(root: &Path) -> Result<Report> {
    let environment = packages::python(root, "python", &newcomer::installed(root))?;
    let package = root.join("sdks/python");
    let pyright = packages::pyright(root)?;
    let claims = Scratch::new("claims")?;
    let run = || {
        let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
        tests.arg(package.join("tests")).env("QODER_SDK_REPOSITORY", root).current_dir(&environment.folder);
        tests.env(packages::MCP_VARIABLE, packages::mcp_folder(root));
        tests.env(packages::PYRIGHT_VARIABLE, &pyright).env(CLAIMS_VARIABLE, claims.path());
        process::capture(&mut tests)
    };
    let mut report = Report::default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let finished = side_by_side(processors * RUNS_A_PROCESSOR, run);
    for finished in finished {
        let finished = finished?;
        report.add(&Report::of_command(&finished, counts::from_pytest(&finished.output)));
    }
    let mut types = environment.python(&["-m", "mypy", "--cache-dir"]);
    types.arg(environment.folder.join("mypy")).current_dir(&package);
    let finished = process::capture(&mut types)?;
    report.add(&Report::of_command(&finished, Counts::of(finished.succeeded())));
    Ok(report)
}

/// The same work in several threads.
fn side_by_side<T: Send>(threads: usize, work: impl Fn() -> Result<T> + Sync) -> Vec<Result<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the suite panicked")))
        });
        joined.collect()
    })
}

/// The TypeScript suite on the packed archive; its compiler checks the types on the way.
pub(super) fn typescript(root: &Path) -> Result<Report> {
    typescript_tests(root, &newcomer::installed(root), &[])
}

/// The files of the TypeScript suite whose names have one of `parts` in them; without any, all.
pub(super) fn typescript_tests(root: &Path, binary: &Path, parts: &[&str]) -> Result<Report> {
    let package = packages::typescript(root)?;
    let mut tests = Command::new("node");
    tests.arg(package.join("scripts/test-packed.mjs")).arg("--dir").arg(package.with_file_name("project"));
    tests.env("QODERCLI_PATH", binary).env("QODER_SDK_REPOSITORY", root).current_dir(&package);
    tests.env(packages::MCP_VARIABLE, packages::mcp_folder(root)).args(parts);
    let finished = process::capture(&mut tests)?;
    Ok(Report::of_command(&finished, counts::from_node(&finished.output)))
}

/// Installs the third-party client.
pub(super) fn install_third_party(root: &Path) -> Result<packages::Environment> {
    let environment = packages::Environment::make(root, "third-party")?;
    process::quietly(environment.pip(&["install"]).args(THIRD_PARTY))?;
    Ok(environment)
}

/// An unmodified client of a sibling program, with our program behind it.
pub(super) fn third_party(root: &Path) -> Result<Report> {
    let environment = install_third_party(root)?;
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests
        .arg(root.join("sdks/third-party"))
        .env("QODERCLI_PATH", newcomer::installed(root))
        .current_dir(&environment.folder);
    let finished = process::capture(&mut tests)?;
    Ok(Report::of_command(&finished, counts::from_pytest(&finished.output)))
}

/// Installs the clients of the cloud agents API.
pub(super) fn install_server_clients(root: &Path) -> Result<packages::Environment> {
    let environment = packages::Environment::make(root, "server-clients")?;
    process::quietly(environment.pip(&["install"]).args(SERVER_CLIENTS))?;
    // Its test says that it is skipped where the store cannot be installed.
    drop(process::quietly(environment.pip(&["install"]).arg(OBJECT_STORE)));
    Ok(environment)
}

/// Unmodified clients of both dialects, with our server behind them, and the types of their tests.
pub(super) fn server_clients(root: &Path) -> Result<Report> {
    let environment = install_server_clients(root)?;
    let folder = root.join("sdks/server-clients");
    let mut tests = environment.python(&["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.arg(&folder).env("QODERCLI_PATH", newcomer::installed(root)).current_dir(&environment.folder);
    let finished = process::capture(&mut tests)?;
    let mut report = Report::of_command(&finished, counts::from_pytest(&finished.output));
    let mut types = environment.python(&["-m", "mypy", "--strict", "--cache-dir"]);
    types.arg(environment.folder.join("mypy")).arg(".").current_dir(&folder);
    let finished = process::capture(&mut types)?;
    report.add(&Report::of_command(&finished, Counts::of(finished.succeeded())));
    Ok(report)
}

/// The scenario files as the Python SDK runs them, from the sources: nothing is packed or installed for it but what a
/// whole run has installed.
pub(super) fn python_scenarios(root: &Path, binary: &Path) -> Result<Report> {
    let environment = packages::Environment::make(root, "python")?;
    if !environment.has("pytest") {
        packages::python(root, "python", binary)?;
    }
    let package = root.join("sdks/python");
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.arg(package.join("tests/test_scenarios.py")).current_dir(&environment.folder);
    tests.env("PYTHONPATH", package.join("src")).env("QODERCLI_PATH", binary);
    tests.env("QODER_SDK_REPOSITORY", root).env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    let finished = process::capture(&mut tests)?;
    Ok(Report::of_command(&finished, counts::from_pytest(&finished.output)))
}
