//! Which crate of the workspace may use which. Cargo's own metadata is compared with the list here; an edge
//! that is not listed is a violation, so that a new dependency between crates is a decision and not an
//! accident.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Verdict;
use xtask::process;

/// Crate, and the crates of this workspace it may use. A row with `core` has `types` too, whose nouns are in core's
/// signatures. A front sees what its row has and nothing below it. Crates that do not exist yet have their row already.
const ALLOWED: &[(&str, &[&str])] = &[
    ("qoder-types", &[]),
    ("qoder-protocol", &["qoder-types"]),
    ("qoder-core", &["qoder-types"]),
    ("qoder-policy", &["qoder-types"]),
    ("qoder-process", &["qoder-types"]),
    // Like http, below everything: files that others put there are opened in one way by config, tools and
    // hooks, none of which may use another.
    ("qoder-files", &[]),
    ("qoder-http", &[]),
    ("qoder-models", &["qoder-core", "qoder-http", "qoder-types"]),
    ("qoder-tools", &["qoder-core", "qoder-files", "qoder-policy", "qoder-process", "qoder-types"]),
    ("qoder-mcp", &["qoder-core", "qoder-http", "qoder-process", "qoder-types"]),
    ("qoder-store", &["qoder-core", "qoder-types"]),
    ("qoder-config", &["qoder-files", "qoder-policy", "qoder-types"]),
    (
        "qoder-hooks",
        &[
            "qoder-config",
            "qoder-core",
            "qoder-files",
            "qoder-models",
            // The ruling that hooks tighten.
            "qoder-policy",
            "qoder-process",
            "qoder-types",
        ],
    ),
    ("qoder-telemetry", &["qoder-core", "qoder-http", "qoder-types"]),
    ("qoder-runtime", BELOW_RUNTIME),
    ("qoder-agent-sdk", &["qoder-agent-sdk-macros", "qoder-protocol", "qoder-runtime"]),
    ("qoder-agent-sdk-macros", &[]),
    // The nouns of types are in the signatures of protocol.
    ("qoder-stdio", &["qoder-protocol", "qoder-runtime", "qoder-types"]),
    (
        "qoder-server",
        &[
            // The log's port, which its own store of sessions implements.
            "qoder-core",
            "qoder-http",
            "qoder-mcp",
            "qoder-models",
            "qoder-protocol",
            "qoder-runtime",
            "qoder-store",
            // Records, inbox entries and content, which are in the signatures of those ports.
            "qoder-types",
        ],
    ),
    // The nouns of types are in the signatures of protocol.
    ("qoder-terminal", &["qoder-protocol", "qoder-types"]),
    ("qoder-acp", &["qoder-protocol", "qoder-runtime"]),
    ("qodercli", ALL),
    ("qoder-testkit", &["qoder-core", "qoder-protocol", "qoder-store", "qoder-types"]),
    // The benchmarks talk to the scripted server.
    ("trials", &["qoder-testkit", "xtask"]),
    ("xtask", &[]),
];

/// What the runtime is made of.
const BELOW_RUNTIME: &[&str] = &[
    "qoder-config",
    "qoder-core",
    "qoder-files",
    "qoder-hooks",
    "qoder-http",
    "qoder-mcp",
    "qoder-models",
    "qoder-policy",
    "qoder-process",
    "qoder-protocol",
    "qoder-store",
    "qoder-telemetry",
    "qoder-tools",
    "qoder-types",
];

/// What the program is wired from.
const ALL: &[&str] = &[
    "qoder-acp",
    "qoder-config",
    "qoder-core",
    "qoder-files",
    "qoder-hooks",
    "qoder-http",
    "qoder-mcp",
    "qoder-models",
    "qoder-policy",
    "qoder-process",
    "qoder-protocol",
    "qoder-runtime",
    "qoder-server",
    "qoder-stdio",
    "qoder-store",
    "qoder-telemetry",
    "qoder-terminal",
    "qoder-tools",
    "qoder-types",
];

/// Edges that the list does not allow and that are still there. One that is gone has to leave this list.
const KNOWN: &[(&str, &str)] = &[];

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
    Ok(Verdict { rule: "crates use only the crates they may use", violations: violations(&metadata, KNOWN) })
}

fn violations(metadata: &Value, known: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut unused: Vec<&(&str, &str)> = known.iter().collect();
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
            let is_known = known.contains(&(name, target));
            if is_known && !permitted {
                unused.retain(|edge| **edge != (name, target));
            }
            if members.contains(&target) && !permitted && !is_known {
                let how = if for_tests { "in its tests " } else { "" };
                found.push(format!("{name} must not {how}use {target}"));
            }
        }
    }
    found.extend(
        unused.iter().map(|(name, target)| format!("{name} no longer uses {target}: remove it from KNOWN")),
    );
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
        assert_eq!(violations(&metadata, &[]), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_points_up_is_named() {
        let metadata = json!({ "packages": [
            package("qoder-types", &[("qoder-core", None), ("qoder-testkit", Some("dev"))]),
            package("qoder-core", &[]),
            package("qoder-testkit", &[]),
        ]});
        let found = violations(&metadata, &[]);
        assert_eq!(
            found,
            ["qoder-types must not use qoder-core", "qoder-types must not in its tests use qoder-testkit"]
        );
    }

    #[test]
    fn a_crate_without_an_entry_is_named() {
        let metadata = json!({ "packages": [package("stranger", &[])] });
        assert!(violations(&metadata, &[])[0].contains("stranger"));
    }

    #[test]
    fn the_test_kit_is_no_ordinary_dependency() {
        let metadata = json!({ "packages": [
            package("qoder-runtime", &[("qoder-testkit", None)]),
            package("qoder-testkit", &[]),
        ]});
        assert_eq!(violations(&metadata, &[]), ["qoder-runtime must not use qoder-testkit"]);
    }

    #[test]
    fn a_known_edge_passes_while_it_is_there() {
        let with = json!({ "packages": [package("qoder-types", &[("qoder-core", None)]), package("qoder-core", &[])] });
        let edge = ("qoder-types", "qoder-core");
        assert_eq!(violations(&with, &[edge]), [""; 0]);
        let without = json!({ "packages": [package("qoder-types", &[]), package("qoder-core", &[])] });
        assert_eq!(
            violations(&without, &[edge]),
            ["qoder-types no longer uses qoder-core: remove it from KNOWN"]
        );
    }

    #[test]
    fn a_front_does_not_see_below_its_row() {
        let metadata = json!({ "packages": [
            package("qoder-terminal", &[("qoder-protocol", None), ("qoder-runtime", None)]),
            package("qoder-protocol", &[]),
            package("qoder-runtime", &[]),
        ]});
        assert_eq!(violations(&metadata, &[]), ["qoder-terminal must not use qoder-runtime"]);
    }

    #[test]
    fn the_list_has_no_cycle_and_no_stranger() {
        for (name, allowed) in ALLOWED {
            for target in *allowed {
                let row = ALLOWED.iter().find(|(listed, _)| listed == target);
                let row = row.unwrap_or_else(|| panic!("{name}: {target} has no row"));
                assert!(!row.1.contains(name), "{name} and {target} may use each other");
            }
        }
    }
}
