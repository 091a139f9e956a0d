//! What still breaks a rule, as a number for each part of the repository. The numbers only shrink: more findings than
//! listed fail the check, and so do fewer, until the number here is lowered. `cargo xtask check --known` prints the table
//! as it is now.

use std::collections::BTreeMap;

use super::Verdict;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// The file or folder, from the root, with `/`.
    pub(super) path: String,
    /// What is wrong there.
    pub(super) text: String,
}

/// A rule whose findings are counted.
pub(super) struct Counted {
    /// The name of the rule in [`KNOWN`].
    pub(super) name: &'static str,
    /// What the rule demands.
    pub(super) rule: &'static str,
    /// Every place that breaks it.
    pub(super) findings: Vec<Finding>,
}

/// The rule's name, the part of the repository, and how many findings are known there.
pub(super) const KNOWN: &[(&str, &str, usize)] = &[
    // The documented words: `manifest` of a plugin, and the hint `idempotent` of a tool.
    ("names", "crates/config", 2),
    ("names", "crates/sdk", 2),
    // Texts that the model reads, and tests that expect them.
    ("phrases", "crates/cli", 4),
    ("phrases", "crates/config", 2),
    ("phrases", "crates/hooks", 1),
    ("phrases", "crates/policy", 1),
    ("phrases", "crates/protocol", 1),
    ("phrases", "crates/runtime", 15),
    ("phrases", "crates/tools", 14),
    // A word of the log, for the answer that no one gave.
    ("phrases", "crates/types", 3),
    ("phrases", "docs", 1),
    // Quoted samples.
    ("phrases", "sdks/python", 3),
];

/// The most findings of one part that are printed when there are too many.
const MOST_PRINTED: usize = 40;

/// Compares the findings of a rule with the known numbers.
pub(super) fn compare(counted: &Counted, known: &[(&str, &str, usize)]) -> Verdict {
    let mut parts: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in &counted.findings {
        parts.entry(part(&finding.path)).or_default().push(finding);
    }
    for (name, part, _) in known {
        if *name == counted.name {
            parts.entry(part).or_default();
        }
    }
    let mut violations = Vec::new();
    for (part, findings) in parts {
        let accepted: usize = known
            .iter()
            .filter(|entry| entry.0 == counted.name && entry.1 == part)
            .map(|entry| entry.2)
            .sum();
        let found = findings.len();
        if found > accepted {
            violations.push(format!("{part}: {found} found, {accepted} known"));
            violations.extend(
                findings.iter().take(MOST_PRINTED).map(|one| format!("  {}: {}", one.path, one.text)),
            );
            if found > MOST_PRINTED {
                violations.push(format!("  and {} more", found - MOST_PRINTED));
            }
        } else if found < accepted {
            let name = counted.name;
            violations.push(format!(
                "{part}: {found} left of {accepted}; lower the number of `{name}` in known.rs"
            ));
        }
    }
    Verdict { rule: counted.rule, violations }
}

/// The lines of [`KNOWN`] that describe the repository as it is.
pub(super) fn table(rules: &[Counted]) -> Vec<String> {
    let mut lines = Vec::new();
    for counted in rules {
        let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in &counted.findings {
            *parts.entry(part(&finding.path)).or_default() += 1;
        }
        lines.extend(
            parts.iter().map(|(part, count)| format!("    ({:?}, {part:?}, {count}),", counted.name)),
        );
    }
    lines
}

/// The part of the repository that a path belongs to: a crate, a package, or a folder at the top.
fn part(path: &str) -> &str {
    let mut ends = path.match_indices('/').map(|(index, _)| index);
    let first = ends.next();
    match first {
        None => path,
        Some(first) if matches!(&path[..first], "crates" | "sdks") => {
            &path[..ends.next().unwrap_or(path.len())]
        }
        Some(first) => &path[..first],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(paths: &[&str]) -> Counted {
        let findings =
            paths.iter().map(|path| Finding { path: (*path).to_owned(), text: "wrong".to_owned() }).collect();
        Counted { name: "rule", rule: "nothing is wrong", findings }
    }

    #[test]
    fn a_known_number_passes_and_any_other_fails() {
        let two = rule(&["crates/a/src/x.rs", "crates/a/src/y.rs"]);
        assert_eq!(compare(&two, &[("rule", "crates/a", 2)]).violations, [""; 0]);
        let grown = compare(&two, &[("rule", "crates/a", 1)]).violations;
        assert_eq!(
            grown,
            ["crates/a: 2 found, 1 known", "  crates/a/src/x.rs: wrong", "  crates/a/src/y.rs: wrong"]
        );
        let shrunk = compare(&two, &[("rule", "crates/a", 3)]).violations;
        assert_eq!(shrunk, ["crates/a: 2 left of 3; lower the number of `rule` in known.rs"]);
    }

    #[test]
    fn a_number_counts_for_its_rule_and_its_part_alone() {
        let one = rule(&["crates/a/src/x.rs"]);
        assert_eq!(compare(&one, &[("other", "crates/a", 1)]).violations.len(), 2);
        assert_eq!(compare(&one, &[("rule", "crates/b", 1)]).violations.len(), 3);
        assert_eq!(compare(&rule(&[]), &[("rule", "crates/b", 1)]).violations.len(), 1);
    }

    #[test]
    fn long_lists_are_cut() {
        let many = rule(&vec!["docs/x.md"; MOST_PRINTED + 5]);
        let violations = compare(&many, &[]).violations;
        assert_eq!(violations.len(), MOST_PRINTED + 2);
        assert_eq!(violations.last().map(String::as_str), Some("  and 5 more"));
    }

    #[test]
    fn parts_are_crates_packages_and_folders() {
        for (path, expected) in [
            ("crates/a/src/x.rs", "crates/a"),
            ("crates/a", "crates/a"),
            ("sdks/python/src/x.py", "sdks/python"),
            ("xtask/src/main.rs", "xtask"),
            ("README.md", "README.md"),
        ] {
            assert_eq!(part(path), expected);
        }
    }

    #[test]
    fn the_table_reads_back_as_it_was_counted() {
        let lines = table(&[rule(&["crates/a/x.rs", "docs/y.md", "crates/a/z.rs"])]);
        assert_eq!(lines, ["    (\"rule\", \"crates/a\", 2),", "    (\"rule\", \"docs\", 1),"]);
    }
}
