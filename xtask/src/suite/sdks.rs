//! The tests of the SDKs in other languages, as their users have them: the Python wheel with the program inside, the
//! packed npm archive, and a client of a sibling program that nobody here has changed. Everything is installed by package
//! name into the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::counts::{self, Counts};
use super::report;
use crate::process;

/// The third-party client, from its source: a wheel would bring another program along.
const THIRD_PARTY: [&str; 5] =
    ["--no-binary", "claude-agent-sdk", "claude-agent-sdk==0.2.182", "pytest>=8", "anyio>=4"];

/// The Python suite on the installed wheel, and the types.
pub(super) fn python(root: &Path) -> Result<Counts> {
    let environment = Environment::make(root, "python")?;
    let package = root.join("sdks/python");
    let mut install = environment.pip(&["install", "--upgrade", "--force-reinstall", "--no-deps"]);
    process::insist(install.arg(&package).env("QODERCLI_BINARY", binary(root)))?;
    let mut needed = environment.pip(&["install"]);
    process::insist(needed.arg(format!("{}[test]", package.display())).env("QODERCLI_BINARY", binary(root)))?;
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.arg(package.join("tests")).env("QODER_SDK_REPOSITORY", root).current_dir(&environment.folder);
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
    let folder = process::target_directory(root).join("sdks/typescript");
    let package = folder.join("package");
    copy(&root.join("sdks/typescript"), &package)?;
    let mut tests = Command::new("node");
    tests.arg(package.join("scripts/test-packed.mjs")).arg("--dir").arg(folder.join("project"));
    tests.env("QODERCLI_PATH", binary(root)).env("QODER_SDK_REPOSITORY", root).current_dir(&package);
    let finished = process::capture(&mut tests)?;
    Ok(report(&finished, counts::from_node(&finished.output)))
}

/// An unmodified client of a sibling program, with our program behind it.
pub(super) fn third_party(root: &Path) -> Result<Counts> {
    let environment = Environment::make(root, "third-party")?;
    process::insist(environment.pip(&["install"]).args(THIRD_PARTY))?;
    let mut tests = environment.python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    tests.arg(root.join("sdks/third-party")).env("QODERCLI_PATH", binary(root)).current_dir(&environment.folder);
    let finished = process::capture(&mut tests)?;
    Ok(report(&finished, counts::from_pytest(&finished.output)))
}

fn binary(root: &Path) -> PathBuf {
    process::target_directory(root).join("debug/qodercli")
}

/// A Python environment of its own, kept between runs.
struct Environment {
    folder: PathBuf,
    interpreter: PathBuf,
}

impl Environment {
    fn make(root: &Path, name: &str) -> Result<Self> {
        let folder = process::target_directory(root).join("sdks").join(name);
        let interpreter = folder.join("bin/python");
        if !interpreter.exists() {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            let mut make = Command::new("python3");
            process::insist(make.args(["-m", "venv"]).arg(&folder))?;
        }
        Ok(Self { folder, interpreter })
    }

    fn python(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(arguments).env_remove("PYTHONPATH").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    fn pip(&self, arguments: &[&str]) -> Command {
        let mut command = self.python(&["-m", "pip"]);
        command.args(arguments).args(["--quiet", "--disable-pip-version-check"]);
        command
    }
}

/// The package without what earlier builds left in it; what was installed into the copy stays.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if name == "node_modules" || name == "dist" {
            continue;
        }
        if !entry.file_type()?.is_dir() {
            std::fs::copy(entry.path(), &target)?;
            continue;
        }
        if target.exists() {
            std::fs::remove_dir_all(&target)?;
        }
        copy(&entry.path(), &target)?;
    }
    if from.join("package.json").exists() && !to.join("package.json").exists() {
        bail!("{} was not copied", from.display());
    }
    Ok(())
}
