//! What a new user does first, from nothing: the README's command installs the program into an empty prefix, and the
//! programs of the Rust quickstart are built and run in a project outside the workspace, with the crates that the page
//! names. Builds share the target folder, so that only what is new is compiled.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::report::Report;
use xtask::process::{self, Finished, Scratch};

/// Where programs are found besides those of the prefix.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What a compiler has to say about an argument type without its derives.
const MISSING_DERIVE: [&str; 2] =
    ["cannot be the arguments of a tool", "#[derive(serde::Deserialize, schemars::JsonSchema)]"];

/// Installs the program as the README says, into a prefix that did not exist.
pub(super) fn install(root: &Path) -> Result<Report> {
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let command = readme.lines().find(|line| line.starts_with("cargo install "));
    let command = command.context("the README has no `cargo install` command")?;
    let prefix = prefix(root);
    if prefix.exists() {
        std::fs::remove_dir_all(&prefix)?;
    }
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let mut install = process::cargo(root, &arguments);
    install.args(["--debug", "--quiet", "--root"]).arg(&prefix);
    install.arg("--target-dir").arg(process::target_directory(root));
    let finished = process::capture(&mut install)?;
    let is_there = installed(root).is_file();
    Ok(judge("README.md: cargo install", &finished, finished.succeeded() && is_there))
}

/// The installed program: the one that the SDKs in other languages are tested with.
pub(super) fn installed(root: &Path) -> PathBuf {
    prefix(root).join("bin/qodercli")
}

/// The search path of a machine that has only what [`install`] installed.
pub(super) fn search_path(root: &Path) -> OsString {
    let mut path = prefix(root).join("bin").into_os_string();
    path.push(":");
    path.push(SYSTEM_PATH);
    path
}

fn prefix(root: &Path) -> PathBuf {
    process::target_directory(root).join("newcomer/prefix")
}

/// Builds and runs every program of the Rust quickstart, and one whose argument type lacks its derives.
pub(super) fn rust(root: &Path) -> Result<Report> {
    let page = std::fs::read_to_string(root.join("docs/quickstart-rust.md"))?;
    let manifest = blocks(&page, "toml").into_iter().next().context("the page names no crates")?;
    let programs = blocks(&page, "rust");
    let scratch = Scratch::new("newcomer")?;
    let project = scratch.path().join("project");
    let sources = project.join("src/bin");
    std::fs::create_dir_all(&sources)?;
    // The page shows a path inside the checkout; a project elsewhere writes the whole one.
    let crates = format!("path = \"{}/crates/sdk\"", root.canonicalize()?.display());
    let manifest = manifest.replace("path = \"crates/sdk\"", &crates);
    std::fs::write(
        project.join("Cargo.toml"),
        format!(
            "[package]\nname = \"newcomer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{manifest}\n[workspace]\n\n{}",
            profiles(&std::fs::read_to_string(root.join("Cargo.toml"))?)
        ),
    )?;
    // The versions that are tested, and none from the network.
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock"))?;
    for (number, program) in programs.iter().enumerate() {
        std::fs::write(sources.join(format!("program_{number}.rs")), program)?;
    }
    let mut total = Report::default();
    for (number, program) in programs.iter().enumerate() {
        let finished = cargo_in(&project, root, &["run", "--quiet", "--bin", &format!("program_{number}")])?;
        let expected = program.lines().filter_map(|line| line.strip_prefix("//=> "));
        let good = finished.succeeded() && expected.into_iter().all(|text| finished.output.contains(text));
        total.add(&judge(&format!("docs/quickstart-rust.md: program {}", number + 1), &finished, good));
    }
    let tool = programs.iter().find(|program| program.contains("JsonSchema)]"));
    let tool = tool.context("the page has no tool")?;
    let without: Vec<&str> = tool.lines().filter(|line| !line.starts_with("#[derive(Deserialize")).collect();
    std::fs::write(sources.join("without.rs"), without.join("\n"))?;
    let finished = cargo_in(&project, root, &["build", "--quiet", "--bin", "without"])?;
    let told = MISSING_DERIVE.iter().all(|text| finished.output.contains(text));
    total.add(&judge("a tool's argument without its derives", &finished, !finished.succeeded() && told));
    Ok(total)
}

/// The workspace's profile for development, so that what is built by it is not built again.
fn profiles(manifest: &str) -> String {
    let sections = manifest.split("\n[").filter(|section| section.starts_with("profile.dev"));
    sections.map(|section| format!("[{section}\n")).collect()
}

fn cargo_in(project: &Path, root: &Path, arguments: &[&str]) -> Result<Finished> {
    let mut command = process::cargo(project, arguments);
    command.arg("--target-dir").arg(process::target_directory(root));
    // Its home is its own, so that no settings of this machine count; cargo keeps what it has downloaded.
    command.env("QODER_CONFIG_DIR", project.with_file_name("config"));
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "QODER_PERSONAL_ACCESS_TOKEN", "QODERCLI_PATH"] {
        command.env_remove(name);
    }
    process::capture(&mut command)
}

/// The fenced blocks of a kind.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if info.split_whitespace().next() == Some(kind) {
            found.push(body.join("\n") + "\n");
        }
    }
    found
}

fn judge(name: &str, finished: &Finished, good: bool) -> Report {
    let mut report = Report::of(good);
    report.line(format!("{:>6}  {name}", if good { "ok" } else { "FAILED" }));
    if !good {
        report.line(format!("exit code {:?}\n{}", finished.code, finished.output.trim_end()));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_kind_are_found() {
        let page = "```toml\na = 1\n```\ntext\n```rust runnable\nfn main() {}\n```\n```sh\nx\n```\n";
        assert_eq!(blocks(page, "toml"), ["a = 1\n"]);
        assert_eq!(blocks(page, "rust"), ["fn main() {}\n"]);
    }

    #[test]
    fn only_profiles_for_development_are_taken() {
        let manifest = "[a]\nx = 1\n\n[profile.dev]\ndebug = 1\n\n[profile.dev.package.p]\nopt-level = 2\n[profile.release]\n";
        let taken = profiles(manifest);
        assert!(
            taken.contains("[profile.dev]\ndebug = 1")
                && taken.contains("[profile.dev.package.p]\nopt-level = 2")
        );
        assert!(!taken.contains("release") && !taken.contains("[a]"), "{taken}");
    }

    #[test]
    fn the_prefix_comes_first_and_nothing_of_the_caller_follows() {
        let path = search_path(Path::new("/repository")).into_string().unwrap();
        assert!(path.contains("newcomer/prefix/bin:/usr/local/bin:"), "{path}");
        assert_eq!(path.matches(':').count(), 3);
    }
}
