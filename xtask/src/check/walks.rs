//! The files that `docs/architecture.md` names: a walk that leads to a file that was moved away helps no one.

use std::path::Path;

use anyhow::{Context, Result};

use super::Verdict;

const PAGE: &str = "docs/architecture.md";

/// Looks for every file that the page names.
pub(super) fn judge(root: &Path) -> Result<Verdict> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let exists = |file: &str| root.join(file).is_file() || root.join("crates").join(file).is_file();
    let violations = missing(&page, exists);
    Ok(Verdict { rule: "docs/architecture.md names files that exist", violations })
}

/// What the page names and is not there.
fn missing(page: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    named(page).filter(|file| !exists(file)).map(|file| format!("{PAGE}: {file} does not exist")).collect()
}

/// The Rust files between backquotes.
fn named(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2).filter(|text| text.contains('/') && text.ends_with(".rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_between_backquotes() {
        let page = "`a/src/b.rs` and `c.rs`, `d/e.md`\n1. `crates/f/src/g.rs` holds `Thing`";
        assert_eq!(named(page).collect::<Vec<_>>(), ["a/src/b.rs", "crates/f/src/g.rs"]);
    }

    #[test]
    fn a_file_that_is_gone_is_reported() {
        let exists = |file: &str| file == "a/src/b.rs";
        let page = "`a/src/b.rs` `a/src/gone.rs`";
        assert_eq!(missing(page, exists), ["docs/architecture.md: a/src/gone.rs does not exist"]);
    }
}
