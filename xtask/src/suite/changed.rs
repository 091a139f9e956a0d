//! What changed against `HEAD`: the crates with changed files, and the modules of their tests that changed. Files that git
//! does not know yet count as changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::process;

/// The changed parts of the workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Names of packages.
    pub(super) packages: BTreeSet<String>,
    /// Packages with the changed modules of their tests, such as `turns` for `crates/cli/tests/turns/agents.rs`.
    pub(super) tests: BTreeSet<(String, String)>,
}

/// Asks git, and reads the names of packages from their manifests.
pub(super) fn against_head(root: &Path) -> Result<Changed> {
    let mut git = Command::new("git");
    git.args(["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"]).current_dir(root);
    let output = git.output().context("cannot start git")?;
    if !output.status.success() {
        bail!("`git status` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let paths = paths(&String::from_utf8_lossy(&output.stdout));
    Ok(of_paths(paths.iter().map(String::as_str), &names(root)?))
}

/// The entries are `XY path`, each ended by a zero byte.
fn paths(status: &str) -> Vec<String> {
    status.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect()
}

/// The package of each folder that has one.
fn names(root: &Path) -> Result<BTreeMap<String, String>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--locked"];
    let output = process::cargo(root, &arguments).output().context("cannot start cargo")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let mut names = BTreeMap::new();
    let root = root.canonicalize()?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(&root).ok());
        if let (Some(folder), Some(name)) = (folder, package["name"].as_str()) {
            names.insert(folder.display().to_string(), name.to_owned());
        }
    }
    if names.is_empty() {
        bail!("`cargo metadata` names no packages: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(names)
}

fn of_paths<'a>(paths: impl Iterator<Item = &'a str>, names: &BTreeMap<String, String>) -> Changed {
    let mut changed = Changed::default();
    for path in paths {
        if path == "Cargo.lock" || path == "Cargo.toml" {
            changed.packages.extend(names.values().cloned());
        }
        let owner = names.iter().find_map(|(folder, name)| {
            let rest = path.strip_prefix(folder.as_str())?.strip_prefix('/')?;
            Some((folder, name, rest))
        });
        let Some((folder, name, rest)) = owner else { continue };
        let Some(test) = rest.strip_prefix("tests/") else {
            changed.packages.insert(name.clone());
            continue;
        };
        // A test program may be a folder that has the name of its crate's; its modules are in that folder.
        let program = folder.rsplit('/').next().unwrap_or(folder);
        let test = test.strip_prefix(program).and_then(|test| test.strip_prefix('/')).unwrap_or(test);
        let module = test.split('/').next().unwrap_or(test);
        changed.tests.insert((name.clone(), module.trim_end_matches(".rs").to_owned()));
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Changed {
        let folders = [("crates/cli", "qodercli"), ("crates/sdk", "sdk"), ("crates/sdk-macros", "macros")];
        let names = folders.map(|(folder, name)| (folder.to_owned(), name.to_owned()));
        of_paths(paths.iter().copied(), &names.into())
    }

    fn packages(changed: &Changed) -> Vec<&str> {
        changed.packages.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_changed_source_names_its_package_and_no_other() {
        assert_eq!(packages(&of(&["crates/sdk-macros/src/lib.rs", "README.md"])), ["macros"]);
        assert_eq!(packages(&of(&["crates/sdk/Cargo.toml"])), ["sdk"]);
        assert_eq!(of(&["docs/glossary.md", "crates/gone/src/lib.rs"]), Changed::default());
    }

    #[test]
    fn a_changed_test_names_its_module() {
        let changed = of(&["crates/cli/tests/turns/agents.rs", "crates/sdk/tests/odd_case.rs"]);
        assert!(changed.packages.is_empty());
        let inside = of(&["crates/sdk/tests/sdk/query.rs"]);
        assert!(inside.tests.contains(&("sdk".to_owned(), "query".to_owned())), "{inside:?}");
        let expected = [("qodercli", "turns"), ("sdk", "odd_case")];
        assert_eq!(changed.tests, expected.map(|(name, module)| (name.to_owned(), module.to_owned())).into());
    }

    #[test]
    fn a_changed_dependency_concerns_everything() {
        assert_eq!(packages(&of(&["Cargo.lock"])), ["macros", "qodercli", "sdk"]);
    }

    #[test]
    fn entries_of_git_are_read_with_spaces_in_names() {
        assert_eq!(paths(" M a.rs\0?? b c.rs\0"), ["a.rs", "b c.rs"]);
        assert!(paths("").is_empty());
    }
}
