//! `cargo xtask test --quick`: what a change is likely to break, in the time that one waits for. Format, house rules, the
//! units of the crates that changed against `HEAD` and of their dependants (of all crates when none changed), the changed
//! modules of tests, the properties, and the scenario files in all three SDKs.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::changed::{self, Changed};
use super::counts;
use super::report::{Report, Tally};
use super::{TO_THE_END, has_nextest, nextest, sdks};
use xtask::process;

/// Targets that are built beside the units: those with properties and scenarios, and the program itself, which comes with
/// the tests of `qodercli`.
const TARGETS: [&str; 4] = ["core", "models", "sdk", "cli"];
/// Tests of laws that hold for whatever input: random inputs, cuts and simulations.
const PROPERTIES: &str = "(package(=qoder-core) & test(/^(gate_properties|rules)::|::properties::/)) \
                          | (package(=qoder-models) & test(/^event_cuts::/))";
/// The scenario files as Rust runs them.
const SCENARIOS: &str = "(package(=qoder-agent-sdk) & test(/^scenarios::/))";

/// Runs the quick steps.
pub(super) fn run(root: &Path, tally: &Tally) -> Result<()> {
    super::sources(root, tally);
    let changed = changed::against_head(root)?;
    if !tally.step("build", || build(root, &changed)) {
        return Ok(());
    }
    // Nothing is built from here on, so the program stays what it is while the SDKs run it.
    let program = process::target_directory(root).join("debug/qodercli");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tally.step("scenarios in TypeScript", || {
                sdks::typescript_tests(root, &program, &["scenarios.test"])
            })
        });
        scope.spawn(|| tally.step("scenarios in Python", || sdks::python_scenarios(root, &program)));
        tally.step("tests", || tests(root, &changed));
    });
    Ok(())
}

fn build(root: &Path, changed: &Changed) -> Result<Report> {
    if !has_nextest(root)? {
        bail!("`--quick` chooses tests with cargo-nextest. Install it, or run `cargo xtask test`.");
    }
    let finished = process::capture(chosen(root, changed).arg("--no-run"))?;
    Ok(Report::of_command(&finished, counts::Counts::of(finished.succeeded())))
}

fn tests(root: &Path, changed: &Changed) -> Result<Report> {
    let finished = process::capture(chosen(root, changed).args(TO_THE_END))?;
    Ok(Report::of_command(&finished, counts::from_nextest(&finished.output)))
}

fn chosen(root: &Path, changed: &Changed) -> Command {
    let mut command = nextest(root);
    command.args(["--lib", "--bins", "-E", &filter(changed)]);
    for target in targets(changed) {
        command.args(["--test", &target]);
    }
    command
}

/// The tests of a package have its name without the prefix that all packages share.
fn targets(changed: &Changed) -> Vec<String> {
    let mut targets: Vec<String> = TARGETS.map(str::to_owned).into();
    for (package, _) in &changed.tests {
        let target = match package.as_str() {
            "qodercli" => "cli",
            "qoder-agent-sdk" => "sdk",
            other => other.strip_prefix("qoder-").unwrap_or(other),
        };
        if !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    targets
}

/// Which of the built tests run, in nextest's language.
fn filter(changed: &Changed) -> String {
    let units = "(kind(lib) | kind(bin) | kind(proc-macro))";
    let mut parts = vec![PROPERTIES.to_owned(), SCENARIOS.to_owned()];
    if changed.packages.is_empty() {
        parts.push(units.to_owned());
    } else {
        let concerned: Vec<String> = changed.packages.iter().map(|name| format!("rdeps(={name})")).collect();
        parts.push(format!("(({}) & {units})", concerned.join(" | ")));
    }
    for (package, module) in &changed.tests {
        // `main` and folders that all tests share concern every test of the package.
        let which = if matches!(module.as_str(), "main" | "common" | "support" | "client") {
            "all()".to_owned()
        } else {
            format!("test(/^{module}::/)")
        };
        parts.push(format!("(package(={package}) & kind(test) & {which})"));
    }
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(packages: &[&str], tests: &[(&str, &str)]) -> Changed {
        Changed {
            packages: packages.iter().map(|name| (*name).to_owned()).collect(),
            tests: tests.iter().map(|(name, module)| ((*name).to_owned(), (*module).to_owned())).collect(),
        }
    }

    #[test]
    fn units_are_those_of_dependants_or_all() {
        assert!(filter(&changed(&[], &[])).ends_with("(kind(lib) | kind(bin) | kind(proc-macro))"));
        let some = filter(&changed(&["qoder-core", "qoder-types"], &[]));
        assert!(some.contains("((rdeps(=qoder-core) | rdeps(=qoder-types)) & (kind(lib)"), "{some}");
        assert!(some.contains("gate_properties") && some.contains("scenarios"), "{some}");
    }

    #[test]
    fn changed_tests_run_by_module_and_shared_ones_as_a_whole() {
        let some = filter(&changed(&[], &[("qodercli", "turns"), ("qoder-tools", "common")]));
        assert!(some.contains("(package(=qodercli) & kind(test) & test(/^turns::/))"), "{some}");
        assert!(some.contains("(package(=qoder-tools) & kind(test) & all())"), "{some}");
        assert_eq!(targets(&changed(&[], &[("qoder-tools", "web"), ("qodercli", "turns")])).len(), 5);
    }
}
