//! A folder of sources has at most 16 entries: a reader should see at a glance what is in it. Holds for what is below a
//! `src` folder; files under `tests` are one behaviour each and are found by name.

use std::collections::{BTreeMap, BTreeSet};

use super::known::{Counted, Finding};

/// The most entries of a folder.
const MOST_ENTRIES: usize = 16;

/// Judges the folders of these files.
pub(super) fn judge(paths: &[String]) -> Counted {
    let findings = crowded(paths);
    Counted { name: "folders", rule: "folders of sources have at most 16 entries", findings }
}

fn crowded(paths: &[String]) -> Vec<Finding> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            let in_sources = folder.ends_with("/src") || folder.contains("/src/");
            if in_sources {
                let rest = &path[end + 1..];
                entries.entry(folder).or_default().insert(rest.split('/').next().unwrap_or(rest));
            }
        }
    }
    entries
        .into_iter()
        .filter(|(_, names)| names.len() > MOST_ENTRIES)
        .map(|(folder, names)| Finding { path: folder.to_owned(), text: format!("{} entries", names.len()) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{folder}/file_{number}.rs")).collect()
    }

    #[test]
    fn the_limit_is_inclusive_and_counts_folders_once() {
        let mut paths = files("crates/a/src", 15);
        paths.extend(files("crates/a/src/inner", 16));
        assert_eq!(crowded(&paths), []);
        paths.push("crates/a/src/other/mod.rs".to_owned());
        let found = crowded(&paths);
        assert_eq!(found, [Finding { path: "crates/a/src".to_owned(), text: "17 entries".to_owned() }]);
    }

    #[test]
    fn inner_folders_count_and_tests_do_not() {
        assert_eq!(crowded(&files("crates/a/src/b/c", 17)).len(), 1);
        assert_eq!(crowded(&files("crates/a/tests", 40)), []);
    }
}
