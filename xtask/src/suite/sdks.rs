//! The tests of the SDKs in other languages, as their users have them: the Python wheel with the program inside, the
//! packed npm archive, and a client of a sibling program that nobody here has changed. Everything is installed by package
//! name into the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::counts::{self, Counts};
use super::report;
use crate::{packages, process};

/// The third-party client, from its source: a wheel would bring another program along.
const THIRD_PARTY: [&str; 5] =
    ["--no-binary", "claude-agent-sdk", "claude-agent-sdk==0.2.182", "pytest>=8", "anyio>=4"];

/// The Python suite on the installed wheel, and the types.
pub(super) fn python(root: &Path) -> Result<Counts> {
    let environment = packages::python(root, "python", &binary(root))?;
    let package = root.join("sdks/python");
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.arg(package.join("tests")).env("QODER_SDK_REPOSITORY", root).current_dir(&environment.folder);
    tests.env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    tests.env(packages::PYRIGHT_VARIABLE, packages::pyright(root)?);
    let finished = process::capture(&mut tests)?;
    let mut total = report(&finished, counts::from_pytest(&finished.output));
    let cache = environment.folder.join("mypy");
    let mut types = environment.python(&["-m", "mypy", "--cache-dir"]);
    types.arg(cache).current_dir(&package);
    let finished = process::capture(&mut types)?;
    total.add(report(&finished, Counts::of(finished.succeeded())));
    Ok(total)
}

/// The TypeScript suite on the packed archive; its compiler checks the types on the way.
pub(super) fn typescript(root: &Path) -> Result<Counts> {
    let package = packages::typescript(root)?;
    let mut tests = Command::new("node");
    tests.arg(package.join("scripts/test-packed.mjs")).arg("--dir").arg(package.with_file_name("project"));
    tests.env("QODERCLI_PATH", binary(root)).env("QODER_SDK_REPOSITORY", root).current_dir(&package);
    tests.env(packages::MCP_VARIABLE, packages::mcp_folder(root));
    let finished = process::capture(&mut tests)?;
    Ok(report(&finished, counts::from_node(&finished.output)))
}

/// An unmodified client of a sibling program, with our program behind it.
pub(super) fn third_party(root: &Path) -> Result<Counts> {
    let environment = packages::Environment::make(root, "third-party")?;
    process::insist(environment.pip(&["install"]).args(THIRD_PARTY))?;
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests
        .arg(root.join("sdks/third-party"))
        .env("QODERCLI_PATH", binary(root))
        .current_dir(&environment.folder);
    let finished = process::capture(&mut tests)?;
    Ok(report(&finished, counts::from_pytest(&finished.output)))
}

fn binary(root: &Path) -> PathBuf {
    process::target_directory(root).join("debug/qodercli")
}
