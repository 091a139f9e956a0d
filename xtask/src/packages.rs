//! The SDKs in other languages as installed packages, in the target folder: a Python environment with the wheel, a copy of
//! the npm package to build and pack, and the MCP servers to speak with. Used by the tests and the benchmarks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// An environment with the Python SDK and what its tests need; `binary` goes into the wheel.
pub fn python(root: &Path, name: &str, binary: &Path) -> Result<Environment> {
    let environment = Environment::make(root, name)?;
    let package = root.join("sdks/python");
    // One command builds one wheel; pip installs a folder anew even if its version is there already.
    let mut install = environment.pip(&["install"]);
    process::quietly(install.arg(format!("{}[test]", package.display())).env("QODERCLI_BINARY", binary))?;
    Ok(environment)
}

/// A copy of the TypeScript SDK that may be built in.
pub fn typescript(root: &Path) -> Result<PathBuf> {
    let package = process::target_directory(root).join("sdks/typescript/package");
    copy(&root.join("sdks/typescript"), &package)?;
    Ok(package)
}

/// MCP servers by other authors, and the public suite for MCP clients with the Node that it needs.
const MCP_SERVERS: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
];
/// The same in Python, with the package to make a server that wants OAuth.
const PYTHON_MCP_SERVERS: [&str; 4] =
    ["mcp==2.3.0", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "uvicorn>=0.30"];
/// Newer than what a machine may have.
const NODE_VERSION: &str = "22";

/// The variable that gives the tests the folder of the servers.
pub const MCP_VARIABLE: &str = "QODER_TEST_MCP";

/// Where the servers are installed.
pub fn mcp_folder(root: &Path) -> PathBuf {
    process::target_directory(root).join("sdks/mcp")
}

/// A folder with `node_modules` and `venv` that hold the servers; kept between runs.
pub fn mcp_servers(root: &Path) -> Result<PathBuf> {
    let environment = Environment::make(root, "mcp/venv")?;
    process::quietly(environment.pip(&["install"]).args(PYTHON_MCP_SERVERS))?;
    let folder = mcp_folder(root);
    let manifest = folder.join("package.json");
    if !manifest.exists() {
        std::fs::write(&manifest, "{ \"private\": true }\n")
            .with_context(|| format!("cannot write {}", manifest.display()))?;
    }
    let platform = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--loglevel", "error"]).args(MCP_SERVERS);
    install.arg(format!("node-{platform}-{machine}@{NODE_VERSION}"));
    process::quietly(install.current_dir(&folder))?;
    Ok(folder)
}

/// The type checker of editors, beside mypy.
const PYRIGHT: &str = "pyright@^1.1.400";

/// The variable that gives the Python tests its path.
pub const PYRIGHT_VARIABLE: &str = "QODER_TEST_PYRIGHT";

/// Installs it, unless it is there, and says where its program is.
pub fn pyright(root: &Path) -> Result<PathBuf> {
    let folder = process::target_directory(root).join("sdks/pyright");
    let program = folder.join("node_modules/.bin/pyright");
    if !program.exists() {
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        std::fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--loglevel", "error", PYRIGHT]);
        process::quietly(install.current_dir(&folder))?;
    }
    Ok(program)
}

/// Programs of the system that tests use: the tracer shows which files the program opens, tmux is a terminal that breaks rows
/// anew, and PostgreSQL keeps what several servers share. Installed by name where they are missing.
pub fn system_programs() -> Result<()> {
    for name in ["strace", "tmux"] {
        let is_there = Command::new(name).arg("-V").output().is_ok_and(|output| output.status.success());
        if !is_there {
            install_program(name)?;
        }
    }
    let is_there =
        ["/usr/lib/postgresql", "/usr/local/bin/postgres"].iter().any(|path| Path::new(path).exists());
    if !is_there {
        install_program("postgresql")?;
    }
    Ok(())
}

fn install_program(name: &str) -> Result<()> {
    if cfg!(target_os = "linux") {
        process::quietly(Command::new("apt-get").args(["install", "-y", "--no-install-recommends", name]))?;
    }
    Ok(())
}

/// A Python environment of its own, kept between runs.
pub struct Environment {
    /// Its folder.
    pub folder: PathBuf,
    interpreter: PathBuf,
}

impl Environment {
    /// Makes it, unless it is there.
    pub fn make(root: &Path, name: &str) -> Result<Self> {
        let folder = process::target_directory(root).join("sdks").join(name);
        let interpreter = folder.join("bin/python");
        if !interpreter.exists() {
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            let mut make = Command::new("python3");
            process::quietly(make.args(["-m", "venv"]).arg(&folder))?;
        }
        Ok(Self { folder, interpreter })
    }

    /// Whether a package can be imported in it.
    pub fn has(&self, package: &str) -> bool {
        let import = self.python(&["-c", &format!("import {package}")]).output();
        import.is_ok_and(|output| output.status.success())
    }

    /// Its interpreter with arguments.
    pub fn python(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(arguments).env_remove("PYTHONPATH").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Its installer with arguments.
    pub fn pip(&self, arguments: &[&str]) -> Command {
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
