//! The corpus of permission cases: tables of rules, modes and calls with the decision that each must get. Every block
//! that stops something also holds an ordinary neighbour that must still run, since a prompt for everyday work is a
//! defect too. The tables are plain text beside this file; `table` says how they are written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bounds;
mod place;
mod table;

use std::path::Path;

use place::Place;
use qoder_runtime::permission_check::Checker;
use table::{Block, Expected};

/// How many cases the tables hold at least.
const FEWEST: usize = 2_000;

/// The tables, by name.
fn tables() -> Vec<(String, Vec<Block>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/permission_cases/tables");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let table = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name.clone(), table::read(&name, &std::fs::read_to_string(path).unwrap()))
    };
    names.iter().map(table).collect()
}

#[test]
fn every_case_gets_its_decision() {
    let place = Place::new();
    let mut checker = Checker::new(place.workspace(), place.home());
    let mut wrong = Vec::new();
    for (table, blocks) in tables() {
        for block in &blocks {
            for case in &block.cases {
                let checked = checker.check(&block.case(case, &place));
                let answer: serde_json::Value = serde_json::from_str(&checked.line).unwrap();
                let got = answer["decision"].as_str().unwrap();
                if !case.expected.is(got, checked.is_error) {
                    wrong.push(format!(
                        "{table}:{} [{}] wants {:?}, got {got}: {}\n      {}",
                        case.line, block.title, case.expected, case.text, answer["reason"]["message"]
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases are decided otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_cases_and_each_block_has_both_sides() {
    let tables = tables();
    let count: usize = tables.iter().flat_map(|(_, blocks)| blocks).map(|block| block.cases.len()).sum();
    assert!(count >= FEWEST, "only {count} cases");
    for (table, blocks) in &tables {
        for block in blocks {
            let allowed = block.cases.iter().filter(|case| case.expected == Expected::Allow).count();
            assert!(allowed > 0, "{table}: [{}] has nothing that still runs", block.title);
            assert!(allowed < block.cases.len(), "{table}: [{}] has nothing that is stopped", block.title);
        }
    }
}

#[test]
fn no_case_stands_twice() {
    let mut seen = std::collections::HashSet::new();
    for (table, blocks) in tables() {
        for block in blocks {
            for case in &block.cases {
                let key = (format!("{:?}", block.terms), case.text.clone());
                assert!(seen.insert(key), "{table}:{} stands there before: {}", case.line, case.text);
            }
        }
    }
}
