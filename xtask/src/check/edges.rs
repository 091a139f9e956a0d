//! Which crate of the workspace may use which. Cargo's own metadata is compared with the list here; an edge
//! that is not listed is a violation, so that a new dependency between crates is a decision and not an
//! accident.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Verdict;
use crate::process;

/// Crate, and the crates of this workspace it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("qoder-types", &[]),
    ("qoder-core", &["qoder-types"]),
    ("qoder-http", &[]),
    ("qoder-models", &["qoder-core", "qoder-http", "qoder-types"]),
    ("qoder-tools", &["qoder-core", "qoder-types"]),
    ("qoder-mcp", &["qoder-core", "qoder-http", "qoder-types", "qoder-tools"]),
    ("qoder-telemetry", &["qoder-core", "qoder-http", "qoder-types"]),
    (
        "qoder-runtime",
        &["qoder-core", "qoder-types", "qoder-models", "qoder-tools", "qoder-mcp", "qoder-telemetry"],
    ),
    ("qodercli", &["qoder-core", "qoder-types", "qoder-models", "qoder-tools", "qoder-mcp", "qoder-runtime"]),
    ("qoder-agent-sdk", &["qoder-agent-sdk-macros", "qoder-core", "qoder-types", "qoder-runtime"]),
    ("qoder-agent-sdk-macros", &[]),
    ("qoder-testkit", &["qoder-core", "qoder-types"]),
    // The benchmarks talk to the scripted server.
    ("xtask", &["qoder-testkit"]),
];

/// What any crate but `qoder-types` may use in its tests.
const TEST_ONLY: &str = "qoder-testkit";

/// Compares the workspace with the list.
pub(super) fn judge(root: &Path) -> Result<Verdict> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"];
    let output = process::cargo(root, &arguments).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    Ok(Verdict { rule: "crates use only the crates they may use", violations: violations(&metadata) })
}

fn violations(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let members: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ALLOWED.iter().find(|(listed, _)| *listed == name) else {
            found.push(format!("{name} is not in the list of crates (xtask/src/check/edges.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            let target = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let permitted =
                allowed.contains(&target) || (for_tests && target == TEST_ONLY && name != "qoder-types");
            if members.contains(&target) && !permitted {
                let how = if for_tests { "in its tests " } else { "" };
                found.push(format!("{name} must not {how}use {target}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let list: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
        json!({ "name": name, "dependencies": list })
    }

    #[test]
    fn listed_edges_and_outside_crates_pass() {
        let metadata = json!({ "packages": [
            package("qoder-types", &[("serde", None)]),
            package("qoder-core", &[("qoder-types", None), ("qoder-testkit", Some("dev"))]),
            package("qoder-testkit", &[("qoder-types", None)]),
        ]});
        assert_eq!(violations(&metadata), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_points_up_is_named() {
        let metadata = json!({ "packages": [
            package("qoder-types", &[("qoder-core", None), ("qoder-testkit", Some("dev"))]),
            package("qoder-core", &[]),
            package("qoder-testkit", &[]),
        ]});
        let found = violations(&metadata);
        assert_eq!(
            found,
            ["qoder-types must not use qoder-core", "qoder-types must not in its tests use qoder-testkit"]
        );
    }

    #[test]
    fn a_crate_without_an_entry_is_named() {
        let metadata = json!({ "packages": [package("stranger", &[])] });
        assert!(violations(&metadata)[0].contains("stranger"));
    }

    #[test]
    fn the_test_kit_is_no_ordinary_dependency() {
        let metadata = json!({ "packages": [
            package("qoder-runtime", &[("qoder-testkit", None)]),
            package("qoder-testkit", &[]),
        ]});
        assert_eq!(violations(&metadata), ["qoder-runtime must not use qoder-testkit"]);
    }
}
